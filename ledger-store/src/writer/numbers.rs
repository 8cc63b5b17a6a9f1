//! Creates the entry of a decision: replaces names by numbers, and numbers those that the entry is the first to use.

use ledger_core::{
    AccountAddress, Asset, Decision, Facts, Metadata, MetadataValue, NewTransaction, Slots, Target,
    TransactionId,
};
use ledger_journal::entry::{
    AddressRef, Event, HoldingRecord, MetadataRecord, Move, NameRef, TargetRecord, TransactionRecord,
    ValueRef,
};
use smallvec::SmallVec;

use super::hints::Hints;
use super::locate::Located;
use super::state::State;

/// Creates the entry's event, with the numbers that new names will get.
pub(super) fn event<'a>(
    state: &mut State,
    ledger: u32,
    id: u64,
    decision: &'a Decision<'_>,
    facts: &Facts,
    hints: &'a Hints,
) -> Event<'a> {
    let mut numbers = Numbers::new(state, ledger);
    match decision {
        Decision::Transaction(transaction) => {
            Event::Transaction(numbers.transaction(state, id, transaction, facts, hints))
        }
        Decision::SetMetadata { target, metadata } => Event::SetMetadata {
            target: numbers.target(target, hints),
            defaults: match hints.defaults.as_slice() {
                [(_, defaults)] => numbers.metadata(state, defaults).collect(),
                _ => MetadataRecord::default(),
            },
            metadata: numbers.metadata(state, metadata).collect(),
        },
        Decision::InsertSchema { schema, .. } => Event::InsertedSchema { schema },
        Decision::DeleteMetadata { target, key } => {
            let target = match target {
                Target::Account(address)
                    if hints.located.first().is_none_or(|found| found.account.is_none()) =>
                {
                    TargetRecord::Unknown(address.as_str())
                }
                target => numbers.target(target, hints),
            };
            Event::DeleteMetadata { target, key: numbers.key(state, 0, key) }
        }
    }
}

