//! Maps event types to topics.

use thiserror::Error;

use super::envelope::EventType;

/// A part of a mapping is not a pair of an event type and a topic.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is not type:topic")]
pub struct TopicsError(String);

/// The topics by event type. The topic of an unmapped type is its own name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topics {
    mapped: Vec<(String, String)>,
}

/// The pattern that maps all types without a mapping of their own.
const ANY: &str = "*";

impl Topics {
    /// Parses `type:topic` pairs, separated by commas or spaces. The last pair of a type counts. A topic may
    /// contain colons. Types that this server never publishes are accepted, because other servers publish them.
    ///
    /// # Errors
    ///
    /// Fails if a part of the text is not such a pair.
    pub fn parse(text: &str) -> Result<Self, TopicsError> {
        let pairs = text.split([',', ' ', '\t', '\n']).filter(|pair| !pair.is_empty());
        let mapped = pairs.map(|pair| match pair.split_once(':') {
            Some((kind, topic)) if !kind.is_empty() && !topic.is_empty() => {
                Ok((kind.to_owned(), topic.to_owned()))
            }
            _ => Err(TopicsError(pair.to_owned())),
        });
        Ok(Self { mapped: mapped.collect::<Result<_, _>>()? })
    }

    /// Returns the topic of a type of payment events. All of these types share one topic unless they are mapped.
    pub(crate) fn of_payment(&self, kind: &str) -> &str {
        let find = |name: &str| self.mapped.iter().rev().find(|(have, _)| have == name);
        find(kind).or_else(|| find(ANY)).map_or("payments", |(_, topic)| topic)
    }

    /// Returns the topic of a type.
    pub(crate) fn of(&self, kind: EventType) -> &str {
        let find = |name: &str| self.mapped.iter().rev().find(|(have, _)| have == name);
        find(kind.name()).or_else(|| find(ANY)).map_or(kind.name(), |(_, topic)| topic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falls_back_to_wildcard_topic_and_then_to_type_name() {
        let topics =
            Topics::parse("*:all,SAVED_METADATA:http://a:1/b AUDIT:x,SAVED_METADATA:m").expect("pairs");
        assert_eq!(topics.of(EventType::SavedMetadata), "m");
        assert_eq!(topics.of(EventType::InsertedSchema), "all");
        let topics = Topics::parse("REVERTED_TRANSACTION:http://a:1/b").expect("a pair");
        assert_eq!(topics.of(EventType::RevertedTransaction), "http://a:1/b");
        assert_eq!(topics.of(EventType::DeletedMetadata), "DELETED_METADATA");
        let topics = Topics::parse("SAVED_POOL:pools,*:all").expect("pairs");
        assert_eq!((topics.of_payment("SAVED_POOL"), topics.of_payment("SAVED_PAYMENT")), ("pools", "all"));
        assert_eq!(Topics::default().of_payment("SAVED_PAYMENT"), "payments");
        assert_eq!(Topics::parse(" , "), Ok(Topics::default()));
        for text in ["x", "x:", ":x", "*:a,b"] {
            assert!(Topics::parse(text).is_err(), "{text}");
        }
    }
}
