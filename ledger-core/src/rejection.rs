//! The reasons for which the rules refuse a command.

use std::fmt;

use smol_str::SmolStr;

use crate::error_wording::ErrorWording;
use ledger_numscript::{ErrorClass, ErrorKind, ScriptError};
use ledger_values::{
    AccountAddress, Amount, Asset, Posting, Reference, SchemaVersion, Timestamp, TransactionId, Volumes,
};

/// Reason why the rules refuse a command. The variants are in the order of the checks: a command with several
/// faults gets the first of them. The rules of API v1 check the date and the reference before the script and
/// the funds. The postings and the metadata of a script are counted once it has run.
///
/// A release may add variants. The enum is not `non_exhaustive`, because the server answers each variant with a code of
/// its own: the compiler names a new variant that lacks one. Other programs match the variants that they handle, and
/// the rest with a wildcard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The preconditions name more accounts than allowed.
    TooManyPreconditions {
        /// Number of accounts.
        accounts: usize,
    },
    /// The transaction has more postings than allowed.
    TooManyPostings {
        /// Number of postings.
        postings: usize,
    },
    /// A set of metadata has more bytes than allowed.
    MetadataTooLarge {
        /// Number of bytes.
        bytes: usize,
    },
    /// A different request used the idempotency key before.
    IdempotencyMismatch {
        /// The key of both requests.
        key: SmolStr,
        /// Hash of this request.
        computed: SmolStr,
        /// Hash of the request that used the key first.
        stored: SmolStr,
    },
    /// An account that must exist does not. See [`Preconditions`](crate::Preconditions).
    AccountNotFound {
        /// The absent account.
        account: AccountAddress,
    },
    /// An account that must be new exists. See [`Preconditions`](crate::Preconditions).
    AccountExists {
        /// The existing account.
        account: AccountAddress,
    },
    /// The ledger has no schema version of this name.
    SchemaNotFound {
        /// The requested version.
        version: SchemaVersion,
    },
    /// This build cannot read the schema version: another build recorded it, for example one with more features.
    SchemaUnreadable {
        /// The requested version.
        version: SchemaVersion,
        /// The fault that this build finds in it.
        reason: SmolStr,
    },
    /// The request names a template but no schema version that has it.
    TemplateWithoutVersion {
        /// The requested template.
        template: SmolStr,
    },
    /// The schema version has no such template.
    TemplateNotFound {
        /// The requested template.
        template: SmolStr,
        /// The version that lacks it.
        version: SchemaVersion,
    },
    /// The schema version has templates, and the request uses none of them.
    TemplateRequired {
        /// The schema version.
        version: SchemaVersion,
    },
    /// The ledger has schema versions, and the request names none.
    SchemaNotSpecified,
    /// The script is malformed, or fails.
    Script {
        /// The error of the script with its position.
        error: Box<ScriptError>,
        /// The wording of the error.
        wording: ErrorWording,
    },
    /// The script and the request set the same metadata key of the transaction.
    MetadataOverride {
        /// The key that both set.
        key: SmolStr,
    },
    /// The ledger has the maximum number of different assets.
    TooManyAssets,
    /// The names, amounts and metadata of the transaction exceed the size of a journal entry.
    TransactionTooLarge {
        /// Maximum number of bytes of a journal entry.
        bytes_max: usize,
    },
    /// No transaction has this id.
    TransactionNotFound {
        /// The requested id.
        id: TransactionId,
    },
    /// The transaction has no metadata with this key.
    MetadataKeyNotFound {
        /// The key to remove.
        key: SmolStr,
    },
    /// The transaction is already reverted.
    AlreadyReverted {
        /// Id of the transaction.
        id: TransactionId,
    },
    /// The date is before that of the last transaction, which the rules do not allow.
    PastDate {
        /// Date of the new transaction.
        passed: Timestamp,
        /// Date of the last transaction.
        last: Timestamp,
    },
    /// An account lacks the funds for a posting.
    InsufficientFunds {
        /// The account without funds.
        account: AccountAddress,
        /// The asset of the posting.
        asset: Asset,
        /// The amount that the account had to pay. A revert and the rules of API v1 add up all postings.
        needed: Amount,
        /// The amount that the account could pay.
        available: Amount,
    },
    /// The transaction has no postings.
    NoPostings,
    /// Another transaction has the reference.
    ReferenceTaken {
        /// The reference that is taken.
        reference: Reference,
    },
    /// The ledger already has a schema version of this name.
    SchemaExists {
        /// Name of the version.
        version: SchemaVersion,
    },
    /// An account is not in the chart of the requested schema version.
    AccountOutsideChart {
        /// The account outside the chart.
        account: AccountAddress,
        /// The schema version.
        version: SchemaVersion,
    },
}

