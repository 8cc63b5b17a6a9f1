//! Infers the assets of expressions by unification.

use smol_str::SmolStr;

use crate::limits::to_u32;

/// An asset variable: the index of a node in [`Assets`].
pub(super) type AssetVar = u32;

/// All asset variables of a script, and which of them must be equal.
#[derive(Debug, Default)]
pub(super) struct Assets<'t> {
    nodes: Vec<Node<'t>>,
}

/// The knowledge about one asset variable.
#[derive(Clone, Copy, Debug)]
enum Node<'t> {
    Unknown,
    Known(&'t SmolStr),
    Same(AssetVar),
}

impl<'t> Assets<'t> {
    pub(super) fn unknown(&mut self) -> AssetVar {
        self.add(Node::Unknown)
    }

    pub(super) fn known(&mut self, name: &'t SmolStr) -> AssetVar {
        self.add(Node::Known(name))
    }

    fn add(&mut self, node: Node<'t>) -> AssetVar {
        self.nodes.push(node);
        to_u32(self.nodes.len()) - 1
    }

    /// Returns the name of the asset if the script allows only one.
    pub(super) fn name(&self, asset: AssetVar) -> Option<&'t SmolStr> {
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

    /// Makes two variables equal. If both are known and differ, returns the two names.
    pub(super) fn unify(
        &mut self,
        expected: AssetVar,
        got: AssetVar,
    ) -> Result<(), (&'t SmolStr, &'t SmolStr)> {
        let (wanted, found) = (self.root(expected), self.root(got));
        if wanted == found {
            return Ok(());
        }
        let mut differ = Ok(());
        match (self.nodes[wanted as usize], self.nodes[found as usize]) {
            (Node::Known(expected), Node::Known(got)) if expected != got => differ = Err((expected, got)),
            // The root is the variable with the known asset; of two unknown ones, the wanted one.
            (_, Node::Known(_)) => self.nodes[wanted as usize] = Node::Same(found),
            _ => self.nodes[found as usize] = Node::Same(wanted),
        }
        // Compress the path, because a script can set very many variables equal.
        for asset in [expected, got] {
            let root = self.root(asset);
            if root != asset {
                self.nodes[asset as usize] = Node::Same(root);
            }
        }
        differ
    }
}
