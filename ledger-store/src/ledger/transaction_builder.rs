//! Builders of transactions and script runs.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use ledger_core::script::Language;
use ledger_core::{
    AccountAddress, Asset, Command, CreateTransaction, ErrorWording, IntoAmount, Metadata, Movement,
    NameError, Overdraft, OverdraftLimit, Posting, Postings, Reference, SchemaVersion, Script, SmolStr,
    Timestamp, VariableValue,
};

use super::answer::{Committed, DryRun};
use super::commit_future::CommitFuture;
use super::error::LedgerError;
use super::handle::Ledger;
use super::request::{IntoRequest, RequestParts};
use crate::readers::ReadFuture;
use crate::submission::{Detail, Request};

/// Transactions.
impl Ledger {
    /// Starts a transaction of postings.
    pub fn transaction(&self) -> TransactionBuilder<'_> {
        TransactionBuilder::new(self)
    }

    /// Starts a transaction that a script creates.
    pub fn script(&self, script: impl AsRef<str>) -> TransactionBuilder<'_, ByScript> {
        TransactionBuilder::of_script(self, script.as_ref())
    }

    /// Starts a transaction that a script template creates. The template belongs to the version of the schema that
    /// [`schema_version`](TransactionBuilder::schema_version) sets.
    ///
    /// ```
    /// let ledger = ledger_store::Store::in_memory().ledger("main")?;
    /// let schema = r#"{"chart": {"users": {"$user": {}}}, "transactions": {"topup": {
    ///     "script": "vars { account $to } send [USD/2 500] ( source = @world destination = $to )"}}}"#;
    /// ledger.insert_schema("v1", schema)?;
    /// ledger.template("topup").schema_version("v1").var("to", "users:1").commit()?;
    /// assert_eq!(ledger.balance("users:1", "USD/2")?, 5_00);
    /// # Ok::<(), ledger_store::LedgerError>(())
    /// ```
    pub fn template(&self, name: impl AsRef<str>) -> TransactionBuilder<'_, ByScript> {
        let name = SmolStr::new(name.as_ref());
        let (variables, wording, language) = (BTreeMap::new(), ErrorWording::default(), Language::NUMSCRIPT);
        TransactionBuilder::of_movement(self, Movement::Template { name, variables, wording, language })
    }
}

/// Marks a [`TransactionBuilder`] that takes postings.
#[derive(Clone, Copy, Debug)]
pub enum ByPostings {}

/// Marks a [`TransactionBuilder`] that runs a script.
#[derive(Clone, Copy, Debug)]
pub enum ByScript {}

/// A builder for a transaction. Nothing is recorded before [`TransactionBuilder::commit`].
///
/// [`Ledger::transaction`] creates one for postings, [`Ledger::script`] one for a script. Texts that do not follow
/// their grammar are reported by `commit`.
///
/// ```
/// use ledger_store::{ledger_core::ErrorWording, prelude::*};
/// let ledger = Store::in_memory().ledger("main")?;
/// let loan = ledger.transaction().posting("bank", "users:1", 500_00, "USD/2").allow_overdraft();
/// let loan = loan.account_metadata("users:1", "loan", "USD/2 50000").metadata("kind", "loan");
/// assert_eq!(loan.commit()?.postings[0].source.as_str(), "bank");
/// let script = "send [USD/2 1] ( source = @users:2 destination = @users:1 )";
/// let planned = ledger.script(script).error_wording(ErrorWording::Interpreter).dry_run();
/// assert!(planned.is_err_and(|error| error.is_insufficient_funds()));
/// # Ok::<(), LedgerError>(())
/// ```
#[must_use = "nothing happens before it is committed"]
pub struct TransactionBuilder<'a, M = ByPostings> {
    ledger: &'a Ledger,
    create: CreateTransaction,
    parts: RequestParts,
    movement: PhantomData<fn() -> M>,
}

impl<'a> TransactionBuilder<'a, ByPostings> {
    pub(super) fn new(ledger: &'a Ledger) -> Self {
        let create = CreateTransaction::of(Postings::new());
        Self { ledger, create, parts: RequestParts::default(), movement: PhantomData }
    }

