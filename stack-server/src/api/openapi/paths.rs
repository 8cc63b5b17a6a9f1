//! The paths of the API document. They and their operations have an order, which a JSON value would lose: that of the
//! groups, and within a group that of the routing table.

use std::fmt::Display;

use serde_json::Value;

use crate::api::openapi::tags;

/// The operations of a path by method, in lower case.
pub(crate) type PathItem = Vec<(String, Value)>;

/// The operations by path.
#[derive(Debug, Default)]
pub(crate) struct Paths(Vec<(String, PathItem)>);

impl Paths {
    /// Adds an operation behind the others of its path.
    pub(crate) fn add(&mut self, path: String, method: String, operation: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == path) {
            Some((_, item)) => item.push((method, operation)),
            None => self.0.push((path, vec![(method, operation)])),
        }
    }

    /// Orders the paths by the groups of their operations.
    pub(crate) fn sort(&mut self) {
        self.0.sort_by_key(|(_, item)| item[0].1["tags"][0].as_str().map(tags::rank));
    }

    /// Returns the paths in order.
    pub(crate) fn items(&self) -> &[(String, PathItem)] {
        &self.0
    }

    /// Returns the paths as JSON.
    pub(crate) fn to_json(&self) -> String {
        let item = |item: &PathItem| object(item.iter().map(|(method, operation)| (method, operation)));
        object(self.0.iter().map(|(path, operations)| (path, item(operations))))
    }
}

/// Writes a JSON object whose members keep their order.
fn object<'a>(members: impl Iterator<Item = (&'a String, impl Display)>) -> String {
    let members = members.map(|(name, value)| format!("{}:{value}", Value::from(name.as_str())));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}
