//! A compiled script: names are numbers, literals are values.
//!
//! A run compares accounts, assets and variables by number and looks at no text. Constants are computed once.
//! Sources and destinations have the shapes of the syntax tree.

use std::sync::Arc;

use dashu_int::IBig;
use smol_str::SmolStr;

use super::names::Names;
use super::options::{Flags, Profile};
use super::portion::Portion;
use super::span::Span;
use super::tree::{Amount, Send, Sign};
use super::types::{Action, Function, Type};
use ledger_values::AccountAddress;

/// The number of an account. The accounts of the program come first, then those that the run adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AccountId(pub(super) u32);

/// The account `@world`, the first of every program.
pub(super) const WORLD_ID: AccountId = AccountId(0);

/// The number of an asset. The assets of the program come first, then those that the run adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AssetId(pub(super) u32);

/// A compiled script, which can run any number of times.
#[derive(Debug)]
pub struct Program {
    pub(super) text: Box<str>,
    pub(super) profile: Profile,
    /// The features that the script itself turns on.
    pub(super) flags: Flags,
    /// The name in the script's feature directive that is no feature, if there is one.
    pub(super) unknown_feature: Option<(Span, SmolStr)>,
    pub(super) variables: Vec<Variable>,
    pub(super) statements: Vec<Statement>,
    pub(super) accounts: Names<AccountAddress>,
    pub(super) assets: Names<SmolStr>,
    /// True if the script calls a function outside the `vars` block. The call may read a balance.
    pub(super) reads_mid_script: bool,
}

impl Program {
    /// Returns the text of the script.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the profile for which the program was compiled.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Lists the variables whose values the caller must give, with their types, in order of declaration. Omits
    /// variables whose declared type does not exist.
    pub fn needed_variables(&self) -> impl Iterator<Item = (&str, Type)> {
        let of_caller = |variable: &&Variable| variable.origin.is_none();
        self.variables
            .iter()
            .filter(of_caller)
            .filter_map(|variable| Some((variable.name.as_str(), variable.declared.as_ref().ok().copied()?)))
    }

    /// Estimates the memory of the program in bytes. Caches use it to stay within a budget.
    pub fn memory(&self) -> usize {
        // A node takes about ten times its text, and a statement a little more than its nodes.
        size_of::<Self>() + self.text.len() * 16 + self.statements.len() * 256 + self.variables.len() * 128
    }
}

/// A declared variable. Its index in the list is its slot.
#[derive(Debug)]
pub(super) struct Variable {
    /// Position of the name in the declaration.
    pub(super) span: Span,
    pub(super) name: SmolStr,
    /// The declared type. If the word in its place is no type: that word, with its position.
    pub(super) declared: Result<Type, (Span, SmolStr)>,
    pub(super) origin: Option<Origin>,
}

/// The origin of a variable whose value does not come from the caller.
#[derive(Debug)]
pub(super) enum Origin {
    /// A call of `meta(account, key)`.
    Meta(Box<Call>),
    /// A call of another function.
    Call(Expr),
    /// Any other expression. Needs a feature flag.
    Free(Expr),
}

#[derive(Debug)]
pub(super) enum Statement {
    Send(Box<Send<Expr>>),
    Save { amount: Amount<Expr>, account: Expr },
    ActionCall { span: Span, action: Option<Action>, name: SmolStr, arguments: Box<[Expr]> },
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
    /// A use of a variable, by its slot.
    Variable(u32),
    /// A use of a variable that is not declared, or is declared only after this use.
    Unbound(SmolStr),
    Interpolated(Box<[Part]>),
    MonetaryOf(Box<(Expr, Expr)>),
    Negate(Box<Expr>),
    Sum(Box<Expr>, Box<[(Sign, Expr)]>),
    Divide(Box<Expr>, Box<[Expr]>),
    Call(Box<Call>),
}

/// A segment of an account address, without the colons.
#[derive(Debug)]
pub(super) enum Part {
    Text(SmolStr),
    /// A segment that a variable supplies.
    Variable(Expr),
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) span: Span,
    pub(super) name: SmolStr,
    /// The function, or `None` if no function that returns a value has this name.
    pub(super) function: Option<Function>,
    pub(super) arguments: Box<[Expr]>,
    /// True if the call is outside the `vars` block, where it needs a feature flag.
    pub(super) mid_script: bool,
}
