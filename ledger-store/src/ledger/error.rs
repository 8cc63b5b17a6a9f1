//! The errors of a [`Ledger`](super::Ledger).

use std::fmt;

use ledger_core::schema::SchemaError;
use ledger_core::script::ErrorClass;
use ledger_core::{
    AccountAddress, AmountError, FilterError, IdempotencyKey, LedgerName, MissingFunds, NameError, Rejection,
    TransactionId,
};

use crate::error::{ReadError, WriteError};

/// The reason why an operation of a [`Ledger`](crate::Ledger) failed. Unless the outcome of a write is unknown
/// ([`WriteError::OutcomeUnknown`]), the operation had no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LedgerError {
    /// A name does not follow its grammar.
    Name(NameError),
    /// An amount is negative, or has more fractional digits than its asset.
    Amount(AmountError),
    /// A filter is malformed.
    Filter(FilterError),
    /// A schema is malformed.
    Schema(SchemaError),
    /// A text is not a valid cursor of this list.
    Cursor {
        /// The text.
        text: String,
    },
    /// The ledger does not exist.
    LedgerNotFound {
        /// The name of the ledger.
        ledger: LedgerName,
    },
    /// The ledger has no account with this address: of [`Ledger::get_account`](crate::Ledger::get_account), and of writes
    /// that [require](crate::TransactionBuilder::require_account) the account.
    AccountNotFound {
        /// The ledger.
        ledger: LedgerName,
        /// The address.
        account: AccountAddress,
    },
    /// An account that must be new exists.
    AccountExists {
        /// The ledger.
        ledger: LedgerName,
        /// The address.
        account: AccountAddress,
    },
    /// The ledger has no transaction with this id.
    TransactionNotFound {
        /// The ledger.
        ledger: LedgerName,
        /// The id.
        id: TransactionId,
    },
    /// A different request used the idempotency key before.
    IdempotencyConflict {
        /// The key.
        key: IdempotencyKey,
    },
    /// The rules refuse the command for a reason that is none of the variants above.
    Refused(Rejection),
    /// The write has no outcome.
    Write(WriteError),
    /// The read has no answer.
    Read(ReadError),
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::Amount(error) => error.fmt(f),
            Self::Filter(error) => error.fmt(f),
            Self::Schema(error) => error.fmt(f),
            Self::Cursor { text } => write!(f, "\"{text}\" is no cursor of this list"),
            Self::LedgerNotFound { ledger } => write!(f, "ledger \"{ledger}\" not found"),
            Self::AccountNotFound { ledger, account } => {
                write!(f, "account \"{account}\" not found in ledger \"{ledger}\"")
            }
            Self::AccountExists { ledger, account } => {
                write!(f, "account \"{account}\" already exists in ledger \"{ledger}\"")
            }
            Self::TransactionNotFound { ledger, id } => {
                write!(f, "transaction {} not found in ledger \"{ledger}\"", id.get())
            }
            Self::IdempotencyConflict { key } => {
                write!(f, "a different request used the idempotency key \"{key}\" before")
            }
            Self::Refused(rejection) => rejection.fmt(f),
            Self::Write(error) => error.fmt(f),
            Self::Read(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LedgerError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Name(error) => Some(error),
            Self::Amount(error) => Some(error),
            Self::Filter(error) => Some(error),
            Self::Schema(error) => Some(error),
            Self::Refused(rejection) => Some(rejection),
            Self::Write(error) => Some(error),
            Self::Read(error) => Some(error),
            Self::LedgerNotFound { .. }
            | Self::AccountNotFound { .. }
            | Self::AccountExists { .. }
            | Self::Cursor { .. }
            | Self::TransactionNotFound { .. }
            | Self::IdempotencyConflict { .. } => None,
        }
    }
}

