//! Output of the formatter: lines, words, blocks and comments.

use super::Printer;
use crate::span::Span;

impl Printer<'_> {
    pub(super) fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// Prints a word as the script spells it.
    pub(super) fn word(&mut self, span: Span) {
        self.out.push_str(span.of(self.text));
        self.last = span.end;
    }

    fn new_line(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
        self.after_line_comment = false;
    }

    /// Begins a line for the item at `at` in the text, after the comments before it.
    pub(super) fn line(&mut self, at: u32, spaced: bool) {
        self.comments_before(at, spaced);
        self.new_line();
    }

    /// Prints the comments up to `at`, and an empty line if `spaced` asks for one.
    pub(super) fn comments_before(&mut self, at: u32, mut spaced: bool) {
        while let Some((comment, rest)) = self.comments.split_first()
            && comment.start < at
        {
            self.comments = rest;
            let text = comment.of(self.text).trim_end();
            let between = self.text.get(self.last as usize..comment.start as usize).unwrap_or_default();
            let is_behind =
                !self.out.is_empty() && !self.after_line_comment && !between.contains(['\n', '\r']);
            if is_behind {
                self.put(" ");
            } else {
                if std::mem::take(&mut spaced) && !self.out.is_empty() {
                    self.out.push('\n');
                }
                self.new_line();
            }
            self.put(text);
            self.after_line_comment = text.starts_with("//");
            self.last = self.last.max(comment.end);
        }
        if spaced && !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    /// Prints a block with its braces. `within` prints the items and returns whether it printed any.
    pub(super) fn block(&mut self, span: Span, within: impl FnOnce(&mut Self) -> bool) {
        self.braced(span, "{", "}", within);
    }

    pub(super) fn braced(
        &mut self,
        span: Span,
        open: &str,
        close: &str,
        within: impl FnOnce(&mut Self) -> bool,
    ) {
        self.put(open);
        self.last = self.last.max(span.start + 1);
        self.indent += 1;
        let length = self.out.len();
        let filled = within(self);
        let end = span.end.saturating_sub(1);
        self.comments_before(end, false);
        self.indent -= 1;
        if filled || self.out.len() > length {
            self.new_line();
        }
        self.put(close);
        self.last = self.last.max(span.end);
    }
}
