//! The typed tree: a script with resolved names and with the types of its expressions, as far as they are
//! known.
//!
//! Sources and destinations have the shapes of the syntax tree, with expression numbers in place of
//! expressions. Literals are borrowed from the syntax tree. Wrong scripts have a typed tree too, because some
//! profiles run them up to the place of the error; there a name may be unresolved or a type unknown.

use dashu_int::IBig;
use smallvec::SmallVec;
use smol_str::SmolStr;

use super::assets::{AssetVar, Assets};
use crate::options::Flags;
use crate::portion::Portion;
use crate::span::Span;
use crate::tree::{Amount, Name, Send, Sign, Text};
use crate::types::{Action, Function, Type};
use ledger_values::AccountAddress;

/// A script that passed through the checker, the only code that can make one.
#[derive(Debug)]
pub(crate) struct Script<'t> {
    /// The features that the script's directive turns on.
    pub(super) flags: Flags,
    /// The first feature in the directive that does not exist.
    pub(super) unknown_feature: Option<&'t Text>,
    pub(super) variables: Vec<Variable<'t>>,
    pub(super) statements: Vec<Statement<'t>>,
    pub(super) exprs: Vec<Expr<'t>>,
    pub(super) assets: Assets<'t>,
}

impl<'t> Script<'t> {
    /// Creates an empty script and reserves memory for a text of `bytes` bytes.
    pub(super) fn of_length(bytes: usize) -> Self {
        // Estimated length of an expression in bytes, including the words and blanks around it.
        const BYTES_OF_EXPR: usize = 16;
        Self {
            flags: Flags::NONE,
            unknown_feature: None,
            variables: Vec::new(),
            statements: Vec::new(),
            exprs: Vec::with_capacity(bytes / BYTES_OF_EXPR + 1),
            assets: Assets::default(),
        }
    }

    pub(crate) fn flags(&self) -> Flags {
        self.flags
    }

    pub(crate) fn unknown_feature(&self) -> Option<&'t Text> {
        self.unknown_feature
    }

    /// Returns the variables in order of declaration. The index of a variable is its slot.
    pub(crate) fn variables(&self) -> &[Variable<'t>] {
        &self.variables
    }

    pub(crate) fn statements(&self) -> &[Statement<'t>] {
        &self.statements
    }

    pub(crate) fn expr(&self, id: ExprId) -> &Expr<'t> {
        &self.exprs[id.0 as usize]
    }
}

/// The index of an expression in its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExprId(pub(super) u32);

/// A variable declaration.
#[derive(Debug)]
pub(crate) struct Variable<'t> {
    pub(crate) name: &'t Name,
    /// The declared type, or the word that is no type.
    pub(crate) declared: Result<Type, &'t Name>,
    pub(crate) origin: Option<Origin>,
}

/// The origin of a variable whose value does not come from the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// A call of `meta` in the declaration.
    Meta(ExprId),
    /// A call of another function in the declaration.
    Call(ExprId),
    /// Any other expression. Needs a feature flag.
    Free(ExprId),
}

#[derive(Debug)]
pub(crate) enum Statement<'t> {
    Send(Send<ExprId>),
    Save { amount: Amount<ExprId>, account: ExprId },
    ActionCall(ActionCall<'t>),
    Print(ExprId),
    Fail(Span),
}

/// The arguments of a function. No function takes more than three.
pub(crate) type Arguments = SmallVec<[ExprId; 4]>;

/// A function call that is a statement.
#[derive(Debug)]
pub(crate) struct ActionCall<'t> {
    pub(crate) span: Span,
    pub(crate) name: &'t SmolStr,
    /// The function, or `None` if no statement has this name.
    pub(crate) action: Option<Action>,
    pub(crate) arguments: Arguments,
}

/// An expression. Parentheses remain only in its position.
#[derive(Debug)]
pub(crate) struct Expr<'t> {
    pub(crate) span: Span,
    pub(crate) typed: Typed,
    pub(crate) kind: ExprKind<'t>,
}

/// The inferred type and asset of an expression.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Typed {
    /// The type, or `None` if unknown: the ledger supplies the value, or a finding was already reported.
    pub(crate) of: Option<Type>,
    /// The asset variable of an asset or monetary.
    pub(super) asset: Option<AssetVar>,
}

impl Typed {
    pub(super) const UNKNOWN: Self = Self { of: None, asset: None };

    /// Makes the entry for an expression that has a type and no asset.
    pub(super) const fn plain(of: Type) -> Self {
        Self { of: Some(of), asset: None }
    }
}

#[derive(Debug)]
pub(crate) enum ExprKind<'t> {
    Account(&'t AccountAddress),
    Asset(&'t SmolStr),
    Text(&'t SmolStr),
    Number(&'t IBig),
    Portion(&'t Portion),
    /// A use of a variable, by its slot.
    Variable(u32),
    /// A name that is not declared, or only further below.
    Unbound(&'t SmolStr),
    Interpolated(Box<[Part<'t>]>),
    Monetary {
        asset: ExprId,
        amount: ExprId,
    },
    Negate(ExprId),
    Sum(ExprId, Box<[(Sign, ExprId)]>),
    Divide(ExprId, Box<[ExprId]>),
    Call(Box<Call<'t>>),
}

/// A segment of an account address.
#[derive(Debug)]
pub(crate) enum Part<'t> {
    Text(&'t SmolStr),
    /// A segment that a variable supplies.
    Variable(ExprId),
}

#[derive(Debug)]
pub(crate) struct Call<'t> {
    /// Position of the call without parentheses around it.
    pub(crate) span: Span,
    pub(crate) name: &'t SmolStr,
    /// The function, or `None` if no function with a value has this name.
    pub(crate) function: Option<Function>,
    pub(crate) arguments: Arguments,
    /// True if the call is outside the `vars` block, where it needs a feature flag.
    pub(crate) mid_script: bool,
}
