//! The pure core of the ledger: values that cannot be wrong, and the rules.
//!
//! A command is decided in three steps. [`needs`] says what must be known, the caller finds it out, and
//! [`decide`] says what happens or why not. Nothing here reads a file, a clock or a random source; equal
//! arguments give equal results, so that a log replays into the same ledger for ever.

pub mod limits;

mod address;
mod amount;
mod apply;
mod command;
mod condition;
mod decide;
mod decimal;
mod expression;
mod field;
mod filter;
mod json;
mod json_path;
mod json_text;
mod ledger;
mod legacy;
mod legacy_hash;
mod log;
mod mapping;
mod memento;
mod metadata;
#[cfg(feature = "model")]
pub mod model;
mod names;
mod needs;
mod rejection;
pub mod schema;
pub mod script;
mod subjects;
mod timestamp;
mod transaction;
mod volumes;
mod wire_hash;

pub use address::AddressPattern;
pub use amount::{Amount, AmountError, Balance};
pub use apply::{Changes, apply};
pub use command::{
    Command, CreateTransaction, InsertSchema, Movement, Operation, Overdraft, RevertDate, RevertTransaction,
    Runtime, Script, Target, VariableValue,
};
pub use compact_str::CompactString;
pub use condition::{
    AddressRole, AddressTest, Comparison, Condition, DateField, FilterError, FilterValue, Operator,
    TextField, TextTest, ValueType,
};
pub use decide::{Decision, NewTransaction, REVERTS_KEY, check_before_script, decide};
pub use expression::{AddressExpression, ExpressionError};
pub use field::{Field, Property, Resource};
pub use filter::{Filter, FilterNode, FilterSubject};
pub use json::{Json, JsonError};
pub use json_text::write_json_text;
pub use ledger::{Features, FirstId, HashLogs, LedgerOptions, Switch};
pub use legacy::{LegacyRules, PastDates, Rules, reverting_reference};
pub use legacy_hash::{LegacyHashChain, LegacyLog};
pub use log::{Idempotency, LogEntry, LogId, LogPayload};
pub use mapping::{Contract, Mapping, Operand, Rule};
pub use memento::Memento;
pub use metadata::{Metadata, MetadataValue};
pub use names::{
    AccountAddress, Asset, BucketName, IdempotencyKey, LedgerName, NameError, NameKind, Reference,
    SchemaVersion, WORLD,
};
pub use needs::{Facts, HoldingRef, KnownTransaction, Needs, SlotList, Slots, needs};
pub use rejection::Rejection;
pub use timestamp::{Timestamp, TimestampError, TimestampText};
pub use transaction::{Posting, Postings, Transaction, TransactionId};
pub use volumes::{HoldingVolumes, Volumes};
pub use wire_hash::{HashChain, WireHash, wire_hash};
