//! A ledger as an application embeds it.

mod answer;
mod error;

use ledger_core::{
    AccountAddress, Amount, Asset, Balance, Command, CreateTransaction, IdempotencyKey, LedgerName,
    LedgerOptions, Metadata, Movement, NameError, Overdraft, Posting, Postings, Reference, RevertDate,
    RevertTransaction, Rules, Target, Timestamp, TransactionId,
};

pub use self::answer::{Committed, DryRun};
pub use self::error::LedgerError;

use crate::error::WriteError;
use crate::options::Options;
use crate::query::{Account, Expand};
use crate::read::LedgerView;
use crate::store::Store;
use crate::submission::{Atomicity, Detail, Mode, Outcome, Receipt, Request, Submission};

/// A handle of one ledger of a [`Store`]. The ledger is created by the first write, with
/// [`LedgerOptions::default`], unless it exists. Cheap to clone.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = ledger_store::Store::in_memory();
/// let ledger = store.ledger("main")?;
/// let deposit = ledger
///     .transaction()
///     .posting("world", "users:001", 100_00, "USD/2")
///     .reference("deposit-1")
///     .commit()?; // on disk when this returns
/// assert_eq!(deposit.postings.len(), 1);
/// assert_eq!(ledger.balance("users:001", "USD/2")?.to_string(), "10000");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Ledger {
    store: Store,
    name: LedgerName,
}

impl Store {
    /// A handle of the ledger with this name.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Name`] if it is no name of a ledger.
    pub fn ledger(&self, name: &str) -> Result<Ledger, LedgerError> {
        Ok(Ledger { store: self.clone(), name: LedgerName::parse(name)? })
    }
}

impl Ledger {
    /// Its name.
    pub fn name(&self) -> &LedgerName {
        &self.name
    }

