//! Parses sources and destinations.

use super::cursor::{Parsed, Parser};
use crate::token::Kind;
use crate::tree::{
    AllottedSource, AllottedTarget, CappedTarget, Clauses, Destination, DestinationKind, Expr, Overdraft,
    Share, Source, SourceKind, Target,
};

impl Parser<'_> {
    pub(super) fn source(&mut self) -> Parsed<Source> {
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

    /// Parses the rest of a source after its `{`. The block is an allotment if its first item is a share.
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

    pub(super) fn destination(&mut self) -> Parsed<Destination> {
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

    /// Parses the rest of a destination after its `{`.
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

    /// Parses the items of a block that ends with `remaining`, and its `}`.
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
}
