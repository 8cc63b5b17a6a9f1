//! Postings as requests of both generations write them. What is wrong with one each says in its own words.

use serde::de::MapAccess;

use crate::json::{Digits, Fields, Text, field};

/// A posting as it was sent.
#[derive(Default)]
pub(crate) struct PostingBody<'a> {
    pub(crate) source: Text<'a>,
    pub(crate) destination: Text<'a>,
    /// Its digits as they were written; `None` if there is no amount.
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