    /// Begins a transaction.
    pub fn transaction(&self) -> TransactionBuilder<'_> {
        TransactionBuilder {
            ledger: self,
            create: CreateTransaction::of(Postings::new()),
            key: None,
            failed: None,
        }
    }

    /// Executes commands in order, each standing for itself, in one durable commit. One outcome for each.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Write`]; a refusal is an outcome.
    pub fn apply(&self, commands: Vec<Command>) -> Result<Vec<Outcome>, LedgerError> {
        self.submit(commands.into_iter().map(Request::from).collect(), Atomicity::Independent, Detail::Ids)
    }

    /// Executes commands in order, all of them or none, in one durable commit.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Refused`] with the refusal of the first that is refused; none of them happened then.
    pub fn apply_atomically(&self, commands: Vec<Command>) -> Result<Vec<Receipt>, LedgerError> {
        let requests = commands.into_iter().map(Request::from).collect();
        let outcomes = self.submit(requests, Atomicity::AllOrNothing, Detail::Ids)?;
        let refusal = outcomes.iter().find_map(|outcome| match outcome {
            Outcome::Refused(rejection) => Some(rejection.clone()),
            Outcome::Done(_) | Outcome::Cancelled | Outcome::Failed(_) => None,
        });
        match refusal {
            Some(rejection) => Err(LedgerError::refused(&self.name, rejection)),
            None => Ok(outcomes
                .into_iter()
                .filter_map(|outcome| match outcome {
                    Outcome::Done(receipt) => Some(receipt),
                    Outcome::Refused(_) | Outcome::Cancelled | Outcome::Failed(_) => None,
                })
                .collect()),
        }
    }

    /// Records the inverse of a transaction and marks it reverted.
    ///
    /// # Errors
    ///
    /// [`LedgerError::TransactionNotFound`]; [`LedgerError::Refused`] if it is reverted already, or an account lacks
    /// the funds.
    pub fn revert(&self, id: TransactionId) -> Result<TransactionId, LedgerError> {
        let command = Command::RevertTransaction(RevertTransaction {
            id,
            overdraft: Overdraft::Refuse,
            dated: RevertDate::Now,
            metadata: Metadata::EMPTY,
            rules: Rules::Current,
        });
        let receipt = self.execute(command.into(), Detail::Ids)?;
        Ok(receipt.transaction.expect("a revert is a transaction"))
    }

    /// Sets metadata keys of an account; others stay.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Name`] for what is no address.
    pub fn set_account_metadata(&self, account: &str, metadata: Metadata) -> Result<(), LedgerError> {
        let target = Target::Account(AccountAddress::parse(account)?);
        self.execute(Command::SetMetadata { target, metadata }.into(), Detail::Ids).map(drop)
    }

    /// The balance of an asset in an account, in the asset's smallest unit: what it received less what it
    /// sent. Zero for an account that was never used.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Name`] for what is no address or no asset; [`LedgerError::Read`].
    pub fn balance(&self, account: &str, asset: &str) -> Result<Balance, LedgerError> {
        let (account, asset) = (AccountAddress::parse(account)?, Asset::parse(asset)?);
        match self.view() {
            Some(view) => Ok(view.balance(&account, &asset)?),
            None => Ok(Balance::ZERO),
        }
    }

    /// The balance of an asset in an account as of an effective date.
    ///
    /// # Errors
    ///
    /// As [`Ledger::balance`].
    pub fn balance_at(&self, account: &str, asset: &str, at: Timestamp) -> Result<Balance, LedgerError> {
        let (account, asset) = (AccountAddress::parse(account)?, Asset::parse(asset)?);
        let Some(view) = self.view() else { return Ok(Balance::ZERO) };
        let expand = Expand { volumes: false, effective_volumes: true };
        let found = view.account(&account, Some(at), expand)?;
        let volumes = found.and_then(|account| account.effective_volumes).unwrap_or_default();
        let held = volumes.into_iter().find(|(have, _)| *have == asset);
        Ok(held.map_or(Balance::ZERO, |(_, volumes)| volumes.balance()))
    }

    /// An account with its current volumes; `None` if it was never named.
    ///
    /// # Errors
    ///
    /// As [`Ledger::balance`].
    pub fn account(&self, account: &str) -> Result<Option<Account>, LedgerError> {
        let account = AccountAddress::parse(account)?;
        let Some(view) = self.view() else { return Ok(None) };
        Ok(view.account(&account, None, Expand { volumes: true, effective_volumes: false })?)
    }

    /// The ledger as of now, for lists and all other reads; `None` if nothing was
    /// written yet.
    pub fn view(&self) -> Option<LedgerView> {
        self.store.snapshot().ledger(&self.name)
    }

    fn execute(&self, request: Request, detail: Detail) -> Result<Receipt, LedgerError> {
        self.only(self.submit(vec![request], Atomicity::Independent, detail)?)
    }

    /// Decides a request with its entry, and records nothing. A ledger that is not there is not created.
    fn rehearse(&self, request: Request) -> Result<Receipt, LedgerError> {
        let submission = |store: &Store| {
            store.apply(Submission {
                ledger: self.name.clone(),
                requests: vec![request],
                atomicity: Atomicity::Independent,
                mode: Mode::DryRun,
                detail: Detail::Entry,
            })
        };
        if self.view().is_some() {
            return self.only(submission(&self.store)?);
        }
        let clock = self.store.engine().clock.clone();
        let options = Options { memory_budget: REHEARSAL_MEMORY_BYTES, clock, ..Options::default() };
        let empty = Store::in_memory_with(&options);
        empty.create_ledger(self.name.clone(), LedgerOptions::default())?;
        self.only(submission(&empty)?)
    }

    /// The receipt of a single request.
    fn only(&self, mut outcomes: Vec<Outcome>) -> Result<Receipt, LedgerError> {
        match outcomes.pop() {
            Some(Outcome::Done(receipt)) => Ok(receipt),
            Some(Outcome::Refused(rejection)) => Err(LedgerError::refused(&self.name, rejection)),
            Some(Outcome::Failed(error)) => Err(LedgerError::Read(error)),
            Some(Outcome::Cancelled) | None => unreachable!("a single command is done or refused"),
        }
    }

    fn submit(
        &self,
        requests: Vec<Request>,
        atomicity: Atomicity,
        detail: Detail,
    ) -> Result<Vec<Outcome>, LedgerError> {
        let submission =
            Submission { ledger: self.name.clone(), requests, atomicity, mode: Mode::Commit, detail };
        if self.view().is_none() {
            match self.store.create_ledger(self.name.clone(), LedgerOptions::default()) {
                Ok(_) | Err(WriteError::LedgerExists) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.store.apply(submission)?)
    }
}

