//! The formatter: prints scripts in a canonical layout.
//!
//! Every item is on a line of its own, and blocks are indented by two blanks. An empty line separates
//! statements unless both are short. A comment at the end of a line stays there; other comments keep a line
//! of their own before the next item. Words stay as the script spells them, so only the layout changes. The
//! one exception is a `destination` written before its `source`: the two change places.

mod lines;

use super::parser::{SyntaxError, parse};
use super::span::Span;
use super::tree::{
    Amount, Call, Clauses, Destination, DestinationKind, Expr, ExprKind, Overdraft, Send, Share, Sign,
    Source, SourceKind, Statement, StatementKind, Target, Tree,
};

/// Formats a script. Formatting the result again changes nothing.
///
/// # Errors
///
/// All syntax errors of the text.
pub fn format(text: &str) -> Result<String, Vec<SyntaxError>> {
    let (tree, errors) = parse(text);
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut printer = Printer {
        text,
        comments: &tree.comments,
        out: String::with_capacity(text.len()),
        indent: 0,
        last: 0,
        after_line_comment: false,
    };
    printer.tree(&tree);
    Ok(printer.out)
}

struct Printer<'a> {
    text: &'a str,
    /// The comments that are not printed yet.
    comments: &'a [Span],
    out: String,
    indent: usize,
    /// End of the last printed item in the text.
    last: u32,
    /// True if the output ends in a line comment, which needs a line end before anything else.
    after_line_comment: bool,
}

