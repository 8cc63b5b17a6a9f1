//! The checker: what can be known of a script without running it.
//!
//! It walks the tree once, in the order of the text, gives every expression a type and, where it has one, an asset,
//! and notes what cannot be right. Assets are unknowns that are set equal as the script demands; two different
//! ones that must be equal are a finding.

mod assets;
mod shares;
mod versions;

use std::collections::{BTreeMap, BTreeSet};

use compact_str::CompactString;

use self::assets::{AssetNode, AssetVar};
use crate::names::WORLD;
use crate::script::diagnostic::{Diagnostic, DiagnosticKind, Misplaced, Version};
use crate::script::fault::Fault;
use crate::script::options::{Flag, Flags};
use crate::script::span::{Range, Span};
use crate::script::switches::Check;
use crate::script::tree::{
    Amount, Call, Clauses, Destination, DestinationKind, Expr, ExprKind, Overdraft, Part, Source, SourceKind,
    Statement, StatementKind, Target, Tree,
};
use crate::script::types::{Action, Function, Type};

/// Judges a script that was parsed from `text`, in the order of the text.
pub fn check(tree: &Tree, text: &str) -> Vec<Diagnostic> {
    ranged(Checker::new(text, Remaining::AnyPosition).check(tree), text)
}

/// As [`check`], but counting a `remaining` only in the last position, as the interpreter's own checker does.
pub fn check_as_interpreter(tree: &Tree, text: &str) -> Vec<Diagnostic> {
    ranged(Checker::new(text, Remaining::LastOnly).check(tree), text)
}

fn ranged(findings: Vec<Finding>, text: &str) -> Vec<Diagnostic> {
    findings
        .into_iter()
        .map(|(kind, span)| Diagnostic { range: Range::of(span, text), span, fatal: kind.is_fatal(), kind })
        .collect()
}

/// The first finding by which a script must not run.
pub(in crate::script) fn first_fatal(tree: &Tree, text: &str, check: Check) -> Option<Fault> {
    if check == Check::Off {
        return None;
    }
    let fatal =
        |kind: &DiagnosticKind| kind.is_fatal() || check == Check::Strict && kind.is_fatal_to_machine();
    let findings = Checker::new(text, Remaining::AnyPosition).check(tree);
    findings.into_iter().find(|(kind, _)| fatal(kind)).map(|(kind, span)| kind.into_fault(span))
}

type Finding = (DiagnosticKind, Span);

/// Where a `remaining` counts as one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Remaining {
    AnyPosition,
    LastOnly,
}

/// What the checker knows of an expression.
#[derive(Clone, Copy)]
struct Typed {
    /// `None` where anything may stand: what is wrong was reported already.
    of: Option<Type>,
    /// For an asset or a monetary, which.
    asset: Option<AssetVar>,
}

const UNKNOWN: Typed = Typed { of: None, asset: None };

struct Declared {
    span: Span,
    of: Option<Type>,
    asset: Option<AssetVar>,
    has_origin: bool,
    used: bool,
}

struct Checker<'a> {
    text: &'a str,
    remaining: Remaining,
    findings: Vec<Finding>,
    variables: BTreeMap<CompactString, Declared>,
    /// In order of declaration.
    names: Vec<CompactString>,
    assets: Vec<AssetNode>,
    version: Option<Version>,
    flags: Flags,
    in_origin: bool,
    // Of the statement in hand.
    /// The asset that is sent.
    sent: Option<AssetVar>,
    /// Whether everything is sent, and no `max` bounds it here.
    sends_all: bool,
    /// Whether a source without an end stands before this one.
    after_unbounded: bool,
    /// Accounts, with colours, that are empty here.
    emptied: BTreeSet<(CompactString, CompactString)>,
    /// The same in the order in which they became so.
    emptied_in_order: Vec<(CompactString, CompactString)>,
}

