//! Evaluates expressions.
//!
//! Every use of a value checks its type, because some profiles run unchecked scripts.

use std::borrow::Cow;

use dashu_int::IBig;
use smol_str::{SmolStr, ToSmolStr, format_smolstr};

use super::{Run, Step, Stop};
use crate::error::ErrorKind;
use crate::limits::SCRIPT_COLOR_BYTES_MAX;
use crate::options::Flag;
use crate::portion::Portion;
use crate::program::{AccountId, AssetId, Call, Expr, ExprKind, Part};
use crate::span::Span;
use crate::tree::Sign;
use crate::types::{Function, Signature, Type};
use crate::value::{Value, excerpt};
use ledger_values::limits::ADDRESS_BYTES_MAX;
use ledger_values::{AccountAddress, Balance};

/// The values of the arguments of a call.
pub(super) type Arguments = smallvec::SmallVec<[Value; 3]>;

impl<'a> Run<'a> {
    /// Evaluates an expression.
    pub(super) fn evaluate(&mut self, expr: &'a Expr) -> Step<Value> {
        match &expr.kind {
            ExprKind::Account(account) => Ok(Value::Account(*account)),
            ExprKind::Asset(asset) => Ok(Value::Asset(*asset)),
            ExprKind::Text(text) => Ok(Value::Text(text.clone())),
            ExprKind::Number(number) => Ok(Value::Number(number.clone())),
            ExprKind::Portion(portion) => Ok(Value::Portion(Portion::clone(portion))),
            ExprKind::Monetary(asset, amount) => Ok(Value::Monetary(*asset, amount.clone())),
            // A variable without a value waits for an answer.
            ExprKind::Variable(slot) => self.slot(*slot).cloned(),
            ExprKind::Unbound(name) => {
                Err(Stop::at(expr.span, ErrorKind::UnboundVariable { name: name.clone() }))
            }
            ExprKind::Interpolated(parts) => self.interpolate(expr.span, parts).map(Value::Account),
            ExprKind::MonetaryOf(pair) => {
                let asset = self.asset_of(&pair.0)?;
                Ok(Value::Monetary(asset, self.number_of(&pair.1)?))
            }
            ExprKind::Negate(inner) => match self.evaluate(inner)? {
                Value::Number(number) => Ok(Value::Number(-number)),
                Value::Monetary(asset, amount) => Ok(Value::Monetary(asset, -amount)),
                other => Err(self.type_error(inner.span, "monetary|number", &other)),
            },
            ExprKind::Sum(first, rest) => self.sum(first, rest),
            ExprKind::Divide(over, under) => self.divide(expr.span, over, under),
            ExprKind::Call(call) => self.call(call),
        }
    }

    fn slot(&self, slot: u32) -> Step<&Value> {
        self.scratch.values[slot as usize].as_ref().ok_or(Stop::Missing)
    }

    fn sum(&mut self, first: &'a Expr, rest: &'a [(Sign, Expr)]) -> Step<Value> {
        let apply = |sum: &mut IBig, sign: &Sign, term: &IBig| match sign {
            Sign::Plus => *sum += term,
            Sign::Minus => *sum -= term,
        };
        match self.evaluate(first)? {
            Value::Number(mut sum) => {
                for (sign, term) in rest {
                    let term = self.number_of(term)?;
                    apply(&mut sum, sign, &term);
                }
                Ok(Value::Number(sum))
            }
            Value::Monetary(asset, mut sum) => {
                for (sign, term) in rest {
                    let amount = self.amount_of(term, asset)?;
                    apply(&mut sum, sign, &amount);
                }
                Ok(Value::Monetary(asset, sum))
            }
            other => Err(self.type_error(first.span, "monetary|number", &other)),
        }
    }

    fn divide(&mut self, span: Span, over: &'a Expr, under: &'a [Expr]) -> Step<Value> {
        let numerator = self.number_of(over)?;
        let [under, more @ ..] = under else { return Ok(Value::Number(numerator)) };
        let denominator = self.number_of(under)?;
        let Some(portion) = Portion::new(numerator.clone(), denominator) else {
            return Err(Stop::at(span, ErrorKind::DivideByZero { numerator: numerator.to_string() }));
        };
        // Only numbers can be divided, and a quotient is a portion.
        if more.is_empty() {
            Ok(Value::Portion(portion))
        } else {
            Err(self.type_error(over.span.to(under.span), Type::Number.name(), &Value::Portion(portion)))
        }
    }

