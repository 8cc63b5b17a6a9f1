//! The compiler: turns a typed tree into a [`Program`].
//!
//! Names are already resolved; here accounts and assets get numbers, and constants are computed. Only the
//! checker makes typed trees, and it gives them out only for scripts that may run. So every compiled script
//! was checked.

use dashu_int::IBig;
use smol_str::SmolStr;

use super::check::{self, Checked, ExprId, Script};
use super::error::{ErrorKind, ScriptError};
use super::fault::Fault;
use super::names::Names;
use super::options::Profile;
use super::parser::parse_with;
use super::portion::Portion;
use super::program::{AccountId, AssetId, Call, Expr, ExprKind, Origin, Part, Program, Statement, Variable};
use super::tree::{
    AllottedSource, AllottedTarget, Amount, CappedTarget, Clauses, Destination, DestinationKind, Overdraft,
    Send, Share, Source, SourceKind, Target,
};
use ledger_values::AccountAddress;

impl Program {
    /// Checks and compiles a script.
    ///
    /// # Errors
    ///
    /// The first syntax error, or the first finding of the checker that forbids to run the script in this
    /// profile. [`super::parse`] and [`super::check`] return all of them.
    pub fn compile(text: &str, profile: Profile) -> Result<Self, ScriptError> {
        let switches = profile.switches();
        let (tree, errors) = parse_with(text, switches.escapes);
        if let Some(error) = errors.into_iter().next() {
            let kind = ErrorKind::Syntax { message: error.message };
            return Err(Fault::at(error.span, kind).in_text(text));
        }
        match Checked::of(&tree, text).admit(switches.check) {
            Ok(script) => Ok(Compiler::new(&script).program(text, profile)),
            Err(fault) => Err(fault.in_text(text)),
        }
    }
}

struct Compiler<'a> {
    script: &'a Script<'a>,
    accounts: Names<AccountAddress>,
    assets: Names<SmolStr>,
    reads_mid_script: bool,
}

impl<'a> Compiler<'a> {
    fn new(script: &'a Script<'a>) -> Self {
        let mut accounts = Names::default();
        accounts.add(AccountAddress::world());
        Self { script, accounts, assets: Names::default(), reads_mid_script: false }
    }

    fn program(mut self, text: &str, profile: Profile) -> Program {
        let script = self.script;
        let variables = script.variables().iter().map(|variable| self.variable(variable)).collect();
        let statements = script.statements().iter().map(|statement| self.statement(statement)).collect();
        Program {
            text: text.into(),
            profile,
            flags: script.flags(),
            unknown_feature: script.unknown_feature().map(|feature| (feature.span, feature.text.clone())),
            variables,
            statements,
            accounts: self.accounts,
            assets: self.assets,
            reads_mid_script: self.reads_mid_script,
        }
    }

    fn variable(&mut self, variable: &check::Variable<'a>) -> Variable {
        Variable {
            span: variable.name.span,
            name: variable.name.text.clone(),
            declared: variable.declared.map_err(|name| (name.span, name.text.clone())),
            origin: variable.origin.map(|origin| match origin {
                check::Origin::Meta(id) => match self.expr(id).kind {
                    ExprKind::Call(call) => Origin::Meta(call),
                    _ => unreachable!("the checker only admits calls here"),
                },
                check::Origin::Call(id) => Origin::Call(self.expr(id)),
                check::Origin::Free(id) => Origin::Free(self.expr(id)),
            }),
        }
    }

    fn statement(&mut self, statement: &check::Statement<'a>) -> Statement {
        match statement {
            check::Statement::Send(send) => Statement::Send(Box::new(Send {
                amount: self.amount(&send.amount),
                source: self.source(&send.source),
                destination: self.destination(&send.destination),
            })),
            check::Statement::Save { amount, account } => {
                Statement::Save { amount: self.amount(amount), account: self.expr(*account) }
            }
            check::Statement::ActionCall(act) => Statement::ActionCall {
                span: act.span,
                action: act.action,
                name: act.name.clone(),
                arguments: self.exprs(&act.arguments),
            },
            check::Statement::Print(id) => Statement::Print(self.expr(*id)),
            check::Statement::Fail(span) => Statement::Fail(*span),
        }
    }

    fn amount(&mut self, amount: &Amount<ExprId>) -> Amount<Expr> {
        match amount {
            Amount::All(span, asset) => Amount::All(*span, self.expr(*asset)),
            Amount::Value(monetary) => Amount::Value(self.expr(*monetary)),
        }
    }

    fn source(&mut self, source: &Source<ExprId>) -> Source<Expr> {
        let kind = match &source.kind {
            SourceKind::Account { account, color, overdraft } => SourceKind::Account {
                account: self.expr(*account),
                color: color.map(|color| self.expr(color)),
                overdraft: match overdraft {
                    Overdraft::None => Overdraft::None,
                    Overdraft::Unbounded => Overdraft::Unbounded,
                    Overdraft::UpTo(bound) => Overdraft::UpTo(self.expr(*bound)),
                },
            },
            SourceKind::Scaled { account, through } => {
                SourceKind::Scaled { account: self.expr(*account), through: self.expr(*through) }
            }
            SourceKind::InOrder(sources) => SourceKind::InOrder(self.sources(sources)),
            SourceKind::OneOf(sources) => SourceKind::OneOf(self.sources(sources)),
            SourceKind::Allotment(items) => SourceKind::Allotment(
                items
                    .iter()
                    .map(|item| AllottedSource {
                        share: self.share(&item.share),
                        source: self.source(&item.source),
                    })
                    .collect(),
            ),
            SourceKind::Capped { cap, source } => {
                SourceKind::Capped { cap: self.expr(*cap), source: Box::new(self.source(source)) }
            }
        };
        Source { span: source.span, kind }
    }

