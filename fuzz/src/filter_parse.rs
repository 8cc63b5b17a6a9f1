//! Fuzz target: parsing any text as a filter of any list never panics, and accepted filters are within the
//! limits.

use ledger_core::limits::{FILTER_DEPTH_MAX, FILTER_NODES_MAX};
use ledger_core::{FilterNode, Resource};
use stack_server::testing::filter;

const RESOURCES: [Resource; 6] = [
    Resource::Accounts,
    Resource::Transactions,
    Resource::Volumes,
    Resource::AggregatedBalances,
    Resource::Logs,
    Resource::Ledgers,
];

/// Reads the text of a filter.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // An empty text is an absent filter.
    if text.trim().is_empty() {
        return;
    }
    for resource in RESOURCES {
        let Some(taken) = filter(resource, text) else { continue };
        let (nodes, depth) = extent(taken.root());
        assert!(
            nodes <= FILTER_NODES_MAX && depth <= FILTER_DEPTH_MAX,
            "{text:?}: {nodes} nodes, {depth} deep"
        );
        assert_eq!(filter(resource, text).as_ref(), Some(&taken), "{text:?}");
        // A cursor carries the text as written, so white space around it must not matter.
        assert_eq!(filter(resource, &format!(" {text}\n")), Some(taken), "{text:?}");
    }
}

/// Returns the number of nodes and their depth.
fn extent(node: &FilterNode) -> (usize, usize) {
    let children = match node {
        FilterNode::And(children) | FilterNode::Or(children) => children.as_slice(),
        FilterNode::Not(child) => std::slice::from_ref(&**child),
        FilterNode::Is(_) => &[],
    };
    children
        .iter()
        .map(extent)
        .fold((1, 1), |(nodes, deep), (below, depth)| (nodes + below, deep.max(depth + 1)))
}
