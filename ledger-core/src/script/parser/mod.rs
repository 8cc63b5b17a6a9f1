//! The parser: tokens into a [`Tree`].
//!
//! ```ebnf
//! program     = [ directive ] , [ vars ] , { statement } , END ;
//! directive   = "#!" , "[" , "feature" , "(" , [ TEXT , { "," , TEXT } ] , ")" , "]" ;
//!
//! vars        = "vars" , "{" , { declaration } , "}" ;
//! declaration = IDENTIFIER , VARIABLE , [ "=" , expr ] ;
//!
//! statement   = send | save | "print" , expr | "fail" | call ;
//! send        = "send" , amount , "(" , sides , ")" ;
//! sides       = "source" , "=" , source , "destination" , "=" , destination
//!             | "destination" , "=" , destination , "source" , "=" , source ;
//! save        = "save" , amount , "from" , expr ;
//! amount      = "[" , operand , "*" , "]"
//!             | expr ;
//!
//! source      = "max" , expr , "from" , source
//!             | "{" , share , "from" , source , { share , "from" , source } , "}"
//!             | "{" , { source } , "}"
//!             | "oneof" , "{" , source , { source } , "}"
//!             | expr , "with" , "scaling" , "through" , expr
//!             | expr , [ "\" , expr ] , [ overdraft ] ;
//! overdraft   = "allowing" , "unbounded" , "overdraft"
//!             | "allowing" , "overdraft" , "up" , "to" , expr ;
//!
//! destination = expr
//!             | "{" , share , target , { share , target } , "}"
//!             | [ "oneof" ] , "{" , { "max" , expr , target } , "remaining" , target , "}" ;
//! target      = "to" , destination | "kept" ;
//! share       = "remaining" | expr ;
//!
//! expr        = term , { ( "+" | "-" ) , term } ;
//! term        = operand , { "/" , operand } ;
//! operand     = "-" , operand | primary ;
//! primary     = VARIABLE | ASSET | TEXT | NUMBER | PERCENT | ACCOUNT | call | "(" , expr , ")"
//!             | "[" , operand , expr , "]" ;
//! call        = ( IDENTIFIER | "overdraft" ) , "(" , [ expr , { "," , expr } ] , ")" ;
//! ```
//!
//! The functions below follow the productions. Each decides by the token before it, so nothing is read twice. After
//! an error the statement or declaration is left, and reading goes on with the next: several errors are found in
//! one pass.

mod cursor;
mod words;

use self::cursor::{Parsed, Parser, Reported};
use crate::limits::{SCRIPT_BYTES_MAX, SCRIPT_ERRORS_MAX, SCRIPT_VARIABLES_MAX};
use crate::script::portion::Portion;
use crate::script::span::Span;
use crate::script::switches::Escapes;
use crate::script::token::{Kind, Token};
use crate::script::tree::{
    AllottedSource, AllottedTarget, Amount, Call, CappedTarget, Clauses, Declaration, Destination,
    DestinationKind, Directive, Expr, ExprKind, Name, Overdraft, Send, Share, Sign, Source, SourceKind,
    Statement, StatementKind, Target, Text, Tree, Vars,
};

/// A place where a text is no script, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where.
    pub span: Span,
    /// What was found and what was expected.
    pub message: String,
}

/// Reads a script. The tree holds what could be read; without errors that is all of it.
pub fn parse(text: &str) -> (Tree, Vec<SyntaxError>) {
    parse_with(text, Escapes::Replace)
}