impl Rejection {
    /// Makes the refusal of a posting. Its source pays `needed`, would have the volumes `after`, and may go below zero
    /// by `limit`.
    pub(crate) fn insufficient(posting: &Posting, needed: Amount, after: &Volumes, limit: &Amount) -> Self {
        let sent_before = after.output.checked_sub(&needed).unwrap_or_default();
        let available = (after.input.clone() + limit).checked_sub(&sent_before).unwrap_or_default();
        let (account, asset) = (posting.source.clone(), posting.asset.clone());
        Self::InsufficientFunds { account, asset, needed, available }
    }

    /// Returns the funds that were missing, for postings, scripts and reverts. Returns `None` for other reasons, and for
    /// a script with an asset that no account can hold.
    pub fn missing_funds(&self) -> Option<MissingFunds> {
        let Lacking { accounts, asset, needed, available } = self.lacking()?;
        Some(MissingFunds {
            accounts: accounts.to_vec(),
            asset: Asset::parse(asset).ok()?,
            needed: needed.clone(),
            available: available.clone(),
        })
    }

    /// Returns the accounts that lack funds, as [`MissingFunds::accounts`], whatever the asset. Returns `None` for other
    /// reasons.
    ///
    /// ```
    /// use ledger_core::{AccountAddress, Amount, Asset, Rejection};
    /// let account = AccountAddress::parse("users:1")?;
    /// let refused = Rejection::InsufficientFunds {
    ///     account: account.clone(),
    ///     asset: Asset::parse("USD/2")?,
    ///     needed: Amount::from(5_u64),
    ///     available: Amount::from(2_u64),
    /// };
    /// assert_eq!(refused.accounts_without_funds(), Some(&[account][..]));
    /// assert_eq!(Rejection::NoPostings.accounts_without_funds(), None);
    /// # Ok::<(), ledger_core::NameError>(())
    /// ```
    pub fn accounts_without_funds(&self) -> Option<&[AccountAddress]> {
        self.lacking().map(|lacking| lacking.accounts)
    }

    fn lacking(&self) -> Option<Lacking<'_>> {
        match self {
            Self::InsufficientFunds { account, asset, needed, available } => {
                Some(Lacking::of_posting(account, asset, needed, available))
            }
            Self::Script { error, .. } => match &error.kind {
                ErrorKind::MissingFunds { asset, needed, available, accounts } => {
                    Some(Lacking { accounts, asset, needed, available })
                }
                _ => None,
            },
            _ => None,
        }
    }
}

