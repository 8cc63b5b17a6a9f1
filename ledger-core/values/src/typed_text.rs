//! Reads typed values that ledgers of API v1 stored in metadata: `{"type":"monetary","value":{…}}`.

use smol_str::{SmolStr, SmolStrBuilder, format_smolstr};

use crate::value_type::Type;

/// Returns the plain text of a typed value, or `None` if `text` is not one of this type.
///
/// ```
/// use ledger_values::Type;
/// use ledger_values::typed_text::plain;
/// let price = r#"{"type":"monetary","value":{"asset":"USD/2","amount":100}}"#;
/// assert_eq!(plain(Type::Monetary, price).as_deref(), Some("USD/2 100"));
/// assert_eq!(plain(Type::Text, price), None);
/// ```
pub fn plain(declared: Type, text: &str) -> Option<SmolStr> {
    let mut rest = Reader(text.trim().strip_prefix('{')?);
    let (mut name, mut value) = (None, None);
    rest.members(|key, member| match key {
        "type" => name = member.text(),
        "value" => value = Some(member.plain(declared)),
        _ => {}
    })?;
    if !rest.0.is_empty() || name? != declared.name() {
        return None;
    }
    value?
}

/// Returns the plain text of a typed value of any type, or `None` for other JSON.
pub fn shown(json: &str) -> Option<SmolStr> {
    let mut rest = Reader(json.strip_prefix('{')?);
    let (mut name, mut value, mut others) = (None, None, false);
    rest.members(|key, member| match key {
        "type" => name = member.text(),
        "value" => value = Some(member),
        _ => others = true,
    })?;
    if others || !rest.0.is_empty() {
        return None;
    }
    value?.plain(Type::from_name(&name?)?)
}

/// A JSON value in the subset that typed values use.
enum Member {
    Text(SmolStr),
    /// A bare word or number, as written.
    Bare(SmolStr),
    /// An object with the members of a monetary or portion.
    Object {
        asset: Option<SmolStr>,
        amount: Option<SmolStr>,
        specific: Option<SmolStr>,
    },
}

impl Member {
    fn text(self) -> Option<SmolStr> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bare(_) | Self::Object { .. } => None,
        }
    }

    fn plain(self, declared: Type) -> Option<SmolStr> {
        match (declared, self) {
            (Type::Account | Type::Asset | Type::Text | Type::Portion | Type::Monetary, Self::Text(text))
            | (Type::Number, Self::Bare(text) | Self::Text(text)) => Some(text),
            (Type::Portion, Self::Object { specific: Some(portion), .. }) => Some(portion),
            (Type::Monetary, Self::Object { asset: Some(asset), amount: Some(amount), .. }) => {
                Some(format_smolstr!("{asset} {amount}"))
            }
            _ => None,
        }
    }
}

struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn eat(&mut self, wanted: char) -> Option<()> {
        self.0 = self.0.trim_start().strip_prefix(wanted)?;
        Some(())
    }

    /// Reads the members of an object after its `{`, and its `}`.
    fn members(&mut self, mut each: impl FnMut(&str, Member)) -> Option<()> {
        if self.eat('}').is_some() {
            return Some(());
        }
        loop {
            let key = self.string()?;
            self.eat(':')?;
            let member = self.member()?;
            each(&key, member);
            if self.eat(',').is_none() {
                return self.eat('}');
            }
        }
    }

    fn member(&mut self) -> Option<Member> {
        self.0 = self.0.trim_start();
        if self.0.starts_with('"') {
            return self.string().map(Member::Text);
        }
        if self.eat('{').is_none() {
            return self.bare().map(Member::Bare);
        }
        // Typed values nest only one level.
        let (mut asset, mut amount, mut specific) = (None, None, None);
        if self.eat('}').is_none() {
            loop {
                let key = self.string()?;
                self.eat(':')?;
                self.0 = self.0.trim_start();
                let value = if self.0.starts_with('"') { self.string()? } else { self.bare()? };
                match key.as_str() {
                    "asset" => asset = Some(value),
                    "amount" => amount = Some(value),
                    "specific" => specific = Some(value),
                    _ => {}
                }
                if self.eat(',').is_none() {
                    self.eat('}')?;
                    break;
                }
            }
        }
        Some(Member::Object { asset, amount, specific })
    }

    fn bare(&mut self) -> Option<SmolStr> {
        let end = self.0.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)))?;
        let (bare, rest) = self.0.split_at(end);
        self.0 = rest;
        (!bare.is_empty()).then(|| bare.into())
    }

    fn string(&mut self) -> Option<SmolStr> {
        self.eat('"')?;
        let mut text = SmolStrBuilder::new();
        let mut characters = self.0.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Some(text.finish());
                }
                '\\' => match characters.next()?.1 {
                    quoted @ ('"' | '\\' | '/') => text.push(quoted),
                    'n' => text.push('\n'),
                    'r' => text.push('\r'),
                    't' => text.push('\t'),
                    'u' => {
                        let digits = self.0.get(at + 2..at + 6)?;
                        text.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
                        characters.nth(3);
                    }
                    _ => return None,
                },
                plain => text.push(plain),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_typed_values_of_every_type() {
        for (json, expected) in [
            (r#"{"type":"account","value":"users:001"}"#, Some("users:001")),
            (r#"{"type":"asset","value":"USD/2"}"#, Some("USD/2")),
            (r#"{"type":"string","value":"15 percent"}"#, Some("15 percent")),
            (r#"{"type":"number","value":42}"#, Some("42")),
            (r#"{"value":{"amount":100,"asset":"USD/2"},"type":"monetary"}"#, Some("USD/2 100")),
            (r#"{"type":"portion","value":{"remaining":false,"specific":"1/3"}}"#, Some("1/3")),
            (r#"{"type":"portion","value":{"remaining":true}}"#, None),
            (r#"{"type":"bool","value":true}"#, None),
            (r#"{"type":"string","value":"a","more":1}"#, None),
            (r#"{"type":"string"}"#, None),
            (r#"{"value":"a"}"#, None),
            ("{}", None),
            ("[1]", None),
            ("true", None),
        ] {
            assert_eq!(shown(json).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn converts_typed_values_to_plain_texts() {
        for (declared, text, expected) in [
            (Type::Account, r#"{"type":"account","value":"users:001"}"#, Some("users:001")),
            (
                Type::Number,
                r#"{"type":"number","value":100000000000000000001}"#,
                Some("100000000000000000001"),
            ),
            (
                Type::Monetary,
                r#"{ "type": "monetary", "value": {"asset":"USD/2","amount":-3} }"#,
                Some("USD/2 -3"),
            ),
            (
                Type::Portion,
                r#"{"type":"portion","value":{"remaining":false,"specific":"1/3"}}"#,
                Some("1/3"),
            ),
            (Type::Portion, r#"{"type":"portion","value":"1/3"}"#, Some("1/3")),
            (Type::Text, r#"{"value":"a\"b\\\u00e9","type":"string"}"#, Some("a\"b\\é")),
            (Type::Text, r#"{"type":"account","value":"a"}"#, None),
            (Type::Text, "plain", None),
            (Type::Text, r#"{"type":"string","value":"a"} b"#, None),
            (Type::Text, r#"{"type":"string","value":"a"#, None),
            (Type::Number, r#"{"type":"number","value":{"a":{"b":1}}}"#, None),
            (Type::Text, "{}", None),
        ] {
            assert_eq!(plain(declared, text).as_deref(), expected, "{text}");
        }
    }
}
