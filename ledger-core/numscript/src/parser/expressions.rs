//! Parses expressions by the precedence of their operators.

use super::cursor::{Parsed, Parser};
use crate::portion::Portion;
use crate::span::Span;
use crate::token::{Kind, Token};
use crate::tree::{Call, Expr, ExprKind, Name, Sign};

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.expr_or("an expression")
    }

    pub(super) fn expr_or(&mut self, expected: &'static str) -> Parsed<Expr> {
        let operand = self.operand_or(expected)?;
        let term = self.term_from(operand)?;
        self.sum_from(term)
    }

    /// Parses an expression in the place of an account. Inside a block, a minus after it begins the share of
    /// the next item, because nothing is subtracted from an account.
    pub(super) fn account_or(&mut self, expected: &'static str) -> Parsed<Expr> {
        let operand = self.operand_or(expected)?;
        let in_block = self.open_brackets > 1;
        if in_block && self.token.kind == Kind::Minus {
            return Ok(operand);
        }
        let term = self.term_from(operand)?;
        self.sum_from(term)
    }

    pub(super) fn sum_from(&mut self, first: Expr) -> Parsed<Expr> {
        let mut rest = Vec::new();
        loop {
            let sign = match self.token.kind {
                Kind::Plus => Sign::Plus,
                Kind::Minus => Sign::Minus,
                _ if rest.is_empty() => return Ok(first),
                _ => {
                    let span = self.since(first.span);
                    return Ok(Expr { span, kind: ExprKind::Sum(Box::new(first), rest) });
                }
            };
            self.bump();
            let operand = self.operand()?;
            rest.push((sign, self.term_from(operand)?));
        }
    }

    pub(super) fn term_from(&mut self, first: Expr) -> Parsed<Expr> {
        if self.token.kind != Kind::Slash {
            return Ok(first);
        }
        let mut rest = Vec::new();
        while self.eat(Kind::Slash) {
            rest.push(self.operand()?);
        }
        Ok(Expr { span: self.since(first.span), kind: ExprKind::Divide(Box::new(first), rest) })
    }

    pub(super) fn operand(&mut self) -> Parsed<Expr> {
        self.operand_or("an expression")
    }

    fn operand_or(&mut self, expected: &'static str) -> Parsed<Expr> {
        if self.token.kind != Kind::Minus {
            return self.primary(expected);
        }
        self.enter()?;
        let start = self.bump();
        let operand = self.operand()?;
        self.depth -= 1;
        Ok(Expr { span: self.since(start), kind: ExprKind::Negate(Box::new(operand)) })
    }

    fn primary(&mut self, expected: &'static str) -> Parsed<Expr> {
        let Token { kind, span } = self.token;
        let word = span.of(self.text);
        let kind = match kind {
            Kind::Variable => ExprKind::Variable(word[1..].into()),
            Kind::Asset => ExprKind::Asset(word.into()),
            Kind::Number => ExprKind::Number(self.number(span)?),
            Kind::Percent => match Portion::of_percent(&word[..word.len() - 1]) {
                Some(portion) => ExprKind::Percent(Box::new(portion)),
                None => return Err(self.too_many_digits(span)),
            },
            Kind::Text => ExprKind::Text(self.unescaped(span)?),
            Kind::Account => self.account(span)?,
            Kind::Identifier | Kind::Overdraft => {
                let call = self.call()?;
                return Ok(Expr { span: call.span, kind: ExprKind::Call(call) });
            }
            Kind::LeftParen => {
                self.enter()?;
                self.bump();
                let inner = self.expr()?;
                let end = self.expect(Kind::RightParen)?;
                self.depth -= 1;
                return Ok(Expr { span: span.to(end), kind: ExprKind::Parens(Box::new(inner)) });
            }
            Kind::LeftBracket => {
                self.enter()?;
                self.bump();
                let asset = self.operand()?;
                let monetary = self.monetary_of(span, asset)?;
                self.depth -= 1;
                return Ok(monetary);
            }
            _ => return Err(self.unexpected(expected)),
        };
        self.bump();
        Ok(Expr { span, kind })
    }

    /// Parses the rest of a monetary after its asset. The monetary began at `start`.
    pub(super) fn monetary_of(&mut self, start: Span, asset: Expr) -> Parsed<Expr> {
        let amount = self.expr_or("an amount")?;
        let end = self.expect(Kind::RightBracket)?;
        Ok(Expr { span: start.to(end), kind: ExprKind::Monetary(Box::new((asset, amount))) })
    }

    pub(super) fn call(&mut self) -> Parsed<Call> {
        self.enter()?;
        let name = Name { span: self.token.span, text: self.token.span.of(self.text).into() };
        self.bump();
        self.expect(Kind::LeftParen)?;
        let mut arguments = Vec::new();
        if self.token.kind != Kind::RightParen {
            loop {
                arguments.push(self.expr()?);
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
        }
        let end = self.expect(Kind::RightParen)?;
        self.depth -= 1;
        Ok(Call { span: name.span.to(end), name, arguments })
    }
}