impl Printer<'_> {
    fn tree(&mut self, tree: &Tree) {
        let mut begun = false;
        if let Some(directive) = &tree.directive {
            self.line(directive.span.start, false);
            self.put("#![feature(");
            for (at, feature) in directive.features.iter().enumerate() {
                self.put(if at > 0 { ", " } else { "" });
                self.word(feature.span);
            }
            self.put(")]");
            self.last = directive.span.end;
            begun = true;
        }
        if let Some(vars) = &tree.vars {
            self.line(vars.span.start, begun);
            self.put("vars ");
            self.block(Span::new(self.last.max(vars.span.start), vars.span.end), |printer| {
                for declaration in &vars.declarations {
                    printer.line(declaration.type_name.span.start, false);
                    printer.word(declaration.type_name.span);
                    printer.put(" ");
                    printer.word(declaration.variable.span);
                    if let Some(origin) = &declaration.origin {
                        printer.put(" = ");
                        printer.expr(origin);
                    }
                }
                !vars.declarations.is_empty()
            });
            begun = true;
        }
        let is_long = |statement: &Statement| matches!(statement.kind, StatementKind::Send(_));
        let mut after_short = false;
        for statement in &tree.statements {
            let is_short = !is_long(statement);
            self.line(statement.span.start, begun && !(after_short && is_short));
            self.statement(statement);
            self.last = statement.span.end;
            after_short = is_short;
            begun = true;
        }
        self.comments_before(u32::MAX, false);
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::Send(send) => self.send(statement.span, send),
            StatementKind::Save { amount, account } => {
                self.put("save ");
                self.amount(amount);
                self.put(" from ");
                self.expr(account);
            }
            StatementKind::Call(call) => self.call(call),
            StatementKind::Print(expr) => {
                self.put("print ");
                self.expr(expr);
            }
            StatementKind::Fail => self.put("fail"),
        }
    }

    fn send(&mut self, span: Span, send: &Send) {
        self.put("send ");
        self.amount(&send.amount);
        self.put(" ");
        let body = Span::new(self.last, span.end);
        self.braced(body, "(", ")", |printer| {
            printer.line(send.source.span.start, false);
            printer.put("source = ");
            printer.source(&send.source);
            printer.line(send.destination.span.start, false);
            printer.put("destination = ");
            printer.destination(&send.destination);
            true
        });
    }

    fn amount(&mut self, amount: &Amount) {
        match amount {
            Amount::All(span, asset) => {
                self.put("[");
                self.expr(asset);
                self.put(" *]");
                self.last = span.end;
            }
            Amount::Value(monetary) => self.expr(monetary),
        }
    }

    fn source(&mut self, source: &Source) {
        match &source.kind {
            SourceKind::Account { account, color, overdraft } => {
                self.expr(account);
                if let Some(color) = color {
                    self.put(" \\ ");
                    self.expr(color);
                }
                match overdraft {
                    Overdraft::None => {}
                    Overdraft::Unbounded => self.put(" allowing unbounded overdraft"),
                    Overdraft::UpTo(bound) => {
                        self.put(" allowing overdraft up to ");
                        self.expr(bound);
                    }
                }
            }
            SourceKind::Scaled { account, through } => {
                self.expr(account);
                self.put(" with scaling through ");
                self.expr(through);
            }
            SourceKind::InOrder(sources) => self.sources(source.span, sources),
            SourceKind::OneOf(sources) => {
                self.put("oneof ");
                self.sources(source.span, sources);
            }
            SourceKind::Allotment(items) => self.block(source.span, |printer| {
                for item in items {
                    printer.line(share_span(&item.share).start, false);
                    printer.share(&item.share);
                    printer.put(" from ");
                    printer.source(&item.source);
                }
                true
            }),
            SourceKind::Capped { cap, source } => {
                self.put("max ");
                self.expr(cap);
                self.put(" from ");
                self.source(source);
            }
        }
        self.last = self.last.max(source.span.end);
    }

    fn sources(&mut self, span: Span, sources: &[Source]) {
        self.block(span, |printer| {
            for source in sources {
                printer.line(source.span.start, false);
                printer.source(source);
            }
            !sources.is_empty()
        });
    }

    fn share(&mut self, share: &Share) {
        match share {
            Share::Remaining(span) => self.word(*span),
            Share::Portion(expr) => self.expr(expr),
        }
    }

    fn destination(&mut self, destination: &Destination) {
        match &destination.kind {
            DestinationKind::Account(account) => self.expr(account),
            DestinationKind::Allotment(items) => self.block(destination.span, |printer| {
                for item in items {
                    printer.line(share_span(&item.share).start, false);
                    printer.share(&item.share);
                    printer.target(&item.target);
                }
                true
            }),
            DestinationKind::InOrder(clauses) => self.clauses(destination.span, clauses),
            DestinationKind::OneOf(clauses) => {
                self.put("oneof ");
                self.clauses(destination.span, clauses);
            }
        }
        self.last = self.last.max(destination.span.end);
    }

    fn clauses(&mut self, span: Span, clauses: &Clauses) {
        self.block(span, |printer| {
            for clause in &clauses.capped {
                printer.line(clause.cap.span.start, false);
                printer.put("max ");
                printer.expr(&clause.cap);
                printer.target(&clause.target);
            }
            printer.line(target_span(&clauses.remaining).start, false);
            printer.put("remaining");
            printer.target(&clauses.remaining);
            true
        });
    }

    fn target(&mut self, target: &Target) {
        match target {
            Target::Kept(span) => {
                self.put(" ");
                self.word(*span);
            }
            Target::To(destination) => {
                self.put(" to ");
                self.destination(destination);
            }
        }
    }

    // Expressions.

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Variable(_)
            | ExprKind::Asset(_)
            | ExprKind::Text(_)
            | ExprKind::Number(_)
            | ExprKind::Percent(_)
            | ExprKind::Account(_)
            | ExprKind::Interpolated(_) => self.word(expr.span),
            ExprKind::Monetary(pair) => {
                self.put("[");
                self.expr(&pair.0);
                self.put(" ");
                self.expr(&pair.1);
                self.put("]");
            }
            ExprKind::Call(call) => self.call(call),
            ExprKind::Parens(inner) => {
                self.put("(");
                self.expr(inner);
                self.put(")");
            }
            ExprKind::Negate(inner) => {
                self.put("-");
                self.expr(inner);
            }
            ExprKind::Sum(first, rest) => {
                self.expr(first);
                for (sign, term) in rest {
                    self.put(match sign {
                        Sign::Plus => " + ",
                        Sign::Minus => " - ",
                    });
                    self.expr(term);
                }
            }
            ExprKind::Divide(first, rest) => {
                self.expr(first);
                let mut over = &**first;
                for under in rest {
                    // Without blanks, an asset and a number would read as one word.
                    self.put(if matches!(over.kind, ExprKind::Number(_)) { "/" } else { " / " });
                    self.expr(under);
                    over = under;
                }
            }
        }
        self.last = self.last.max(expr.span.end);
    }

    fn call(&mut self, call: &Call) {
        self.word(call.name.span);
        self.put("(");
        for (at, argument) in call.arguments.iter().enumerate() {
            self.put(if at > 0 { ", " } else { "" });
            self.expr(argument);
        }
        self.put(")");
        self.last = self.last.max(call.span.end);
    }
}

