//! A script made ready to run: names are places, literals are numbers.
//!
//! Accounts, assets and variables are known by numbers, so that a run compares and finds them without looking at
//! text. What is constant is computed once. The shapes of sources and destinations are those of the tree.

use std::sync::Arc;

use compact_str::CompactString;
use dashu_int::IBig;

use super::names::Names;
use super::options::{Flags, Profile};
use super::portion::Portion;
use super::span::Span;
use super::tree::{Amount, Send, Sign};
use super::types::{Action, Function, Type};
use crate::names::AccountAddress;

/// The number of an account: first those that the program names, then those of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AccountId(pub(super) u32);

/// `@world`, which every program names first.
pub(super) const WORLD_ID: AccountId = AccountId(0);

/// The number of an asset, likewise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AssetId(pub(super) u32);

/// A script, ready to run any number of times.
#[derive(Debug)]
pub struct Program {
    pub(super) text: Box<str>,
    pub(super) profile: Profile,
    /// The features that the script turns on itself.
    pub(super) flags: Flags,
    /// A feature in its directive that does not exist.
    pub(super) unknown_feature: Option<(Span, CompactString)>,
    pub(super) variables: Vec<Variable>,
    pub(super) statements: Vec<Statement>,
    pub(super) accounts: Names<AccountAddress>,
    pub(super) assets: Names<CompactString>,
    /// Whether balances are read outside of the `vars` block.
    pub(super) reads_mid_script: bool,
}

impl Program {
    /// The script's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The profile that it was compiled for.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The variables that a caller gives values for, with their types, in order of declaration.
    pub fn needed_variables(&self) -> impl Iterator<Item = (&str, Type)> {
        let of_caller = |variable: &&Variable| variable.origin.is_none();
        self.variables
            .iter()
            .filter(of_caller)
            .filter_map(|variable| Some((variable.name.as_str(), variable.declared.as_ref().ok().copied()?)))
    }

    /// Roughly the bytes of memory that it takes, for whoever keeps programs within a budget.
    pub fn memory(&self) -> usize {
        // A node takes about ten times its text, a statement somewhat more than its nodes.
        size_of::<Self>() + self.text.len() * 16 + self.statements.len() * 256 + self.variables.len() * 128
    }
}

/// A declared variable; its slot is its place in the list.
#[derive(Debug)]
pub(super) struct Variable {
    /// Of its name in the declaration.
    pub(super) span: Span,
    pub(super) name: CompactString,
    /// The declared type, or a name that is none, with its place.
    pub(super) declared: Result<Type, (Span, CompactString)>,
    pub(super) origin: Option<Origin>,
}

/// Where a variable's value comes from, if not from the caller.
#[derive(Debug)]
pub(super) enum Origin {
    /// `meta(account, key)`
    Meta(Box<Call>),
    /// A call of another function.
    Call(Expr),
    /// Any other expression, which needs a flag.
    Free(Expr),
}

#[derive(Debug)]
pub(super) enum Statement {
    Send(Box<Send<Expr>>),
    Save { amount: Amount<Expr>, account: Expr },
    Act { span: Span, action: Option<Action>, name: CompactString, arguments: Box<[Expr]> },
    Print(Expr),
    Fail(Span),
}

#[derive(Debug)]
pub(super) struct Expr {
    pub(super) span: Span,
    pub(super) kind: ExprKind,
}

#[derive(Debug)]
pub(super) enum ExprKind {
    Account(AccountId),
    Asset(AssetId),
    Text(Arc<str>),
    Number(IBig),
    Portion(Box<Portion>),
    Monetary(AssetId, IBig),
    /// A slot.
    Variable(u32),
    /// A name that is not declared, or not yet.
    Unbound(CompactString),
    Interpolated(Box<[Part]>),
    MonetaryOf(Box<(Expr, Expr)>),
    Negate(Box<Expr>),
    Sum(Box<Expr>, Box<[(Sign, Expr)]>),
    Divide(Box<Expr>, Box<[Expr]>),
    Call(Box<Call>),
}

/// A part of an address; the colons between are implied.
#[derive(Debug)]
pub(super) enum Part {
    Text(CompactString),
    /// An expression that is a variable.
    Variable(Expr),
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) span: Span,
    pub(super) name: CompactString,
    /// `None` if no function that has a value is called so.
    pub(super) function: Option<Function>,
    pub(super) arguments: Box<[Expr]>,
    /// Whether it stands outside of the `vars` block, where it needs a flag.
    pub(super) mid_script: bool,
}
