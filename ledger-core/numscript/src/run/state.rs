//! The state of a run: holdings, funds taken from sources but not yet delivered, and postings so far.

use std::collections::BTreeMap;

use dashu_int::IBig;

use crate::limits::to_u32;
use crate::program::{AccountId, AssetId};
use crate::span::Span;

/// Maximum number of holdings of an account for a linear search. Above it, a tree is faster.
const LINEAR_MAX: u32 = 16;

/// The funds of one asset and colour in an account.
#[derive(Clone, Debug)]
pub(super) struct Holding {
    pub(super) account: AccountId,
    pub(super) asset: AssetId,
    pub(super) color: u32,
    /// Balance before the run, or `None` while unknown.
    pub(super) stored: Option<IBig>,
    /// Sum of the movements of this run.
    pub(super) change: IBig,
    /// True if the run already asked for the balance.
    pub(super) noted: bool,
    /// Index of the account's next holding, or `u32::MAX` at the end of the list.
    next: u32,
}

/// Funds that a source gave and no destination received yet.
#[derive(Clone, Debug)]
pub(super) struct Fund {
    pub(super) holding: usize,
    /// The amount, greater than zero.
    pub(super) amount: IBig,
    /// Position of the source clause that gave them.
    pub(super) clause: Span,
}

/// A posting of the run.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) source: AccountId,
    pub(super) destination: AccountId,
    pub(super) asset: AssetId,
    pub(super) color: u32,
    pub(super) amount: IBig,
}

/// The state that the statements of a run change.
#[derive(Debug, Default)]
pub(super) struct RunState {
    pub(super) holdings: Vec<Holding>,
    /// The holdings of each account, indexed by the number of the account.
    by_account: Vec<HoldingList>,
    /// Index of the holdings of accounts that have too many for a linear search.
    index: BTreeMap<(AccountId, AssetId, u32), usize>,
    /// Funds in the order in which sources gave them. Those before `head` are delivered.
    queue: Vec<Fund>,
    head: usize,
    pub(super) flows: Vec<Flow>,
}

/// Linked list of the holdings of an account.
#[derive(Clone, Copy, Debug)]
struct HoldingList {
    first: u32,
    last: u32,
    count: u32,
}

impl HoldingList {
    const NONE: Self = Self { first: u32::MAX, last: u32::MAX, count: 0 };
}

/// A state to which the run can return.
pub(super) struct Savepoint {
    funds: usize,
    flows: usize,
}

impl RunState {
    /// Removes everything and keeps the allocated memory.
    pub(super) fn clear(&mut self) {
        self.holdings.clear();
        self.by_account.clear();
        self.index.clear();
        self.begin();
    }

    /// Returns the largest capacity of its collections, in elements.
    pub(super) fn capacity(&self) -> usize {
        let accounts = self.by_account.capacity();
        self.holdings.capacity().max(accounts).max(self.queue.capacity()).max(self.flows.capacity())
    }

    /// Discards the effects of all statements and keeps the known balances.
    pub(super) fn begin(&mut self) {
        for holding in &mut self.holdings {
            holding.change = IBig::ZERO;
        }
        self.queue.clear();
        self.head = 0;
        self.flows.clear();
    }

    /// Returns the index of a holding. Adds it if it is new.
    pub(super) fn holding(&mut self, account: AccountId, asset: AssetId, color: u32) -> usize {
        if let Some(known) = self.find(account, asset, color) {
            return known;
        }
        let at = self.holdings.len();
        let number = account.0 as usize;
        if number >= self.by_account.len() {
            self.by_account.resize(number + 1, HoldingList::NONE);
        }
        let held = &mut self.by_account[number];
        match held.count {
            0 => held.first = to_u32(at),
            _ => self.holdings[held.last as usize].next = to_u32(at),
        }
        held.last = to_u32(at);
        held.count += 1;
        let count = held.count;
        self.holdings.push(Holding {
            account,
            asset,
            color,
            stored: None,
            change: IBig::ZERO,
            noted: false,
            next: u32::MAX,
        });
        if count == LINEAR_MAX + 1 {
            let mut next = self.next_of_account(account, None);
            while let Some(at) = next {
                let Holding { asset, color, .. } = self.holdings[at];
                self.index.insert((account, asset, color), at);
                next = self.next_of_account(account, next);
            }
        } else if count > LINEAR_MAX {
            self.index.insert((account, asset, color), at);
        }
        at
    }

    fn find(&self, account: AccountId, asset: AssetId, color: u32) -> Option<usize> {
        let held = self.by_account.get(account.0 as usize)?;
        if held.count > LINEAR_MAX {
            return self.index.get(&(account, asset, color)).copied();
        }
        let mut next = self.next_of_account(account, None);
        while let Some(at) = next {
            let held = &self.holdings[at];
            if held.asset == asset && held.color == color {
                return next;
            }
            next = self.next_of_account(account, next);
        }
        None
    }

    /// Returns the index of the account's first holding, or of the one after `last`.
    pub(super) fn next_of_account(&self, account: AccountId, last: Option<usize>) -> Option<usize> {
        let next = match last {
            None => self.by_account.get(account.0 as usize)?.first,
            Some(last) => self.holdings[last].next,
        };
        (next != u32::MAX).then_some(next as usize)
    }

