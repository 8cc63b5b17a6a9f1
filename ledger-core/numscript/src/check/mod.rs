//! The checker: finds the faults of a script without running it.
//!
//! It walks the syntax tree once in the order of the text and builds the typed tree. It resolves every name
//! and gives every expression a type and, where there is one, an asset. Assets are variables that the
//! script's constraints unify; two different names for one variable are a finding.

mod assets;
mod emptied_accounts;
mod expressions;
mod hover;
mod shares;
mod statements;
mod typed;
mod versions;

use smol_str::SmolStr;

use self::assets::AssetVar;
use self::emptied_accounts::EmptiedAccounts;
pub use self::hover::TypedRange;
pub(super) use self::typed::{ExprId, ExprKind, Origin, Part, Script, Statement, Variable};
use crate::diagnostic::{Diagnostic, DiagnosticKind, Version};
use crate::fault::Fault;
use crate::limits::to_u32;
use crate::names::Names;
use crate::options::{Flag, Flags};
use crate::span::{PositionIndex, Span};
use crate::switches::Check;
use crate::tree::{Declaration, Directive, ExprKind as Syntax, Tree};
use crate::types::{Function, Type};

/// Checks a script that was parsed from `text`. Returns the findings in the order of the text.
pub fn check(tree: &Tree, text: &str) -> Vec<Diagnostic> {
    Checked::of(tree, text).diagnostics()
}

/// Checks a script like [`check`], but recognises `remaining` only in the last position, as the interpreter's
/// own checker does.
pub fn check_as_interpreter(tree: &Tree, text: &str) -> Vec<Diagnostic> {
    Checker::new(text, Remaining::LastOnly).check(tree).diagnostics()
}

/// A checked script: its findings and its typed tree.
#[derive(Debug)]
pub struct Checked<'t> {
    text: &'t str,
    script: Script<'t>,
    findings: Vec<Finding>,
}

impl<'t> Checked<'t> {
    /// Checks a script that was parsed from `text`.
    pub fn of(tree: &'t Tree, text: &'t str) -> Self {
        Checker::new(text, Remaining::AnyPosition).check(tree)
    }

    /// Returns the findings in the order of the text.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let positions = PositionIndex::of(self.text);
        self.findings
            .iter()
            .map(|(kind, span)| Diagnostic {
                range: positions.range(*span),
                span: *span,
                fatal: kind.is_fatal(),
                kind: kind.clone(),
            })
            .collect()
    }

    /// Returns the typed tree, or the first finding that forbids to run it.
    pub(super) fn admit(self, check: Check) -> Result<Script<'t>, Fault> {
        let stops = |kind: &DiagnosticKind| match check {
            Check::Off => false,
            Check::Fatal => kind.is_fatal(),
            Check::Strict => kind.is_fatal() || kind.is_fatal_to_machine(),
        };
        match self.findings.into_iter().find(|(kind, _)| stops(kind)) {
            Some((kind, span)) => Err(kind.into_fault(span)),
            None => Ok(self.script),
        }
    }
}

type Finding = (DiagnosticKind, Span);

/// Positions in which `remaining` is recognised.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Remaining {
    AnyPosition,
    LastOnly,
}

/// The declaration of a name.
struct Declared {
    span: Span,
    /// The slot of the name. Of several declarations of one name, the last one counts.
    slot: u32,
    /// The type of the first declaration.
    of: Option<Type>,
    asset: Option<AssetVar>,
    has_origin: bool,
    used: bool,
}

struct Checker<'t> {
    text: &'t str,
    remaining: Remaining,
    findings: Vec<Finding>,
    script: Script<'t>,
    /// All names declared so far, each once.
    names: Names<&'t str>,
    /// The declarations, indexed by the number of the name.
    declared: Vec<Declared>,
    version: Option<Version>,
    flags: Flags,
    in_origin: bool,
    // State of the current statement.
    /// The asset that the statement sends.
    sent: Option<AssetVar>,
    /// True if the statement sends everything and no `max` limits the current source.
    sends_all: bool,
    /// True if an unbounded source precedes the current one.
    after_unbounded: bool,
    emptied: EmptiedAccounts<'t>,
}

