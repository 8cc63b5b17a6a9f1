//! The rules of the ledger.

use std::borrow::Cow;
use std::collections::BTreeMap;

use compact_str::CompactString;

use crate::command::{
    Command, CreateTransaction, InsertSchema, Movement, Overdraft, RevertDate, RevertTransaction, Target,
};
use crate::legacy::{Rules, reverting_reference};
use crate::limits::{METADATA_BYTES_MAX, POSTINGS_MAX};
use crate::metadata::Metadata;
use crate::names::{AccountAddress, Reference, SchemaVersion};
use crate::needs::{Facts, KnownTransaction, Slots};
use crate::rejection::Rejection;
use crate::timestamp::Timestamp;
use crate::transaction::{Posting, TransactionId};
use crate::volumes::Volumes;

/// The metadata key by which a reverting transaction names the original, as decimal text.
pub const REVERTS_KEY: &str = "com.formance.spec/state/reverts";

/// What a command does, decided and not yet recorded. The volumes after it stand in [`Facts::volumes`].
///
/// What the command says itself is borrowed from it: commands are large, and nothing of them needs to be moved to be
/// decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// A transaction, new or reverting.
    Transaction(NewTransaction<'a>),
    /// Metadata keys are set.
    SetMetadata {
        /// On what.
        target: &'a Target,
        /// The keys.
        metadata: &'a Metadata,
    },
    /// A metadata key is removed.
    DeleteMetadata {
        /// From what.
        target: &'a Target,
        /// The key.
        key: &'a str,
    },
    /// A schema version is added.
    InsertSchema {
        /// What it is called.
        version: &'a SchemaVersion,
        /// It as compact JSON text.
        schema: CompactString,
    },
}

/// A transaction that has been decided: it has no id yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTransaction<'a> {
    /// Its movements, at least one.
    pub postings: Cow<'a, [Posting]>,
    /// For each posting, which of [`Facts::volumes`] are its source's and its destination's.
    pub slots: &'a [Slots],
    /// Its metadata.
    pub metadata: Cow<'a, Metadata>,
    /// Metadata set on accounts in the same step.
    pub account_metadata: &'a BTreeMap<AccountAddress, Metadata>,
    /// The effective date.
    pub timestamp: Timestamp,
    /// Its reference.
    pub reference: Option<Cow<'a, Reference>>,
    /// The transaction that it reverts.
    pub reverts: Option<TransactionId>,
    /// The schema template that it was made from.
    pub template: Option<&'a str>,
}

/// A revert sets none.
static NO_ACCOUNT_METADATA: BTreeMap<AccountAddress, Metadata> = BTreeMap::new();

