//! The rules of the ledger: whether a command is executed, and with which effect.

use std::borrow::Cow;
use std::collections::BTreeMap;

use smol_str::SmolStr;

use crate::command::{
    Command, CreateTransaction, InsertSchema, Movement, RevertDate, RevertTransaction, Target,
};
use crate::facts::{Facts, KnownTransaction, Slots};
use crate::rejection::Rejection;
use crate::revert_mark;
use crate::rules::check_reference;
use ledger_values::{AccountAddress, Metadata, Posting, Reference, SchemaVersion, Timestamp, TransactionId};

/// The effect of an accepted command before it is recorded. [`Facts::volumes`] hold the volumes after it.
///
/// The decision borrows from its command. Commands can be large, and a decision needs no copy of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// A transaction is recorded, possibly one that reverts another.
    Transaction(NewTransaction<'a>),
    /// Metadata keys are set.
    SetMetadata {
        /// The account or transaction that changes.
        target: &'a Target,
        /// The keys to set.
        metadata: &'a Metadata,
    },
    /// A metadata key is removed.
    DeleteMetadata {
        /// The account or transaction that changes.
        target: &'a Target,
        /// The key to remove.
        key: &'a str,
    },
    /// A schema version is added.
    InsertSchema {
        /// Name of the version.
        version: &'a SchemaVersion,
        /// The schema as compact JSON.
        schema: SmolStr,
    },
}

/// A transaction that was decided and has no id yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTransaction<'a> {
    /// The movements of the transaction, at least one.
    pub postings: Cow<'a, [Posting]>,
    /// For each posting, the indexes of its source and destination in [`Facts::volumes`].
    pub slots: &'a [Slots],
    /// The metadata of the transaction.
    pub metadata: Cow<'a, Metadata>,
    /// Metadata to set on accounts in the same step.
    pub account_metadata: &'a BTreeMap<AccountAddress, Metadata>,
    /// The effective date.
    pub timestamp: Timestamp,
    /// The reference of the transaction.
    pub reference: Option<Cow<'a, Reference>>,
    /// The transaction that this one reverts.
    pub reverts: Option<TransactionId>,
    /// The schema template that supplied the script.
    pub template: Option<&'a str>,
}

/// The account metadata of every revert: none.
static NO_ACCOUNT_METADATA: BTreeMap<AccountAddress, Metadata> = BTreeMap::new();

impl<'a> NewTransaction<'a> {
    /// Makes the transaction of a create command at the insertion date `now`, without checking it. `slots`
    /// may be empty if the caller does not use them.
    ///
    /// # Panics
    ///
    /// If the script of the command is not [settled](crate::settle()).
    ///
    /// ```
    /// use ledger_core::{CreateTransaction, NewTransaction, Posting, Timestamp};
    /// let create = CreateTransaction::of(Vec::<Posting>::new().into());
    /// let new = NewTransaction::of_create(&create, &[], Timestamp::MIN);
    /// assert_eq!((new.timestamp, new.reference, new.reverts), (Timestamp::MIN, None, None));
    /// ```
    pub fn of_create(create: &'a CreateTransaction, slots: &'a [Slots], now: Timestamp) -> Self {
        Self {
            postings: Cow::Borrowed(settled(create)),
            slots,
            metadata: Cow::Borrowed(&create.metadata),
            account_metadata: &create.account_metadata,
            timestamp: create.timestamp.unwrap_or(now),
            reference: create.reference.as_ref().map(Cow::Borrowed),
            reverts: None,
            template: create.template.as_deref(),
        }
    }
}

fn settled(create: &CreateTransaction) -> &[Posting] {
    match &create.movement {
        Movement::Postings(postings) => postings,
        Movement::Script(_) | Movement::Template { .. } => {
            panic!("a script is settled before it is decided")
        }
    }
}

