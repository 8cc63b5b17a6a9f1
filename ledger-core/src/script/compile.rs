//! The compiler: a checked tree into a [`Program`].

use compact_str::CompactString;
use dashu_int::IBig;

use super::check;
use super::error::{ErrorKind, ScriptError};
use super::fault::Fault;
use super::names::Names;
use super::options::{Flag, Flags, Profile};
use super::parser::parse_with;
use super::portion::Portion;
use super::program::{AccountId, AssetId, Call, Expr, ExprKind, Origin, Part, Program, Statement, Variable};
use super::tree::{
    self, AllottedSource, AllottedTarget, Amount, CappedTarget, Clauses, Destination, DestinationKind,
    Overdraft, Send, Share, Source, SourceKind, Target, Tree,
};
use super::types::{Action, Function, Type};
use crate::names::AccountAddress;

impl Program {
    /// Makes a script ready to run.
    ///
    /// # Errors
    ///
    /// The first place where the text is no script, or the first finding of the checker by which it may not run
    /// in this profile. [`super::parse`] and [`super::check`] give all of them.
    pub fn compile(text: &str, profile: Profile) -> Result<Self, ScriptError> {
        let switches = profile.switches();
        let (tree, errors) = parse_with(text, switches.escapes);
        if let Some(error) = errors.into_iter().next() {
            let kind = ErrorKind::Syntax { message: error.message };
            return Err(Fault::at(error.span, kind).in_text(text));
        }
        if let Some(fault) = check::first_fatal(&tree, text, switches.check) {
            return Err(fault.in_text(text));
        }
        Ok(Compiler::new(&tree).program(text, profile))
    }
}

struct Compiler<'a> {
    tree: &'a Tree,
    accounts: Names<AccountAddress>,
    assets: Names<CompactString>,
    /// The names that are declared so far, each once.
    slots: Names<CompactString>,
    /// The slot that a name means: of declarations with one name, the last.
    meant: Vec<u32>,
    next_slot: u32,
    in_origin: bool,
    reads_mid_script: bool,
}

impl<'a> Compiler<'a> {
    fn new(tree: &'a Tree) -> Self {
        let mut accounts = Names::default();
        accounts.add(AccountAddress::world());
        Self {
            tree,
            accounts,
            assets: Names::default(),
            slots: Names::default(),
            meant: Vec::new(),
            next_slot: 0,
            in_origin: false,
            reads_mid_script: false,
        }
    }

    fn program(mut self, text: &str, profile: Profile) -> Program {
        let mut flags = Flags::NONE;
        let mut unknown_feature = None;
        for feature in self.tree.directive.iter().flat_map(|directive| &directive.features) {
            match Flag::from_name(&feature.text) {
                Some(flag) => flags = flags.with(flag),
                None if unknown_feature.is_none() => {
                    unknown_feature = Some((feature.span, feature.text.clone()));
                }
                None => {}
            }
        }
        let declarations = self.tree.vars.as_ref().map_or(&[][..], |vars| &vars.declarations);
        self.in_origin = true;
        let variables = declarations.iter().map(|declaration| self.variable(declaration)).collect();
        self.in_origin = false;
        let statements = self.tree.statements.iter().map(|statement| self.statement(statement)).collect();
        Program {
            text: text.into(),
            profile,
            flags,
            unknown_feature,
            variables,
            statements,
            accounts: self.accounts,
            assets: self.assets,
            reads_mid_script: self.reads_mid_script,
        }
    }

    fn variable(&mut self, declaration: &tree::Declaration) -> Variable {
        let origin = declaration.origin.as_ref().map(|origin| match &origin.kind {
            tree::ExprKind::Call(call) => match Function::from_name(&call.name.text) {
                Some(Function::Meta) => Origin::Meta(Box::new(self.call(call))),
                _ => Origin::Call(self.expr(origin)),
            },
            _ => Origin::Free(self.expr(origin)),
        });
        // An origin sees only what is declared above it.
        let name = &declaration.variable.text;
        let slot = self.next_slot;
        self.next_slot += 1;
        if let Some(known) = self.slots.find(name) {
            self.meant[known as usize] = slot;
        } else {
            self.slots.add(name.clone());
            self.meant.push(slot);
        }
        let type_name = &declaration.type_name;
        Variable {
            span: declaration.variable.span,
            name: name.clone(),
            declared: Type::from_name(&type_name.text)
                .ok_or_else(|| (type_name.span, type_name.text.clone())),
            origin,
        }
    }

    fn statement(&mut self, statement: &tree::Statement) -> Statement {
        match &statement.kind {
            tree::StatementKind::Send(send) => Statement::Send(Box::new(Send {
                amount: self.amount(&send.amount),
                source: self.source(&send.source),
                destination: self.destination(&send.destination),
            })),
            tree::StatementKind::Save { amount, account } => {
                Statement::Save { amount: self.amount(amount), account: self.expr(account) }
            }
            tree::StatementKind::Call(call) => Statement::Act {
                span: call.span,
                action: Action::from_name(&call.name.text),
                name: call.name.text.clone(),
                arguments: self.exprs(&call.arguments),
            },
            tree::StatementKind::Print(expr) => Statement::Print(self.expr(expr)),
            tree::StatementKind::Fail => Statement::Fail(statement.span),
        }
    }

    fn amount(&mut self, amount: &Amount) -> Amount<Expr> {
        match amount {
            Amount::All(span, asset) => Amount::All(*span, self.expr(asset)),
            Amount::Value(expr) => Amount::Value(self.expr(expr)),
        }
    }