    /// Returns the current balance of a holding, or `None` while the stored one is unknown.
    pub(super) fn balance(&self, holding: usize) -> Option<IBig> {
        let held = &self.holdings[holding];
        held.stored.as_ref().map(|stored| stored + &held.change)
    }

    /// Takes funds from a holding and queues them.
    pub(super) fn take(&mut self, holding: usize, amount: IBig, clause: Span) {
        if amount.is_zero() {
            return;
        }
        self.holdings[holding].change -= &amount;
        self.queue.push(Fund { holding, amount, clause });
    }

    /// Delivers up to `amount` from the front of the queue. Adjacent funds of one holding become one posting.
    /// Calls `piece` for each part with whether it begins a posting.
    pub(super) fn deliver(
        &mut self,
        destination: AccountId,
        amount: &IBig,
        mut piece: impl FnMut(bool, &Fund, &IBig),
    ) {
        let mut rest = amount.clone();
        let mut last = None;
        let mut receiver = None;
        while rest > IBig::ZERO && self.head < self.queue.len() {
            let fund = &mut self.queue[self.head];
            let holding = fund.holding;
            let part = if fund.amount <= rest {
                self.head += 1;
                let part = std::mem::take(&mut fund.amount);
                piece(last != Some(holding), fund, &part);
                part
            } else {
                fund.amount -= &rest;
                piece(last != Some(holding), fund, &rest);
                rest.clone()
            };
            rest -= &part;
            let Holding { account, asset, color, .. } = self.holdings[holding];
            // The destination is the same account, but the colour of the funds decides the holding.
            let to = match receiver {
                Some((of, to)) if of == color => to,
                _ => self.holding(destination, asset, color),
            };
            receiver = Some((color, to));
            self.holdings[to].change += &part;
            if last == Some(holding) {
                let flow = self.flows.last_mut().expect("an earlier part began the posting");
                flow.amount += part;
            } else {
                self.flows.push(Flow { source: account, destination, asset, color, amount: part });
                last = Some(holding);
            }
        }
    }

    /// Queues entries that were already taken. Entries of zero are included.
    pub(super) fn queue_entries(&mut self, entries: Vec<Fund>) {
        self.queue.extend(entries);
    }

    /// Removes the funds queued since the mark from the queue, without returning them to their holdings.
    pub(super) fn unqueue(&mut self, mark: &Savepoint) -> Vec<Fund> {
        self.queue.split_off(mark.funds)
    }

    /// Delivers an amount from the front of the queue. Every entry on the way becomes a posting, even one of
    /// zero. The first entry delivers an amount of zero.
    pub(super) fn deliver_entries(
        &mut self,
        destination: AccountId,
        amount: &IBig,
        mut piece: impl FnMut(&Fund, &IBig),
    ) {
        let mut rest = amount.clone();
        let mut is_nothing = rest.is_zero();
        while self.head < self.queue.len() && (rest > IBig::ZERO || std::mem::take(&mut is_nothing)) {
            let fund = &mut self.queue[self.head];
            let part = (&fund.amount).min(&rest).clone();
            piece(fund, &part);
            fund.amount -= &part;
            if fund.amount.is_zero() && !amount.is_zero() {
                self.head += 1;
            }
            rest -= &part;
            let from = fund.holding;
            let Holding { account: source, asset, color, .. } = self.holdings[from];
            let to = self.holding(destination, asset, color);
            self.holdings[to].change += &part;
            self.flows.push(Flow { source, destination, asset, color, amount: part });
        }
    }

    /// Returns up to `amount` from the front of the queue to the holdings that it came from.
    pub(super) fn give_back(&mut self, amount: &IBig) {
        let mut rest = amount.clone();
        while rest > IBig::ZERO && self.head < self.queue.len() {
            let fund = &mut self.queue[self.head];
            let part = if fund.amount <= rest {
                self.head += 1;
                std::mem::take(&mut fund.amount)
            } else {
                fund.amount -= &rest;
                rest.clone()
            };
            rest -= &part;
            let holding = fund.holding;
            self.holdings[holding].change += part;
        }
    }

    /// Returns all queued funds to the holdings that they came from.
    pub(super) fn give_back_all(&mut self) {
        for fund in self.queue.drain(..).skip(self.head) {
            self.holdings[fund.holding].change += fund.amount;
        }
        self.head = 0;
    }

    /// Moves funds from one holding to another without the queue.
    pub(super) fn move_now(&mut self, from: usize, to: usize, amount: IBig) {
        self.holdings[from].change -= &amount;
        self.holdings[to].change += &amount;
        let Holding { account: source, asset, color, .. } = self.holdings[from];
        let destination = self.holdings[to].account;
        self.flows.push(Flow { source, destination, asset, color, amount });
    }

    /// Marks the current state before sources give funds.
    pub(super) fn mark(&self) -> Savepoint {
        Savepoint { funds: self.queue.len(), flows: self.flows.len() }
    }

    /// Returns to a marked state. Sources only append, so truncating is enough.
    pub(super) fn restore(&mut self, mark: &Savepoint) {
        for fund in self.queue.drain(mark.funds..) {
            self.holdings[fund.holding].change += fund.amount;
        }
        while self.flows.len() > mark.flows {
            let Flow { source, destination, asset, color, amount } =
                self.flows.pop().expect("there are more flows than at the mark");
            let from = self.holding(source, asset, color);
            self.holdings[from].change += &amount;
            let to = self.holding(destination, asset, color);
            self.holdings[to].change -= amount;
        }
    }
}
