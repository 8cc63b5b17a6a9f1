//! Sends in the profile of the machine, which moves entries, including entries of zero, where other profiles move
//! amounts.
//!
//! A source yields everything that it has as a list of entries, one per account, empty accounts included. The
//! send takes the amount from the front of the list and returns the rest. An entry of zero on the way is
//! taken too. Each entry that reaches an account becomes a posting.

use dashu_int::IBig;

use super::state::Fund;
use super::{Run, Step, Stop};
use crate::error::ErrorKind;
use crate::program::{AssetId, Expr, WORLD_ID};
use crate::span::Span;
use crate::tree::{Amount, Destination, DestinationKind, Overdraft, Send, Source, SourceKind, Target};
use ledger_values::Balance;

/// The entries that a source yields.
#[derive(Default)]
struct Entries {
    funds: Vec<Fund>,
    /// The holding that pays any missing amount, if there is one.
    fallback: Option<(usize, Span)>,
}

impl Entries {
    fn total(&self) -> IBig {
        self.funds.iter().fold(IBig::ZERO, |sum, fund| sum + &fund.amount)
    }

    /// Appends the entries of another source. Adjacent entries of one holding become one.
    fn append(&mut self, mut others: Self) {
        if let (Some(last), Some(first)) = (self.funds.last_mut(), others.funds.first())
            && last.holding == first.holding
        {
            last.amount += &first.amount;
            others.funds.remove(0);
        }
        self.funds.append(&mut others.funds);
        self.fallback = self.fallback.or(others.fallback);
    }
}

impl<'a> Run<'a> {
    /// Executes a send.
    pub(super) fn send_entries(&mut self, send: &'a Send<Expr>) -> Step<()> {
        let (asset, wanted) = match &send.amount {
            Amount::All(_, asset) => (self.asset_of(asset)?, None),
            Amount::Value(monetary) => {
                let (asset, amount) = self.monetary_of(monetary)?;
                if amount < IBig::ZERO {
                    let amount = Balance::of_integer(amount);
                    return Err(Stop::at(monetary.span, ErrorKind::NegativeAmount { amount }));
                }
                (asset, Some(amount))
            }
        };
        let entries = self.entries(&send.source, asset, wanted.as_ref())?;
        let taken = match &wanted {
            None => entries,
            Some(wanted) => self.take_entries(&send.source, asset, entries, wanted)?,
        };
        let amount = taken.total();
        self.scratch.state.queue_entries(taken.funds);
        self.give_entries(&send.destination, asset, &amount)?;
        self.scratch.state.give_back_all();
        Ok(())
    }

    fn entries(&mut self, source: &'a Source<Expr>, asset: AssetId, wanted: Option<&IBig>) -> Step<Entries> {
        match &source.kind {
            SourceKind::Account { account, color, overdraft } => {
                let limit = match overdraft {
                    Overdraft::UpTo(bound) => self.amount_of(bound, asset)?,
                    Overdraft::None | Overdraft::Unbounded => IBig::ZERO,
                };
                let account_id = self.account_of(account)?;
                let color = self.color_of(color.as_ref())?;
                let holding = self.scratch.state.holding(account_id, asset, color);
                let is_endless = account_id == WORLD_ID || matches!(overdraft, Overdraft::Unbounded);
                if is_endless && wanted.is_none() {
                    let name = self.account(account_id).to_string();
                    return Err(Stop::at(account.span, ErrorKind::InvalidUnboundedInSendAll { name }));
                }
                let amount = if account_id == WORLD_ID {
                    IBig::ZERO
                } else {
                    (self.balance(holding)? + limit).max(IBig::ZERO)
                };
                self.scratch.state.holdings[holding].change -= &amount;
                Ok(Entries {
                    funds: vec![Fund { holding, amount, clause: source.span }],
                    fallback: is_endless.then_some((holding, source.span)),
                })
            }
            SourceKind::InOrder(sources) => {
                let mut entries = Entries::default();
                for source in sources {
                    entries.append(self.entries(source, asset, wanted)?);
                }
                Ok(entries)
            }
            SourceKind::Capped { cap, source } => {
                let cap = self.amount_of(cap, asset)?.max(IBig::ZERO);
                let entries = self.entries(source, asset, Some(&cap))?;
                let is_nothing = cap.is_zero();
                let most = if entries.fallback.is_some() { cap } else { cap.min(entries.total()) };
                if is_nothing {
                    // A maximum of zero takes no entry at all.
                    for fund in entries.funds {
                        self.scratch.state.holdings[fund.holding].change += fund.amount;
                    }
                    return Ok(Entries::default());
                }
                self.take_entries(source, asset, entries, &most)
            }
            SourceKind::Allotment(items) => {
                let Some(wanted) = wanted else {
                    return Err(Stop::at(source.span, ErrorKind::InvalidAllotmentInSendAll));
                };
                let parts = self.split(source.span, wanted, items.iter().map(|item| &item.share))?;
                let mut all = Entries::default();
                for (item, part) in items.iter().zip(&parts) {
                    let entries = self.entries(&item.source, asset, Some(part))?;
                    all.append(self.take_entries(&item.source, asset, entries, part)?);
                }
                Ok(all)
            }
            // The machine has neither construct: they yield the same as in other profiles.
            SourceKind::OneOf(_) | SourceKind::Scaled { .. } => {
                let mark = self.scratch.state.mark();
                self.take(source, asset, wanted)?;
                Ok(Entries { funds: self.scratch.state.unqueue(&mark), fallback: None })
            }
        }
    }

