//! Checks expressions and infers their types.

use smol_str::SmolStr;

use super::Checker;
use super::typed::{self, Arguments, ExprId, ExprKind, Typed};
use crate::diagnostic::{DiagnosticKind, Misplaced, Version};
use crate::limits::to_u32;
use crate::options::Flag;
use crate::span::Span;
use crate::tree::{self, Call, Expr, Sign};
use crate::types::{Action, Function, Signature, Type};

/// Result of checking an expression. An ill-typed expression gets the unknown type, so that it causes no follow-up
/// diagnostics.
#[derive(Clone, Copy)]
pub(super) struct CheckedExpr {
    pub(super) id: ExprId,
    pub(super) typed: Typed,
}

impl CheckedExpr {
    /// Sets the type to unknown after a diagnostic was reported, so that no other one follows from the same mistake.
    fn refused(self) -> Self {
        Self { typed: Typed::UNKNOWN, ..self }
    }
}

impl<'t> Checker<'t> {
    /// Checks the origin of a variable.
    pub(super) fn origin(&mut self, origin: &'t Expr, declared: Option<Type>) -> CheckedExpr {
        if !matches!(origin.kind, tree::ExprKind::Call(_)) {
            self.feature(origin.span, Flag::MidScriptFunctionCall);
        }
        self.in_origin = true;
        let checked = match declared {
            Some(declared) => self.expect(origin, declared),
            None => self.infer(origin, None),
        };
        self.in_origin = false;
        // An origin of unknown type gets the declared type.
        let typed = &mut self.expr_mut(checked.id).typed;
        typed.of = typed.of.or(declared);
        checked
    }

