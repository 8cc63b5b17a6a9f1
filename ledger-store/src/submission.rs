//! Requests to the writer, and its answers.

use ledger_core::{
    Command, Idempotency, IdempotencyKey, LedgerName, LogEntry, LogId, Movement, Posting, Rejection,
    SchemaVersion, Timestamp, TransactionId, batch_hash, request_hash,
};

use crate::error::ReadError;

/// Commands on one ledger that are decided one after the other, each seeing what those before it did.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The ledger; it must exist.
    pub ledger: LedgerName,
    /// The commands, in order.
    pub requests: Vec<Request>,
    /// The effect of a refusal on the others.
    pub atomicity: Atomicity,
    /// Whether anything is recorded.
    pub mode: Mode,
    /// How much each answer says.
    pub detail: Detail,
}

/// One command with what protects it from being executed twice.
///
/// Rare parts are boxed: queues of requests are long.
#[derive(Clone, Debug)]
pub struct Request {
    /// The change.
    pub command: Command,
    /// The caller's key. A repetition with the same hash gets the first answer again; with another hash it is
    /// refused. The store fills in an empty hash: that of the command, or that of all commands where the key is
    /// [that of all](Atomicity::AsOne).
    pub idempotency: Option<Box<Idempotency>>,
    /// The version of the ledger's schema by which it is judged.
    pub schema_version: Option<Box<SchemaVersion>>,
}

impl Request {
    /// Whether it has an idempotency key, and no hash to compare repetitions with.
    fn lacks_hash(&self) -> bool {
        self.idempotency.as_ref().is_some_and(|have| have.hash.is_empty())
    }

    /// Fills in the hash of a keyed request that came without one.
    pub(crate) fn fill_in_hash(&mut self) {
        if let Some(idempotency) = self.idempotency.as_mut().filter(|have| have.hash.is_empty()) {
            idempotency.hash = request_hash(&self.command);
        }
    }

    /// A command that happens once, however often it is repeated with this key. See [`ledger_core::request_hash`].
    pub fn once(key: IdempotencyKey, command: Command) -> Self {
        let hash = request_hash(&command);
        Self { idempotency: Some(Box::new(Idempotency { key, hash })), ..Self::from(command) }
    }
}

impl From<Command> for Request {
    fn from(command: Command) -> Self {
        Self { command, idempotency: None, schema_version: None }
    }
}

/// The effect of a refused command on the others of its submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Atomicity {
    /// Nothing: each stands for itself.
    #[default]
    Independent,
    /// Those after it are not tried; those before it stand.
    StopAtRefusal,
    /// None of them happens.
    AllOrNothing,
    /// None of them happens, and the idempotency key of the first is that of all: a repetition gets the answers
    /// of all again. The others have no key.
    AsOne,
}

/// Whether a submission is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// It is, durably, before it is answered.
    #[default]
    Commit,
    /// Everything is checked and computed, and nothing is kept: no entry, no id, no key. The ids in the answer are
    /// those that the next writes get.
    DryRun,
}

/// How much an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Detail {
    /// Ids and date: the cheapest.
    #[default]
    Ids,
    /// The whole log entry, volumes after it included.
    Entry,
}

/// The result of one command of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Recorded, or by [`Mode::DryRun`] it would have been.
    Done(Receipt),
    /// Refused by the rules.
    Refused(Rejection),
    /// Not tried, or undone, since another of the submission was refused.
    Cancelled,
    /// A failed read of something that it needs. Nothing of it happened, and it can be tried again. Only one of several
    /// requests fails alone, and only where the others need not be undone with it: else the whole submission answers
    /// [`WriteError::Read`](crate::WriteError::Read).
    Failed(ReadError),
}

/// The answer to a command that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The entry in the ledger's log.
    pub log: LogId,
    /// The transaction, where it is one.
    pub transaction: Option<TransactionId>,
    /// The insertion date.
    pub date: Timestamp,
    /// Whether this is the first answer again, by the idempotency key.
    pub replayed: bool,
    /// The entry itself, with [`Detail::Entry`].
    pub entry: Option<Box<LogEntry>>,
    /// For what a stricter [enforcement](ledger_core::schema::Enforcement) of the ledger's schema would have refused it.
    pub violation: Option<Box<Rejection>>,
}

impl Receipt {
    /// Of nothing, to be filled where it lies.
    pub(crate) const EMPTY: Self = Self {
        log: LogId::new(0),
        transaction: None,
        date: Timestamp::from_micros(0),
        replayed: false,
        entry: None,
        violation: None,
    };
}

impl Submission {
    /// Fills in the hashes of keyed requests that came without one.
    pub(crate) fn hash_requests(&mut self) {
        let as_one = self.atomicity == Atomicity::AsOne && self.requests.len() > 1;
        for at in 0..self.requests.len() {
            if !as_one {
                self.requests[at].fill_in_hash();
            } else if self.requests[at].lacks_hash() {
                let hash = batch_hash(self.requests.iter().map(|request| &request.command));
                if let Some(idempotency) = &mut self.requests[at].idempotency {
                    idempotency.hash = hash;
                }
            }
        }
    }

    /// About how many bytes it holds, for the bound of the queue.
    pub(crate) fn bytes(&self) -> usize {
        self.requests.iter().map(Request::bytes).sum()
    }
}

impl Request {
    pub(crate) fn bytes(&self) -> usize {
        let idempotency = self.idempotency.as_ref().map_or(0, |idempotency| {
            size_of::<Idempotency>() + idempotency.key.as_str().len() + idempotency.hash.len()
        });
        let schema_version = self
            .schema_version
            .as_ref()
            .map_or(0, |version| size_of::<SchemaVersion>() + version.as_str().len());
        size_of::<Self>() + idempotency + schema_version + command_bytes(&self.command)
    }
}

fn command_bytes(command: &Command) -> usize {
    match command {
        Command::CreateTransaction(create) => {
            let movement = match &create.movement {
                Movement::Postings(postings) => postings.len().saturating_sub(1) * size_of::<Posting>(),
                Movement::Script(script) => script.plain.len() + script.variables.len() * 128,
                Movement::Template { name, variables, .. } => name.len() + variables.len() * 128,
            };
            let accounts: usize =
                create.account_metadata.values().map(|metadata| 64 + metadata.text_bytes()).sum();
            movement + accounts + create.metadata.text_bytes()
        }
        Command::RevertTransaction(revert) => revert.metadata.text_bytes(),
        Command::SetMetadata { metadata, .. } => metadata.text_bytes(),
        Command::DeleteMetadata { key, .. } => key.len(),
        Command::InsertSchema(insert) => insert.schema.memory(),
    }
}
