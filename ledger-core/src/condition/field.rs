//! The name of a property in a filter.

use smol_str::SmolStr;

use super::error::FilterError;
use crate::property::{Property, Resource};

/// A property, with a key if the property is a map.
///
/// ```
/// use ledger_core::{Field, Property, Resource};
/// let field = Field::parse(Resource::Accounts, "balance[USD/2]")?;
/// assert_eq!((field.resource(), field.property()), (Resource::Accounts, Property::Balance));
/// assert_eq!(field.key(), Some("USD/2"));
/// # Ok::<(), ledger_core::FilterError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    resource: Resource,
    property: Property,
    key: Option<SmolStr>,
}

impl Field {
    /// Parses `property` or `property[key]`. The key may contain any characters.
    ///
    /// # Errors
    ///
    /// [`FilterError::UnknownField`] if the resource has no such property, or if the text has a key for a
    /// property that is not a map.
    pub fn parse(resource: Resource, text: &str) -> Result<Self, FilterError> {
        let (name, key) = match text.split_once('[') {
            Some((name, rest)) => (name, rest.strip_suffix(']').filter(|key| !key.is_empty())),
            None => (text, None),
        };
        match Property::of(resource, name) {
            Some(property) if name.len() == text.len() || (property.has_keys() && key.is_some()) => {
                Ok(Self { resource, property, key: key.map(SmolStr::new) })
            }
            _ => Err(FilterError::UnknownField { name: text.to_owned() }),
        }
    }

    /// Returns the resource of the property.
    pub fn resource(&self) -> Resource {
        self.resource
    }

    /// Returns the property.
    pub fn property(&self) -> Property {
        self.property
    }

    /// Returns the key, if the text had one.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_properties_by_resource() {
        use Resource::*;
        for (resource, key) in [
            (Accounts, "address"),
            (Accounts, "balance[USD/2]"),
            (Accounts, "metadata[a[0].b]]"),
            (Transactions, "account"),
            (Volumes, "account"),
            (Ledgers, "features[HASH_LOGS]"),
            (Logs, "type"),
            (Schemas, "created_at"),
        ] {
            assert!(Field::parse(resource, key).is_ok(), "{resource:?} {key}");
        }
        for (resource, key) in [
            (Accounts, "account"),
            (Accounts, "address[x]"),
            (Accounts, "metadata["),
            (Accounts, "metadata[]"),
            (Accounts, "metadata[a"),
            (Accounts, "metadata[a]b"),
            (AggregatedBalances, "balance[USD]"),
            (Ledgers, "id"),
            (Transactions, ""),
        ] {
            let error = FilterError::UnknownField { name: key.to_owned() };
            assert_eq!(Field::parse(resource, key), Err(error), "{resource:?}");
        }
        let field = Field::parse(Accounts, "metadata[a[0].b]]").unwrap();
        assert_eq!(field.key(), Some("a[0].b]"));
    }
}