pub(in crate::script) fn parse_with(text: &str, escapes: Escapes) -> (Tree, Vec<SyntaxError>) {
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
            self.open = 0;
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
                // A new statement tells that the brace was forgotten.
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

    fn source(&mut self) -> Parsed<Source> {
        self.enter()?;
        let start = self.token.span;
        let kind = match self.token.kind {
            Kind::Max => {
                self.bump();
                let cap = self.expr()?;
                self.expect(Kind::From)?;
                SourceKind::Capped { cap, source: Box::new(self.source()?) }
            }
            Kind::LeftBrace => {
                self.bump();
                self.source_block()?
            }
            Kind::OneOf => {
                self.bump();
                self.expect(Kind::LeftBrace)?;
                let mut sources = vec![self.source()?];
                while !self.eat(Kind::RightBrace) {
                    sources.push(self.source()?);
                }
                SourceKind::OneOf(sources)
            }
            _ => {
                let account = self.account_or("a source")?;
                self.account_source(account)?
            }
        };
        self.depth -= 1;
        Ok(Source { span: self.since(start), kind })
    }

    /// What follows the `{` of a source: an allotment, if its first item is a share.
    fn source_block(&mut self) -> Parsed<SourceKind> {
        let first = match self.token.kind {
            Kind::Remaining => self.allotted_source()?,
            Kind::Max | Kind::LeftBrace | Kind::OneOf | Kind::RightBrace => {
                return self.in_order_sources(Vec::new());
            }
            _ => {
                let start = self.token.span;
                let expr = self.account_or("a source or '}'")?;
                if self.token.kind != Kind::From {
                    let kind = self.account_source(expr)?;
                    return self.in_order_sources(vec![Source { span: self.since(start), kind }]);
                }
                self.bump();
                AllottedSource { share: Share::Portion(expr), source: self.source()? }
            }
        };
        let mut items = vec![first];
        while !self.eat(Kind::RightBrace) {
            items.push(self.allotted_source()?);
        }
        Ok(SourceKind::Allotment(items))
    }

    fn in_order_sources(&mut self, mut sources: Vec<Source>) -> Parsed<SourceKind> {
        while !self.eat(Kind::RightBrace) {
            sources.push(self.source()?);
        }
        Ok(SourceKind::InOrder(sources))
    }

    fn allotted_source(&mut self) -> Parsed<AllottedSource> {
        let share = self.share()?;
        self.expect(Kind::From)?;
        Ok(AllottedSource { share, source: self.source()? })
    }

    fn account_source(&mut self, account: Expr) -> Parsed<SourceKind> {
        if self.eat(Kind::With) {
            self.expect(Kind::Scaling)?;
            self.expect(Kind::Through)?;
            return Ok(SourceKind::Scaled { account, through: self.expr()? });
        }
        let color = if self.eat(Kind::Backslash) { Some(self.expr()?) } else { None };
        let overdraft = if !self.eat(Kind::Allowing) {
            Overdraft::None
        } else if self.eat(Kind::Unbounded) {
            self.expect(Kind::Overdraft)?;
            Overdraft::Unbounded
        } else if self.eat(Kind::Overdraft) {
            self.expect(Kind::Up)?;
            self.expect(Kind::To)?;
            Overdraft::UpTo(self.expr()?)
        } else {
            return Err(self.unexpected("'unbounded overdraft' or 'overdraft up to'"));
        };
        Ok(SourceKind::Account { account, color, overdraft })
    }

    fn destination(&mut self) -> Parsed<Destination> {
        self.enter()?;
        let start = self.token.span;
        let kind = match self.token.kind {
            Kind::OneOf => {
                self.bump();
                self.expect(Kind::LeftBrace)?;
                DestinationKind::OneOf(self.clauses()?)
            }
            Kind::LeftBrace => {
                self.bump();
                self.destination_block()?
            }
            _ => DestinationKind::Account(self.account_or("a destination")?),
        };
        self.depth -= 1;
        Ok(Destination { span: self.since(start), kind })
    }

    /// What follows the `{` of a destination.
    fn destination_block(&mut self) -> Parsed<DestinationKind> {
        let mut items = Vec::new();
        match self.token.kind {
            Kind::Max => return Ok(DestinationKind::InOrder(self.clauses()?)),
            Kind::Remaining => {
                let share = Share::Remaining(self.bump());
                let target = self.target()?;
                if self.eat(Kind::RightBrace) {
                    let remaining = Box::new(target);
                    return Ok(DestinationKind::InOrder(Clauses { capped: Vec::new(), remaining }));
                }
                items.push(AllottedTarget { share, target });
            }
            _ => items.push(self.allotted_target()?),
        }
        while !self.eat(Kind::RightBrace) {
            items.push(self.allotted_target()?);
        }
        Ok(DestinationKind::Allotment(items))
    }

    fn allotted_target(&mut self) -> Parsed<AllottedTarget> {
        let share = self.share()?;
        Ok(AllottedTarget { share, target: self.target()? })
    }

    /// The items of a block that ends with `remaining`, and its `}`.
    fn clauses(&mut self) -> Parsed<Clauses> {
        let mut capped = Vec::new();
        while self.eat(Kind::Max) {
            let cap = self.expr()?;
            capped.push(CappedTarget { cap, target: self.target()? });
        }
        if self.token.kind != Kind::Remaining {
            return Err(self.unexpected("'max' or 'remaining', which ends the block"));
        }
        self.bump();
        let remaining = Box::new(self.target()?);
        self.expect(Kind::RightBrace)?;
        Ok(Clauses { capped, remaining })
    }

    fn target(&mut self) -> Parsed<Target> {
        match self.token.kind {
            Kind::Kept => Ok(Target::Kept(self.bump())),
            Kind::To => {
                self.bump();
                Ok(Target::To(self.destination()?))
            }
            _ => Err(self.unexpected("'to' or 'kept'")),
        }
    }

    fn share(&mut self) -> Parsed<Share> {
        if self.token.kind == Kind::Remaining {
            return Ok(Share::Remaining(self.bump()));
        }
        Ok(Share::Portion(self.expr_or("a portion or 'remaining'")?))
    }

    fn expr(&mut self) -> Parsed<Expr> {
        self.expr_or("an expression")
    }

    fn expr_or(&mut self, expected: &'static str) -> Parsed<Expr> {
        let operand = self.operand_or(expected)?;
        let term = self.term_from(operand)?;
        self.sum_from(term)
    }

    /// An expression where an account is wanted. In a block, a minus after it begins the share of the next item:
    /// nothing is taken from an account.
    fn account_or(&mut self, expected: &'static str) -> Parsed<Expr> {
        let operand = self.operand_or(expected)?;
        let in_block = self.open > 1;
        if in_block && self.token.kind == Kind::Minus {
            return Ok(operand);
        }
        let term = self.term_from(operand)?;
        self.sum_from(term)
    }

    fn sum_from(&mut self, first: Expr) -> Parsed<Expr> {
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

    fn term_from(&mut self, first: Expr) -> Parsed<Expr> {
        if self.token.kind != Kind::Slash {
            return Ok(first);
        }
        let mut rest = Vec::new();
        while self.eat(Kind::Slash) {
            rest.push(self.operand()?);
        }
        Ok(Expr { span: self.since(first.span), kind: ExprKind::Divide(Box::new(first), rest) })
    }

    fn operand(&mut self) -> Parsed<Expr> {
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

    /// What follows the asset of a monetary that began at `start`.
    fn monetary_of(&mut self, start: Span, asset: Expr) -> Parsed<Expr> {
        let amount = self.expr_or("an amount")?;
        let end = self.expect(Kind::RightBracket)?;
        Ok(Expr { span: start.to(end), kind: ExprKind::Monetary(Box::new((asset, amount))) })
    }

    fn call(&mut self) -> Parsed<Call> {
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