    fn interpolate(&mut self, span: Span, parts: &'a [Part]) -> Step<AccountId> {
        self.require(Flag::AccountInterpolation, span)?;
        let mut address = String::new();
        for (at, part) in parts.iter().enumerate() {
            if at > 0 {
                address.push(':');
            }
            match part {
                Part::Text(text) => address.push_str(text),
                Part::Variable(expr) => match self.evaluate(expr)? {
                    Value::Text(text) => address.push_str(&text),
                    value @ (Value::Account(_) | Value::Number(_)) => address.push_str(&self.text(&value)),
                    other => {
                        let value = self.text(&other).to_string();
                        return Err(Stop::at(expr.span, ErrorKind::CannotCastToString { value }));
                    }
                },
            }
            // An address can have very many long parts.
            if address.len() > ADDRESS_BYTES_MAX {
                break;
            }
        }
        match AccountAddress::parse(&address) {
            Ok(address) => Ok(self.account_id(address)),
            Err(_) => Err(Stop::at(span, ErrorKind::InvalidAccountName { name: excerpt(&address) })),
        }
    }

    // Functions.

    fn call(&mut self, call: &'a Call) -> Step<Value> {
        if call.mid_script {
            self.require(Flag::MidScriptFunctionCall, call.span)?;
        }
        let Some(function) = call.function else {
            return Err(Stop::at(call.span, ErrorKind::UnboundFunction { name: call.name.clone() }));
        };
        if function == Function::Meta {
            return Err(Stop::at(call.span, ErrorKind::InvalidNestedMeta));
        }
        let Signature { parameters, flag, .. } = function.signature();
        if let Some(flag) = flag {
            self.require(flag, call.span)?;
        }
        // Evaluate the arguments first, then check their number, then their types.
        let arguments = self.arguments(call.span, &call.arguments, parameters.len())?;
        self.check_types(&call.arguments, &arguments, parameters)?;
        self.result(function, arguments, call.span)
    }

    /// Returns the value of a function for arguments of its types.
    fn result(&mut self, function: Function, arguments: Arguments, span: Span) -> Step<Value> {
        match function {
            Function::Balance => {
                let (account, asset) = holding(&arguments);
                let balance = self.balance_of(account, asset)?;
                if balance < IBig::ZERO {
                    let account = self.account(account).clone();
                    let balance = Balance::of_integer(balance);
                    return Err(Stop::at(span, ErrorKind::NegativeBalance { account, balance }));
                }
                Ok(Value::Monetary(asset, balance))
            }
            Function::Overdraft => {
                let (account, asset) = holding(&arguments);
                let balance = self.balance_of(account, asset)?;
                Ok(Value::Monetary(asset, IBig::ZERO.max(-balance)))
            }
            Function::GetAsset => Ok(Value::Asset(monetary(arguments).0)),
            Function::GetAmount => Ok(Value::Number(monetary(arguments).1)),
            Function::Meta => unreachable!("a call of `meta` in an expression was refused"),
        }
    }

    fn balance_of(&mut self, account: AccountId, asset: AssetId) -> Step<IBig> {
        let holding = self.scratch.state.holding(account, asset, 0);
        self.balance(holding)
    }