impl<'a> Checker<'a> {
    fn new(text: &'a str, remaining: Remaining) -> Self {
        Self {
            text,
            remaining,
            findings: Vec::new(),
            variables: BTreeMap::new(),
            names: Vec::new(),
            assets: Vec::new(),
            version: None,
            flags: Flags::NONE,
            in_origin: false,
            sent: None,
            sends_all: false,
            after_unbounded: false,
            emptied: BTreeSet::new(),
            emptied_in_order: Vec::new(),
        }
    }

    fn check(mut self, tree: &Tree) -> Vec<Finding> {
        self.read_comments(&tree.comments);
        for feature in tree.directive.iter().flat_map(|directive| &directive.features) {
            if Flag::from_name(&feature.text).is_none() {
                self.report(feature.span, DiagnosticKind::InvalidFeature { feature: feature.text.clone() });
            }
        }
        for declaration in tree.vars.iter().flat_map(|vars| &vars.declarations) {
            let name = &declaration.type_name;
            let of = Type::from_name(&name.text);
            if of.is_none() {
                self.report(name.span, DiagnosticKind::InvalidType { name: name.text.clone() });
            }
            let asset = matches!(of, Some(Type::Asset | Type::Monetary)).then(|| self.unknown_asset());
            if let Some(origin) = &declaration.origin {
                let typed = self.origin(origin, of);
                if let (Some(asset), Some(origins)) = (asset, typed.asset) {
                    self.unify(origin.span, asset, origins);
                }
            }
            let variable = &declaration.variable;
            if self.variables.contains_key(&variable.text) {
                let name = variable.text.clone();
                self.report(variable.span, DiagnosticKind::DuplicateVariable { name });
                continue;
            }
            let has_origin = declaration.origin.is_some();
            let declared = Declared { span: variable.span, of, asset, has_origin, used: false };
            self.variables.insert(variable.text.clone(), declared);
            self.names.push(variable.text.clone());
        }
        for statement in &tree.statements {
            self.statement(statement);
        }
        self.judge_variables();
        self.findings
    }

    /// What can be said of the variables once every use is seen.
    fn judge_variables(&mut self) {
        let mismatched = self.findings.iter().any(|(kind, _)| {
            matches!(kind, DiagnosticKind::TypeMismatch { .. } | DiagnosticKind::AssetMismatch { .. })
        });
        for name in std::mem::take(&mut self.names) {
            let declared = &self.variables[&name];
            let span = declared.span;
            if !declared.used {
                self.report(span, DiagnosticKind::UnusedVar { name });
            } else if let (Some(of), Some(asset), false, false) =
                (declared.of, declared.asset, declared.has_origin, mismatched)
                && let AssetNode::Known(asset) = &self.assets[self.root(asset)]
            {
                let asset = asset.clone();
                self.report(span, DiagnosticKind::BoundAsset { declared: of, asset });
            }
        }
    }

    fn report(&mut self, span: Span, kind: DiagnosticKind) {
        self.findings.push((kind, span));
    }

    // Statements.