    /// Moves an amount from one account to another. Postings are executed in order. Each source but `world` must hold
    /// what it sends.
    ///
    /// The amount is an integer in the smallest unit of the asset, or a decimal in whole units (feature `decimal`).
    /// Floating-point numbers are not amounts:
    ///
    /// ```compile_fail
    /// # let ledger = ledger_store::Store::in_memory().ledger("main").unwrap();
    /// let _ = ledger.transaction().posting("world", "users:001", 1.5, "USD/2");
    /// ```
    pub fn posting<A>(
        mut self,
        source: impl AsRef<str>,
        destination: impl AsRef<str>,
        amount: impl IntoAmount,
        asset: A,
    ) -> Self
    where
        A: TryInto<Asset>,
        A::Error: Into<NameError>,
    {
        match posting(source.as_ref(), destination.as_ref(), amount, asset) {
            Ok(posting) => match &mut self.create.movement {
                Movement::Postings(postings) => postings.push(posting),
                Movement::Script(_) | Movement::Template { .. } => unreachable!("only postings"),
            },
            Err(error) => self.parts.note(error),
        }
        self
    }

    /// Lets an account go below zero by at most `limit`, the overdraft of a wallet: its balance of the asset does not fall
    /// below `-limit` at any posting. Other accounts still need to hold what they send. The limit is not stored: it
    /// applies to this transaction only. It is part of the request that an idempotency key protects, so a retry with
    /// another limit is [`LedgerError::IdempotencyConflict`]. If each wallet has a limit of its own that may change, use a
    /// script that reads it with `meta`; the guide has an example.
    ///
    /// ```
    /// use ledger_store::prelude::*;
    /// let ledger = Store::in_memory().ledger("main")?;
    /// let pay = |cents: u64| {
    ///     let payment = ledger.transaction().posting("users:1", "shops:42", cents, "USD/2");
    ///     payment.allow_overdraft_up_to("users:1", 5_00, "USD/2").commit()
    /// };
    /// pay(4_00)?;
    /// assert!(pay(1_01).is_err_and(|error| error.is_insufficient_funds()));
    /// pay(1_00)?;
    /// assert_eq!(ledger.balance("users:1", "USD/2")?, -5_00);
    /// # Ok::<(), LedgerError>(())
    /// ```
    pub fn allow_overdraft_up_to<A>(
        mut self,
        account: impl AsRef<str>,
        limit: impl IntoAmount,
        asset: A,
    ) -> Self
    where
        A: TryInto<Asset>,
        A::Error: Into<NameError>,
    {
        match overdraft_limit(account.as_ref(), limit, asset) {
            Ok(limit) => self.create.overdraft.add(limit),
            Err(error) => self.parts.note(error),
        }
        self
    }
}

/// Parses the account, the asset and the amount of an overdraft limit.
fn overdraft_limit<A>(account: &str, limit: impl IntoAmount, asset: A) -> Result<OverdraftLimit, LedgerError>
where
    A: TryInto<Asset>,
    A::Error: Into<NameError>,
{
    let account = AccountAddress::parse(account)?;
    let asset = asset.try_into().map_err(Into::into)?;
    let limit = limit.into_amount(&asset)?;
    Ok(OverdraftLimit { account, asset, limit })
}

fn posting<A>(
    source: &str,
    destination: &str,
    amount: impl IntoAmount,
    asset: A,
) -> Result<Posting, LedgerError>
where
    A: TryInto<Asset>,
    A::Error: Into<NameError>,
{
    let source = AccountAddress::parse(source)?;
    let destination = AccountAddress::parse(destination)?;
    let asset = asset.try_into().map_err(Into::into)?;
    let amount = amount.into_amount(&asset)?;
    Ok(Posting { source, destination, amount, asset })
}

impl<'a> TransactionBuilder<'a, ByScript> {
    pub(super) fn of_script(ledger: &'a Ledger, plain: &str) -> Self {
        let script = Script { plain: plain.to_owned(), ..Script::default() };
        Self::of_movement(ledger, Movement::Script(script))
    }