/// Memory of the store that decides dry runs of ledgers that are not there. Nothing stays in it.
const REHEARSAL_MEMORY_BYTES: usize = 16 << 20;

/// A transaction that is being put together; nothing happens before [`TransactionBuilder::commit`].
#[must_use = "nothing happens before it is committed"]
pub struct TransactionBuilder<'a> {
    ledger: &'a Ledger,
    create: CreateTransaction,
    key: Option<IdempotencyKey>,
    failed: Option<NameError>,
}

impl TransactionBuilder<'_> {
    /// Moves `amount`, in the asset's smallest unit, from one account to another. Postings are executed in
    /// order; each source but `world` must hold what it sends.
    pub fn posting(self, source: &str, destination: &str, amount: u64, asset: &str) -> Self {
        self.exact_posting(source, destination, Amount::from(amount), asset)
    }

    /// As [`TransactionBuilder::posting`], for an amount of any size.
    pub fn exact_posting(mut self, source: &str, destination: &str, amount: Amount, asset: &str) -> Self {
        let parsed = AccountAddress::parse(source).and_then(|source| {
            Ok(Posting {
                source,
                destination: AccountAddress::parse(destination)?,
                amount,
                asset: Asset::parse(asset)?,
            })
        });
        match (parsed, &mut self.create.movement) {
            (Ok(posting), Movement::Postings(postings)) => postings.push(posting),
            (Ok(_), Movement::Script(_) | Movement::Template { .. }) => {
                unreachable!("the builder makes postings")
            }
            (Err(error), _) => self.note(error),
        }
        self
    }

    /// Gives it a reference, which must be new to the ledger.
    pub fn reference(mut self, reference: &str) -> Self {
        match Reference::parse(reference) {
            Ok(reference) => self.create.reference = Some(reference),
            Err(error) => self.note(error),
        }
        self
    }

    /// Sets a metadata key.
    pub fn metadata(mut self, key: &str, value: &str) -> Self {
        self.create.metadata.insert_text(key, value);
        self
    }

    /// Gives it an effective date other than now; past and future are allowed.
    pub fn timestamp(mut self, timestamp: Timestamp) -> Self {
        self.create.timestamp = Some(timestamp);
        self
    }

    /// Protects it from being recorded twice. A repetition of the same request with the same key gets the first answer,
    /// with [`Committed::replayed`] set. Another request with the same key is a
    /// [`LedgerError::IdempotencyConflict`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ledger_store::{LedgerError, Store};
    /// let ledger = Store::in_memory().ledger("main")?;
    /// let pay = |amount| {
    ///     ledger.transaction().posting("world", "users:001", amount, "USD/2").idempotency_key("order-17").commit()
    /// };
    /// assert!(!pay(100_00)?.replayed);
    /// assert!(pay(100_00)?.replayed); // one payment
    /// assert!(matches!(pay(7_77), Err(LedgerError::IdempotencyConflict { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub fn idempotency_key(mut self, key: &str) -> Self {
        match IdempotencyKey::parse(key) {
            Ok(key) => self.key = Some(key),
            Err(error) => self.note(error),
        }
        self
    }

    /// Lets every source go below zero.
    pub fn allow_overdraft(mut self) -> Self {
        self.create.overdraft = Overdraft::Allow;
        self
    }

    /// Records it. It is on disk when this returns.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Name`] for the first text that does not follow its grammar, [`LedgerError::Refused`] by
    /// the rules, [`LedgerError::IdempotencyConflict`], [`LedgerError::Write`] by the store.
    pub fn commit(self) -> Result<Committed, LedgerError> {
        let ledger = self.ledger;
        ledger.execute(self.request()?, Detail::Entry).map(Committed::of)
    }

    /// Checks and computes everything as [`TransactionBuilder::commit`], and records nothing.
    ///
    /// # Errors
    ///
    /// As [`TransactionBuilder::commit`].
    pub fn dry_run(self) -> Result<DryRun, LedgerError> {
        let ledger = self.ledger;
        ledger.rehearse(self.request()?).map(DryRun::of)
    }

    fn request(self) -> Result<Request, LedgerError> {
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        let command = Command::CreateTransaction(self.create);
        Ok(match self.key {
            Some(key) => Request::once(key, command),
            None => command.into(),
        })
    }

    fn note(&mut self, error: NameError) {
        self.failed.get_or_insert(error);
    }
}
