//! Finds the balances that the statements may need before the first one runs.
//!
//! A script whose accounts are literals or variables then has a single round of questions, and a ledger can
//! read or lock everything at once.

use smol_str::SmolStr;

use super::needs::Needed;
use super::{Run, Step, Stop};
use crate::error::ErrorKind;
use crate::limits::SCRIPT_SCALED_MAX;
use crate::options::Flag;
use crate::program::{AssetId, Expr, ExprKind, Part, Statement, WORLD_ID};
use crate::switches::ZeroPostings;
use crate::tree::{
    Amount, Clauses, Destination, DestinationKind, Overdraft, Share, Source, SourceKind, Target,
};

impl<'a> Run<'a> {
    /// Walks all statements without executing them. If all variables are `bound`, a fault belongs to the
    /// script; otherwise the execution reports it later, because it may have another cause.
    pub(super) fn prefetch(&mut self, bound: bool) -> Step<()> {
        for statement in &self.program.statements {
            match self.prefetch_statement(statement) {
                Ok(()) | Err(Stop::Missing) => {}
                Err(fault) if bound && self.scratch.needed.is_empty() => return Err(fault),
                Err(Stop::Fault(_)) => break,
            }
        }
        if self.program.reads_mid_script {
            self.prefetch_calls();
        }
        if self.scratch.needed.is_empty() { Ok(()) } else { Err(Stop::Missing) }
    }

    fn prefetch_statement(&mut self, statement: &'a Statement) -> Step<()> {
        match statement {
            Statement::Send(send) => {
                let asset = self.asset_of_amount(&send.amount)?;
                self.prefetch_source(&send.source, asset)
            }
            Statement::Save { amount, account } => {
                let asset = self.asset_of_amount(amount)?;
                let account = self.account_of(account)?;
                if account != WORLD_ID {
                    let holding = self.scratch.state.holding(account, asset, 0);
                    self.note(holding);
                }
                Ok(())
            }
            Statement::ActionCall { .. } | Statement::Print(_) | Statement::Fail(_) => Ok(()),
        }
    }

    fn asset_of_amount(&mut self, amount: &'a Amount<Expr>) -> Step<AssetId> {
        match amount {
            Amount::All(_, asset) => self.asset_of(asset),
            Amount::Value(monetary) => Ok(self.monetary_of(monetary)?.0),
        }
    }

    fn prefetch_source(&mut self, source: &'a Source<Expr>, asset: AssetId) -> Step<()> {
        match &source.kind {
            // The balance of such an account matters only if the whole of it must be taken.
            SourceKind::Account { overdraft: Overdraft::Unbounded, .. }
                if self.switches.zero_postings == ZeroPostings::Drop =>
            {
                Ok(())
            }
            SourceKind::Account { account, color, .. } => {
                let account = self.account_of(account)?;
                let color = match color {
                    None => Some(0),
                    Some(color) => self.expected_color(color)?,
                };
                if let (Some(color), false) = (color, account == WORLD_ID) {
                    let holding = self.scratch.state.holding(account, asset, color);
                    self.note(holding);
                }
                Ok(())
            }
            SourceKind::Scaled { account, .. } => {
                let account = self.account_of(account)?;
                let name = self.asset_name(asset);
                let base = SmolStr::new(name.split_once('/').map_or(name.as_str(), |(base, _)| base));
                let noted = &mut self.scratch.scales_noted;
                if account != WORLD_ID && !noted.contains(&(account, base.clone())) {
                    if noted.len() == SCRIPT_SCALED_MAX {
                        let what = "too many accounts pay by scaling";
                        return Err(Stop::at(source.span, ErrorKind::TooLarge { what }));
                    }
                    noted.insert((account, base.clone()));
                    self.scratch.needed.push(Needed::Scales { account, base });
                }
                Ok(())
            }
            SourceKind::InOrder(sources) | SourceKind::OneOf(sources) => {
                sources.iter().try_for_each(|source| self.prefetch_source(source, asset))
            }
            SourceKind::Allotment(items) => {
                items.iter().try_for_each(|item| self.prefetch_source(&item.source, asset))
            }
            SourceKind::Capped { source, .. } => self.prefetch_source(source, asset),
        }
    }

    /// Returns the number of a colour, or `None` if it is invalid or not allowed. That is a fault only if the
    /// run reaches the source.
    fn expected_color(&mut self, color: &'a Expr) -> Step<Option<u32>> {
        match self.color_of(Some(color)) {
            Ok(color) => Ok(Some(color)),
            Err(Stop::Fault(fault))
                if matches!(
                    fault.kind,
                    ErrorKind::InvalidColor { .. }
                        | ErrorKind::ExperimentalFeature { flag: Flag::AssetColors }
                ) =>
            {
                Ok(None)
            }
            Err(stop) => Err(stop),
        }
    }

