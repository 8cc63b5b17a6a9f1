//! A script as it is written: its parts with their places, nothing resolved.

use compact_str::CompactString;
use dashu_int::IBig;

use super::portion::Portion;
use super::span::Span;
use crate::names::AccountAddress;

/// A script that has been read, or as much of it as could be.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    pub(super) directive: Option<Directive>,
    pub(super) vars: Option<Vars>,
    pub(super) statements: Vec<Statement>,
    /// In order of the text.
    pub(super) comments: Vec<Span>,
}

/// `#![feature("a", "b")]`
#[derive(Clone, Debug)]
pub(super) struct Directive {
    pub(super) span: Span,
    pub(super) features: Vec<Text>,
}

/// A string with its escapes replaced.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) span: Span,
    pub(super) text: CompactString,
}

/// `vars { … }`
#[derive(Clone, Debug)]
pub(super) struct Vars {
    pub(super) span: Span,
    pub(super) declarations: Vec<Declaration>,
}

/// `type $name = origin`
#[derive(Clone, Debug)]
pub(super) struct Declaration {
    pub(super) type_name: Name,
    pub(super) variable: Name,
    pub(super) origin: Option<Expr>,
}

/// A word; of a variable, without its `$`.
#[derive(Clone, Debug)]
pub(super) struct Name {
    pub(super) span: Span,
    pub(super) text: CompactString,
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

/// How much: everything of an asset, or a monetary.
#[derive(Clone, Debug)]
pub(super) enum Amount<E = Expr> {
    /// `[ASSET *]`, with the place of the whole.
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

/// How far below zero an account may go.
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

/// `max … to …`, and what takes the rest.
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
    Variable(CompactString),
    Asset(CompactString),
    Text(CompactString),
    Number(IBig),
    Percent(Box<Portion>),
    /// Without variables.
    Account(AccountAddress),
    /// With variables among its parts.
    Interpolated(Vec<Part>),
    Monetary(Box<(Expr, Expr)>),
    Call(Call),
    Parens(Box<Expr>),
    Negate(Box<Expr>),
    /// `a + b - c`: as a list, so that a long sum is no deep tree.
    Sum(Box<Expr>, Vec<(Sign, Expr)>),
    /// `a / b / c`.
    Divide(Box<Expr>, Vec<Expr>),
}

/// `+` or `-` between two terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Plus,
    Minus,
}

/// A part of an account literal.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Text(CompactString),
    Variable(Name),
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) span: Span,
    pub(super) name: Name,
    pub(super) arguments: Vec<Expr>,
}
