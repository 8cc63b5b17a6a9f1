//! Executes the statements of a script in order.

use dashu_int::IBig;
use smol_str::SmolStr;

use super::recorder::TraceRecorder;
use super::{Run, Step, Stop};
use crate::error::ErrorKind;
use crate::options::{EmptySends, Tracing};
use crate::program::{Expr, Statement, WORLD_ID};
use crate::span::Span;
use crate::switches::{Save, ZeroPostings};
use crate::tree::{Amount, Send};
use crate::types::{Action, Type};
use crate::value::Value;
use ledger_values::Balance;

impl<'a> Run<'a> {
    /// Executes all statements from the first.
    pub(super) fn execute(&mut self) -> Step<()> {
        self.scratch.state.begin();
        self.scratch.written.clear();
        self.scratch.recorder = match self.tracing {
            Tracing::Off => None,
            Tracing::On => Some(Box::new(TraceRecorder::default())),
        };
        let program = self.program;
        program.statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &'a Statement) -> Step<()> {
        match statement {
            Statement::Send(send) => self.send(send),
            Statement::Save { amount, account } => self.save(amount, account),
            Statement::ActionCall { span, action, name, arguments } => {
                self.action_call(*span, *action, name, arguments)
            }
            Statement::Print(expr) => self.evaluate(expr).map(drop),
            Statement::Fail(span) => Err(Stop::at(*span, ErrorKind::ScriptFailed)),
        }
    }

    fn send(&mut self, send: &'a Send<Expr>) -> Step<()> {
        if self.switches.zero_postings == ZeroPostings::Keep {
            return self.send_entries(send);
        }
        let (asset, amount) = match &send.amount {
            Amount::All(_, asset) => {
                let asset = self.asset_of(asset)?;
                (asset, self.take(&send.source, asset, None)?)
            }
            Amount::Value(monetary) => {
                let (asset, amount) = self.monetary_of(monetary)?;
                refuse_negative(monetary.span, &amount)?;
                self.take_exactly(&send.source, asset, &amount)?;
                (asset, amount)
            }
        };
        self.give(&send.destination, asset, &amount)?;
        self.scratch.state.give_back_all();
        if amount.is_zero() && self.empty_sends == EmptySends::Recorded {
            self.record_empty_send(send, asset)?;
        }
        Ok(())
    }

    /// Executes `save`, which protects funds from later statements.
    fn save(&mut self, amount: &'a Amount<Expr>, account: &'a Expr) -> Step<()> {
        let (asset, saved) = match amount {
            Amount::All(_, asset) => (self.asset_of(asset)?, None),
            Amount::Value(monetary) => {
                let (asset, amount) = self.monetary_of(monetary)?;
                refuse_negative(monetary.span, &amount)?;
                (asset, Some(amount))
            }
        };
        let account = self.account_of(account)?;
        if account == WORLD_ID {
            return Ok(());
        }
        let holding = self.scratch.state.holding(account, asset, 0);
        let balance = self.balance(holding)?;
        let debt = (&balance).min(&IBig::ZERO).clone();
        let left = match (saved, self.switches.save) {
            (None, Save::Protect | Save::Forgive) => debt,
            (None, Save::Subtract) => IBig::ZERO,
            (Some(saved), Save::Protect) => (&balance - saved).max(debt),
            (Some(saved), Save::Forgive) => (&balance - saved).max(IBig::ZERO),
            (Some(saved), Save::Subtract) => &balance - saved,
        };
        self.scratch.state.holdings[holding].change += left - balance;
        Ok(())
    }

    fn action_call(
        &mut self,
        span: Span,
        action: Option<Action>,
        name: &SmolStr,
        arguments: &'a [Expr],
    ) -> Step<()> {
        let Some(action) = action else {
            for argument in arguments {
                self.evaluate(argument)?;
            }
            return Err(Stop::at(span, ErrorKind::UnboundFunction { name: name.clone() }));
        };
        let values = self.arguments(span, arguments, action.parameters().len())?;
        let (account, key, value) = match (action, values.as_slice()) {
            (Action::SetTxMeta, [key, value]) => (None, key, value),
            (Action::SetAccountMeta, [account, key, value]) => (Some(account), key, value),
            _ => unreachable!("the number of arguments was checked"),
        };
        let account = match account {
            None => None,
            Some(Value::Account(account)) => Some(*account),
            Some(other) => return Err(self.type_error(arguments[0].span, Type::Account.name(), other)),
        };
        let Value::Text(key) = key else {
            let at = arguments[arguments.len() - 2].span;
            return Err(self.type_error(at, Type::Text.name(), key));
        };
        let value = self.text(value);
        if self.scratch.written.set(account, key, value) {
            Ok(())
        } else {
            Err(Stop::at(span, ErrorKind::TooLarge { what: "the metadata that it writes is too long" }))
        }
    }
}

fn refuse_negative(span: Span, amount: &IBig) -> Step<()> {
    if *amount < IBig::ZERO {
        let amount = Balance::of_integer(amount.clone());
        return Err(Stop::at(span, ErrorKind::NegativeAmount { amount }));
    }
    Ok(())
}