    /// Evaluates arguments and refuses too many or too few.
    pub(super) fn arguments(
        &mut self,
        span: Span,
        arguments: &'a [Expr],
        expected: usize,
    ) -> Step<Arguments> {
        let mut values = Arguments::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.evaluate(argument)?);
        }
        if values.len() == expected {
            Ok(values)
        } else {
            Err(Stop::at(span, ErrorKind::BadArity { expected, given: values.len() }))
        }
    }

    fn check_types(&self, exprs: &'a [Expr], values: &[Value], parameters: &[Type]) -> Step<()> {
        for ((value, expr), parameter) in values.iter().zip(exprs).zip(parameters) {
            if value.type_of() != *parameter {
                return Err(self.type_error(expr.span, parameter.name(), value));
            }
        }
        Ok(())
    }

    // Expressions of one type.

    pub(super) fn account_of(&mut self, expr: &'a Expr) -> Step<AccountId> {
        if let ExprKind::Account(account) = expr.kind {
            return Ok(account);
        }
        match self.evaluate(expr)? {
            Value::Account(account) => Ok(account),
            other => Err(self.type_error(expr.span, Type::Account.name(), &other)),
        }
    }

    pub(super) fn asset_of(&mut self, expr: &'a Expr) -> Step<AssetId> {
        match self.evaluate(expr)? {
            Value::Asset(asset) => Ok(asset),
            other => Err(self.type_error(expr.span, Type::Asset.name(), &other)),
        }
    }

    fn number_of(&mut self, expr: &'a Expr) -> Step<IBig> {
        match self.evaluate(expr)? {
            Value::Number(number) => Ok(number),
            other => Err(self.type_error(expr.span, Type::Number.name(), &other)),
        }
    }

    pub(super) fn monetary_of(&mut self, expr: &'a Expr) -> Step<(AssetId, IBig)> {
        match self.evaluate(expr)? {
            Value::Monetary(asset, amount) => Ok((asset, amount)),
            other => Err(self.type_error(expr.span, Type::Monetary.name(), &other)),
        }
    }

    /// Returns the amount of a monetary and requires that it has this asset.
    pub(super) fn amount_of(&mut self, expr: &'a Expr, expected: AssetId) -> Step<IBig> {
        let (asset, amount) = self.monetary_of(expr)?;
        if asset == expected {
            return Ok(amount);
        }
        let (expected, got) = (self.asset_name(expected).clone(), self.asset_name(asset).clone());
        Err(Stop::at(expr.span, ErrorKind::MismatchedCurrency { expected, got }))
    }

    pub(super) fn portion_of(&mut self, expr: &'a Expr) -> Step<Cow<'_, Portion>> {
        match &expr.kind {
            ExprKind::Portion(portion) => return Ok(Cow::Borrowed(portion)),
            ExprKind::Variable(slot) => {
                if let Value::Portion(_) = self.slot(*slot)? {
                    // Two lookups satisfy the borrow checker.
                    let Ok(Value::Portion(portion)) = self.slot(*slot) else { return Err(Stop::Missing) };
                    return Ok(Cow::Borrowed(portion));
                }
            }
            _ => {}
        }
        match self.evaluate(expr)? {
            Value::Portion(portion) => Ok(Cow::Owned(portion)),
            other => Err(self.type_error(expr.span, Type::Portion.name(), &other)),
        }
    }

    /// Returns the number of a colour.
    pub(super) fn color_of(&mut self, expr: Option<&'a Expr>) -> Step<u32> {
        let Some(expr) = expr else { return Ok(0) };
        self.require(Flag::AssetColors, expr.span)?;
        let color = match self.evaluate(expr)? {
            Value::Text(color) => color,
            other => return Err(self.type_error(expr.span, Type::Text.name(), &other)),
        };
        if color.len() > SCRIPT_COLOR_BYTES_MAX {
            return Err(Stop::at(expr.span, ErrorKind::TooLarge { what: "the name of a color is too long" }));
        }
        if !color.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(Stop::at(expr.span, ErrorKind::InvalidColor { color: excerpt(&color) }));
        }
        let colors = &mut self.scratch.colors;
        Ok(colors.find(&color).unwrap_or_else(|| colors.add(SmolStr::from(&*color))))
    }

    // Texts.

    /// Returns the text form of a value for metadata.
    pub(super) fn text(&self, value: &Value) -> SmolStr {
        match value {
            Value::Account(account) => self.account(*account).as_str().into(),
            Value::Asset(asset) => self.asset_name(*asset).clone(),
            Value::Number(number) => number.to_smolstr(),
            Value::Monetary(asset, amount) => format_smolstr!("{} {amount}", self.asset_name(*asset)),
            Value::Portion(portion) => portion.to_smolstr(),
            Value::Text(text) => SmolStr::from(&**text),
        }
    }

    #[cold]
    pub(super) fn type_error(&self, span: Span, expected: &'static str, value: &Value) -> Stop {
        Stop::at(span, ErrorKind::TypeError { expected, value: excerpt(&self.text(value)).to_string() })
    }
}

/// Returns the arguments of a function of an account and an asset.
fn holding(arguments: &[Value]) -> (AccountId, AssetId) {
    match arguments {
        [Value::Account(account), Value::Asset(asset)] => (*account, *asset),
        _ => unreachable!("the types of the arguments were checked"),
    }
}

/// Returns the argument of a function of a monetary.
fn monetary(arguments: Arguments) -> (AssetId, IBig) {
    match arguments.into_iter().next() {
        Some(Value::Monetary(asset, amount)) => (asset, amount),
        _ => unreachable!("the types of the arguments were checked"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Options, Profile};
    use crate::outcome::Outcome;
    use crate::program::Program;
    use crate::run::{EmptyLedger, Progress, Scratch, Variables};

    /// Runs a script without variables on an empty ledger.
    fn outcome(script: &str) -> Outcome {
        let program = Program::compile(script, Profile::Default).expect(script);
        let (variables, mut scratch) = (Variables::default(), Scratch::default());
        let mut run = Run::new(&program, &variables, Options::default(), &mut scratch);
        while run.advance().expect(script) == Progress::Needs {
            let Ok(()) = run.answer(&mut EmptyLedger);
        }
        run.outcome()
    }

    #[test]
    fn every_function_accepts_its_parameters() {
        let literal = |of: &Type| match of {
            Type::Account => "@a",
            Type::Asset => "PEAR",
            Type::Number => "5",
            Type::Monetary => "[PEAR 5]",
            Type::Portion => "1/2",
            Type::Text => "\"k\"",
        };
        for function in Function::ALL.into_iter().filter(|function| *function != Function::Meta) {
            let Signature { name, parameters, .. } = function.signature();
            let arguments: Vec<&str> = parameters.iter().map(literal).collect();
            let script = format!("set_tx_meta(\"value\", {name}({}))", arguments.join(", "));
            assert_eq!(outcome(&script).metadata.len(), 1, "{script}");
        }
    }
}
