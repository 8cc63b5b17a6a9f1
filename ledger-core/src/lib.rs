//! The pure core of the ledger: checked values and the rules.
//!
//! A command is decided in steps. [`check_sizes`] refuses what is too large. [`admission_needs`] lists the facts that the
//! options of the request require, the caller loads them, and [`admit`] says whether the command is executed. [`settle()`]
//! replaces a script by its postings. [`needs`] lists the facts that the decision requires, the caller loads them, and
//! [`decide`] returns the effect of the command or refuses it. This crate reads no file, no clock and no random source.
//! Equal arguments give equal results, so a log always replays into the same ledger.

#![warn(missing_debug_implementations)]

pub mod limits;

mod address;
mod admission;
mod command;
mod condition;
mod decide;
pub mod enforcement;
mod error_wording;
mod expression;
mod facts;
mod filter;
mod filter_json;
mod filter_of;
mod json;
mod json_path;
mod ledger;
mod log;
#[cfg(feature = "model")]
pub mod model;
mod needs;
mod overdraft;
mod preconditions;
mod prior_request;
mod property;
mod rejection;
mod revert_mark;
mod rules;
pub mod schema;
mod settle;
mod subjects;
mod wire;

#[doc(inline)]
pub use ledger_numscript as script;
#[doc(no_inline)]
pub use ledger_values::json_text::write_json_text;
#[doc(inline)]
pub use ledger_values::{
    AccountAddress, Amount, AmountError, Asset, Balance, BucketName, HoldingVolumes, IdempotencyKey,
    IntoAmount, JsonError, JsonKind, JsonReader, JsonWriter, LedgerName, Metadata, MetadataValue, Monetary,
    MonetaryError, NameError, NameKind, Posting, Postings, Reference, SchemaVersion, SmolStr, Timestamp,
    TimestampError, TimestampText, Transaction, TransactionId, Volumes, WORLD, short_text,
};

pub use address::AddressPattern;
pub use admission::{Admission, RequestOptions, admission_needs, admit};
pub use command::{
    Command, CreateTransaction, InsertSchema, Movement, RevertDate, RevertTransaction, Script, Target,
    VariableValue,
};
pub use condition::{
    AddressRole, AddressTest, Comparison, Condition, DateField, Field, FilterError, FilterSyntaxError,
    FilterValue, Operator, TextField, TextTest, ValueType,
};
pub use decide::{Decision, NewTransaction, decide};
pub use error_wording::ErrorWording;
pub use expression::{AddressExpression, ExpressionError};
pub use facts::{Facts, HoldingRef, KnownTransaction, Needs, SlotList, Slots};
pub use filter::{Filter, FilterNode, FilterSubject};
pub use filter_json::JsonCondition;
pub use filter_of::{
    Accounts, AggregatedBalances, FilterOf, Ledgers, Logs, Schemas, Selects, Transactions, VolumeRows,
};
pub use json::Json;
pub use ledger::{Features, FirstId, HashLogs, LedgerOptions, Switch};
pub use log::{Idempotency, LogEntry, LogId, LogPayload};
pub use needs::{check_sizes, needs};
pub use overdraft::{Overdraft, OverdraftLimit};
pub use preconditions::Preconditions;
pub use prior_request::{Operation, PriorRequest};
pub use property::{Property, Resource};
pub use rejection::{MissingFunds, Rejection};
pub use revert_mark::REVERTS_KEY;
pub use rules::{Contract, LegacyRules, Mapping, Operand, PastDates, Rule, Rules};
pub use settle::settle;
pub use wire::{
    HashChain, LegacyHashChain, LegacyLog, Memento, WireHash, batch_hash, log_request_hash, request_hash,
    wire_hash,
};