    fn of_movement(ledger: &'a Ledger, movement: Movement) -> Self {
        let create = CreateTransaction { movement, ..CreateTransaction::of(Postings::new()) };
        Self { ledger, create, parts: RequestParts::default(), movement: PhantomData }
    }

    /// Sets a variable of the script: a text, an integer, an address, a [`Monetary`](ledger_core::Monetary).
    ///
    /// The script alone moves money. Its builder takes no postings:
    ///
    /// ```compile_fail
    /// # let ledger = ledger_store::Store::in_memory().ledger("main").unwrap();
    /// let script = ledger.script("send [USD 5] ( source = @world destination = @a )");
    /// let _ = script.posting("world", "a", 5, "USD");
    /// ```
    pub fn var(mut self, name: &str, value: impl Into<VariableValue>) -> Self {
        match &mut self.create.movement {
            Movement::Script(Script { variables, .. }) | Movement::Template { variables, .. } => {
                variables.insert(name.to_owned(), value.into());
            }
            Movement::Postings(_) => unreachable!("it has a script"),
        }
        self
    }

    /// Selects the texts of the script's errors: those of the machine (the default) or of the interpreter. Both run the
    /// script the same way.
    pub fn error_wording(mut self, wording: ErrorWording) -> Self {
        match &mut self.create.movement {
            Movement::Script(Script { wording: chosen, .. }) | Movement::Template { wording: chosen, .. } => {
                *chosen = wording;
            }
            Movement::Postings(_) => unreachable!("it has a script"),
        }
        self
    }
}