    fn expr_mut(&mut self, id: ExprId) -> &mut typed::Expr<'t> {
        &mut self.script.exprs[id.0 as usize]
    }

    /// Requires an expression to have a type.
    pub(super) fn expect(&mut self, expr: &'t Expr, expected: Type) -> CheckedExpr {
        let checked = self.infer(expr, Some(expected));
        match checked.typed.of {
            Some(of) if of != expected => {
                let kind = DiagnosticKind::TypeMismatch { expected: expected.name(), got: of.name() };
                self.report(expr.span, kind);
                checked.refused()
            }
            _ => checked,
        }
    }

    pub(super) fn infer(&mut self, expr: &'t Expr, expected: Option<Type>) -> CheckedExpr {
        let (kind, typed) = match &expr.kind {
            tree::ExprKind::Variable(name) => self.variable(expr.span, name, expected),
            tree::ExprKind::Asset(name) => {
                let asset = Some(self.script.assets.known(name));
                (ExprKind::Asset(name), Typed { of: Some(Type::Asset), asset })
            }
            tree::ExprKind::Text(text) => (ExprKind::Text(text), Typed::plain(Type::Text)),
            tree::ExprKind::Number(number) => (ExprKind::Number(number), Typed::plain(Type::Number)),
            tree::ExprKind::Percent(portion) => (ExprKind::Portion(portion), Typed::plain(Type::Portion)),
            tree::ExprKind::Account(address) => (ExprKind::Account(address), Typed::plain(Type::Account)),
            tree::ExprKind::Interpolated(parts) => {
                self.feature(expr.span, Flag::AccountInterpolation);
                let parts = parts.iter().map(|part| self.part(part)).collect();
                (ExprKind::Interpolated(parts), Typed::plain(Type::Account))
            }
            tree::ExprKind::Monetary(pair) => {
                let (asset, amount) = (self.expect(&pair.0, Type::Asset), self.expect(&pair.1, Type::Number));
                let typed = Typed { of: Some(Type::Monetary), asset: asset.typed.asset };
                (ExprKind::Monetary { asset: asset.id, amount: amount.id }, typed)
            }
            tree::ExprKind::Call(call) => self.call(call),
            tree::ExprKind::Parens(inner) => {
                let inner = self.infer(inner, expected);
                self.expr_mut(inner.id).span = expr.span;
                return inner;
            }
            tree::ExprKind::Negate(inner) => {
                let inner = self.summand(inner);
                (ExprKind::Negate(inner.id), inner.typed)
            }
            tree::ExprKind::Sum(first, rest) => self.sum(first, rest),
            tree::ExprKind::Divide(over, under) => self.divide(expr.span, over, under),
        };
        self.add(expr.span, typed, kind)
    }

    fn add(&mut self, span: Span, typed: Typed, kind: ExprKind<'t>) -> CheckedExpr {
        let id = ExprId(to_u32(self.script.exprs.len()));
        self.script.exprs.push(typed::Expr { span, typed, kind });
        CheckedExpr { id, typed }
    }

    fn sum(&mut self, first: &'t Expr, rest: &'t [(Sign, Expr)]) -> (ExprKind<'t>, Typed) {
        let first = self.summand(first);
        let mut terms = Vec::with_capacity(rest.len());
        for (sign, term) in rest {
            let checked = match first.typed.of {
                Some(of) => self.expect(term, of),
                None => self.infer(term, None),
            };
            if let (Some(left), Some(right)) = (first.typed.asset, checked.typed.asset) {
                self.unify(term.span, left, right);
            }
            terms.push((*sign, checked.id));
        }
        (ExprKind::Sum(first.id, terms.into()), first.typed)
    }

    /// Checks a term of a sum: a number or a monetary.
    fn summand(&mut self, expr: &'t Expr) -> CheckedExpr {
        let checked = self.infer(expr, Some(Type::Number));
        match checked.typed.of {
            None | Some(Type::Number | Type::Monetary) => checked,
            Some(of) => {
                let kind = DiagnosticKind::TypeMismatch { expected: "number|monetary", got: of.name() };
                self.report(expr.span, kind);
                checked.refused()
            }
        }
    }

    fn divide(&mut self, span: Span, over: &'t Expr, under: &'t [Expr]) -> (ExprKind<'t>, Typed) {
        let is_literal = |expr: &Expr| matches!(expr.kind, tree::ExprKind::Number(_));
        if !is_literal(over) || !under.iter().all(is_literal) {
            self.require(span, Version::Interpreter(0, 0, 15));
        }
        let numerator = self.expect(over, Type::Number).id;
        let mut denominators = Vec::with_capacity(under.len());
        for (at, term) in under.iter().enumerate() {
            if at == 1 {
                // The quotient so far is a portion, and nothing divides a portion.
                let kind =
                    DiagnosticKind::TypeMismatch { expected: Type::Number.name(), got: Type::Portion.name() };
                self.report(over.span.to(under[0].span), kind);
            }
            denominators.push(self.expect(term, Type::Number).id);
        }
        (ExprKind::Divide(numerator, denominators.into()), Typed::plain(Type::Portion))
    }

    fn part(&mut self, part: &'t tree::Part) -> typed::Part<'t> {
        match part {
            tree::Part::Text(text) => typed::Part::Text(text),
            tree::Part::Variable(name) => {
                let (kind, typed) = self.variable(name.span, &name.text, None);
                typed::Part::Variable(self.add(name.span, typed, kind).id)
            }
        }
    }

    fn variable(&mut self, span: Span, name: &'t SmolStr, expected: Option<Type>) -> (ExprKind<'t>, Typed) {
        if let Some(number) = self.names.find(name) {
            let declared = &mut self.declared[number as usize];
            declared.used = true;
            let typed = Typed { of: declared.of, asset: declared.asset };
            return (ExprKind::Variable(declared.slot), typed);
        }
        let expected = expected.map_or("any", Type::name);
        self.report(span, DiagnosticKind::UnboundVariable { name: name.clone(), expected });
        (ExprKind::Unbound(name), Typed::UNKNOWN)
    }

    fn call(&mut self, call: &'t Call) -> (ExprKind<'t>, Typed) {
        let name = &call.name.text;
        let mid_script = !self.in_origin;
        let of_call = |function, arguments| {
            ExprKind::Call(Box::new(typed::Call { span: call.span, name, function, arguments, mid_script }))
        };
        let Some(function) = Function::from_name(name) else {
            let misplaced = match Action::from_name(name) {
                Some(_) => Misplaced::AsStatement,
                None => Misplaced::Unknown,
            };
            let arguments = self.unknown_function(call, misplaced);
            return (of_call(None, arguments), Typed::UNKNOWN);
        };
        let Signature { parameters, value: of, flag, .. } = function.signature();
        if let Some(flag) = flag {
            self.feature(call.span, flag);
        }
        if mid_script {
            self.feature(call.span, Flag::MidScriptFunctionCall);
        }
        let mut asset = None;
        let mut arguments = Arguments::with_capacity(call.arguments.len());
        for (at, argument) in call.arguments.iter().enumerate() {
            let checked = match parameters.get(at) {
                Some(parameter) => self.expect(argument, *parameter),
                None => self.infer(argument, None),
            };
            asset = asset.or(checked.typed.asset);
            arguments.push(checked.id);
        }
        self.arity(call, parameters.len());
        let has_asset = matches!(of, Some(Type::Monetary | Type::Asset));
        (of_call(Some(function), arguments), Typed { of, asset: asset.filter(|_| has_asset) })
    }

    /// Checks the arguments of a function called as a statement.
    pub(super) fn arguments(&mut self, call: &'t Call, parameters: &[Option<Type>]) -> Arguments {
        let mut arguments = Arguments::with_capacity(call.arguments.len());
        for (at, argument) in call.arguments.iter().enumerate() {
            let checked = match parameters.get(at) {
                Some(Some(parameter)) => self.expect(argument, *parameter),
                Some(None) | None => self.infer(argument, None),
            };
            arguments.push(checked.id);
        }
        self.arity(call, parameters.len());
        arguments
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

    /// Reports a function that may not be called here, and checks its arguments nevertheless.
    pub(super) fn unknown_function(&mut self, call: &'t Call, misplaced: Misplaced) -> Arguments {
        let arguments = call.arguments.iter().map(|argument| self.infer(argument, None).id).collect();
        let name = call.name.text.clone();
        self.report(call.name.span, DiagnosticKind::UnknownFunction { name, misplaced });
        arguments
    }
}
