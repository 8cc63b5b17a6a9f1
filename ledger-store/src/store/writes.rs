//! The writes of a store. Each is queued, decided, and recorded before it is answered.

use ledger_core::{BucketName, LedgerName, LedgerOptions, Metadata, SmolStr};

use super::Store;
use crate::atomic::AtomicWrite;
use crate::documents::{DocumentChange, DocumentVersion};
use crate::engine::{BucketChange, BucketState, Callback, Engine, LedgerEdit, WorkItem, lead};
use crate::error::WriteError;
use crate::options::Options;
use crate::query::LedgerInfo;
use crate::scripts::Programs;
use crate::submission::{Mode, Outcome, Submission};

/// Memory budget of the engine that decides a trial on a new ledger. It stores nothing but the ledger.
const TRIAL_MEMORY_BYTES: usize = 16 << 20;

/// Assumed memory of work on whole ledgers in bytes, for the bound of the queue.
pub(crate) const LEDGER_WORK_BYTES: usize = 256;

impl Store {
    /// Creates a ledger. It is on disk when this returns. Blocks the thread;
    /// [`create_ledger_async`](Self::create_ledger_async) does not.
    ///
    /// # Errors
    ///
    /// [`WriteError::LedgerExists`], and the errors that any write can have.
    pub fn create_ledger(&self, name: LedgerName, options: LedgerOptions) -> Result<LedgerInfo, WriteError> {
        self.run(LEDGER_WORK_BYTES, |done| WorkItem::CreateLedger(name, options, done))
    }

    /// Sets metadata keys of a ledger. Other keys stay unchanged. Blocks the thread;
    /// [`set_ledger_metadata_async`](Self::set_ledger_metadata_async) does not.
    ///
    /// ```
    /// use ledger_store::{Store, WriteError, ledger_core::{LedgerName, Metadata}};
    /// let store = Store::in_memory();
    /// let main = LedgerName::parse("main")?;
    /// assert!(store.set_ledger_metadata(&main, Metadata::EMPTY).is_err());
    /// store.create_ledger(main.clone(), Default::default())?;
    /// store.set_ledger_metadata(&main, Metadata::from([("team", "payments"), ("old", "yes")]))?;
    /// store.delete_ledger_metadata(&main, "old")?;
    /// assert_eq!(store.ledger("main")?.info()?.metadata, Metadata::from([("team", "payments")]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WriteError::LedgerNotFound`], and the errors that any write can have.
    pub fn set_ledger_metadata(&self, name: &LedgerName, metadata: Metadata) -> Result<(), WriteError> {
        self.edit_ledger(name, LedgerEdit::Set(metadata))
    }

    /// Removes a metadata key of a ledger, if it exists. Blocks the thread;
    /// [`delete_ledger_metadata_async`](Self::delete_ledger_metadata_async) does not.
    ///
    /// # Errors
    ///
    /// [`WriteError::LedgerNotFound`], and the errors that any write can have.
    pub fn delete_ledger_metadata(&self, name: &LedgerName, key: &str) -> Result<(), WriteError> {
        self.edit_ledger(name, LedgerEdit::Delete(SmolStr::new(key)))
    }

    /// Applies all changes of documents in one commit, or none. They are on disk when this returns. Returns the new
    /// versions in the order of the changes. Blocks the thread;
    /// [`change_documents_async`](Self::change_documents_async) does not.
    ///
    /// ```
    /// use ledger_store::{Collection, DocumentAction, DocumentChange, DocumentKey, DocumentRange, Expected, Store};
    /// const USERS: Collection = Collection::new(Collection::FIRST).unwrap();
    /// const BY_CITY: u32 = 1;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Store::in_memory();
    /// let add = |name: &str, city: &str| DocumentChange {
    ///     collection: USERS,
    ///     key: name.into(),
    ///     expected: Expected::Absent,
    ///     action: DocumentAction::Put {
    ///         value: format!("{name} lives in {city}").into_bytes(),
    ///         keys: vec![DocumentKey { index: BY_CITY, key: city.into(), unique: false }],
    ///     },
    /// };
    /// let versions = store.change_documents(vec![add("ann", "rome"), add("bob", "oslo")])?;
    /// let snapshot = store.snapshot();
    /// assert_eq!(snapshot.document(USERS, b"ann")?.map(|ann| ann.version), Some(versions[0]));
    /// assert_eq!(snapshot.documents(USERS, &DocumentRange::default())?.len(), 2);
    /// assert_eq!(snapshot.documents_by(USERS, BY_CITY, &DocumentRange::default())?[0].key, b"bob");
    /// assert!(store.change_documents(vec![add("ann", "paris")]).is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`WriteError::Document`] if a document is not in the expected state, a unique key is taken, or a limit is
    /// exceeded; and the errors that any write can have.
    pub fn change_documents(&self, changes: Vec<DocumentChange>) -> Result<Vec<DocumentVersion>, WriteError> {
        let bytes = changes.iter().map(DocumentChange::bytes).sum();
        self.run(bytes, |done| WorkItem::ChangeDocuments(changes, done))
    }

