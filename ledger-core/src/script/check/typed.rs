//! The typed tree: a script whose names are resolved and whose expressions have types, as far as they are known.
//!
//! Sources and destinations have the shapes of the syntax tree; where an expression stood, they have its number.
//! Literals are borrowed from the syntax tree. A script that is wrong has a typed tree too, since some profiles
//! run one up to the place of its error: there a name means nothing, or a type is not known.

use compact_str::CompactString;
use dashu_int::IBig;
use smallvec::SmallVec;

use super::assets::{AssetVar, Assets};
use crate::names::AccountAddress;
use crate::script::options::Flags;
use crate::script::portion::Portion;
use crate::script::span::Span;
use crate::script::tree::{Amount, Name, Send, Sign, Text};
use crate::script::types::{Action, Function, Type};

/// A script as the checker made it. Nobody else can.
#[derive(Debug)]
pub(in crate::script) struct Script<'t> {
    /// The features that its directive turns on.
    pub(super) flags: Flags,
    /// The first feature in its directive that does not exist.
    pub(super) unknown_feature: Option<&'t Text>,
    pub(super) variables: Vec<Variable<'t>>,
    pub(super) statements: Vec<Statement<'t>>,
    pub(super) exprs: Vec<Expr<'t>>,
    pub(super) assets: Assets<'t>,
}

impl<'t> Script<'t> {
    /// Nothing yet of a script of so many bytes.
    pub(super) fn of_length(bytes: usize) -> Self {
        // Of each expression there is its text, and about as many words and blanks between it and the next.
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

    pub(in crate::script) fn flags(&self) -> Flags {
        self.flags
    }

    pub(in crate::script) fn unknown_feature(&self) -> Option<&'t Text> {
        self.unknown_feature
    }

    /// In order of declaration: the slot of a variable is its place.
    pub(in crate::script) fn variables(&self) -> &[Variable<'t>] {
        &self.variables
    }

    pub(in crate::script) fn statements(&self) -> &[Statement<'t>] {
        &self.statements
    }

    pub(in crate::script) fn expr(&self, id: ExprId) -> &Expr<'t> {
        &self.exprs[id.0 as usize]
    }
}

/// The number of an expression of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::script) struct ExprId(pub(super) u32);

/// A declaration.
#[derive(Debug)]
pub(in crate::script) struct Variable<'t> {
    pub(in crate::script) name: &'t Name,
    /// The declared type, or a name that is none.
    pub(in crate::script) declared: Result<Type, &'t Name>,
    pub(in crate::script) origin: Option<Origin>,
}

/// Where a variable's value comes from, if not from the caller.
#[derive(Clone, Copy, Debug)]
pub(in crate::script) enum Origin {
    /// A call of `meta`.
    Meta(ExprId),
    /// A call of another function.
    Call(ExprId),
    /// Any other expression, which needs a flag.
    Free(ExprId),
}

#[derive(Debug)]
pub(in crate::script) enum Statement<'t> {
    Send(Send<ExprId>),
    Save { amount: Amount<ExprId>, account: ExprId },
    Act(Act<'t>),
    Print(ExprId),
    Fail(Span),
}

/// The arguments of a function; none takes more than three.
pub(in crate::script) type Arguments = SmallVec<[ExprId; 4]>;

/// A function called as a statement.
#[derive(Debug)]
pub(in crate::script) struct Act<'t> {
    pub(in crate::script) span: Span,
    pub(in crate::script) name: &'t CompactString,
    /// `None` if no statement is called so.
    pub(in crate::script) action: Option<Action>,
    pub(in crate::script) arguments: Arguments,
}

/// An expression. Parentheses are not kept, but for the place that they take.
#[derive(Debug)]
pub(in crate::script) struct Expr<'t> {
    pub(in crate::script) span: Span,
    pub(in crate::script) typed: Typed,
    pub(in crate::script) kind: ExprKind<'t>,
}

/// What is known of an expression.
#[derive(Clone, Copy, Debug)]
pub(in crate::script) struct Typed {
    /// `None` where it can be anything: the value is the ledger's, or what is wrong was reported already.
    pub(in crate::script) of: Option<Type>,
    /// For an asset or a monetary, which.
    pub(super) asset: Option<AssetVar>,
}

impl Typed {
    pub(super) const UNKNOWN: Self = Self { of: None, asset: None };

    /// Of a type, and of no asset.
    pub(super) const fn plain(of: Type) -> Self {
        Self { of: Some(of), asset: None }
    }
}

#[derive(Debug)]
pub(in crate::script) enum ExprKind<'t> {
    Account(&'t AccountAddress),
    Asset(&'t CompactString),
    Text(&'t CompactString),
    Number(&'t IBig),
    Portion(&'t Portion),
    /// The slot of its declaration.
    Variable(u32),
    /// A name that is not declared, or not yet.
    Unbound(&'t CompactString),
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

/// A part of an address.
#[derive(Debug)]
pub(in crate::script) enum Part<'t> {
    Text(&'t CompactString),
    /// An expression that is a variable.
    Variable(ExprId),
}

#[derive(Debug)]
pub(in crate::script) struct Call<'t> {
    /// Without parentheses around it.
    pub(in crate::script) span: Span,
    pub(in crate::script) name: &'t CompactString,
    /// `None` if no function that has a value is called so.
    pub(in crate::script) function: Option<Function>,
    pub(in crate::script) arguments: Arguments,
    /// Whether it stands outside of the `vars` block, where it needs a flag.
    pub(in crate::script) mid_script: bool,
}