impl<M> TransactionBuilder<'_, M> {
    /// Sets the reference, which must be new to the ledger.
    pub fn reference(mut self, reference: impl AsRef<str>) -> Self {
        match Reference::parse(reference.as_ref()) {
            Ok(reference) => self.create.reference = Some(reference),
            Err(error) => self.parts.note(error),
        }
        self
    }

    /// Sets a metadata key.
    pub fn metadata(mut self, key: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.create.metadata.insert_text(key.as_ref(), value.as_ref());
        self
    }

    /// Sets a metadata key of an account together with the transaction.
    pub fn account_metadata(
        mut self,
        account: impl AsRef<str>,
        key: impl AsRef<str>,
        value: impl AsRef<str>,
    ) -> Self {
        match AccountAddress::parse(account.as_ref()) {
            Ok(account) => {
                let metadata = self.create.account_metadata.entry(account).or_insert(Metadata::EMPTY);
                metadata.insert_text(key.as_ref(), value.as_ref());
            }
            Err(error) => self.parts.note(error),
        }
        self
    }

    /// Sets the effective date. The default is now; past and future dates are allowed.
    pub fn timestamp(mut self, timestamp: Timestamp) -> Self {
        self.create.timestamp = Some(timestamp);
        self
    }

    /// Protects the transaction from being recorded twice. Repeating the same request with the same key returns the
    /// first answer, with [`Committed::replayed`] set. A different request with the same key fails with
    /// [`LedgerError::IdempotencyConflict`]. A key has up to 255 characters, belongs to its ledger, and is shared by all
    /// kinds of writes. A refused request does not use it up.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use ledger_store::{LedgerError, Store};
    /// let ledger = Store::in_memory().ledger("main")?;
    /// let pay = |amount: u64| {
    ///     ledger.transaction().posting("world", "users:001", amount, "USD/2").idempotency_key("order-17").commit()
    /// };
    /// assert!(!pay(100_00)?.replayed);
    /// assert!(pay(100_00)?.replayed); // one payment
    /// assert!(matches!(pay(7_77), Err(LedgerError::IdempotencyConflict { .. })));
    /// # Ok(())
    /// # }
    /// ```
    pub fn idempotency_key(mut self, key: impl AsRef<str>) -> Self {
        self.parts.set_key(key.as_ref());
        self
    }

    /// Refuses the transaction with [`LedgerError::AccountNotFound`] unless this account exists, which means that an
    /// earlier transaction or metadata named it. The account need not be in a posting. The check is part of the
    /// decision: no other write comes between. A replay of an idempotency key does not check again. More than
    /// [`PRECONDITIONS_MAX`](ledger_core::limits::PRECONDITIONS_MAX) conditions are refused.
    ///
    /// ```
    /// use ledger_store::prelude::*;
    /// let ledger = Store::in_memory().ledger("main")?;
    /// ledger.update_account("wallets:1").metadata("name", "Ann").commit()?;
    /// let pay = |wallet: &str| {
    ///     let topup = ledger.transaction().posting("world", wallet, 5_00, "USD/2");
    ///     topup.require_account(wallet).commit()
    /// };
    /// assert!(pay("wallets:1").is_ok());
    /// assert!(matches!(pay("wallets:2"), Err(LedgerError::AccountNotFound { .. })));
    /// # Ok::<(), LedgerError>(())
    /// ```
    pub fn require_account(mut self, account: impl AsRef<str>) -> Self {
        self.parts.require_account(account.as_ref());
        self
    }

    /// Refuses the transaction with [`LedgerError::AccountExists`] if this account exists. See
    /// [`require_account`](Self::require_account).
    pub fn require_new_account(mut self, account: impl AsRef<str>) -> Self {
        self.parts.require_new_account(account.as_ref());
        self
    }

    /// Sets the version of the ledger's schema that applies to the transaction.
    pub fn schema_version(mut self, version: impl AsRef<str>) -> Self {
        match SchemaVersion::parse(version.as_ref()) {
            Ok(version) => self.parts.schema_version = Some(Box::new(version)),
            Err(error) => self.parts.note(error),
        }
        self
    }

    /// Lets every source go below zero, without limit. See also
    /// [`allow_overdraft_up_to`](TransactionBuilder::allow_overdraft_up_to).
    pub fn allow_overdraft(mut self) -> Self {
        self.create.overdraft = Overdraft::Allow;
        self
    }

    /// Records the transaction. It is on disk when this returns. Blocks the thread;
    /// [`commit_async`](Self::commit_async) does not.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Name`] and [`LedgerError::Amount`] for the first value that does not follow its rule,
    /// [`LedgerError::Refused`] if the rules refuse the transaction, [`LedgerError::IdempotencyConflict`], and
    /// [`LedgerError::Write`].
    pub fn commit(self) -> Result<Committed, LedgerError> {
        let ledger = self.ledger;
        ledger.execute(self.into_request()?, Detail::Entry).map(Committed::of)
    }

    /// Submits it, and returns a future of the answer, for any executor. Dropping the future does not cancel the write.
    /// See [`CommitFuture`].
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`TransactionBuilder::commit`].
    pub fn commit_async(self) -> CommitFuture<Committed> {
        let ledger = self.ledger;
        ledger.execute_async(self.into_request(), Detail::Entry, Committed::of)
    }

    /// Checks and computes everything like [`TransactionBuilder::commit`], but records nothing. Blocks the thread;
    /// [`dry_run_async`](Self::dry_run_async) does not.
    ///
    /// # Errors
    ///
    /// As [`TransactionBuilder::commit`].
    pub fn dry_run(self) -> Result<DryRun, LedgerError> {
        let ledger = self.ledger;
        ledger.dry_run(self.into_request()?).map(DryRun::of)
    }

    /// As [`TransactionBuilder::dry_run`], without blocking.
    ///
    /// # Errors
    ///
    /// The future resolves to the errors of [`TransactionBuilder::commit`].
    pub fn dry_run_async(self) -> ReadFuture<Result<DryRun, LedgerError>> {
        let ledger = self.ledger;
        ledger.dry_run_async(self.into_request())
    }
}

impl<M> IntoRequest for TransactionBuilder<'_, M> {
    fn into_request(self) -> Result<Request, LedgerError> {
        self.parts.request(Command::CreateTransaction(self.create))
    }
}

impl<M> fmt::Debug for TransactionBuilder<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ledger, create, parts, movement: _ } = self;
        f.debug_struct("TransactionBuilder")
            .field("ledger", ledger)
            .field("create", create)
            .field("parts", parts)
            .finish()
    }
}