    /// Replaces the v1 mapping of a ledger: its contracts, as JSON text, which is stored unchanged. The store does
    /// not enforce them. A caller that wants a command to obey them puts them into the rules of the command. Blocks
    /// the thread; [`set_mapping_async`](Self::set_mapping_async) does not.
    ///
    /// ```
    /// use ledger_store::{Store, ledger_core::LedgerName};
    /// let store = Store::in_memory();
    /// let main = LedgerName::parse("main")?;
    /// store.create_ledger(main.clone(), Default::default())?;
    /// let mapping = r#"{"contracts": [{"account": "users:*", "expr": {"$gte": ["$balance", 0]}}]}"#;
    /// store.set_mapping(&main, mapping.to_owned())?;
    /// let view = store.ledger("main")?.view().expect("the ledger exists");
    /// assert_eq!(view.mapping().map(|text| &**text), Some(mapping));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`WriteError::LedgerNotFound`], and the errors that any write can have.
    pub fn set_mapping(&self, name: &LedgerName, text: String) -> Result<(), WriteError> {
        self.edit_ledger(name, LedgerEdit::Mapping(text))
    }

    /// Deletes a bucket: requests no longer find its ledgers, whose names stay taken. [`Store::restore_bucket`]
    /// undoes it. Deleting a bucket without ledgers does nothing. Blocks the thread;
    /// [`delete_bucket_async`](Self::delete_bucket_async) does not.
    ///
    /// Deletes large buckets in several commits. If the call is interrupted, repeat it.
    ///
    /// ```
    /// use ledger_store::{ledger_core::BucketName, prelude::*};
    /// use std::time::Duration;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Store::in_memory();
    /// let bucket = BucketName::parse("trial")?;
    /// store.ledger("trial-1")?.create(LedgerOptions { bucket: bucket.clone(), ..LedgerOptions::default() })?;
    /// store.delete_bucket(&bucket)?;
    /// assert!(store.ledgers()?.is_empty());
    /// store.restore_bucket(&bucket)?;
    /// assert_eq!(store.ledgers()?.len(), 1);
    /// store.delete_bucket(&bucket)?;
    /// let removed = store.remove_deleted(Duration::ZERO)?; // for good
    /// assert_eq!(removed[0].name.as_str(), "trial-1");
    /// assert!(store.reclaim(&|| false)?.is_done);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors that any write can have.
    pub fn delete_bucket(&self, bucket: &BucketName) -> Result<(), WriteError> {
        self.change_bucket(bucket, BucketState::Deleted)
    }

    /// Undoes the deletion of a bucket. Blocks the thread; [`restore_bucket_async`](Self::restore_bucket_async) does
    /// not.
    ///
    /// # Errors
    ///
    /// [`WriteError::BucketRemoved`], and the errors that any write can have.
    pub fn restore_bucket(&self, bucket: &BucketName) -> Result<(), WriteError> {
        self.change_bucket(bucket, BucketState::Restored)
    }

    fn change_bucket(&self, bucket: &BucketName, to: BucketState) -> Result<(), WriteError> {
        let mut next = Some(1);
        while let Some(first) = next {
            let change = BucketChange { bucket: bucket.clone(), first, to };
            next = self.run(LEDGER_WORK_BYTES, |done| WorkItem::ChangeBucket(change, done))?;
        }
        Ok(())
    }

    fn edit_ledger(&self, name: &LedgerName, edit: LedgerEdit) -> Result<(), WriteError> {
        self.run(LEDGER_WORK_BYTES, |done| WorkItem::EditLedger(name.clone(), edit, done)).map(drop)
    }

    /// Edits a ledger without blocking. Calls `done` like [`Store::submit`].
    pub(crate) fn queue_edit(
        &self,
        name: &LedgerName,
        edit: LedgerEdit,
        done: impl FnOnce(Result<(), WriteError>) + Send + 'static,
    ) {
        let edit = |done| WorkItem::EditLedger(name.clone(), edit, done);
        self.queue_work(LEDGER_WORK_BYTES, edit, |edited| done(edited.map(drop)));
    }

