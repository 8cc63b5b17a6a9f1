//! Which asset an expression is of, as far as the text tells.

use compact_str::CompactString;

use super::Checker;
use crate::script::diagnostic::DiagnosticKind;
use crate::script::span::Span;

/// An asset, known or not, by its place in [`Assets`].
pub(super) type AssetVar = u32;

/// Every asset that a script speaks of, and which of them must be one.
#[derive(Debug, Default)]
pub(super) struct Assets<'t> {
    nodes: Vec<Node<'t>>,
}

/// What is known of an asset.
#[derive(Clone, Copy, Debug)]
enum Node<'t> {
    Unknown,
    Known(&'t CompactString),
    Same(AssetVar),
}

impl<'t> Assets<'t> {
    pub(super) fn unknown(&mut self) -> AssetVar {
        self.add(Node::Unknown)
    }

    pub(super) fn known(&mut self, name: &'t CompactString) -> AssetVar {
        self.add(Node::Known(name))
    }

    fn add(&mut self, node: Node<'t>) -> AssetVar {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    /// The asset's name, if the script leaves no choice.
    pub(super) fn name(&self, asset: AssetVar) -> Option<&'t CompactString> {
        match self.nodes[self.root(asset) as usize] {
            Node::Known(name) => Some(name),
            Node::Unknown | Node::Same(_) => None,
        }
    }

    fn root(&self, mut asset: AssetVar) -> AssetVar {
        while let Node::Same(other) = self.nodes[asset as usize] {
            asset = other;
        }
        asset
    }

    /// Makes the two one; if both are known and differ, says what they are.
    fn unify(
        &mut self,
        expected: AssetVar,
        got: AssetVar,
    ) -> Result<(), (&'t CompactString, &'t CompactString)> {
        let (wanted, found) = (self.root(expected), self.root(got));
        if wanted == found {
            return Ok(());
        }
        let mut differ = Ok(());
        match (self.nodes[wanted as usize], self.nodes[found as usize]) {
            (Node::Known(expected), Node::Known(got)) if expected != got => differ = Err((expected, got)),
            // Both are the same, and what is found is what goes on to be used.
            (_, Node::Known(_)) => self.nodes[wanted as usize] = Node::Same(found),
            _ => self.nodes[found as usize] = Node::Same(wanted),
        }
        // The path is kept short: a script can set very many equal.
        for asset in [expected, got] {
            let root = self.root(asset);
            if root != asset {
                self.nodes[asset as usize] = Node::Same(root);
            }
        }
        differ
    }
}

impl Checker<'_> {
    /// The two must be the same asset.
    pub(super) fn unify(&mut self, span: Span, expected: AssetVar, got: AssetVar) {
        if let Err((expected, got)) = self.script.assets.unify(expected, got) {
            let (expected, got) = (expected.clone(), got.clone());
            self.report(span, DiagnosticKind::AssetMismatch { expected, got });
        }
    }
}
