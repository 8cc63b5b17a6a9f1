//! Commands: the writes that a caller can request from a ledger.

use std::collections::BTreeMap;

use smol_str::SmolStr;

use crate::error_wording::ErrorWording;
use crate::overdraft::Overdraft;
use crate::prior_request::Operation;
use crate::rules::Rules;
use crate::schema::Schema;
use ledger_numscript::{Language, Type};
use ledger_values::{
    AccountAddress, Amount, Asset, Metadata, Monetary, Postings, Reference, SchemaVersion, Timestamp,
    TransactionId,
};

/// One write to one ledger. It becomes exactly one log entry, or is refused and leaves no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Records a transaction.
    CreateTransaction(CreateTransaction),
    /// Records the inverse of a transaction and marks the original as reverted.
    RevertTransaction(RevertTransaction),
    /// Sets metadata keys. Other keys stay.
    SetMetadata {
        /// The account or transaction to change.
        target: Target,
        /// The keys to set, possibly none.
        metadata: Metadata,
    },
    /// Removes one metadata key.
    DeleteMetadata {
        /// The account or transaction to change.
        target: Target,
        /// The key to remove.
        key: SmolStr,
    },
    /// Adds a version of the ledger's schema.
    InsertSchema(InsertSchema),
}

impl Command {
    /// Returns the transaction that the command names. It is loaded first, because a revert depends on its postings.
    pub fn transaction(&self) -> Option<TransactionId> {
        match self {
            Self::RevertTransaction(revert) => Some(revert.id),
            Self::SetMetadata { target: Target::Transaction(id), .. }
            | Self::DeleteMetadata { target: Target::Transaction(id), .. } => Some(*id),
            Self::SetMetadata { target: Target::Account(_), .. }
            | Self::DeleteMetadata { target: Target::Account(_), .. }
            | Self::CreateTransaction(_)
            | Self::InsertSchema(_) => None,
        }
    }
}

impl Operation {
    /// Returns the operation of a command.
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

/// A schema version to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertSchema {
    /// Name of the version, which must be new to the ledger.
    pub version: SchemaVersion,
    /// Content of the version.
    pub schema: Box<Schema>,
}

/// The owner of metadata.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "camelCase"))]
pub enum Target {
    /// An account. Naming it brings it into existence.
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
    /// The movement of money.
    pub movement: Movement,
    /// Metadata of the transaction.
    pub metadata: Metadata,
    /// Metadata to set on accounts in the same step.
    pub account_metadata: BTreeMap<AccountAddress, Metadata>,
    /// The effective date, or `None` for the insertion date.
    pub timestamp: Option<Timestamp>,
    /// A reference that no other transaction of the ledger has.
    pub reference: Option<Reference>,
    /// Permission for accounts other than `world` to go below zero.
    pub overdraft: Overdraft,
    /// The rules that check the postings.
    pub rules: Rules,
    /// The schema template that supplied the script. Empty until the command is [admitted](crate::admit).
    pub template: Option<Box<str>>,
}

impl CreateTransaction {
    /// Makes a transaction of postings, without metadata or options.
    #[inline]
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

/// The movement of a transaction, in one of three forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Movement {
    /// Postings, executed in order.
    Postings(Postings),
    /// A script that produces postings.
    Script(Script),
    /// A script template of the schema version that the request names.
    Template {
        /// Name of the template.
        name: SmolStr,
        /// Values of the variables by name.
        variables: BTreeMap<String, VariableValue>,
        /// Wording of its errors, unless the template chooses one.
        wording: ErrorWording,
        /// The language of the template.
        language: Language,
    },
}

/// A script with the values of its variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Text of the script.
    pub plain: String,
    /// Values of the variables by name.
    pub variables: BTreeMap<String, VariableValue>,
    /// Wording of its errors.
    pub wording: ErrorWording,
    /// The language of the text.
    pub language: Language,
}

impl Script {
    /// Makes a script with variables whose values are texts.
    pub fn new(plain: String, variables: BTreeMap<String, String>) -> Self {
        let variables = variables.into_iter().map(|(name, text)| (name, VariableValue::Text(text)));
        Self { plain, variables: variables.collect(), ..Self::default() }
    }
}

/// The value of a variable before the script tells its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VariableValue {
    /// A text, which the variable's type gives a meaning.
    Text(String),
    /// The digits of an integer. Fits only variables of type number.
    Number(String),
    /// An asset and an amount. Fits only variables of type monetary.
    Monetary(String),
    /// A value that fits no type. A script that uses it is refused.
    Unfit,
}

impl From<&str> for VariableValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for VariableValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for VariableValue {
    fn from(number: i64) -> Self {
        Self::Number(number.to_string())
    }
}

impl From<Amount> for VariableValue {
    fn from(number: Amount) -> Self {
        Self::Number(number.to_string())
    }
}

impl From<Monetary> for VariableValue {
    fn from(monetary: Monetary) -> Self {
        Self::Monetary(monetary.to_string())
    }
}

impl From<&AccountAddress> for VariableValue {
    fn from(address: &AccountAddress) -> Self {
        Self::Text(address.to_string())
    }
}

impl From<&Asset> for VariableValue {
    fn from(asset: &Asset) -> Self {
        Self::Text(asset.to_string())
    }
}

impl VariableValue {
    /// Tells whether a variable of this type can have the value.
    pub(crate) fn fits(&self, declared: Type) -> bool {
        match self {
            Self::Text(_) => true,
            Self::Number(_) => declared == Type::Number,
            Self::Monetary(_) => declared == Type::Monetary,
            Self::Unfit => false,
        }
    }

    /// Returns the text of the value, or an empty text if it has none.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Text(text) | Self::Number(text) | Self::Monetary(text) => text,
            Self::Unfit => String::new(),
        }
    }
}

/// A request to revert a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevertTransaction {
    /// The transaction to revert.
    pub id: TransactionId,
    /// Permission for accounts to go below zero because of the revert.
    pub overdraft: Overdraft,
    /// The effective date of the new transaction.
    pub dated: RevertDate,
    /// Metadata of the new transaction. It cannot replace the link to the original.
    pub metadata: Metadata,
    /// The rules that check the postings.
    pub rules: Rules,
}

/// The effective date of a reverting transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RevertDate {
    /// The insertion date of the revert.
    #[default]
    Now,
    /// The effective date of the original transaction.
    OfOriginal,
}
