//! Which topic an event goes to.

use super::envelope::EventType;

/// Topics by type of event. A type that is not mapped has its own name for a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topics {
    mapped: Vec<(String, String)>,
}

/// The type that stands for all that are not mapped.
const ANY: &str = "*";

impl Topics {
    /// Reads `type:topic` pairs, divided by commas or blanks; of two for one type the later counts. The topic may hold
    /// colons itself. Types that this server never publishes are allowed: other servers do.
    ///
    /// # Errors
    ///
    /// What is no such pair.
    pub fn parse(text: &str) -> Result<Self, String> {
        let pairs = text.split([',', ' ', '\t', '\n']).filter(|pair| !pair.is_empty());
        let mapped = pairs.map(|pair| match pair.split_once(':') {
            Some((kind, topic)) if !kind.is_empty() && !topic.is_empty() => {
                Ok((kind.to_owned(), topic.to_owned()))
            }
            _ => Err(format!("{pair:?} is not type:topic")),
        });
        Ok(Self { mapped: mapped.collect::<Result<_, _>>()? })
    }

    /// The topic of a type.
    pub(crate) fn of(&self, kind: EventType) -> &str {
        let find = |name: &str| self.mapped.iter().rev().find(|(have, _)| have == name);
        find(kind.name()).or_else(|| find(ANY)).map_or(kind.name(), |(_, topic)| topic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_goes_to_its_topic_or_to_that_of_all_or_to_its_name() {
        let topics =
            Topics::parse("*:all,SAVED_METADATA:http://a:1/b AUDIT:x,SAVED_METADATA:m").expect("pairs");
        assert_eq!(topics.of(EventType::SavedMetadata), "m");
        assert_eq!(topics.of(EventType::InsertedSchema), "all");
        let topics = Topics::parse("REVERTED_TRANSACTION:http://a:1/b").expect("a pair");
        assert_eq!(topics.of(EventType::RevertedTransaction), "http://a:1/b");
        assert_eq!(topics.of(EventType::DeletedMetadata), "DELETED_METADATA");
        assert_eq!(Topics::parse(" , "), Ok(Topics::default()));
        for text in ["x", "x:", ":x", "*:a,b"] {
            assert!(Topics::parse(text).is_err(), "{text}");
        }
    }
}