fn share_span(share: &Share) -> Span {
    match share {
        Share::Remaining(span) => *span,
        Share::Portion(expr) => expr.span,
    }
}

fn target_span(target: &Target) -> Span {
    match target {
        Target::Kept(span) => *span,
        Target::To(destination) => destination.span,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let formatted = format(text).expect("a script");
        assert_eq!(formatted, expected, "{text}");
        assert_eq!(format(&formatted).as_deref(), Ok(expected), "again");
    }

    #[test]
    fn puts_every_item_on_its_own_line() {
        check(
            "#![feature(\"experimental-oneof\",\"experimental-asset-colors\")]vars{account $a monetary $m=balance( $a,USD/2 )}\
             send[USD/2 *](source={max $m from@a\\\"RED\"{}oneof{@b allowing unbounded overdraft @c allowing overdraft up to[USD/2 1_0+2]}}\
             destination=oneof{max $m kept remaining to{1 / 2 to @x remaining to {max $m to @y remaining kept}}})\
             save $m - $m from @a set_tx_meta(\"k\",-1) fail print(1+2)",
            "#![feature(\"experimental-oneof\", \"experimental-asset-colors\")]\n\
             \n\
             vars {\n\
             \x20 account $a\n\
             \x20 monetary $m = balance($a, USD/2)\n\
             }\n\
             \n\
             send [USD/2 *] (\n\
             \x20 source = {\n\
             \x20   max $m from @a \\ \"RED\"\n\
             \x20   {}\n\
             \x20   oneof {\n\
             \x20     @b allowing unbounded overdraft\n\
             \x20     @c allowing overdraft up to [USD/2 1_0 + 2]\n\
             \x20   }\n\
             \x20 }\n\
             \x20 destination = oneof {\n\
             \x20   max $m kept\n\
             \x20   remaining to {\n\
             \x20     1/2 to @x\n\
             \x20     remaining to {\n\
             \x20       max $m to @y\n\
             \x20       remaining kept\n\
             \x20     }\n\
             \x20   }\n\
             \x20 }\n\
             )\n\
             \n\
             save $m - $m from @a\n\
             set_tx_meta(\"k\", -1)\n\
             fail\n\
             print (1 + 2)\n",
        );
        check("", "");
        check("vars{}", "vars {}\n");
    }

    #[test]
    fn keeps_comments_with_their_items() {
        check(
            "// first\n\n\nvars { // of callers\n  // the payer\n account $a /* who */ \n\n// no more\n}\n\
             /* then */ send [USD 1] ( // how much\n source = $a // who\n destination = @b // whom\n ) // done\n// end",
            "// first\n\
             vars { // of callers\n\
             \x20 // the payer\n\
             \x20 account $a /* who */\n\
             \x20 // no more\n\
             }\n\
             \n\
             /* then */\n\
             send [USD 1] ( // how much\n\
             \x20 source = $a // who\n\
             \x20 destination = @b // whom\n\
             ) // done\n\
             // end\n",
        );
        check(
            "send [A 1] (destination = @b source = @c)",
            "send [A 1] (\n  source = @c\n  destination = @b\n)\n",
        );
        check("/* alone */", "/* alone */\n");
        check("vars { /* none */ }", "vars { /* none */\n}\n");
    }

    #[test]
    fn keeps_words_apart() {
        check("print USD / 2", "print USD / 2\n");
        check("print $a/2", "print $a / 2\n");
        check("print - - 1 - -2", "print --1 - -2\n");
    }

    #[test]
    fn refuses_to_format_syntax_errors() {
        assert!(format("send").is_err());
    }
}
