//! Which asset an expression is of, as far as the text tells.

use compact_str::CompactString;

use super::Checker;
use crate::script::diagnostic::DiagnosticKind;
use crate::script::span::Span;

/// An unknown or known asset, by its place in [`Checker::assets`].
pub(super) type AssetVar = usize;

/// What is known of an asset.
pub(super) enum AssetNode {
    Unknown,
    Known(CompactString),
    Same(AssetVar),
}

impl Checker<'_> {
    pub(super) fn unknown_asset(&mut self) -> AssetVar {
        self.assets.push(AssetNode::Unknown);
        self.assets.len() - 1
    }

    pub(super) fn known_asset(&mut self, name: CompactString) -> AssetVar {
        self.assets.push(AssetNode::Known(name));
        self.assets.len() - 1
    }

    pub(super) fn root(&self, mut asset: AssetVar) -> AssetVar {
        while let AssetNode::Same(other) = self.assets[asset] {
            asset = other;
        }
        asset
    }

    /// The two must be the same asset.
    pub(super) fn unify(&mut self, span: Span, expected: AssetVar, got: AssetVar) {
        let (wanted, found) = (self.root(expected), self.root(got));
        if wanted == found {
            return;
        }
        match (&self.assets[wanted], &self.assets[found]) {
            (AssetNode::Known(expected), AssetNode::Known(got)) if expected != got => {
                let (expected, got) = (expected.clone(), got.clone());
                self.report(span, DiagnosticKind::AssetMismatch { expected, got });
            }
            // Both are the same, and what is found is what goes on to be used.
            (_, AssetNode::Known(_)) => self.assets[wanted] = AssetNode::Same(found),
            _ => self.assets[found] = AssetNode::Same(wanted),
        }
        // The path is kept short: a script can set very many equal.
        for asset in [expected, got] {
            let root = self.root(asset);
            if root != asset {
                self.assets[asset] = AssetNode::Same(root);
            }
        }
    }
}