/// Chooses numbers for the names that an entry is the first to use. Applying the entry assigns them.
struct Numbers<'a> {
    ledger: u32,
    next_account: u32,
    next_holding: u32,
    next_asset: u32,
    next_key: u32,
    accounts: SmallVec<[(&'a str, u32); 4]>,
    assets: SmallVec<[(&'a str, u32); 2]>,
    keys: SmallVec<[(&'a str, u32); 4]>,
}

impl<'a> Numbers<'a> {
    fn new(state: &mut State, ledger: u32) -> Self {
        let counters = *state.ledgers[ledger].counters();
        Self {
            ledger,
            next_account: counters.accounts,
            next_holding: counters.holdings,
            next_asset: counters.assets,
            next_key: counters.keys,
            accounts: SmallVec::new(),
            assets: SmallVec::new(),
            keys: SmallVec::new(),
        }
    }

    fn account(&mut self, address: &'a str, located: Option<&Located>) -> AddressRef<'a> {
        if let Some((_, account)) = located.and_then(|located| located.account) {
            return AddressRef { account, new: None };
        }
        if let Some((_, account)) = self.accounts.iter().find(|(have, _)| *have == address) {
            return AddressRef { account: *account, new: None };
        }
        let account = self.next_account;
        self.next_account += 1;
        self.accounts.push((address, account));
        AddressRef { account, new: Some(address) }
    }

    fn asset(&mut self, known: Option<u32>, asset: &'a str) -> NameRef<'a> {
        if let Some(id) = known {
            return NameRef::Known(id);
        }
        if let Some((_, id)) = self.assets.iter().find(|(have, _)| *have == asset) {
            return NameRef::Known(*id);
        }
        let id = self.next_asset;
        self.next_asset += 1;
        self.assets.push((asset, id));
        NameRef::New(id, asset)
    }

    /// Returns the reference to the metadata key at index `at`.
    fn key(&mut self, state: &mut State, at: usize, key: &'a str) -> NameRef<'a> {
        let ledger = &mut state.ledgers[self.ledger];
        if let Some(id) = ledger.key(at, key, &state.fingerprints) {
            return NameRef::Known(id);
        }
        if let Some((_, id)) = self.keys.iter().find(|(have, _)| *have == key) {
            return NameRef::Known(*id);
        }
        if self.next_key as usize >= crate::names::NAMES_MAX {
            return NameRef::Inline(key);
        }
        let id = self.next_key;
        self.next_key += 1;
        self.keys.push((key, id));
        NameRef::New(id, key)
    }

    fn metadata(
        &mut self,
        state: &mut State,
        metadata: &'a Metadata,
    ) -> impl Iterator<Item = (NameRef<'a>, ValueRef<'a>)> {
        metadata.iter().enumerate().map(|(at, (key, value))| {
            let value = match value {
                MetadataValue::Text(text) => ValueRef::Text(text),
                MetadataValue::Json(text) => ValueRef::Json(text),
            };
            (self.key(state, at, key), value)
        })
    }

    fn target(&mut self, target: &'a Target, hints: &Hints) -> TargetRecord<'a> {
        match target {
            Target::Account(address) => {
                TargetRecord::Account(self.account(address.as_str(), hints.located.first()))
            }
            Target::Transaction(id) => TargetRecord::Transaction(id.get()),
        }
    }

    fn transaction(
        &mut self,
        state: &mut State,
        id: u64,
        transaction: &'a NewTransaction<'_>,
        facts: &Facts,
        hints: &'a Hints,
    ) -> TransactionRecord<'a> {
        let mut holdings = SmallVec::with_capacity(facts.volumes.len());
        // Names are only needed if something is new.
        let mut names = None;
        for (at, (located, after)) in hints.located.iter().zip(&facts.volumes).enumerate() {
            let holding = if let Located { account: Some((_, account)), asset: Some(asset), holding, .. } =
                located
                && let Some(holding) = *holding
            {
                let account = AddressRef { account: *account, new: None };
                HoldingRecord {
                    holding,
                    is_new: false,
                    account,
                    asset: NameRef::Known(*asset),
                    after: after.clone(),
                }
            } else {
                let names = names.get_or_insert_with(|| holding_names(transaction, facts.volumes.len()));
                let (address, asset) = names[at];
                let holding = self.next_holding;
                self.next_holding += 1;
                HoldingRecord {
                    holding,
                    is_new: true,
                    account: self.account(address.as_str(), Some(located)),
                    asset: self.asset(located.asset, asset.as_str()),
                    after: after.clone(),
                }
            };
            holdings.push(holding);
        }
        let moves = transaction.postings.iter().zip(transaction.slots).map(|(posting, slots)| Move {
            source: slots.source,
            destination: slots.destination,
            amount: posting.amount.clone(),
        });
        let metadata = self.metadata(state, &transaction.metadata).collect();
        let account_metadata = self.account_metadata(state, transaction, hints, facts.volumes.len());
        TransactionRecord {
            id,
            timestamp: transaction.timestamp,
            inserted_at: None,
            original_updated_at: None,
            volumes_omitted: false,
            reference: transaction.reference.as_deref().map(AsRef::as_ref),
            template: transaction.template,
            reverts: transaction.reverts.map(TransactionId::get),
            holdings,
            moves: moves.collect(),
            metadata,
            account_metadata,
            defaults: hints.defaults.len(),
            effective: None,
        }
    }

    /// Returns the metadata of accounts that a transaction gives, first the defaults of new accounts. `holdings` is the
    /// number of its holdings, after which the accounts stand in `hints`.
    fn account_metadata(
        &mut self,
        state: &mut State,
        transaction: &'a NewTransaction<'_>,
        hints: &'a Hints,
        holdings: usize,
    ) -> Vec<(AddressRef<'a>, MetadataRecord<'a>)> {
        let mut given = Vec::with_capacity(hints.defaults.len() + transaction.account_metadata.len());
        for (address, metadata) in &hints.defaults {
            let account = self.account(address.as_str(), None);
            given.push((account, self.metadata(state, metadata).collect()));
        }
        for (at, (address, metadata)) in transaction.account_metadata.iter().enumerate() {
            let account = self.account(address.as_str(), hints.located.get(holdings + at));
            given.push((account, self.metadata(state, metadata).collect()));
        }
        given
    }
}

/// Returns the account and asset of each slot of a transaction.
pub(super) fn holding_names<'a>(
    transaction: &'a NewTransaction<'_>,
    count: usize,
) -> SmallVec<[(&'a AccountAddress, &'a Asset); 4]> {
    let mut names: SmallVec<[Option<(&AccountAddress, &Asset)>; 4]> = SmallVec::from_elem(None, count);
    for (posting, Slots { source, destination }) in transaction.postings.iter().zip(transaction.slots) {
        names[*source as usize].get_or_insert((&posting.source, &posting.asset));
        names[*destination as usize].get_or_insert((&posting.destination, &posting.asset));
    }
    names.into_iter().map(|name| name.expect("every slot is the end of a posting")).collect()
}
