//! Requests to the writer, and their outcomes.

use ledger_core::{
    AccountAddress, Command, Idempotency, IdempotencyKey, LedgerName, LogEntry, LogId, Movement, Posting,
    Preconditions, Rejection, SchemaVersion, Timestamp, TransactionId, batch_hash, request_hash,
};

use crate::error::ReadError;

/// Commands on one ledger. They are decided in order, and each sees the effects of those before it.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The ledger, which must exist.
    pub ledger: LedgerName,
    /// The commands, in order.
    pub requests: Vec<Request>,
    /// The effect of a refusal on the other commands.
    pub atomicity: Atomicity,
    /// The choice between recording the commands and only trying them.
    pub mode: Mode,
    /// How much detail the outcomes contain.
    pub detail: Detail,
}

/// A command with its idempotency key, schema version and preconditions.
///
/// Rare members are boxed, because queues of requests are long.
#[derive(Clone, Debug)]
pub struct Request {
    /// The command.
    pub command: Command,
    /// The caller's idempotency key. A repetition with the same hash gets the first answer again; one with another
    /// hash is refused. The store fills in an empty hash: the hash of the command or, if the key covers the [whole
    /// submission](Atomicity::AsOne), of all its commands.
    pub idempotency: Option<Box<Idempotency>>,
    /// The version of the ledger's schema that applies to the command.
    pub schema_version: Option<Box<SchemaVersion>>,
    /// The accounts that must exist or be new. Like the schema version, they are no part of the request that an
    /// idempotency key protects: a repetition gets the first answer without a check.
    pub preconditions: Option<Box<Preconditions>>,
}

impl Request {
    /// Returns whether the request has an idempotency key without a hash.
    fn lacks_hash(&self) -> bool {
        self.idempotency.as_ref().is_some_and(|have| have.hash.is_empty())
    }

    /// Fills in the hash of a request with a key, if it is missing.
    pub(crate) fn fill_in_hash(&mut self) {
        if let Some(idempotency) = self.idempotency.as_mut().filter(|have| have.hash.is_empty()) {
            idempotency.hash = request_hash(&self.command);
        }
    }

    /// Creates a request that takes effect once, however often it is repeated with this key. See
    /// [`ledger_core::request_hash`].
    ///
    /// ```
    /// use ledger_store::ledger_core::{Command, IdempotencyKey, Target};
    /// use ledger_store::prelude::*;
    /// let ledger = Store::in_memory().ledger("main")?;
    /// ledger.update_account("users:1").metadata("tier", "gold").commit()?;
    /// let target = Target::Account(AccountAddress::parse("users:1")?);
    /// let delete = Command::DeleteMetadata { target, key: "tier".into() };
    /// let request = Request::once(IdempotencyKey::parse("delete-7")?, delete);
    /// assert!(!ledger.batch().push(request.clone()).atomic().commit()?[0].replayed);
    /// assert!(ledger.batch().push(request).atomic().commit()?[0].replayed);
    /// # Ok::<(), LedgerError>(())
    /// ```
    pub fn once(key: IdempotencyKey, command: Command) -> Self {
        let hash = request_hash(&command);
        Self { idempotency: Some(Box::new(Idempotency { key, hash })), ..Self::from(command) }
    }
}

impl From<Command> for Request {
    #[inline]
    fn from(command: Command) -> Self {
        Self { command, idempotency: None, schema_version: None, preconditions: None }
    }
}

/// The effect of a refused command on the other commands of its submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Atomicity {
    /// Nothing: every command is decided on its own.
    #[default]
    Independent,
    /// The commands before it are recorded; those after it are not tried.
    StopAtRefusal,
    /// No command is recorded.
    AllOrNothing,
    /// No command is recorded, and the idempotency key of the first request covers the whole submission: a repetition
    /// gets all answers again. The other requests must not have keys.
    AsOne,
}

/// The choice between recording a submission and only trying it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// The submission is durably recorded before it is answered.
    #[default]
    Commit,
    /// A dry run: everything is checked and computed, but nothing is kept: no entry, no id, no key. The ids in the
    /// answer are those that the next writes will get. Nothing reserves them: a write in between takes them. Servers need
    /// this form, because the previews of API v1 and v2 show ids. A dry run of a [`Ledger`](crate::Ledger) returns a
    /// [`DryRun`](crate::DryRun), which has none.
    DryRun,
}

/// How much detail an outcome contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Detail {
    /// Only ids and date. The cheapest.
    #[default]
    Ids,
    /// The whole log entry, including the volumes after it.
    Entry,
}

/// The result of one command of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The command is recorded or, in a [`Mode::DryRun`], would have been.
    Done(Receipt),
    /// The rules refuse the command.
    Refused(Rejection),
    /// The command was not tried, or was undone, because another command of the submission was refused.
    Cancelled,
    /// A read that the command needs failed. The command had no effect and can be tried again. This outcome only
    /// occurs in submissions with several requests that need not be undone together. In others the whole submission
    /// fails with [`WriteError::Read`](crate::WriteError::Read).
    Failed(ReadError),
}

/// The answer to a recorded command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The id of its log entry.
    pub log: LogId,
    /// The id of its transaction, if it created one.
    pub transaction: Option<TransactionId>,
    /// The insertion date.
    pub date: Timestamp,
    /// True if this outcome repeats the first one for an idempotency key.
    pub replayed: bool,
    /// The log entry, with [`Detail::Entry`].
    pub entry: Option<Box<LogEntry>>,
    /// The reason for which a stricter [enforcement](ledger_core::schema::Enforcement) of the schema would have
    /// refused the command.
    pub violation: Option<Box<Rejection>>,
}

impl Submission {
    /// Fills in missing hashes of requests with keys.
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

    /// Estimates the memory of the submission in bytes, for the bound of the queue.
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
        let preconditions = self.preconditions.as_ref().map_or(0, |preconditions| {
            let bytes = |account: &AccountAddress| size_of::<AccountAddress>() + account.as_str().len();
            preconditions.existing.iter().chain(&preconditions.new).map(bytes).sum()
        });
        size_of::<Self>() + idempotency + schema_version + preconditions + command_bytes(&self.command)
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