    fn source(&mut self, source: &Source) -> Source<Expr> {
        let kind = match &source.kind {
            SourceKind::Account { account, color, overdraft } => SourceKind::Account {
                account: self.expr(account),
                color: color.as_ref().map(|color| self.expr(color)),
                overdraft: match overdraft {
                    Overdraft::None => Overdraft::None,
                    Overdraft::Unbounded => Overdraft::Unbounded,
                    Overdraft::UpTo(bound) => Overdraft::UpTo(self.expr(bound)),
                },
            },
            SourceKind::Scaled { account, through } => {
                SourceKind::Scaled { account: self.expr(account), through: self.expr(through) }
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
                SourceKind::Capped { cap: self.expr(cap), source: Box::new(self.source(source)) }
            }
        };
        Source { span: source.span, kind }
    }

    fn sources(&mut self, sources: &[Source]) -> Vec<Source<Expr>> {
        sources.iter().map(|source| self.source(source)).collect()
    }

    fn share(&mut self, share: &Share) -> Share<Expr> {
        match share {
            Share::Remaining(span) => Share::Remaining(*span),
            Share::Portion(expr) => Share::Portion(self.expr(expr)),
        }
    }

    fn destination(&mut self, destination: &Destination) -> Destination<Expr> {
        let kind = match &destination.kind {
            DestinationKind::Account(account) => DestinationKind::Account(self.expr(account)),
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

    fn clauses(&mut self, clauses: &Clauses) -> Clauses<Expr> {
        let capped = clauses
            .capped
            .iter()
            .map(|clause| CappedTarget { cap: self.expr(&clause.cap), target: self.target(&clause.target) })
            .collect();
        Clauses { capped, remaining: Box::new(self.target(&clauses.remaining)) }
    }

    fn target(&mut self, target: &Target) -> Target<Expr> {
        match target {
            Target::Kept(span) => Target::Kept(*span),
            Target::To(destination) => Target::To(self.destination(destination)),
        }
    }

    fn exprs(&mut self, exprs: &[tree::Expr]) -> Box<[Expr]> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn expr(&mut self, expr: &tree::Expr) -> Expr {
        let kind = match &expr.kind {
            tree::ExprKind::Variable(name) => self.variable_use(name),
            tree::ExprKind::Asset(name) => ExprKind::Asset(self.asset(name)),
            tree::ExprKind::Text(text) => ExprKind::Text(text.clone()),
            tree::ExprKind::Number(number) => ExprKind::Number(number.clone()),
            tree::ExprKind::Percent(portion) => ExprKind::Portion(portion.clone()),
            tree::ExprKind::Account(address) => ExprKind::Account(self.account(address)),
            tree::ExprKind::Interpolated(parts) => {
                ExprKind::Interpolated(parts.iter().map(|part| self.part(part)).collect())
            }
            tree::ExprKind::Monetary(pair) => {
                let (asset, amount) = (self.expr(&pair.0), self.expr(&pair.1));
                match (&asset.kind, &amount.kind) {
                    (ExprKind::Asset(asset), ExprKind::Number(amount)) => {
                        ExprKind::Monetary(*asset, amount.clone())
                    }
                    _ => ExprKind::MonetaryOf(Box::new((asset, amount))),
                }
            }
            tree::ExprKind::Call(call) => ExprKind::Call(Box::new(self.call(call))),
            tree::ExprKind::Parens(inner) => self.expr(inner).kind,
            tree::ExprKind::Negate(inner) => match self.expr(inner) {
                Expr { kind: ExprKind::Number(number), .. } => ExprKind::Number(-number),
                Expr { kind: ExprKind::Monetary(asset, amount), .. } => ExprKind::Monetary(asset, -amount),
                inner => ExprKind::Negate(Box::new(inner)),
            },
            tree::ExprKind::Sum(first, rest) => {
                let first = Box::new(self.expr(first));
                ExprKind::Sum(first, rest.iter().map(|(sign, term)| (*sign, self.expr(term))).collect())
            }
            tree::ExprKind::Divide(first, rest) => {
                let (first, rest) = (self.expr(first), self.exprs(rest));
                match constant_division(&first, &rest) {
                    Some(portion) => ExprKind::Portion(Box::new(portion)),
                    None => ExprKind::Divide(Box::new(first), rest),
                }
            }
        };
        Expr { span: expr.span, kind }
    }

    fn part(&mut self, part: &tree::Part) -> Part {
        match part {
            tree::Part::Text(text) => Part::Text(text.clone()),
            tree::Part::Variable(name) => {
                Part::Variable(Expr { span: name.span, kind: self.variable_use(&name.text) })
            }
        }
    }

    fn variable_use(&self, name: &CompactString) -> ExprKind {
        match self.slots.find(name) {
            Some(known) => ExprKind::Variable(self.meant[known as usize]),
            None => ExprKind::Unbound(name.clone()),
        }
    }

    fn call(&mut self, call: &tree::Call) -> Call {
        let function = Function::from_name(&call.name.text);
        let mid_script = !self.in_origin;
        self.reads_mid_script |= mid_script && function.is_some();
        Call {
            span: call.span,
            name: call.name.text.clone(),
            function,
            arguments: self.exprs(&call.arguments),
            mid_script,
        }
    }

    fn account(&mut self, address: &str) -> AccountId {
        AccountId(self.accounts.find(address).unwrap_or_else(|| {
            let address = AccountAddress::parse(address).expect("the parser checked the address");
            self.accounts.add(address)
        }))
    }

    fn asset(&mut self, name: &CompactString) -> AssetId {
        AssetId(self.assets.find(name).unwrap_or_else(|| self.assets.add(name.clone())))
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