/// The funds that a refused transaction lacked. [`Rejection::missing_funds`] returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingFunds {
    /// The account that had to pay, or the accounts of the script's source in their order, at most 20.
    pub accounts: Vec<AccountAddress>,
    /// The asset of the payment.
    pub asset: Asset,
    /// The amount that the accounts had to pay.
    pub needed: Amount,
    /// The amount that they could pay: what they held, plus the allowed overdraft.
    pub available: Amount,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IdempotencyMismatch { key, .. } => {
                write!(f, "a different request used the idempotency key '{key}' before")
            }
            Self::TooManyPreconditions { accounts } => write!(
                f,
                "too many preconditions: {accounts} accounts, at most {}",
                crate::limits::PRECONDITIONS_MAX
            ),
            Self::TooManyPostings { postings } => {
                write!(f, "too many postings: {postings}, at most {}", crate::limits::POSTINGS_MAX)
            }
            Self::MetadataTooLarge { bytes } => {
                write!(f, "metadata too large: {bytes} bytes, at most {}", crate::limits::METADATA_BYTES_MAX)
            }
            Self::TransactionTooLarge { bytes_max } => {
                write!(f, "the transaction is too large: an entry holds at most {bytes_max} bytes")
            }
            Self::TooManyAssets => f.write_str("too many different assets in this ledger"),
            Self::Script { error, .. } => match (self.lacking(), error.kind.class()) {
                (Some(lacking), _) => lacking.fmt(f),
                // The fault is in the variables, not at a position of the script.
                (None, ErrorClass::Variables) => error.kind.fmt(f),
                (None, _) => error.fmt(f),
            },
            Self::MetadataOverride { key } => {
                write!(f, "the script and the request both set the metadata key '{key}'")
            }
            Self::TransactionNotFound { id } => write!(f, "transaction {} not found", id.get()),
            Self::MetadataKeyNotFound { key } => write!(f, "metadata key '{key}' not found"),
            Self::AlreadyReverted { id } => write!(f, "transaction {} is already reverted", id.get()),
            Self::PastDate { passed, last } => {
                write!(f, "the date {passed} is before that of the last transaction, {last}")
            }
            Self::InsufficientFunds { account, asset, needed, available } => {
                Lacking::of_posting(account, asset, needed, available).fmt(f)
            }
            Self::AccountNotFound { account } => write!(f, "account '{account}' not found"),
            Self::AccountExists { account } => write!(f, "account '{account}' already exists"),
            Self::NoPostings => f.write_str("the transaction has no postings"),
            Self::ReferenceTaken { reference } => {
                write!(f, "another transaction has the reference '{reference}'")
            }
            Self::SchemaNotFound { version } => write!(f, "schema version '{version}' not found"),
            Self::SchemaUnreadable { version, reason } => {
                write!(f, "schema version '{version}' cannot be read: {reason}")
            }
            Self::TemplateWithoutVersion { template } => {
                write!(f, "template '{template}' needs a schema version to be named")
            }
            Self::TemplateNotFound { template, version } => {
                write!(f, "schema version '{version}' has no template '{template}'")
            }
            Self::TemplateRequired { version } => {
                write!(f, "schema version '{version}' allows transactions from its templates only")
            }
            Self::SchemaNotSpecified => f.write_str("the ledger has a schema, and no version of it is named"),
            Self::SchemaExists { version } => write!(f, "schema version '{version}' already exists"),
            Self::AccountOutsideChart { account, version } => {
                write!(f, "account '{account}' is not in the chart of schema version '{version}'")
            }
        }
    }
}

/// [`MissingFunds`], borrowed. A script can name an asset that no account can hold.
struct Lacking<'a> {
    accounts: &'a [AccountAddress],
    asset: &'a str,
    needed: &'a Amount,
    available: &'a Amount,
}

impl<'a> Lacking<'a> {
    fn of_posting(
        account: &'a AccountAddress,
        asset: &'a Asset,
        needed: &'a Amount,
        available: &'a Amount,
    ) -> Self {
        Self { accounts: std::slice::from_ref(account), asset: asset.as_str(), needed, available }
    }
}

impl fmt::Display for Lacking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { accounts, asset, needed, available } = self;
        let (noun, verb) = if accounts.len() == 1 { ("account", "lacks") } else { ("accounts", "lack") };
        f.write_str(noun)?;
        for (at, account) in accounts.iter().enumerate() {
            let separator = if at == 0 { " " } else { ", " };
            write!(f, "{separator}{account}")?;
        }
        write!(f, " {verb} funds: {needed} {asset} needed, {available} available")
    }
}

impl std::error::Error for Rejection {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Script { error, .. } => Some(&**error),
            _ => None,
        }
    }
}
