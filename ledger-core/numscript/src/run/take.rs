//! Takes funds from sources.

use dashu_int::IBig;

use super::{Run, Step, Stop};
use crate::error::ErrorKind;
use crate::options::Flag;
use crate::program::{AccountId, AssetId, Expr, ExprKind, WORLD_ID};
use crate::span::Span;
use crate::tree::{AllottedSource, Overdraft, Source, SourceKind};
use ledger_values::Amount as Quantity;

/// Limit of the debt of an account.
enum Limit {
    To(IBig),
    Endless,
}

impl<'a> Run<'a> {
    /// Takes exactly this amount or fails.
    pub(super) fn take_exactly(
        &mut self,
        source: &'a Source<Expr>,
        asset: AssetId,
        amount: &IBig,
    ) -> Step<()> {
        let taken = self.take(source, asset, Some(amount))?;
        if taken == *amount { Ok(()) } else { Err(self.missing_funds(source, asset, amount, &taken)) }
    }

    /// Takes up to an amount, which is zero or more, or everything available. Returns the amount taken.
    pub(super) fn take(
        &mut self,
        source: &'a Source<Expr>,
        asset: AssetId,
        wanted: Option<&IBig>,
    ) -> Step<IBig> {
        match &source.kind {
            SourceKind::Account { account, color, overdraft } => {
                self.take_account(source.span, asset, wanted, account, color.as_ref(), overdraft)
            }
            SourceKind::Scaled { account, through } => {
                self.require(Flag::AssetScaling, source.span)?;
                self.take_scaled(source.span, asset, wanted, account, through)
            }
            SourceKind::InOrder(sources) => self.take_in_order(sources, asset, wanted),
            SourceKind::OneOf(sources) => {
                self.require(Flag::OneOf, source.span)?;
                self.take_one_of(sources, asset, wanted)
            }
            SourceKind::Capped { cap, source } => {
                let cap = self.amount_of(cap, asset)?.max(IBig::ZERO);
                let bounded = match wanted {
                    Some(wanted) if *wanted < cap => wanted,
                    _ => &cap,
                };
                self.take(source, asset, Some(bounded))
            }
            SourceKind::Allotment(items) => match wanted {
                Some(wanted) => self.take_allotment(source.span, items, asset, wanted),
                None => Err(Stop::at(source.span, ErrorKind::InvalidAllotmentInSendAll)),
            },
        }
    }

    fn take_account(
        &mut self,
        span: Span,
        asset: AssetId,
        wanted: Option<&IBig>,
        account: &'a Expr,
        color: Option<&'a Expr>,
        overdraft: &'a Overdraft<Expr>,
    ) -> Step<IBig> {
        let limit = match overdraft {
            Overdraft::None => Limit::To(IBig::ZERO),
            Overdraft::UpTo(bound) => Limit::To(self.amount_of(bound, asset)?.max(IBig::ZERO)),
            Overdraft::Unbounded => Limit::Endless,
        };
        let account_id = self.account_of(account)?;
        let color = self.color_of(color)?;
        let limit = if account_id == WORLD_ID { Limit::Endless } else { limit };
        let holding = self.scratch.state.holding(account_id, asset, color);
        let amount = match (&limit, wanted) {
            (Limit::Endless, None) => {
                let name = self.account(account_id).to_string();
                return Err(Stop::at(account.span, ErrorKind::InvalidUnboundedInSendAll { name }));
            }
            (Limit::Endless, Some(wanted)) => wanted.clone(),
            (Limit::To(limit), wanted) => {
                let available = (self.balance(holding)? + limit).max(IBig::ZERO);
                match wanted {
                    Some(wanted) if *wanted < available => wanted.clone(),
                    _ => available,
                }
            }
        };
        if let Some(recorder) = &mut self.scratch.recorder {
            let bound = match limit {
                Limit::Endless => None,
                Limit::To(limit) => Some((self.scratch.state.balance(holding).unwrap_or_default(), limit)),
            };
            recorder.drew(span, holding, wanted, &amount, bound);
        }
        self.scratch.state.take(holding, amount.clone(), span);
        Ok(amount)
    }

