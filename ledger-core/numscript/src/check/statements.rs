//! Checks statements with their sources and destinations.

use super::Checker;
use super::assets::AssetVar;
use super::typed::{ActionCall, ExprId, Statement};
use crate::diagnostic::{DiagnosticKind, Misplaced};
use crate::options::Flag;
use crate::tree::{
    self, AllottedSource, AllottedTarget, Amount, CappedTarget, Clauses, Destination, DestinationKind, Expr,
    Overdraft, Send, Source, SourceKind, StatementKind, Target,
};
use crate::types::{Action, Function, Type};
use ledger_values::AccountAddress;

impl<'t> Checker<'t> {
    pub(super) fn statement(&mut self, statement: &'t tree::Statement) -> Statement<'t> {
        match &statement.kind {
            StatementKind::Send(send) => {
                let (amount, sent) = self.amount(&send.amount);
                self.sent = sent;
                self.sends_all = matches!(send.amount, Amount::All(..));
                self.after_unbounded = false;
                self.emptied.clear();
                let source = self.source(&send.source);
                let destination = self.destination(&send.destination);
                self.sent = None;
                Statement::Send(Send { amount, source, destination })
            }
            StatementKind::Save { amount, account } => {
                let (amount, _) = self.amount(amount);
                Statement::Save { amount, account: self.account(account) }
            }
            StatementKind::Call(call) => Statement::ActionCall(self.action_call(call)),
            StatementKind::Print(expr) => Statement::Print(self.infer(expr, None).id),
            StatementKind::Fail => Statement::Fail(statement.span),
        }
    }

    fn action_call(&mut self, call: &'t tree::Call) -> ActionCall<'t> {
        let name = &call.name.text;
        let action = Action::from_name(name);
        let arguments = match action {
            Some(action) => self.arguments(call, action.parameters()),
            None if Function::from_name(name).is_some() => self.unknown_function(call, Misplaced::InOrigin),
            None => self.unknown_function(call, Misplaced::Unknown),
        };
        ActionCall { span: call.span, name, action, arguments }
    }

    /// Checks an amount and returns it with its asset.
    fn amount(&mut self, amount: &'t Amount) -> (Amount<ExprId>, Option<AssetVar>) {
        match amount {
            Amount::All(span, asset) => {
                let checked = self.expect(asset, Type::Asset);
                (Amount::All(*span, checked.id), checked.typed.asset)
            }
            Amount::Value(monetary) => {
                let checked = self.expect(monetary, Type::Monetary);
                (Amount::Value(checked.id), checked.typed.asset)
            }
        }
    }

    /// Requires a monetary of the asset that the statement sends.
    fn bound(&mut self, expr: &'t Expr) -> ExprId {
        let checked = self.expect(expr, Type::Monetary);
        if let (Some(sent), Some(asset)) = (self.sent, checked.typed.asset) {
            self.unify(expr.span, sent, asset);
        }
        checked.id
    }

    fn account(&mut self, expr: &'t Expr) -> ExprId {
        self.expect(expr, Type::Account).id
    }

    fn source(&mut self, source: &'t Source) -> Source<ExprId> {
        if self.after_unbounded {
            self.report(source.span, DiagnosticKind::UnboundedAccountIsNotLast);
        }
        let kind = match &source.kind {
            SourceKind::Account { account, color, overdraft } => {
                self.account_source(account, color.as_ref(), overdraft)
            }
            SourceKind::Scaled { account, through } => {
                self.feature(source.span, Flag::AssetScaling);
                SourceKind::Scaled { account: self.account(account), through: self.account(through) }
            }
            SourceKind::InOrder(sources) => SourceKind::InOrder(self.sources(sources)),
            SourceKind::OneOf(sources) => {
                self.feature(source.span, Flag::OneOf);
                SourceKind::OneOf(self.sources(sources))
            }
            SourceKind::Capped { cap, source } => self.in_scope(|checker| SourceKind::Capped {
                cap: checker.bound(cap),
                source: Box::new(checker.source(source)),
            }),
            SourceKind::Allotment(items) => {
                if self.sends_all {
                    self.report(source.span, DiagnosticKind::NoAllotmentInSendAll);
                }
                let shares = self.shares(source.span, items.iter().map(|item| &item.share));
                let of = |(share, item): (_, &'t AllottedSource)| AllottedSource {
                    share,
                    source: self.in_scope(|checker| checker.source(&item.source)),
                };
                SourceKind::Allotment(shares.into_iter().zip(items).map(of).collect())
            }
        };
        Source { span: source.span, kind }
    }

    fn sources(&mut self, sources: &'t [Source]) -> Vec<Source<ExprId>> {
        sources.iter().map(|source| self.source(source)).collect()
    }

    /// Runs `walk` in a scope of its own. A limit bounds the source inside it, and accounts emptied inside
    /// may still pay afterwards.
    fn in_scope<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        let (all, unbounded, emptied) = (self.sends_all, self.after_unbounded, self.emptied.len());
        self.sends_all = false;
        self.after_unbounded = false;
        let walked = walk(self);
        self.sends_all = all;
        self.after_unbounded = unbounded;
        self.emptied.truncate(emptied);
        walked
    }

    fn account_source(
        &mut self,
        account: &'t Expr,
        color: Option<&'t Expr>,
        overdraft: &'t Overdraft,
    ) -> SourceKind<ExprId> {
        let kind = SourceKind::Account {
            account: self.account(account),
            color: color.map(|color| {
                self.feature(color.span, Flag::AssetColors);
                self.expect(color, Type::Text).id
            }),
            overdraft: match overdraft {
                Overdraft::None => Overdraft::None,
                Overdraft::Unbounded => Overdraft::Unbounded,
                Overdraft::UpTo(bound) => Overdraft::UpTo(self.bound(bound)),
            },
        };
        let literal = match &account.kind {
            tree::ExprKind::Account(address) => Some(address),
            _ => None,
        };
        let is_world = literal.is_some_and(AccountAddress::is_world);
        if is_world && !matches!(overdraft, Overdraft::None) {
            self.report(account.span, DiagnosticKind::InvalidWorldOverdraft);
        }
        if is_world || matches!(overdraft, Overdraft::Unbounded) {
            if self.sends_all {
                let name = literal.map_or_else(|| account.span.of(self.text), AccountAddress::as_str);
                self.report(account.span, DiagnosticKind::InvalidUnboundedAccount { name: name.into() });
            }
            self.after_unbounded = true;
        }
        if let (Some(address), false, Overdraft::None) = (literal, is_world, overdraft) {
            let color = match color.map(|color| &color.kind) {
                None => "",
                Some(tree::ExprKind::Text(color)) => color,
                // Only a run knows the colour.
                Some(_) => return kind,
            };
            if !self.emptied.insert((address.as_str(), color)) {
                let name = address.as_str().into();
                self.report(account.span, DiagnosticKind::EmptiedAccount { name });
            }
        }
        kind
    }

    fn destination(&mut self, destination: &'t Destination) -> Destination<ExprId> {
        let kind = match &destination.kind {
            DestinationKind::Account(account) => DestinationKind::Account(self.account(account)),
            DestinationKind::Allotment(items) => {
                let shares = self.shares(destination.span, items.iter().map(|item| &item.share));
                let of = |(share, item): (_, &'t AllottedTarget)| AllottedTarget {
                    share,
                    target: self.target(&item.target),
                };
                DestinationKind::Allotment(shares.into_iter().zip(items).map(of).collect())
            }
            DestinationKind::InOrder(clauses) => DestinationKind::InOrder(self.clauses(clauses)),
            DestinationKind::OneOf(clauses) => {
                self.feature(destination.span, Flag::OneOf);
                DestinationKind::OneOf(self.clauses(clauses))
            }
        };
        Destination { span: destination.span, kind }
    }

    fn clauses(&mut self, clauses: &'t Clauses) -> Clauses<ExprId> {
        let capped = clauses
            .capped
            .iter()
            .map(|clause| CappedTarget { cap: self.bound(&clause.cap), target: self.target(&clause.target) })
            .collect();
        Clauses { capped, remaining: Box::new(self.target(&clauses.remaining)) }
    }

    fn target(&mut self, target: &'t Target) -> Target<ExprId> {
        match target {
            Target::Kept(span) => Target::Kept(*span),
            Target::To(destination) => Target::To(self.destination(destination)),
        }
    }
}
