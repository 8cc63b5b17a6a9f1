//! Reads JSON values of case files. Numbers stay texts, so that they are exact at any size.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// A JSON value as written in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data<'a>(&'a str);

/// Description of a fault in a file, for people.
pub(crate) type Fault = String;

impl<'a> Data<'a> {
    /// Makes a value of a text that is JSON.
    pub(crate) fn parse(text: &'a str) -> Result<Self, Fault> {
        let value: &RawValue = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Ok(Self(value.get().trim()))
    }

    /// Returns the members of an object, or none for `null`.
    pub(crate) fn object(self) -> Result<BTreeMap<String, Data<'a>>, Fault> {
        if self.0 == "null" {
            return Ok(BTreeMap::new());
        }
        let members: BTreeMap<String, &'a RawValue> =
            serde_json::from_str(self.0).map_err(|error| format!("{error} in {}", self.0))?;
        Ok(members.into_iter().map(|(name, value)| (name, Data(value.get().trim()))).collect())
    }

    /// Returns the items of an array, or none for `null`.
    pub(crate) fn array(self) -> Result<Vec<Data<'a>>, Fault> {
        if self.0 == "null" {
            return Ok(Vec::new());
        }
        let items: Vec<&'a RawValue> =
            serde_json::from_str(self.0).map_err(|error| format!("{error} in {}", self.0))?;
        Ok(items.into_iter().map(|value| Data(value.get().trim())).collect())
    }

    /// Returns the text of a string.
    pub(crate) fn text(self) -> Result<String, Fault> {
        serde_json::from_str(self.0).map_err(|_| format!("{} is no string", self.0))
    }

    /// Returns the text of a string, or the JSON text of any other value.
    pub(crate) fn text_or_raw(self) -> String {
        self.text().unwrap_or_else(|_| self.0.to_owned())
    }

    /// Tells whether the value is `true`.
    pub(crate) fn is_true(self) -> bool {
        self.0 == "true"
    }

    /// Tells whether the value is `null`.
    pub(crate) fn is_null(self) -> bool {
        self.0 == "null"
    }
}