    fn take_in_order(
        &mut self,
        sources: &'a [Source<Expr>],
        asset: AssetId,
        wanted: Option<&IBig>,
    ) -> Step<IBig> {
        let Some(wanted) = wanted else {
            let mut taken = IBig::ZERO;
            for source in sources {
                taken += self.take(source, asset, None)?;
            }
            return Ok(taken);
        };
        let mut left = wanted.clone();
        for source in sources {
            left -= self.take(source, asset, Some(&left))?;
        }
        Ok(wanted - left)
    }

    /// Takes from the first source that can pay all of the amount. If none can, takes from the last.
    fn take_one_of(
        &mut self,
        sources: &'a [Source<Expr>],
        asset: AssetId,
        wanted: Option<&IBig>,
    ) -> Step<IBig> {
        let (last, before) = sources.split_last().expect("the parser requires at least one source");
        let Some(amount) = wanted else {
            return self.take(before.first().unwrap_or(last), asset, None);
        };
        for source in before {
            let mark = self.scratch.state.mark();
            let withdrawals = self.scratch.recorder.as_ref().map(|recorder| recorder.withdrawals());
            if self.take(source, asset, wanted)? == *amount {
                return Ok(amount.clone());
            }
            self.scratch.state.restore(&mark);
            if let (Some(recorder), Some(withdrawals)) = (&mut self.scratch.recorder, withdrawals) {
                recorder.returned_since(withdrawals, self.scratch.state.flows.len());
            }
        }
        self.take(last, asset, wanted)
    }

    fn take_allotment(
        &mut self,
        span: Span,
        items: &'a [AllottedSource<Expr>],
        asset: AssetId,
        wanted: &IBig,
    ) -> Step<IBig> {
        let parts = self.split(span, wanted, items.iter().map(|item| &item.share))?;
        for (item, part) in items.iter().zip(&parts) {
            self.take_exactly(&item.source, asset, part)?;
        }
        Ok(wanted.clone())
    }

    /// Makes the error of a source that cannot pay.
    #[cold]
    pub(super) fn missing_funds(
        &mut self,
        source: &'a Source<Expr>,
        asset: AssetId,
        needed: &IBig,
        available: &IBig,
    ) -> Stop {
        let mut accounts = Vec::new();
        self.collect_accounts(source, &mut accounts);
        let kind = ErrorKind::MissingFunds {
            asset: self.asset_name(asset).clone(),
            needed: Quantity::of_integer(needed),
            available: Quantity::of_integer(available),
            accounts: accounts.into_iter().map(|account| self.account(account).clone()).collect(),
        };
        Stop::at(source.span, kind)
    }

    /// Collects the accounts of a source in order, each once, up to the number that a message may list.
    fn collect_accounts(&mut self, source: &'a Source<Expr>, accounts: &mut Vec<AccountId>) {
        const ACCOUNTS_MAX: usize = 20;
        match &source.kind {
            SourceKind::Account { account, .. } | SourceKind::Scaled { account, .. } => {
                let account = match &account.kind {
                    ExprKind::Account(account) => Ok(*account),
                    _ => self.account_of(account),
                };
                if let Ok(account) = account
                    && accounts.len() < ACCOUNTS_MAX
                    && !accounts.contains(&account)
                {
                    accounts.push(account);
                }
            }
            SourceKind::InOrder(sources) | SourceKind::OneOf(sources) => {
                for source in sources {
                    self.collect_accounts(source, accounts);
                }
            }
            SourceKind::Allotment(items) => {
                for item in items {
                    self.collect_accounts(&item.source, accounts);
                }
            }
            SourceKind::Capped { source, .. } => self.collect_accounts(source, accounts),
        }
    }
}