    /// Takes an amount from the front of the entries and returns the rest.
    fn take_entries(
        &mut self,
        source: &'a Source<Expr>,
        asset: AssetId,
        entries: Entries,
        amount: &IBig,
    ) -> Step<Entries> {
        let available = entries.total();
        let is_nothing = amount.is_zero();
        let mut rest = amount.clone();
        let mut taken = Entries::default();
        for mut fund in entries.funds {
            let part = (&rest).min(&fund.amount).clone();
            let is_met = rest > IBig::ZERO || is_nothing && taken.funds.is_empty();
            rest -= &part;
            self.scratch.state.holdings[fund.holding].change += &fund.amount - &part;
            if is_met {
                fund.amount = part;
                taken.funds.push(fund);
            }
        }
        match entries.fallback {
            Some((holding, clause)) if rest > IBig::ZERO => {
                self.scratch.state.holdings[holding].change -= &rest;
                let missing = Fund { holding, amount: rest, clause };
                taken.append(Entries { funds: vec![missing], fallback: None });
                Ok(taken)
            }
            _ if rest > IBig::ZERO => Err(self.missing_funds(source, asset, amount, &available)),
            _ => Ok(taken),
        }
    }

    fn give_entries(
        &mut self,
        destination: &'a Destination<Expr>,
        asset: AssetId,
        amount: &IBig,
    ) -> Step<()> {
        match &destination.kind {
            DestinationKind::Account(account) => {
                let account = self.account_of(account)?;
                let clause = destination.span;
                let scratch = &mut *self.scratch;
                match &mut scratch.recorder {
                    None => scratch.state.deliver_entries(account, amount, |_, _| {}),
                    Some(recorder) => scratch.state.deliver_entries(account, amount, |fund, part| {
                        recorder.delivered(true, fund, part, clause);
                    }),
                }
                Ok(())
            }
            DestinationKind::Allotment(items) => {
                let parts = self.split(destination.span, amount, items.iter().map(|item| &item.share))?;
                for (item, part) in items.iter().zip(&parts) {
                    self.give_entries_target(&item.target, asset, part)?;
                }
                Ok(())
            }
            DestinationKind::InOrder(clauses) => {
                let mut left = amount.clone();
                let mut is_nothing = left.is_zero();
                for clause in &clauses.capped {
                    let cap = self.amount_of(&clause.cap, asset)?.max(IBig::ZERO);
                    let part = (&cap).min(&left).clone();
                    // An amount of zero goes to the first clause that may take anything.
                    if !part.is_zero() || !cap.is_zero() && std::mem::take(&mut is_nothing) {
                        self.give_entries_target(&clause.target, asset, &part)?;
                    }
                    left -= part;
                }
                if left.is_zero() && !is_nothing {
                    return Ok(());
                }
                self.give_entries_target(&clauses.remaining, asset, &left)
            }
            DestinationKind::OneOf(_) => self.give(destination, asset, amount),
        }
    }

    fn give_entries_target(&mut self, target: &'a Target<Expr>, asset: AssetId, amount: &IBig) -> Step<()> {
        match target {
            Target::To(destination) => self.give_entries(destination, asset, amount),
            // The amount is counted, and the end of the send returns it.
            Target::Kept(_) => Ok(()),
        }
    }
}