impl LedgerError {
    /// Returns whether the same call may succeed later. The failed call had no effect.
    ///
    /// ```
    /// use ledger_store::prelude::*;
    /// use std::time::Duration;
    /// fn pay(ledger: &Ledger, key: &str) -> Result<Committed, LedgerError> {
    ///     loop {
    ///         let payment = ledger.transaction().posting("world", "users:1", 5, "USD").idempotency_key(key);
    ///         match payment.commit() {
    ///             Err(error) if error.is_retryable() => std::thread::sleep(Duration::from_millis(50)),
    ///             // If `is_outcome_unknown`, open the store again, and repeat the payment with the same key.
    ///             outcome => return outcome,
    ///         }
    ///     }
    /// }
    /// let ledger = Store::in_memory().ledger("main")?;
    /// assert!(!pay(&ledger, "order-1")?.replayed);
    /// # Ok::<(), LedgerError>(())
    /// ```
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Write(error) => error.is_retryable(),
            Self::Read(error) => error.is_retryable(),
            Self::Name(_)
            | Self::Amount(_)
            | Self::Filter(_)
            | Self::Schema(_)
            | Self::Cursor { .. }
            | Self::LedgerNotFound { .. }
            | Self::AccountNotFound { .. }
            | Self::AccountExists { .. }
            | Self::TransactionNotFound { .. }
            | Self::IdempotencyConflict { .. }
            | Self::Refused(_) => false,
        }
    }

    /// Returns whether the write may have taken effect. The next opening of the store shows it.
    pub const fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::Write(error) if error.is_outcome_unknown())
    }

    /// Returns whether the rules refused the write because an account lacks the funds, for postings, scripts and reverts.
    /// [`LedgerError::missing_funds`] tells which account, and the amounts.
    ///
    /// ```
    /// let ledger = ledger_store::Store::in_memory().ledger("main")?;
    /// let error = ledger.transaction().posting("users:1", "shops:1", 5, "USD").commit().unwrap_err();
    /// assert!(error.is_insufficient_funds());
    /// # Ok::<(), ledger_store::LedgerError>(())
    /// ```
    pub fn is_insufficient_funds(&self) -> bool {
        match self {
            Self::Refused(Rejection::InsufficientFunds { .. }) => true,
            Self::Refused(Rejection::Script { error, .. }) => error.kind.class() == ErrorClass::Funds,
            _ => false,
        }
    }

    /// Returns the accounts that lacked funds, with the amounts, if [`LedgerError::is_insufficient_funds`].
    ///
    /// ```
    /// use ledger_store::prelude::*;
    /// let ledger = Store::in_memory().ledger("main")?;
    /// ledger.transaction().posting("world", "users:1", 2_00, "USD/2").commit()?;
    /// let script = "send [USD/2 500] ( source = @users:1 destination = @shops:42 )";
    /// for refused in [
    ///     ledger.transaction().posting("users:1", "shops:42", 5_00, "USD/2").commit(),
    ///     ledger.script(script).commit(),
    /// ] {
    ///     let missing = refused.unwrap_err().missing_funds().expect("the account has 2.00");
    ///     assert_eq!(missing.accounts[0].as_str(), "users:1");
    ///     assert_eq!(missing.needed.to_units(&missing.asset), "5.00");
    ///     assert_eq!(missing.available.to_units(&missing.asset), "2.00");
    /// }
    /// # Ok::<(), LedgerError>(())
    /// ```
    pub fn missing_funds(&self) -> Option<MissingFunds> {
        match self {
            Self::Refused(rejection) => rejection.missing_funds(),
            _ => None,
        }
    }

    /// Returns the error for a refused command of a ledger.
    pub(super) fn refused(ledger: &LedgerName, rejection: Rejection) -> Self {
        match rejection {
            Rejection::TransactionNotFound { id } => Self::TransactionNotFound { ledger: ledger.clone(), id },
            Rejection::AccountNotFound { account } => {
                Self::AccountNotFound { ledger: ledger.clone(), account }
            }
            Rejection::AccountExists { account } => Self::AccountExists { ledger: ledger.clone(), account },
            Rejection::IdempotencyMismatch { ref key, .. } => match IdempotencyKey::parse(key) {
                Ok(key) => Self::IdempotencyConflict { key },
                Err(_) => Self::Refused(rejection),
            },
            rejection => Self::Refused(rejection),
        }
    }
}

impl From<NameError> for LedgerError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl From<AmountError> for LedgerError {
    fn from(error: AmountError) -> Self {
        Self::Amount(error)
    }
}

impl From<std::convert::Infallible> for LedgerError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl From<FilterError> for LedgerError {
    fn from(error: FilterError) -> Self {
        Self::Filter(error)
    }
}

impl From<SchemaError> for LedgerError {
    fn from(error: SchemaError) -> Self {
        Self::Schema(error)
    }
}

impl From<WriteError> for LedgerError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::LedgerNotFound { ledger } => Self::LedgerNotFound { ledger },
            error => Self::Write(error),
        }
    }
}

impl From<ReadError> for LedgerError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}
