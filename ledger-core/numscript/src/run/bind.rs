//! Binds the variables of a run to their values.

use std::collections::btree_map::Entry;

use super::needs::{Answer, Needed};
use super::{Run, Step, Stop};
use crate::error::ErrorKind;
use crate::fault::Fault;
use crate::options::Flag;
use crate::program::{Call, Origin, Variable};
use crate::switches::{ExtraVariables, NegativeVariable};
use crate::types::Type;
use crate::value::{Literal, Value, excerpt};
use ledger_values::typed_text;

impl<'a> Run<'a> {
    /// Gives every variable its value, in order of declaration.
    ///
    /// Skips variables that depend on a missing answer, so that the run asks for everything at once. Reports
    /// a fault only if nothing before it is missing, because the missing part may fail first.
    pub(super) fn bind(&mut self) -> Step<()> {
        let mut missing = false;
        for (slot, variable) in self.program.variables.iter().enumerate() {
            if self.scratch.values[slot].is_some() {
                continue;
            }
            match self.value_of(variable) {
                Ok(value) => self.scratch.values[slot] = Some(value),
                Err(Stop::Missing) => missing = true,
                Err(fault) if missing => {
                    drop(fault);
                    return Err(Stop::Missing);
                }
                Err(fault) => return Err(fault),
            }
        }
        if missing {
            return Err(Stop::Missing);
        }
        self.refuse_extra_variables()
    }

    fn value_of(&mut self, variable: &'a Variable) -> Step<Value> {
        match &variable.origin {
            None => {
                // A name declared twice has two slots and one text.
                let Some(text) = self.variables.get(variable.name.as_str()) else {
                    let name = variable.name.clone();
                    return Err(Stop::at(variable.span, ErrorKind::MissingVariable { name }));
                };
                let declared = declared(variable)?;
                if declared == Type::Text {
                    self.count_read(variable.span, text.len())?;
                }
                let value = self.read(declared, text, variable)?;
                if let Value::Monetary(_, amount) = &value
                    && self.switches.negative_variable == NegativeVariable::Refuse
                    && amount.sign() == dashu_int::Sign::Negative
                {
                    let kind =
                        ErrorKind::InvalidVariable { name: variable.name.clone(), reason: "negative amount" };
                    return Err(Stop::at(variable.span, kind));
                }
                Ok(value)
            }
            Some(Origin::Meta(call)) => self.metadata_value(variable, call),
            Some(Origin::Call(expr)) => {
                declared(variable)?;
                self.evaluate(expr)
            }
            Some(Origin::Free(expr)) => {
                declared(variable)?;
                self.require(Flag::MidScriptFunctionCall, expr.span)?;
                self.evaluate(expr)
            }
        }
    }

    fn metadata_value(&mut self, variable: &'a Variable, call: &'a Call) -> Step<Value> {
        let arguments = self.arguments(call.span, &call.arguments, 2)?;
        let [account, key] = [&arguments[0], &arguments[1]];
        let Value::Account(account) = *account else {
            return Err(self.type_error(call.arguments[0].span, Type::Account.name(), account));
        };
        let Value::Text(key) = key else {
            return Err(self.type_error(call.arguments[1].span, Type::Text.name(), key));
        };
        let declared = declared(variable)?;
        self.count_read(call.span, key.len())?;
        let text = match self.scratch.read.entry((account, key.clone())) {
            Entry::Vacant(unknown) => {
                unknown.insert(Answer::Asked);
                self.scratch.needed.push(Needed::Metadata { account, key: key.clone() });
                return Err(Stop::Missing);
            }
            Entry::Occupied(known) => match known.get() {
                Answer::Asked => return Err(Stop::Missing),
                Answer::Known(text) => text.clone(),
            },
        };
        let Some(text) = text else {
            let kind =
                ErrorKind::MetadataNotFound { account: self.account(account).clone(), key: excerpt(key) };
            return Err(Stop::at(call.span, kind));
        };
        self.count_read(call.span, text.len())?;
        // Ledgers of API v1 stored the type together with the value.
        let text = typed_text::plain(declared, &text).unwrap_or(text);
        self.read(declared, &text, variable)
    }

    fn read(&mut self, declared: Type, text: &str, variable: &Variable) -> Step<Value> {
        let literal = Literal::parse(declared, text)
            .map_err(|kind| Stop::Fault(Box::new(Fault::at(variable.span, kind))))?;
        Ok(match literal {
            Literal::Account(address) => Value::Account(self.account_id(address)),
            Literal::Asset(name) => Value::Asset(self.asset_id(&name)),
            Literal::Number(number) => Value::Number(number),
            Literal::Monetary(asset, amount) => Value::Monetary(self.asset_id(&asset), amount),
            Literal::Portion(portion) => Value::Portion(portion),
            Literal::Text(text) => Value::Text(text.as_str().into()),
        })
    }

    /// Refuses values for variables that take none: most likely, the caller mistyped a name.
    fn refuse_extra_variables(&self) -> Step<()> {
        let declared = self.program.variables.iter().filter(|variable| variable.origin.is_none()).count();
        if self.switches.extra_variables == ExtraVariables::Ignore || declared == self.variables.len() {
            return Ok(());
        }
        let is_declared = |name: &str| {
            self.program.variables.iter().any(|variable| variable.origin.is_none() && variable.name == name)
        };
        match self.variables.keys().find(|name| !is_declared(name)) {
            Some(name) => Err(Stop::nowhere(ErrorKind::ExtraneousVariable { name: excerpt(name) })),
            None => Ok(()),
        }
    }
}

fn declared(variable: &Variable) -> Step<Type> {
    variable.declared.as_ref().copied().map_err(|(span, name)| {
        Stop::Fault(Box::new(Fault::at(*span, ErrorKind::InvalidType { name: name.clone() })))
    })
}