    /// Executes commands. Everything is on disk when this returns. Returns one outcome for each request, in order.
    /// Blocks the thread; [`apply_async`](Self::apply_async) does not.
    ///
    /// # Errors
    ///
    /// See [`WriteError`]. Unless the outcome is unknown, the write had no effect.
    pub fn apply(&self, mut submission: Submission) -> Result<Vec<Outcome>, WriteError> {
        submission.hash_requests();
        let bytes = submission.bytes();
        let programs = self.engine().scripts.of(&submission);
        self.run(bytes, |done| WorkItem::Apply(submission, programs, done))
    }

    /// Decides commands as the first ones of a new ledger with these options. Creates and records nothing. A dry run
    /// on a ledger that does not exist gets its outcomes this way. Blocks the thread;
    /// [`try_on_new_ledger_async`](Self::try_on_new_ledger_async) does not.
    ///
    /// ```
    /// use ledger_core::{Command, CreateTransaction, LedgerName, LedgerOptions};
    /// use ledger_store::{Atomicity, Detail, Mode, Outcome, Store, Submission};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Store::in_memory();
    /// let ledger = LedgerName::parse("main")?;
    /// let payment = ledger_core::Posting {
    ///     source: ledger_core::AccountAddress::world(),
    ///     destination: ledger_core::AccountAddress::parse("users:001")?,
    ///     amount: ledger_core::Amount::from(100_u64),
    ///     asset: ledger_core::Asset::parse("USD/2")?,
    /// };
    /// let command = Command::CreateTransaction(CreateTransaction::of(vec![payment].into()));
    /// let outcomes = store.try_on_new_ledger(LedgerOptions::default(), Submission {
    ///     ledger: ledger.clone(),
    ///     requests: vec![command.into()],
    ///     atomicity: Atomicity::Independent,
    ///     mode: Mode::DryRun,
    ///     detail: Detail::Entry,
    /// })?;
    /// assert!(matches!(outcomes[..], [Outcome::Done(_)]));
    /// assert!(store.snapshot().ledger(&ledger).is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Store::apply`].
    ///
    /// # Panics
    ///
    /// Panics if the operating system cannot provide random numbers.
    pub fn try_on_new_ledger(
        &self,
        options: LedgerOptions,
        mut submission: Submission,
    ) -> Result<Vec<Outcome>, WriteError> {
        // An engine of its own, without threads: this store's state is shared with readers, who would see the ledger.
        let clock = self.engine().clock.clone();
        let memory = Options { memory_budget: TRIAL_MEMORY_BYTES, clock, ..Options::default() };
        let engine = Engine::in_memory(&memory);
        let ledger = submission.ledger.clone();
        lead::run(&engine, LEDGER_WORK_BYTES, |done| WorkItem::CreateLedger(ledger, options, done))?;
        submission.mode = Mode::DryRun;
        submission.hash_requests();
        let bytes = submission.bytes();
        let programs = self.engine().scripts.of(&submission);
        lead::run(&engine, bytes, |done| WorkItem::Apply(submission, programs, done))
    }

    /// Changes documents and executes commands: everything is recorded in one commit, or nothing is. A crash never
    /// leaves the documents without the transactions, or the other way round. Everything is on disk when this
    /// returns. Blocks the thread; [`write_atomically_async`](Self::write_atomically_async) does not.
    ///
    /// The answer holds one outcome for each command, in order. If the rules refuse a command, nothing is recorded. The
    /// store decides the other commands all the same, so the answer names every refusal; commands without one are
    /// [`Outcome::Cancelled`].
    ///
    /// ```
    /// use ledger_core::{Amount, AccountAddress, Asset, Command, CreateTransaction, LedgerName, Posting};
    /// use ledger_store::{
    ///     AtomicWrite, Collection, DocumentAction, DocumentChange, Expected, LedgerCommand, Outcome, Store,
    /// };
    ///
    /// const PAYMENTS: Collection = Collection::new(100).unwrap();
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Store::in_memory();
    /// let ledger = LedgerName::parse("main")?;
    /// store.create_ledger(ledger.clone(), Default::default())?;
    /// let received = Posting {
    ///     source: AccountAddress::world(),
    ///     destination: AccountAddress::parse("users:001")?,
    ///     amount: Amount::from(100_u64),
    ///     asset: Asset::parse("USD/2")?,
    /// };
    /// let command = Command::CreateTransaction(CreateTransaction::of(vec![received].into()));
    /// let outcomes = store.write_atomically(AtomicWrite {
    ///     documents: vec![DocumentChange {
    ///         collection: PAYMENTS,
    ///         key: b"payment-1".to_vec(),
    ///         expected: Expected::Absent, // a repetition is refused, and makes no second transaction
    ///         action: DocumentAction::Put { value: b"received".to_vec(), keys: vec![] },
    ///     }],
    ///     commands: vec![LedgerCommand { ledger, request: command.into() }],
    /// })?;
    /// assert!(matches!(outcomes[..], [Outcome::Done(_)]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`WriteError::Document`] if a document is not in the expected state, a unique key is taken, or a limit is
    /// exceeded; [`WriteError::LedgerNotFound`]; and the errors that any write can have.
    pub fn write_atomically(&self, mut write: AtomicWrite) -> Result<Vec<Outcome>, WriteError> {
        let (bytes, programs) = self.prepare(&mut write);
        self.run(bytes, |done| WorkItem::WriteAtomically(write, programs, done))
    }