    fn statement(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::Send(send) => {
                self.sent = self.amount(&send.amount);
                self.sends_all = matches!(send.amount, Amount::All(..));
                self.after_unbounded = false;
                self.emptied.clear();
                self.emptied_in_order.clear();
                self.source(&send.source);
                self.destination(&send.destination);
                self.sent = None;
            }
            StatementKind::Save { amount, account } => {
                self.amount(amount);
                self.expect(account, Type::Account);
            }
            StatementKind::Call(call) => {
                let name = &call.name.text;
                if let Some(action) = Action::from_name(name) {
                    self.arguments(call, action.parameters());
                } else if Function::from_name(name).is_some() {
                    self.unknown_function(call, Misplaced::InOrigin);
                } else {
                    self.unknown_function(call, Misplaced::Unknown);
                }
            }
            StatementKind::Print(expr) => {
                self.infer(expr, None);
            }
            StatementKind::Fail => {}
        }
    }

    fn amount(&mut self, amount: &Amount) -> Option<AssetVar> {
        match amount {
            Amount::All(_, asset) => self.expect(asset, Type::Asset).asset,
            Amount::Value(monetary) => self.expect(monetary, Type::Monetary).asset,
        }
    }

    /// A monetary of the asset that is sent.
    fn bound(&mut self, expr: &Expr) {
        let typed = self.expect(expr, Type::Monetary);
        if let (Some(sent), Some(asset)) = (self.sent, typed.asset) {
            self.unify(expr.span, sent, asset);
        }
    }

    fn source(&mut self, source: &Source) {
        if self.after_unbounded {
            self.report(source.span, DiagnosticKind::UnboundedAccountIsNotLast);
        }
        match &source.kind {
            SourceKind::Account { account, color, overdraft } => {
                self.account_source(account, color.as_ref(), overdraft);
            }
            SourceKind::Scaled { account, through } => {
                self.feature(source.span, Flag::AssetScaling);
                self.expect(account, Type::Account);
                self.expect(through, Type::Account);
            }
            SourceKind::InOrder(sources) => {
                for source in sources {
                    self.source(source);
                }
            }
            SourceKind::OneOf(sources) => {
                self.feature(source.span, Flag::OneOf);
                for source in sources {
                    self.source(source);
                }
            }
            SourceKind::Capped { cap, source } => self.in_scope(|checker| {
                checker.bound(cap);
                checker.source(source);
            }),
            SourceKind::Allotment(items) => {
                if self.sends_all {
                    self.report(source.span, DiagnosticKind::NoAllotmentInSendAll);
                }
                self.shares(source.span, items.iter().map(|item| &item.share));
                for item in items {
                    self.in_scope(|checker| checker.source(&item.source));
                }
            }
        }
    }

    /// What is bounded has an end, and what it empties may be refilled before what follows.
    fn in_scope(&mut self, walk: impl FnOnce(&mut Self)) {
        let (all, unbounded, emptied) = (self.sends_all, self.after_unbounded, self.emptied_in_order.len());
        self.sends_all = false;
        self.after_unbounded = false;
        walk(self);
        self.sends_all = all;
        self.after_unbounded = unbounded;
        for account in self.emptied_in_order.drain(emptied..) {
            self.emptied.remove(&account);
        }
    }

    fn account_source(&mut self, account: &Expr, color: Option<&Expr>, overdraft: &Overdraft) {
        self.expect(account, Type::Account);
        if let Some(color) = color {
            self.feature(color.span, Flag::AssetColors);
            self.expect(color, Type::Text);
        }
        if let Overdraft::UpTo(bound) = overdraft {
            self.bound(bound);
        }
        let literal = match &account.kind {
            ExprKind::Account(address) => Some(address),
            _ => None,
        };
        let is_world = literal.is_some_and(|address| address == WORLD);
        if is_world && !matches!(overdraft, Overdraft::None) {
            self.report(account.span, DiagnosticKind::InvalidWorldOverdraft);
        }
        if is_world || matches!(overdraft, Overdraft::Unbounded) {
            if self.sends_all {
                let name = match literal {
                    Some(address) => address.clone(),
                    None => account.span.of(self.text).into(),
                };
                self.report(account.span, DiagnosticKind::InvalidUnboundedAccount { name });
            }
            self.after_unbounded = true;
        }
        if let (Some(address), false, Overdraft::None) = (literal, is_world, overdraft) {
            let color = match color.map(|color| &color.kind) {
                None => CompactString::default(),
                Some(ExprKind::Text(color)) => color.clone(),
                // Which colour it is, only a run knows.
                Some(_) => return,
            };
            let key = (address.clone(), color);
            if self.emptied.insert(key.clone()) {
                self.emptied_in_order.push(key);
            } else {
                self.report(account.span, DiagnosticKind::EmptiedAccount { name: address.clone() });
            }
        }
    }

    fn destination(&mut self, destination: &Destination) {
        match &destination.kind {
            DestinationKind::Account(account) => {
                self.expect(account, Type::Account);
            }
            DestinationKind::Allotment(items) => {
                self.shares(destination.span, items.iter().map(|item| &item.share));
                for item in items {
                    self.target(&item.target);
                }
            }
            DestinationKind::InOrder(clauses) => self.clauses(clauses),
            DestinationKind::OneOf(clauses) => {
                self.feature(destination.span, Flag::OneOf);
                self.clauses(clauses);
            }
        }
    }

    fn clauses(&mut self, clauses: &Clauses) {
        for clause in &clauses.capped {
            self.bound(&clause.cap);
            self.target(&clause.target);
        }
        self.target(&clauses.remaining);
    }

    fn target(&mut self, target: &Target) {
        match target {
            Target::Kept(_) => {}
            Target::To(destination) => self.destination(destination),
        }
    }

    // Expressions.

    fn origin(&mut self, origin: &Expr, declared: Option<Type>) -> Typed {
        if !matches!(origin.kind, ExprKind::Call(_)) {
            self.feature(origin.span, Flag::MidScriptFunctionCall);
        }
        self.in_origin = true;
        let typed = match declared {
            Some(declared) => self.expect(origin, declared),
            None => self.infer(origin, None),
        };
        self.in_origin = false;
        typed
    }

    /// The expression must be of this type.
    fn expect(&mut self, expr: &Expr, expected: Type) -> Typed {
        let typed = self.infer(expr, Some(expected));
        match typed.of {
            Some(of) if of != expected => {
                let kind = DiagnosticKind::TypeMismatch { expected: expected.name(), got: of.name() };
                self.report(expr.span, kind);
                UNKNOWN
            }
            _ => typed,
        }
    }

    fn infer(&mut self, expr: &Expr, expected: Option<Type>) -> Typed {
        let plain = |of| Typed { of: Some(of), asset: None };
        match &expr.kind {
            ExprKind::Variable(name) => self.variable(expr.span, name, expected),
            ExprKind::Asset(name) => {
                Typed { of: Some(Type::Asset), asset: Some(self.known_asset(name.clone())) }
            }
            ExprKind::Text(_) => plain(Type::Text),
            ExprKind::Number(_) => plain(Type::Number),
            ExprKind::Percent(_) => plain(Type::Portion),
            ExprKind::Account(_) => plain(Type::Account),
            ExprKind::Interpolated(parts) => {
                self.feature(expr.span, Flag::AccountInterpolation);
                for part in parts {
                    if let Part::Variable(name) = part {
                        self.variable(name.span, &name.text, None);
                    }
                }
                plain(Type::Account)
            }
            ExprKind::Monetary(pair) => {
                let asset = self.expect(&pair.0, Type::Asset).asset;
                self.expect(&pair.1, Type::Number);
                Typed { of: Some(Type::Monetary), asset }
            }
            ExprKind::Call(call) => self.call(call),
            ExprKind::Parens(inner) => self.infer(inner, expected),
            ExprKind::Negate(inner) => self.summand(inner),
            ExprKind::Sum(first, rest) => {
                let typed = self.summand(first);
                for (_, term) in rest {
                    match typed.of {
                        Some(of) => {
                            let right = self.expect(term, of);
                            if let (Some(left), Some(right)) = (typed.asset, right.asset) {
                                self.unify(term.span, left, right);
                            }
                        }
                        None => {
                            self.infer(term, None);
                        }
                    }
                }
                typed
            }
            ExprKind::Divide(over, under) => {
                let is_literal = |expr: &Expr| matches!(expr.kind, ExprKind::Number(_));
                if !is_literal(over) || !under.iter().all(is_literal) {
                    self.require(expr.span, Version::Interpreter(0, 0, 15));
                }
                self.expect(over, Type::Number);
                for (at, term) in under.iter().enumerate() {
                    if at == 1 {
                        // The quotient before it is a portion, which nothing divides.
                        let kind = DiagnosticKind::TypeMismatch {
                            expected: Type::Number.name(),
                            got: Type::Portion.name(),
                        };
                        self.report(over.span.to(under[0].span), kind);
                    }
                    self.expect(term, Type::Number);
                }
                plain(Type::Portion)
            }
        }
    }

    /// A number or a monetary.
    fn summand(&mut self, expr: &Expr) -> Typed {
        let typed = self.infer(expr, Some(Type::Number));
        match typed.of {
            None | Some(Type::Number | Type::Monetary) => typed,
            Some(of) => {
                let kind = DiagnosticKind::TypeMismatch { expected: "number|monetary", got: of.name() };
                self.report(expr.span, kind);
                UNKNOWN
            }
        }
    }

    fn variable(&mut self, span: Span, name: &CompactString, expected: Option<Type>) -> Typed {
        if let Some(declared) = self.variables.get_mut(name) {
            declared.used = true;
            return Typed { of: declared.of, asset: declared.asset };
        }
        let expected = expected.map_or("any", Type::name);
        self.report(span, DiagnosticKind::UnboundVariable { name: name.clone(), expected });
        UNKNOWN
    }

    fn call(&mut self, call: &Call) -> Typed {
        let Some(function) = Function::from_name(&call.name.text) else {
            let misplaced = match Action::from_name(&call.name.text) {
                Some(_) => Misplaced::AsStatement,
                None => Misplaced::Unknown,
            };
            self.unknown_function(call, misplaced);
            return UNKNOWN;
        };
        let (of, flag) = match function {
            Function::Balance => (Some(Type::Monetary), None),
            Function::Overdraft => (Some(Type::Monetary), Some(Flag::OverdraftFunction)),
            Function::GetAsset => (Some(Type::Asset), Some(Flag::GetAssetFunction)),
            Function::GetAmount => (Some(Type::Number), Some(Flag::GetAmountFunction)),
            Function::Meta => (None, None),
        };
        if let Some(flag) = flag {
            self.feature(call.span, flag);
        }
        if !self.in_origin {
            self.feature(call.span, Flag::MidScriptFunctionCall);
        }
        let mut asset = None;
        let parameters = function.parameters();
        for (at, argument) in call.arguments.iter().enumerate() {
            let typed = match parameters.get(at) {
                Some(parameter) => self.expect(argument, *parameter),
                None => self.infer(argument, None),
            };
            asset = asset.or(typed.asset);
        }
        self.arity(call, parameters.len());
        let has_asset = matches!(of, Some(Type::Monetary | Type::Asset));
        Typed { of, asset: asset.filter(|_| has_asset) }
    }

    fn arguments(&mut self, call: &Call, parameters: &[Option<Type>]) {
        for (at, argument) in call.arguments.iter().enumerate() {
            match parameters.get(at) {
                Some(Some(parameter)) => self.expect(argument, *parameter),
                Some(None) | None => self.infer(argument, None),
            };
        }
        self.arity(call, parameters.len());
    }

    fn arity(&mut self, call: &Call, expected: usize) {
        let actual = call.arguments.len();
        let span = match call.arguments.get(expected..) {
            Some([]) => return,
            Some([first, .., last]) => first.span.to(last.span),
            Some([only]) => only.span,
            None => call.span,
        };
        self.report(span, DiagnosticKind::BadArity { expected, actual });
    }

    fn unknown_function(&mut self, call: &Call, misplaced: Misplaced) {
        for argument in &call.arguments {
            self.infer(argument, None);
        }
        let name = call.name.text.clone();
        self.report(call.name.span, DiagnosticKind::UnknownFunction { name, misplaced });
    }
}
