//! Tests of the engine without a disk.
//!
//! [`ScriptedJournal`] can hold an append, fail appends and reads, and observe the engine during an append. The tests
//! run the engine's stages on their own threads, so they control the order of the steps.

mod commits;
mod failures;
mod half_applied;
mod journal;
mod memory;
mod reads;
mod residence;

use std::sync::Arc;
use std::sync::mpsc;

use ledger_core::{
    AccountAddress, Command, CreateTransaction, LedgerName, LedgerOptions, Metadata, Posting, Postings,
    Target,
};
use ledger_journal::Identity;

use self::journal::ScriptedJournal;
use super::{Callback, Engine, WorkItem, background, flushes, lead};
use crate::error::WriteError;
use crate::options::Options;
use crate::scripts::Programs;
use crate::submission::{Atomicity, Detail, Mode, Outcome, Request, Submission};

/// Creates an engine over a scripted journal, with the ledger `main`. It has no threads.
fn engine(options: &Options) -> (Arc<Engine>, Arc<ScriptedJournal>) {
    let identity = Identity::random().expect("the system has random numbers");
    let journal = Arc::new(ScriptedJournal::new(identity.clone()));
    let engine = Arc::new(Engine::over(journal.clone(), identity, options));
    let created =
        run(&engine, 1, |done| WorkItem::CreateLedger(main_ledger(), LedgerOptions::default(), done));
    assert!(created.is_ok());
    (engine, journal)
}

fn main_ledger() -> LedgerName {
    LedgerName::parse("main").expect("a name")
}

fn account(address: &str) -> AccountAddress {
    AccountAddress::parse(address).expect("an address")
}

/// Decides and commits work on this thread.
fn run<T: Send + 'static>(
    engine: &Engine,
    bytes: usize,
    work: impl FnOnce(Callback<T>) -> WorkItem,
) -> Result<T, WriteError> {
    let (told, answer) = mpsc::channel();
    let done = Callback::new(move |answer| told.send(answer).expect("the test waits"));
    lead::submit_here(engine, work(done), bytes);
    answer.recv().expect("an answer")
}

/// Decides and commits commands on `main`, on this thread.
fn apply(
    engine: &Engine,
    commands: Vec<Command>,
    atomicity: Atomicity,
    mode: Mode,
) -> Result<Vec<Outcome>, WriteError> {
    apply_sized(engine, 1, commands, atomicity, mode)
}

/// Decides and commits commands that count as `bytes` in the queue, on this thread.
fn apply_sized(
    engine: &Engine,
    bytes: usize,
    commands: Vec<Command>,
    atomicity: Atomicity,
    mode: Mode,
) -> Result<Vec<Outcome>, WriteError> {
    let requests = commands.into_iter().map(Request::from).collect();
    let submission = Submission { ledger: main_ledger(), requests, atomicity, mode, detail: Detail::Ids };
    run(engine, bytes, |done| WorkItem::Apply(submission, Programs::default(), done))
}

/// A payment of 1 COIN, with a reference unless `reference` is empty.
fn payment(from: &str, to: &str, reference: &str) -> Command {
    let posting = Posting {
        source: account(from),
        destination: account(to),
        amount: 1_u64.into(),
        asset: "COIN".parse().expect("an asset"),
    };
    let mut create = CreateTransaction::of(Postings::from(vec![posting]));
    create.reference = (!reference.is_empty()).then(|| reference.parse().expect("a reference"));
    Command::CreateTransaction(create)
}

fn set_metadata(address: &str, key: &str, value: &str) -> Command {
    let mut metadata = Metadata::EMPTY;
    metadata.insert_text(key, value);
    Command::SetMetadata { target: Target::Account(account(address)), metadata }
}

fn delete_metadata(address: &str, key: &str) -> Command {
    Command::DeleteMetadata { target: Target::Account(account(address)), key: key.into() }
}
