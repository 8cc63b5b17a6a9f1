//! The posting in request bodies of v1 and v2. Each version reports faults in its own words.

use serde::de::MapAccess;

use crate::http::json::{Digits, Fields, Text, field};

/// A posting in a request body.
#[derive(Default)]
pub(crate) struct PostingBody<'a> {
    pub(crate) source: Text<'a>,
    pub(crate) destination: Text<'a>,
    /// The digits of the amount as the client wrote them. `None` if there is no amount.
    pub(crate) amount: Option<&'a str>,
    pub(crate) asset: Text<'a>,
}

impl<'de> Fields<'de> for PostingBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        match field(name, &["source", "destination", "amount", "asset"]) {
            Some("source") => self.source = map.next_value()?,
            Some("destination") => self.destination = map.next_value()?,
            Some("amount") => self.amount = map.next_value::<Digits<'de>>()?.0,
            Some("asset") => self.asset = map.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}