    fn sources(&mut self, sources: &[Source<ExprId>]) -> Vec<Source<Expr>> {
        sources.iter().map(|source| self.source(source)).collect()
    }

    fn share(&mut self, share: &Share<ExprId>) -> Share<Expr> {
        match share {
            Share::Remaining(span) => Share::Remaining(*span),
            Share::Portion(portion) => Share::Portion(self.expr(*portion)),
        }
    }

    fn destination(&mut self, destination: &Destination<ExprId>) -> Destination<Expr> {
        let kind = match &destination.kind {
            DestinationKind::Account(account) => DestinationKind::Account(self.expr(*account)),
            DestinationKind::Allotment(items) => DestinationKind::Allotment(
                items
                    .iter()
                    .map(|item| AllottedTarget {
                        share: self.share(&item.share),
                        target: self.target(&item.target),
                    })
                    .collect(),
            ),
            DestinationKind::InOrder(clauses) => DestinationKind::InOrder(self.clauses(clauses)),
            DestinationKind::OneOf(clauses) => DestinationKind::OneOf(self.clauses(clauses)),
        };
        Destination { span: destination.span, kind }
    }

    fn clauses(&mut self, clauses: &Clauses<ExprId>) -> Clauses<Expr> {
        let capped = clauses
            .capped
            .iter()
            .map(|clause| CappedTarget { cap: self.expr(clause.cap), target: self.target(&clause.target) })
            .collect();
        Clauses { capped, remaining: Box::new(self.target(&clauses.remaining)) }
    }

    fn target(&mut self, target: &Target<ExprId>) -> Target<Expr> {
        match target {
            Target::Kept(span) => Target::Kept(*span),
            Target::To(destination) => Target::To(self.destination(destination)),
        }
    }

    fn exprs(&mut self, ids: &[ExprId]) -> Box<[Expr]> {
        ids.iter().map(|id| self.expr(*id)).collect()
    }

    fn expr(&mut self, id: ExprId) -> Expr {
        let script = self.script;
        let expr = script.expr(id);
        let kind = match &expr.kind {
            check::ExprKind::Account(address) => ExprKind::Account(self.account(address)),
            check::ExprKind::Asset(name) => ExprKind::Asset(self.asset(name)),
            check::ExprKind::Text(text) => ExprKind::Text(text.as_str().into()),
            check::ExprKind::Number(number) => ExprKind::Number(IBig::clone(number)),
            check::ExprKind::Portion(portion) => ExprKind::Portion(Box::new(Portion::clone(portion))),
            check::ExprKind::Variable(slot) => ExprKind::Variable(*slot),
            check::ExprKind::Unbound(name) => ExprKind::Unbound(SmolStr::clone(name)),
            check::ExprKind::Interpolated(parts) => {
                ExprKind::Interpolated(parts.iter().map(|part| self.part(part)).collect())
            }
            check::ExprKind::Monetary { asset, amount } => self.monetary(*asset, *amount),
            check::ExprKind::Negate(inner) => match self.expr(*inner) {
                Expr { kind: ExprKind::Number(number), .. } => ExprKind::Number(-number),
                Expr { kind: ExprKind::Monetary(asset, amount), .. } => ExprKind::Monetary(asset, -amount),
                inner => ExprKind::Negate(Box::new(inner)),
            },
            check::ExprKind::Sum(first, rest) => {
                let first = Box::new(self.expr(*first));
                ExprKind::Sum(first, rest.iter().map(|(sign, term)| (*sign, self.expr(*term))).collect())
            }
            check::ExprKind::Divide(over, under) => {
                let (over, under) = (self.expr(*over), self.exprs(under));
                match constant_division(&over, &under) {
                    Some(portion) => ExprKind::Portion(Box::new(portion)),
                    None => ExprKind::Divide(Box::new(over), under),
                }
            }
            check::ExprKind::Call(call) => {
                self.reads_mid_script |= call.mid_script && call.function.is_some();
                ExprKind::Call(Box::new(Call {
                    span: call.span,
                    name: call.name.clone(),
                    function: call.function,
                    arguments: self.exprs(&call.arguments),
                    mid_script: call.mid_script,
                }))
            }
        };
        Expr { span: expr.span, kind }
    }

    fn monetary(&mut self, asset: ExprId, amount: ExprId) -> ExprKind {
        let (asset, amount) = (self.expr(asset), self.expr(amount));
        match (&asset.kind, &amount.kind) {
            (ExprKind::Asset(asset), ExprKind::Number(amount)) => ExprKind::Monetary(*asset, amount.clone()),
            _ => ExprKind::MonetaryOf(Box::new((asset, amount))),
        }
    }

    fn part(&mut self, part: &check::Part<'a>) -> Part {
        match part {
            check::Part::Text(text) => Part::Text(SmolStr::clone(text)),
            check::Part::Variable(id) => Part::Variable(self.expr(*id)),
        }
    }

    fn account(&mut self, address: &AccountAddress) -> AccountId {
        AccountId(match self.accounts.find(address.as_str()) {
            Some(known) => known,
            None => self.accounts.add(address.clone()),
        })
    }

    fn asset(&mut self, name: &SmolStr) -> AssetId {
        AssetId(match self.assets.find(name) {
            Some(known) => known,
            None => self.assets.add(name.clone()),
        })
    }
}

fn constant_division(over: &Expr, under: &[Expr]) -> Option<Portion> {
    match (&over.kind, under) {
        (ExprKind::Number(over), [Expr { kind: ExprKind::Number(under), .. }]) => {
            Portion::new(IBig::clone(over), IBig::clone(under))
        }
        _ => None,
    }
}
