//! The syntax tree: a script as written, with positions and without resolved names.

use dashu_int::IBig;
use smol_str::SmolStr;

use super::portion::Portion;
use super::span::Span;
use ledger_values::AccountAddress;

/// A parsed script. After syntax errors, it holds the parts that could be read.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub(super) directive: Option<Directive>,
    pub(super) vars: Option<Vars>,
    pub(super) statements: Vec<Statement>,
    /// Comments in the order of the text.
    pub(super) comments: Vec<Span>,
}

/// The directive `#![feature("a", "b")]`.
#[derive(Clone, Debug)]
pub(super) struct Directive {
    pub(super) span: Span,
    pub(super) features: Vec<Text>,
}

/// A string with its escapes replaced.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) span: Span,
    pub(super) text: SmolStr,
}

/// The block `vars { … }`.
#[derive(Clone, Debug)]
pub(super) struct Vars {
    pub(super) span: Span,
    pub(super) declarations: Vec<Declaration>,
}

/// A declaration `type $name = origin`.
#[derive(Clone, Debug)]
pub(super) struct Declaration {
    pub(super) type_name: Name,
    pub(super) variable: Name,
    pub(super) origin: Option<Expr>,
}

/// A word, or the name of a variable without its `$`.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) span: Span,
    pub(super) text: SmolStr,
}

#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) span: Span,
    pub(super) kind: StatementKind,
}

#[derive(Clone, Debug)]
pub(super) enum StatementKind {
    Send(Box<Send>),
    Save { amount: Amount, account: Expr },
    Call(Call),
    Print(Expr),
    Fail,
}

#[derive(Clone, Debug)]
pub(super) struct Send<E = Expr> {
    pub(super) amount: Amount<E>,
    pub(super) source: Source<E>,
    pub(super) destination: Destination<E>,
}

/// The amount of a statement: a monetary, or everything of an asset.
#[derive(Clone, Debug)]
pub(super) enum Amount<E = Expr> {
    /// `[ASSET *]`, with its position.
    All(Span, E),
    Value(E),
}

#[derive(Clone, Debug)]
pub(super) struct Source<E = Expr> {
    pub(super) span: Span,
    pub(super) kind: SourceKind<E>,
}

#[derive(Clone, Debug)]
pub(super) enum SourceKind<E = Expr> {
    Account { account: E, color: Option<E>, overdraft: Overdraft<E> },
    Scaled { account: E, through: E },
    InOrder(Vec<Source<E>>),
    OneOf(Vec<Source<E>>),
    Allotment(Vec<AllottedSource<E>>),
    Capped { cap: E, source: Box<Source<E>> },
}

/// Limit of the debt of an account.
#[derive(Clone, Debug)]
pub(super) enum Overdraft<E = Expr> {
    None,
    Unbounded,
    UpTo(E),
}

#[derive(Clone, Debug)]
pub(super) struct AllottedSource<E = Expr> {
    pub(super) share: Share<E>,
    pub(super) source: Source<E>,
}

#[derive(Clone, Debug)]
pub(super) enum Share<E = Expr> {
    Remaining(Span),
    Portion(E),
}

#[derive(Clone, Debug)]
pub(super) struct Destination<E = Expr> {
    pub(super) span: Span,
    pub(super) kind: DestinationKind<E>,
}

#[derive(Clone, Debug)]
pub(super) enum DestinationKind<E = Expr> {
    Account(E),
    Allotment(Vec<AllottedTarget<E>>),
    InOrder(Clauses<E>),
    OneOf(Clauses<E>),
}

/// The clauses `max … to …`, and the one that takes the rest.
#[derive(Clone, Debug)]
pub(super) struct Clauses<E = Expr> {
    pub(super) capped: Vec<CappedTarget<E>>,
    pub(super) remaining: Box<Target<E>>,
}

#[derive(Clone, Debug)]
pub(super) struct CappedTarget<E = Expr> {
    pub(super) cap: E,
    pub(super) target: Target<E>,
}

#[derive(Clone, Debug)]
pub(super) struct AllottedTarget<E = Expr> {
    pub(super) share: Share<E>,
    pub(super) target: Target<E>,
}

#[derive(Clone, Debug)]
pub(super) enum Target<E = Expr> {
    Kept(Span),
    To(Destination<E>),
}

#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub(super) span: Span,
    pub(super) kind: ExprKind,
}

#[derive(Clone, Debug)]
pub(super) enum ExprKind {
    Variable(SmolStr),
    Asset(SmolStr),
    Text(SmolStr),
    Number(IBig),
    Percent(Box<Portion>),
    /// An account literal without variables.
    Account(AccountAddress),
    /// An account literal with variables among its segments.
    Interpolated(Vec<Part>),
    Monetary(Box<(Expr, Expr)>),
    Call(Call),
    Parens(Box<Expr>),
    Negate(Box<Expr>),
    /// A sum `a + b - c`. It is a list, so that a long sum does not make a deep tree.
    Sum(Box<Expr>, Vec<(Sign, Expr)>),
    /// A quotient `a / b / c`.
    Divide(Box<Expr>, Vec<Expr>),
}

/// The operator `+` or `-` before a term of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Plus,
    Minus,
}

/// A segment of an account literal.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Text(SmolStr),
    Variable(Name),
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) span: Span,
    pub(super) name: Name,
    pub(super) arguments: Vec<Expr>,
}