impl<'t> Checker<'t> {
    fn new(text: &'t str, remaining: Remaining) -> Self {
        Self {
            text,
            remaining,
            findings: Vec::new(),
            script: Script::of_length(text.len()),
            names: Names::default(),
            declared: Vec::new(),
            version: None,
            flags: Flags::NONE,
            in_origin: false,
            sent: None,
            sends_all: false,
            after_unbounded: false,
            emptied: EmptiedAccounts::default(),
        }
    }

    fn check(mut self, tree: &'t Tree) -> Checked<'t> {
        self.read_comments(&tree.comments);
        if let Some(directive) = &tree.directive {
            self.directive(directive);
        }
        if let Some(vars) = &tree.vars {
            self.script.variables.reserve_exact(vars.declarations.len());
            vars.declarations.iter().for_each(|declaration| self.declaration(declaration));
        }
        self.script.statements.reserve_exact(tree.statements.len());
        for statement in &tree.statements {
            let statement = self.statement(statement);
            self.script.statements.push(statement);
        }
        self.check_variables();
        Checked { text: self.text, script: self.script, findings: self.findings }
    }

    fn directive(&mut self, directive: &'t Directive) {
        for feature in &directive.features {
            if let Some(flag) = Flag::from_name(&feature.text) {
                self.script.flags = self.script.flags.with(flag);
            } else {
                self.report(feature.span, DiagnosticKind::InvalidFeature { feature: feature.text.clone() });
                self.script.unknown_feature.get_or_insert(feature);
            }
        }
    }

    fn declaration(&mut self, declaration: &'t Declaration) {
        let Declaration { type_name, variable, origin } = declaration;
        let of = Type::from_name(&type_name.text);
        if of.is_none() {
            self.report(type_name.span, DiagnosticKind::InvalidType { name: type_name.text.clone() });
        }
        let asset = matches!(of, Some(Type::Asset | Type::Monetary)).then(|| self.script.assets.unknown());
        let origin = origin.as_ref().map(|expr| {
            let checked = self.origin(expr, of);
            if let (Some(asset), Some(origins)) = (asset, checked.typed.asset) {
                self.unify(expr.span, asset, origins);
            }
            match &expr.kind {
                Syntax::Call(call) if call.name.text == Function::Meta.signature().name => {
                    Origin::Meta(checked.id)
                }
                Syntax::Call(_) => Origin::Call(checked.id),
                _ => Origin::Free(checked.id),
            }
        });
        // An origin may use only variables declared above it.
        let slot = to_u32(self.script.variables.len());
        if let Some(known) = self.names.find(&variable.text) {
            self.declared[known as usize].slot = slot;
            let name = variable.text.clone();
            self.report(variable.span, DiagnosticKind::DuplicateVariable { name });
        } else {
            self.names.add(variable.text.as_str());
            let (span, has_origin) = (variable.span, origin.is_some());
            self.declared.push(Declared { span, slot, of, asset, has_origin, used: false });
        }
        self.script.variables.push(Variable { name: variable, declared: of.ok_or(type_name), origin });
    }

    /// Reports findings that depend on all uses of a variable.
    fn check_variables(&mut self) {
        let mismatched = self.findings.iter().any(|(kind, _)| {
            matches!(kind, DiagnosticKind::TypeMismatch { .. } | DiagnosticKind::AssetMismatch { .. })
        });
        for (number, declared) in (0..).zip(std::mem::take(&mut self.declared)) {
            let Declared { span, of, asset, has_origin, used, .. } = declared;
            if !used {
                let name = SmolStr::from(*self.names.get(number));
                self.report(span, DiagnosticKind::UnusedVar { name });
            } else if let (Some(declared), Some(asset), false, false) = (of, asset, has_origin, mismatched)
                && let Some(asset) = self.script.assets.name(asset)
            {
                let asset = asset.clone();
                self.report(span, DiagnosticKind::BoundAsset { declared, asset });
            }
        }
    }

    /// Requires two variables to be the same asset, and reports a mismatch.
    fn unify(&mut self, span: Span, expected: AssetVar, got: AssetVar) {
        if let Err((expected, got)) = self.script.assets.unify(expected, got) {
            let (expected, got) = (expected.clone(), got.clone());
            self.report(span, DiagnosticKind::AssetMismatch { expected, got });
        }
    }

    fn report(&mut self, span: Span, kind: DiagnosticKind) {
        self.findings.push((kind, span));
    }
}
