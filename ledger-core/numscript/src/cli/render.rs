//! Writes JSON with exact integers of any size.

use std::fmt;

/// A JSON value to write.
pub(super) enum Json {
    Null,
    True,
    False,
    Text(String),
    /// An integer in decimal digits with an optional sign.
    Integer(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Makes an object with these members.
    pub(super) fn object<const N: usize>(members: [(&str, Json); N]) -> Self {
        Self::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Makes a string.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Makes an integer.
    pub(super) fn integer(integer: impl fmt::Display) -> Self {
        Self::Integer(integer.to_string())
    }

    fn write(&self, indent: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::True => f.write_str("true"),
            Self::False => f.write_str("false"),
            Self::Text(text) => write_text(text, f),
            Self::Integer(digits) => f.write_str(digits),
            Self::List(items) if items.is_empty() => f.write_str("[]"),
            // A list of plain values reads best on one line.
            Self::List(items)
                if items.iter().all(|item| !matches!(item, Self::List(_) | Self::Object(_))) =>
            {
                for (at, item) in items.iter().enumerate() {
                    f.write_str(if at == 0 { "[" } else { ", " })?;
                    item.write(indent, f)?;
                }
                f.write_str("]")
            }
            Self::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    f.write_str(if at == 0 { "[\n" } else { ",\n" })?;
                    write!(f, "{:1$}", "", indent + 2)?;
                    item.write(indent + 2, f)?;
                }
                write!(f, "\n{:1$}]", "", indent)
            }
            Self::Object(members) if members.is_empty() => f.write_str("{}"),
            Self::Object(members) => {
                for (at, (name, value)) in members.iter().enumerate() {
                    f.write_str(if at == 0 { "{\n" } else { ",\n" })?;
                    write!(f, "{:1$}", "", indent + 2)?;
                    write_text(name, f)?;
                    f.write_str(": ")?;
                    value.write(indent + 2, f)?;
                }
                write!(f, "\n{:1$}}}", "", indent)
            }
        }
    }
}

fn write_text(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(&serde_json::to_string(text).map_err(|_| fmt::Error)?)
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_valid_json_with_exact_integers() {
        let huge = "1".repeat(40);
        let value = Json::object([
            ("text", Json::text("a\"\u{0}é")),
            ("integer", Json::integer(&huge)),
            ("list", Json::List(vec![Json::Null, Json::True, Json::False])),
            ("nested", Json::List(vec![Json::object([("empty", Json::List(Vec::new()))]), Json::object([])])),
        ]);
        let text = value.to_string();
        let read: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(read["text"], "a\"\u{0}é");
        assert_eq!(read["nested"][0]["empty"], serde_json::json!([]));
        assert!(text.contains(&huge));
    }
}