impl<'a> NewTransaction<'a> {
    /// What recording a command at `now` makes of it, where nothing speaks against that. `slots` may be empty where
    /// nobody asks for them.
    ///
    /// # Panics
    ///
    /// If its script is not [settled](crate::script::settle).
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

/// Says what `command` does to the ledger that `facts` describe.
///
/// Pure: equal arguments give equal results; `now` is the insertion date. Checks run in the order in which
/// [`Rejection`] lists its variants, and the first that fails is the answer. After a refusal the volumes in
/// `facts` are not to be used.
///
/// # Errors
///
/// A [`Rejection`], by which nothing has happened.
///
/// # Panics
///
/// If `facts` lack what [`crate::needs`] asked for, or a script is not [settled](crate::script::settle). That is a
/// defect of the caller, never of the request.
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
            check_metadata_size(metadata)?;
            if let Target::Transaction(id) = target {
                known(facts.transaction.as_ref(), *id)?;
            }
            Ok(Decision::SetMetadata { target, metadata })
        }
        Command::DeleteMetadata { target, key } => {
            if let Target::Transaction(id) = target
                && known(facts.transaction.as_ref(), *id)?.metadata.get(key).is_none()
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
    if let Movement::Postings(postings) = &create.movement
        && postings.len() > POSTINGS_MAX
    {
        return Err(Rejection::TooManyPostings { postings: postings.len() });
    }
    check_metadata_size(&create.metadata)?;
    for metadata in create.account_metadata.values() {
        check_metadata_size(metadata)?;
    }
    let postings = settled(create);
    match &create.rules {
        Rules::Current => move_in_order(postings, slots, &mut facts.volumes, create.overdraft)?,
        Rules::Legacy(rules) => {
            rules.check_date(facts.last_date, create.timestamp.unwrap_or(now))?;
            check_reference(facts, create.reference.as_ref())?;
            rules.move_at_once(postings, slots, facts, create.overdraft)?;
        }
    }
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
    check_metadata_size(&revert.metadata)?;
    let original = known(facts.transaction.as_ref(), revert.id)?;
    if original.reverted {
        return Err(Rejection::AlreadyReverted { id: revert.id });
    }
    let postings: Vec<Posting> = original.postings.iter().rev().map(reversed).collect();
    let timestamp = match revert.dated {
        RevertDate::Now => now,
        RevertDate::OfOriginal => original.timestamp,
    };
    let reference = reverting_reference(&revert.rules, original);
    match &revert.rules {
        Rules::Current => move_at_once(&postings, slots, &mut facts.volumes, revert.overdraft)?,
        Rules::Legacy(rules) => {
            rules.check_date(facts.last_date, timestamp)?;
            check_reference(facts, reference.as_ref())?;
            rules.move_at_once(&postings, slots, facts, revert.overdraft)?;
        }
    }
    let mut metadata = revert.metadata.clone();
    metadata.insert_text(REVERTS_KEY, &revert.id.get().to_string());
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

/// Says whether a command is refused before its script is looked at: by the rules of the first generation its date and
/// its reference are tested first. `facts` need to know about these two alone, and only for such rules.
///
/// # Errors
///
/// The refusal.
pub fn check_before_script(
    create: &CreateTransaction,
    facts: &Facts,
    now: Timestamp,
) -> Result<(), Rejection> {
    match &create.rules {
        Rules::Current => Ok(()),
        Rules::Legacy(rules) => {
            rules.check_date(facts.last_date, create.timestamp.unwrap_or(now))?;
            check_reference(facts, create.reference.as_ref())
        }
    }
}

fn check_reference(facts: &Facts, reference: Option<&Reference>) -> Result<(), Rejection> {
    if facts.reference_taken {
        let reference = reference.expect("only a reference that was given can be taken").clone();
        return Err(Rejection::ReferenceTaken { reference });
    }
    Ok(())
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

fn check_metadata_size(metadata: &Metadata) -> Result<(), Rejection> {
    match metadata.text_bytes() {
        bytes if bytes > METADATA_BYTES_MAX => Err(Rejection::MetadataTooLarge { bytes }),
        _ => Ok(()),
    }
}

/// Executes postings one after the other: each must be covered by what the ones before it left.
fn move_in_order(
    postings: &[Posting],
    slots: &[Slots],
    volumes: &mut [Volumes],
    overdraft: Overdraft,
) -> Result<(), Rejection> {
    assert_eq!(postings.len(), slots.len(), "every posting has its slots");
    for (posting, slots) in postings.iter().zip(slots) {
        let source = &mut volumes[slots.source as usize];
        if overdraft == Overdraft::Refuse
            && !posting.source.is_world()
            && !posting.amount.is_zero()
            && !source.covers(&posting.amount)
        {
            return Err(insufficient(posting));
        }
        source.output += &posting.amount;
        volumes[slots.destination as usize].input += &posting.amount;
    }
    Ok(())
}

/// Executes postings as one step: only the balances at its end count, and only of accounts that end lower.
fn move_at_once(
    postings: &[Posting],
    slots: &[Slots],
    volumes: &mut [Volumes],
    overdraft: Overdraft,
) -> Result<(), Rejection> {
    assert_eq!(postings.len(), slots.len(), "every posting has its slots");
    let before: Vec<Volumes> = match overdraft {
        Overdraft::Refuse => volumes.to_vec(),
        Overdraft::Allow => Vec::new(),
    };
    for (posting, slots) in postings.iter().zip(slots) {
        volumes[slots.source as usize].output += &posting.amount;
        volumes[slots.destination as usize].input += &posting.amount;
    }
    if overdraft == Overdraft::Refuse {
        for (posting, slots) in postings.iter().zip(slots) {
            let slot = slots.source as usize;
            let balance = volumes[slot].balance();
            if !posting.source.is_world() && balance.is_negative() && balance < before[slot].balance() {
                return Err(insufficient(posting));
            }
        }
    }
    Ok(())
}

pub(crate) fn insufficient(posting: &Posting) -> Rejection {
    Rejection::InsufficientFunds { account: posting.source.clone(), asset: posting.asset.clone() }
}
