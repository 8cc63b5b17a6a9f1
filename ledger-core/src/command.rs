//! What can be asked of a ledger.

use std::collections::BTreeMap;

use compact_str::CompactString;

use crate::legacy::Rules;
use crate::metadata::Metadata;
use crate::names::{AccountAddress, Reference, SchemaVersion};
use crate::schema::Schema;
use crate::script::Type;
use crate::timestamp::Timestamp;
use crate::transaction::{Postings, TransactionId};

/// One write on one ledger. Each becomes exactly one entry of its log, or is refused without a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Record a transaction.
    CreateTransaction(CreateTransaction),
    /// Record the inverse of a transaction and mark it reverted.
    RevertTransaction(RevertTransaction),
    /// Set metadata keys; others stay.
    SetMetadata {
        /// Of what.
        target: Target,
        /// The keys to set; may be empty.
        metadata: Metadata,
    },
    /// Remove one metadata key.
    DeleteMetadata {
        /// Of what.
        target: Target,
        /// The key.
        key: CompactString,
    },
    /// Add a version of the ledger's schema.
    InsertSchema(InsertSchema),
}

/// What a command asks for, as far as the log of it tells exactly. A request under an idempotency key is never answered
/// with the log of another operation, also where there are no hashes to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A transaction is recorded.
    Create,
    /// The transaction with this id is reverted.
    Revert(u64),
    /// Metadata of the transaction with this id, or of an account, is set.
    SetMetadata(Option<u64>),
    /// A metadata key of the transaction with this id, or of an account, is removed.
    DeleteMetadata(Option<u64>),
    /// A version of the schema is added.
    InsertSchema,
}

impl Operation {
    /// That of a command.
    pub const fn of(command: &Command) -> Self {
        match command {
            Command::CreateTransaction(_) => Self::Create,
            Command::RevertTransaction(revert) => Self::Revert(revert.id.get()),
            Command::SetMetadata { target, .. } => Self::SetMetadata(target.transaction()),
            Command::DeleteMetadata { target, .. } => Self::DeleteMetadata(target.transaction()),
            Command::InsertSchema(_) => Self::InsertSchema,
        }
    }
}

/// A schema to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertSchema {
    /// What it will be called; new to the ledger.
    pub version: SchemaVersion,
    /// What it says.
    pub schema: Box<Schema>,
}

/// What metadata belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// An account; naming it brings it into existence.
    Account(AccountAddress),
    /// A transaction, which must exist.
    Transaction(TransactionId),
}

impl Target {
    pub(crate) const fn transaction(&self) -> Option<u64> {
        match self {
            Self::Account(_) => None,
            Self::Transaction(id) => Some(id.get()),
        }
    }
}

/// A transaction to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateTransaction {
    /// Where the money goes.
    pub movement: Movement,
    /// The transaction's metadata.
    pub metadata: Metadata,
    /// Metadata to set on accounts in the same step.
    pub account_metadata: BTreeMap<AccountAddress, Metadata>,
    /// The effective date; `None` is the insertion date.
    pub timestamp: Option<Timestamp>,
    /// A name that must be new to the ledger.
    pub reference: Option<Reference>,
    /// Whether accounts other than `world` may go below zero.
    pub overdraft: Overdraft,
    /// By whose rules it is checked.
    pub rules: Rules,
    /// The schema template that its script came from, once that [is known](crate::schema::resolve).
    pub template: Option<Box<str>>,
}

impl CreateTransaction {
    /// These postings and nothing else.
    pub fn of(postings: Postings) -> Self {
        Self {
            movement: Movement::Postings(postings),
            metadata: Metadata::EMPTY,
            account_metadata: BTreeMap::new(),
            timestamp: None,
            reference: None,
            overdraft: Overdraft::Refuse,
            rules: Rules::Current,
            template: None,
        }
    }
}

/// The ways to say where money goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Movement {
    /// Postings, executed in order.
    Postings(Postings),
    /// A script, which produces postings when it is run.
    Script(Script),
    /// A script of the schema version that the request names.
    Template {
        /// The template.
        name: CompactString,
        /// Variable name to its value.
        variables: BTreeMap<String, VariableValue>,
        /// In whose words it is refused, where the template does not say.
        runtime: Runtime,
    },
}

/// A script with the values of its variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Its text.
    pub plain: String,
    /// Variable name to its value.
    pub variables: BTreeMap<String, VariableValue>,
    /// In whose words it is refused.
    pub runtime: Runtime,
}

impl Script {
    /// A script with the texts of its variables.
    pub fn new(plain: String, variables: BTreeMap<String, String>) -> Self {
        let variables = variables.into_iter().map(|(name, text)| (name, VariableValue::Text(text)));
        Self { plain, variables: variables.collect(), runtime: Runtime::default() }
    }
}

/// The value of a variable, by what is known of it before its type is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariableValue {
    /// A text, to be read by the variable's type.
    Text(String),
    /// The digits of an integer: for numbers alone.
    Number(String),
    /// An asset and an amount: for monetaries alone.
    Monetary(String),
    /// A value of no type. The script is refused when its turn comes to be read.
    Unfit,
}

impl VariableValue {
    /// Whether a variable of this type can have it.
    pub(crate) fn fits(&self, declared: Type) -> bool {
        match self {
            Self::Text(_) => true,
            Self::Number(_) => declared == Type::Number,
            Self::Monetary(_) => declared == Type::Monetary,
            Self::Unfit => false,
        }
    }

    /// Its text; empty without one.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Text(text) | Self::Number(text) | Self::Monetary(text) => text,
            Self::Unfit => String::new(),
        }
    }
}

/// In whose words a script is refused. It runs the same either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Runtime {
    /// Those of the machine, which all clients know.
    #[default]
    Machine,
    /// Those of the newer interpreter.
    Interpreter,
}

impl Runtime {
    /// The runtime with this name on the wire.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Machine, Self::Interpreter].into_iter().find(|runtime| runtime.name() == name)
    }

    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Interpreter => "experimental-interpreter",
        }
    }
}

/// Whether a source may go below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Overdraft {
    /// Only `world` may.
    #[default]
    Refuse,
    /// Every account may: the caller has decided.
    Allow,
}

/// A revert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevertTransaction {
    /// The transaction to undo.
    pub id: TransactionId,
    /// Whether accounts may go below zero by it.
    pub overdraft: Overdraft,
    /// The effective date of the new transaction.
    pub dated: RevertDate,
    /// Metadata of the new transaction; cannot replace the link to the original.
    pub metadata: Metadata,
    /// By whose rules it is checked.
    pub rules: Rules,
}

/// The effective date of a reverting transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RevertDate {
    /// The insertion date.
    #[default]
    Now,
    /// The effective date of the original.
    OfOriginal,
}