    // Balances that functions in the statements read. Their position does not matter, because their arguments
    // are fixed once the variables are bound.

    fn prefetch_calls(&mut self) {
        for statement in &self.program.statements {
            match statement {
                Statement::Send(send) => {
                    self.calls_in_amount(&send.amount);
                    self.calls_in_source(&send.source);
                    self.calls_in_destination(&send.destination);
                }
                Statement::Save { amount, account } => {
                    self.calls_in_amount(amount);
                    self.calls_in(account);
                }
                Statement::ActionCall { arguments, .. } => {
                    for argument in arguments {
                        self.calls_in(argument);
                    }
                }
                Statement::Print(expr) => self.calls_in(expr),
                Statement::Fail(_) => {}
            }
        }
    }

    fn calls_in_amount(&mut self, amount: &'a Amount<Expr>) {
        match amount {
            Amount::All(_, expr) | Amount::Value(expr) => self.calls_in(expr),
        }
    }

    fn calls_in_source(&mut self, source: &'a Source<Expr>) {
        match &source.kind {
            SourceKind::Account { account, color, overdraft } => {
                self.calls_in(account);
                if let Some(color) = color {
                    self.calls_in(color);
                }
                if let Overdraft::UpTo(bound) = overdraft {
                    self.calls_in(bound);
                }
            }
            SourceKind::Scaled { account, through } => {
                self.calls_in(account);
                self.calls_in(through);
            }
            SourceKind::InOrder(sources) | SourceKind::OneOf(sources) => {
                for source in sources {
                    self.calls_in_source(source);
                }
            }
            SourceKind::Allotment(items) => {
                for item in items {
                    self.calls_in_share(&item.share);
                    self.calls_in_source(&item.source);
                }
            }
            SourceKind::Capped { cap, source } => {
                self.calls_in(cap);
                self.calls_in_source(source);
            }
        }
    }

    fn calls_in_share(&mut self, share: &'a Share<Expr>) {
        if let Share::Portion(expr) = share {
            self.calls_in(expr);
        }
    }

    fn calls_in_destination(&mut self, destination: &'a Destination<Expr>) {
        match &destination.kind {
            DestinationKind::Account(account) => self.calls_in(account),
            DestinationKind::Allotment(items) => {
                for item in items {
                    self.calls_in_share(&item.share);
                    self.calls_in_target(&item.target);
                }
            }
            DestinationKind::InOrder(clauses) | DestinationKind::OneOf(clauses) => {
                self.calls_in_clauses(clauses);
            }
        }
    }

    fn calls_in_clauses(&mut self, clauses: &'a Clauses<Expr>) {
        for clause in &clauses.capped {
            self.calls_in(&clause.cap);
            self.calls_in_target(&clause.target);
        }
        self.calls_in_target(&clauses.remaining);
    }

    fn calls_in_target(&mut self, target: &'a Target<Expr>) {
        if let Target::To(destination) = target {
            self.calls_in_destination(destination);
        }
    }

    fn calls_in(&mut self, expr: &'a Expr) {
        match &expr.kind {
            ExprKind::Call(call) => {
                for argument in &call.arguments {
                    self.calls_in(argument);
                }
                // The evaluation notes its needs. The statement reports other results later.
                drop(self.evaluate(expr));
            }
            ExprKind::MonetaryOf(pair) => {
                self.calls_in(&pair.0);
                self.calls_in(&pair.1);
            }
            ExprKind::Negate(inner) => self.calls_in(inner),
            ExprKind::Sum(first, rest) => {
                self.calls_in(first);
                for (_, term) in rest {
                    self.calls_in(term);
                }
            }
            ExprKind::Divide(over, under) => {
                self.calls_in(over);
                for term in under {
                    self.calls_in(term);
                }
            }
            ExprKind::Interpolated(parts) => {
                for part in parts {
                    if let Part::Variable(expr) = part {
                        self.calls_in(expr);
                    }
                }
            }
            ExprKind::Account(_)
            | ExprKind::Asset(_)
            | ExprKind::Text(_)
            | ExprKind::Number(_)
            | ExprKind::Portion(_)
            | ExprKind::Monetary(..)
            | ExprKind::Variable(_)
            | ExprKind::Unbound(_) => {}
        }
    }
}
