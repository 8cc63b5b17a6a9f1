//! JSON as cases are written in: exact at any size, since a number stays the text that it was.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// A value, as it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data<'a>(&'a str);

/// What is wrong with a file; for a person.
pub(crate) type Fault = String;

impl<'a> Data<'a> {
    /// Of a text that is JSON.
    pub(crate) fn parse(text: &'a str) -> Result<Self, Fault> {
        let value: &RawValue = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Ok(Self(value.get().trim()))
    }

    /// The members of an object; none for `null`.
    pub(crate) fn object(self) -> Result<BTreeMap<String, Data<'a>>, Fault> {
        if self.0 == "null" {
            return Ok(BTreeMap::new());
        }
        let members: BTreeMap<String, &'a RawValue> =
            serde_json::from_str(self.0).map_err(|error| format!("{error} in {}", self.0))?;
        Ok(members.into_iter().map(|(name, value)| (name, Data(value.get().trim()))).collect())
    }

    /// The items of an array; none for `null`.
    pub(crate) fn array(self) -> Result<Vec<Data<'a>>, Fault> {
        if self.0 == "null" {
            return Ok(Vec::new());
        }
        let items: Vec<&'a RawValue> =
            serde_json::from_str(self.0).map_err(|error| format!("{error} in {}", self.0))?;
        Ok(items.into_iter().map(|value| Data(value.get().trim())).collect())
    }

    /// The text of a string.
    pub(crate) fn text(self) -> Result<String, Fault> {
        serde_json::from_str(self.0).map_err(|_| format!("{} is no string", self.0))
    }

    /// The text of a string, or any other value as it is written.
    pub(crate) fn text_or_raw(self) -> String {
        self.text().unwrap_or_else(|_| self.0.to_owned())
    }

    /// Whether this is `true`.
    pub(crate) fn is_true(self) -> bool {
        self.0 == "true"
    }

    /// Whether this is `null`.
    pub(crate) fn is_null(self) -> bool {
        self.0 == "null"
    }
}