/// Decides `command` for the ledger that `facts` describe.
///
/// Equal arguments give equal results; `now` is the insertion date. The checks run in the order of the variants of
/// [`Rejection`], and the first failing one is the answer. [`crate::check_sizes`] must have checked counts and sizes
/// before. `decide` updates the volumes in `facts`; after a refusal they are invalid.
///
/// # Errors
///
/// A [`Rejection`], after which nothing has changed.
///
/// # Panics
///
/// Panics if `facts` lack something that [`crate::needs`] asked for, or a script is not [settled](crate::settle()).
/// Both are bugs of the caller, never of the request.
///
/// ```
/// use ledger_core::{
///     AccountAddress, Asset, Command, CreateTransaction, Decision, Facts, Posting, Rejection, Timestamp, Volumes,
///     decide, needs,
/// };
/// let posting = Posting {
///     source: AccountAddress::parse("users:001")?,
///     destination: AccountAddress::parse("shops:1")?,
///     amount: 5_u64.into(),
///     asset: Asset::parse("USD/2")?,
/// };
/// let pay = Command::CreateTransaction(CreateTransaction::of(vec![posting].into()));
/// let needs = needs(&pay, None);
/// assert_eq!(needs.holdings.len(), 2);
/// let rich = Volumes { input: 8_u64.into(), ..Volumes::default() };
/// let mut facts = Facts { volumes: vec![rich, Volumes::default()].into(), ..Facts::default() };
/// let decision = decide(&pay, &needs.slots, &mut facts, Timestamp::MIN)?;
/// assert!(matches!(decision, Decision::Transaction(new) if new.postings.len() == 1));
/// assert_eq!(facts.volumes[0].balance(), 3);
/// let again = decide(&pay, &needs.slots, &mut facts, Timestamp::MIN);
/// assert!(matches!(again, Err(Rejection::InsufficientFunds { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn decide<'a>(
    command: &'a Command,
    slots: &'a [Slots],
    facts: &mut Facts,
    now: Timestamp,
) -> Result<Decision<'a>, Rejection> {
    match command {
        Command::CreateTransaction(create) => decide_create(create, slots, facts, now),
        Command::RevertTransaction(revert) => decide_revert(revert, slots, facts, now),
        Command::SetMetadata { target, metadata } => {
            if let Target::Transaction(id) = target {
                known(facts.transaction.as_deref(), *id)?;
            }
            Ok(Decision::SetMetadata { target, metadata })
        }
        Command::DeleteMetadata { target, key } => {
            if let Target::Transaction(id) = target
                && known(facts.transaction.as_deref(), *id)?.metadata.get(key).is_none()
            {
                return Err(Rejection::MetadataKeyNotFound { key: key.clone() });
            }
            Ok(Decision::DeleteMetadata { target, key })
        }
        Command::InsertSchema(InsertSchema { version, schema }) => {
            if facts.schema_exists {
                return Err(Rejection::SchemaExists { version: version.clone() });
            }
            let text = schema.text(version, now);
            Ok(Decision::InsertSchema { version, schema: text })
        }
    }
}

fn decide_create<'a>(
    create: &'a CreateTransaction,
    slots: &'a [Slots],
    facts: &mut Facts,
    now: Timestamp,
) -> Result<Decision<'a>, Rejection> {
    let postings = settled(create);
    check_before_script(create, facts, now)?;
    create.rules.get().create(postings, slots, facts, &create.overdraft)?;
    if postings.is_empty() {
        return Err(Rejection::NoPostings);
    }
    check_reference(facts, create.reference.as_ref())?;
    Ok(Decision::Transaction(NewTransaction::of_create(create, slots, now)))
}

fn decide_revert<'a>(
    revert: &'a RevertTransaction,
    slots: &'a [Slots],
    facts: &mut Facts,
    now: Timestamp,
) -> Result<Decision<'a>, Rejection> {
    let original = known(facts.transaction.as_deref(), revert.id)?;
    if original.reverted {
        return Err(Rejection::AlreadyReverted { id: revert.id });
    }
    let postings: Vec<Posting> = original.postings.iter().rev().map(reversed).collect();
    let timestamp = match revert.dated {
        RevertDate::Now => now,
        RevertDate::OfOriginal => original.timestamp,
    };
    let rules = revert.rules.get();
    let reference = rules.reference_of_revert(original);
    rules.check_before_funds(facts, timestamp, reference.as_ref())?;
    rules.revert(&postings, slots, facts, &revert.overdraft)?;
    let mut metadata = revert.metadata.clone();
    revert_mark::set(&mut metadata, revert.id);
    Ok(Decision::Transaction(NewTransaction {
        postings: Cow::Owned(postings),
        slots,
        metadata: Cow::Owned(metadata),
        account_metadata: &NO_ACCOUNT_METADATA,
        timestamp,
        reference: reference.map(Cow::Owned),
        reverts: Some(revert.id),
        template: None,
    }))
}

/// Makes the checks that come before the script of a command and before its funds.
pub(crate) fn check_before_script(
    create: &CreateTransaction,
    facts: &Facts,
    now: Timestamp,
) -> Result<(), Rejection> {
    let date = create.timestamp.unwrap_or(now);
    create.rules.get().check_before_funds(facts, date, create.reference.as_ref())
}

fn reversed(posting: &Posting) -> Posting {
    Posting {
        source: posting.destination.clone(),
        destination: posting.source.clone(),
        amount: posting.amount.clone(),
        asset: posting.asset.clone(),
    }
}

fn known(found: Option<&KnownTransaction>, id: TransactionId) -> Result<&KnownTransaction, Rejection> {
    found.ok_or(Rejection::TransactionNotFound { id })
}
