//! The parser: turns tokens into a [`Tree`].
//!
//! The grammar is in `language.md`.
//!
//! The functions below follow the productions. Each decides by the next token, so nothing is read twice.
//! After an error the parser skips the statement or declaration and goes on with the next, to find several
//! errors in one pass.

mod clauses;
mod cursor;
mod expressions;
mod literals;
mod syntax_error;

pub use self::syntax_error::SyntaxError;

use self::cursor::{Parsed, Parser, Reported};
use crate::limits::{SCRIPT_BYTES_MAX, SCRIPT_ERRORS_MAX, SCRIPT_VARIABLES_MAX};
use crate::span::Span;
use crate::switches::Escapes;
use crate::token::Kind;
use crate::tree::{
    Amount, Declaration, Destination, Directive, Send, Source, Statement, StatementKind, Text, Tree, Vars,
};

/// Parses a script. If there are errors, the tree holds only the parts that could be read.
pub fn parse(text: &str) -> (Tree, Vec<SyntaxError>) {
    parse_with(text, Escapes::Replace)
}

pub(crate) fn parse_with(text: &str, escapes: Escapes) -> (Tree, Vec<SyntaxError>) {
    if text.len() > SCRIPT_BYTES_MAX {
        let message = format!("the script has {} bytes, at most {SCRIPT_BYTES_MAX} are allowed", text.len());
        return (Tree::default(), vec![SyntaxError { span: Span::new(0, 0), message }]);
    }
    let mut parser = Parser::new(text, escapes);
    let mut tree = parser.program();
    tree.comments = parser.tokens.into_comments();
    (tree, parser.errors)
}

impl Parser<'_> {
    fn program(&mut self) -> Tree {
        let mut tree = Tree::default();
        let start = self.token.span;
        if self.token.kind == Kind::HashBang {
            match self.directive() {
                Ok(directive) => tree.directive = Some(directive),
                Err(Reported) => {
                    self.recover(start, |kind| kind == Kind::Vars || kind == Kind::Identifier);
                }
            }
        }
        if self.token.kind == Kind::Vars {
            tree.vars = Some(self.vars());
        }
        while self.token.kind != Kind::End && self.errors.len() < SCRIPT_ERRORS_MAX {
            self.open_brackets = 0;
            let start = self.token.span;
            match self.statement() {
                Ok(statement) => tree.statements.push(statement),
                Err(Reported) => self.recover(start, |kind| kind == Kind::Identifier),
            }
        }
        tree
    }

    fn directive(&mut self) -> Parsed<Directive> {
        let start = self.expect(Kind::HashBang)?;
        self.expect(Kind::LeftBracket)?;
        self.expect(Kind::Feature)?;
        self.expect(Kind::LeftParen)?;
        let mut features = Vec::new();
        if self.token.kind != Kind::RightParen {
            loop {
                let span = self.expect(Kind::Text)?;
                features.push(Text { span, text: self.unescaped(span)? });
                if !self.eat(Kind::Comma) {
                    break;
                }
            }
        }
        self.expect(Kind::RightParen)?;
        let end = self.expect(Kind::RightBracket)?;
        Ok(Directive { span: start.to(end), features })
    }

    fn vars(&mut self) -> Vars {
        let start = self.bump();
        let mut declarations = Vec::new();
        if self.expect(Kind::LeftBrace).is_err() {
            self.recover(start, |kind| kind == Kind::Identifier);
            return Vars { span: self.since(start), declarations };
        }
        loop {
            match self.token.kind {
                Kind::RightBrace => {
                    self.bump();
                    break;
                }
                // A new statement means that the closing brace is missing.
                Kind::End | Kind::Send | Kind::Save => {
                    self.unexpected("a declaration or '}'");
                    break;
                }
                _ if self.errors.len() >= SCRIPT_ERRORS_MAX => break,
                _ => {}
            }
            if declarations.len() == SCRIPT_VARIABLES_MAX {
                self.error(self.token.span, format!("more than {SCRIPT_VARIABLES_MAX} variables"));
                self.stop();
                break;
            }
            if let Ok(declaration) = self.declaration() {
                declarations.push(declaration);
                continue;
            }
            self.depth = 0;
            while !matches!(
                self.token.kind,
                Kind::Identifier | Kind::RightBrace | Kind::End | Kind::Send | Kind::Save
            ) {
                self.bump();
            }
        }
        Vars { span: self.since(start), declarations }
    }

    fn declaration(&mut self) -> Parsed<Declaration> {
        let type_name = self.name(Kind::Identifier, "a type")?;
        let variable = self.name(Kind::Variable, "a variable")?;
        let origin = if self.eat(Kind::Equals) { Some(self.expr()?) } else { None };
        Ok(Declaration { type_name, variable, origin })
    }

    fn statement(&mut self) -> Parsed<Statement> {
        let start = self.token.span;
        let kind = match self.token.kind {
            Kind::Send => self.send()?,
            Kind::Save => self.save()?,
            Kind::Identifier => match self.token.span.of(self.text) {
                "print" => {
                    self.bump();
                    StatementKind::Print(self.expr()?)
                }
                "fail" => {
                    self.bump();
                    StatementKind::Fail
                }
                _ => StatementKind::Call(self.call()?),
            },
            Kind::Overdraft => StatementKind::Call(self.call()?),
            Kind::Vars => {
                return Err(self.fail(start, "'vars' stands before all statements, and once".to_owned()));
            }
            Kind::HashBang => {
                return Err(
                    self.fail(start, "a directive stands before everything else, and once".to_owned())
                );
            }
            _ => return Err(self.unexpected("a statement")),
        };
        Ok(Statement { span: self.since(start), kind })
    }

    fn send(&mut self) -> Parsed<StatementKind> {
        self.expect(Kind::Send)?;
        let amount = self.amount()?;
        self.expect(Kind::LeftParen)?;
        let (source, destination) = if self.token.kind == Kind::Destination {
            let destination = self.destination_side()?;
            (self.source_side()?, destination)
        } else {
            let source = self.source_side()?;
            (source, self.destination_side()?)
        };
        self.expect(Kind::RightParen)?;
        Ok(StatementKind::Send(Box::new(Send { amount, source, destination })))
    }

    fn source_side(&mut self) -> Parsed<Source> {
        self.expect(Kind::Source)?;
        self.expect(Kind::Equals)?;
        self.source()
    }

    fn destination_side(&mut self) -> Parsed<Destination> {
        self.expect(Kind::Destination)?;
        self.expect(Kind::Equals)?;
        self.destination()
    }

    fn save(&mut self) -> Parsed<StatementKind> {
        self.expect(Kind::Save)?;
        let amount = self.amount()?;
        self.expect(Kind::From)?;
        Ok(StatementKind::Save { amount, account: self.expr()? })
    }

    fn amount(&mut self) -> Parsed<Amount> {
        if self.token.kind != Kind::LeftBracket {
            return Ok(Amount::Value(self.expr()?));
        }
        let start = self.bump();
        let asset = self.operand()?;
        if self.eat(Kind::Star) {
            let end = self.expect(Kind::RightBracket)?;
            return Ok(Amount::All(start.to(end), asset));
        }
        let monetary = self.monetary_of(start, asset)?;
        let term = self.term_from(monetary)?;
        Ok(Amount::Value(self.sum_from(term)?))
    }
}