    /// Does what [`Store::write_atomically`] does, without blocking. Calls `done` like [`Store::submit`].
    ///
    /// ```
    /// use ledger_store::{AtomicWrite, Collection, DocumentAction, DocumentChange, Expected, Store};
    /// let store = Store::in_memory();
    /// let payments = Collection::new(100).expect("a number of callers");
    /// let change = DocumentChange {
    ///     collection: payments,
    ///     key: b"payment-1".to_vec(),
    ///     expected: Expected::Absent,
    ///     action: DocumentAction::Put { value: b"received".to_vec(), keys: vec![] },
    /// };
    /// let write = AtomicWrite { documents: vec![change], commands: vec![] };
    /// let (send, answers) = std::sync::mpsc::channel();
    /// store.submit_atomically(write, move |answer| send.send(answer).unwrap_or_default());
    /// assert_eq!(answers.recv()??, []); // one outcome for each command, and there is none
    /// assert!(store.snapshot().document(payments, b"payment-1")?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn submit_atomically(
        &self,
        mut write: AtomicWrite,
        done: impl FnOnce(Result<Vec<Outcome>, WriteError>) + Send + 'static,
    ) {
        let (bytes, programs) = self.prepare(&mut write);
        lead::submit(self.engine(), WorkItem::WriteAtomically(write, programs, Callback::new(done)), bytes);
    }

    /// Hashes the commands of a write. Returns its size in the queue, and its programs.
    fn prepare(&self, write: &mut AtomicWrite) -> (usize, Programs) {
        write.commands.iter_mut().for_each(|command| command.request.fill_in_hash());
        let requests = write.commands.iter().map(|command| &command.request);
        let programs = self.engine().scripts.of_requests(requests);
        (write.bytes(), programs)
    }

    /// Executes commands without blocking. Calls `done` once with the answer, after everything is on disk. The call
    /// may be on this thread or another one, and `done` must not block.
    ///
    /// ```
    /// use ledger_store::{Atomicity, Detail, IntoRequest, Mode, Outcome, Submission, prelude::*};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Store::in_memory();
    /// let ledger = store.ledger("main")?;
    /// ledger.create(LedgerOptions::default())?;
    /// let submission = Submission {
    ///     ledger: ledger.name().clone(),
    ///     requests: vec![ledger.transaction().posting("world", "users:1", 5, "USD").into_request()?],
    ///     atomicity: Atomicity::Independent,
    ///     mode: Mode::Commit,
    ///     detail: Detail::Ids,
    /// };
    /// let (send, answers) = std::sync::mpsc::channel();
    /// store.submit(submission, move |answer| send.send(answer).unwrap_or_default());
    /// assert!(matches!(answers.recv()??[..], [Outcome::Done(_)]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit(
        &self,
        mut submission: Submission,
        done: impl FnOnce(Result<Vec<Outcome>, WriteError>) + Send + 'static,
    ) {
        submission.hash_requests();
        let bytes = submission.bytes();
        let programs = self.engine().scripts.of(&submission);
        lead::submit(self.engine(), WorkItem::Apply(submission, programs, Callback::new(done)), bytes);
    }

    /// Queues work that takes `bytes` in the queue, without blocking. Calls `done` like [`Store::submit`].
    pub(crate) fn queue_work<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(Callback<T>) -> WorkItem,
        done: impl FnOnce(Result<T, WriteError>) + Send + 'static,
    ) {
        lead::submit(self.engine(), work(Callback::new(done)), bytes);
    }

    /// Queues work that takes `bytes` in the queue, and waits for its answer. The kind of the work determines the type
    /// of the answer.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce(Callback<T>) -> WorkItem,
    ) -> Result<T, WriteError> {
        lead::run(self.engine(), bytes, work)
    }
}
