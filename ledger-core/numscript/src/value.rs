//! Values of a run, and their text forms.

use std::sync::Arc;

use dashu_int::IBig;
use smol_str::{SmolStr, format_smolstr};

use super::error::{ErrorKind, PortionFault};
use super::portion::{Portion, natural};
use super::program::{AccountId, AssetId};
use super::types::Type;
use ledger_values::{AccountAddress, Asset};

/// A value of a run.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Account(AccountId),
    Asset(AssetId),
    Number(IBig),
    Monetary(AssetId, IBig),
    Portion(Portion),
    /// A text. It is shared, because it can be long and a script can use it often.
    Text(Arc<str>),
}

impl Value {
    pub(super) const fn type_of(&self) -> Type {
        match self {
            Self::Account(_) => Type::Account,
            Self::Asset(_) => Type::Asset,
            Self::Number(_) => Type::Number,
            Self::Monetary(..) => Type::Monetary,
            Self::Portion(_) => Type::Portion,
            Self::Text(_) => Type::Text,
        }
    }
}

/// A value parsed from text, before its names get numbers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Account(AccountAddress),
    Asset(SmolStr),
    Number(IBig),
    Monetary(SmolStr, IBig),
    Portion(Portion),
    Text(SmolStr),
}

impl Literal {
    /// Parses the text of a variable or of metadata as a value of the declared type.
    pub(super) fn parse(declared: Type, text: &str) -> Result<Self, ErrorKind> {
        match declared {
            Type::Account => match AccountAddress::parse(text) {
                Ok(address) => Ok(Self::Account(address)),
                Err(_) => Err(ErrorKind::InvalidAccountName { name: excerpt(text) }),
            },
            Type::Asset => parse_asset(text).map(Self::Asset),
            Type::Number => parse_number(text).map(Self::Number),
            Type::Monetary => {
                let mut pieces = text.split(' ');
                match (pieces.next(), pieces.next(), pieces.next()) {
                    (Some(asset), Some(amount), None) => {
                        let amount = parse_number(amount)?;
                        Ok(Self::Monetary(parse_asset(asset)?, amount))
                    }
                    _ => Err(ErrorKind::InvalidMonetary { source: excerpt(text) }),
                }
            }
            Type::Portion => Portion::parse(text)
                .map(Self::Portion)
                .map_err(|reason: PortionFault| ErrorKind::BadPortion { source: excerpt(text), reason }),
            Type::Text => Ok(Self::Text(text.into())),
        }
    }
}

fn parse_asset(text: &str) -> Result<SmolStr, ErrorKind> {
    match Asset::parse(text) {
        Ok(_) => Ok(text.into()),
        Err(_) => Err(ErrorKind::InvalidAsset { name: excerpt(text) }),
    }
}

/// Parses decimal digits with an optional sign.
fn parse_number(text: &str) -> Result<IBig, ErrorKind> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let well_formed = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match natural(digits).filter(|_| well_formed) {
        Some(number) => Ok(if negative { -IBig::from(number) } else { number.into() }),
        None => Err(ErrorKind::InvalidNumber { source: excerpt(text) }),
    }
}

/// Shortens a caller's text for the message of an error.
pub(super) fn excerpt(text: &str) -> SmolStr {
    const CHARS_MAX: usize = 200;
    match text.char_indices().nth(CHARS_MAX) {
        None => text.into(),
        Some((end, _)) => format_smolstr!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuses(declared: Type, text: &str, name: &str) {
        match Literal::parse(declared, text) {
            Err(kind) => assert_eq!(kind.name(), name, "{text:?}"),
            Ok(read) => panic!("{text:?} was read as {read:?}"),
        }
    }

    #[test]
    fn parses_texts_of_variables_strictly() {
        let number = |n: i64| Literal::Number(n.into());
        assert_eq!(Literal::parse(Type::Number, "+1"), Ok(number(1)));
        assert_eq!(Literal::parse(Type::Number, "-007"), Ok(number(-7)));
        assert_eq!(
            Literal::parse(Type::Monetary, "USD/2 -1"),
            Ok(Literal::Monetary("USD/2".into(), (-1).into()))
        );
        for text in ["", "+", "--1", "1_000", " 1", "0x10", "1e3", "1.0", "é", &"9".repeat(1001)] {
            refuses(Type::Number, text, "InvalidNumberLiteral");
        }
        for text in ["USD", "USD  1", "USD 1 2", ""] {
            refuses(Type::Monetary, text, "InvalidMonetaryLiteral");
        }
        refuses(Type::Monetary, "[USD 1]", "InvalidNumberLiteral");
        refuses(Type::Monetary, "usd 1", "InvalidAsset");
        refuses(Type::Account, "@a", "InvalidAccountName");
        refuses(Type::Account, "", "InvalidAccountName");
        refuses(Type::Portion, "3/2", "BadPortionParsingErr");
    }

    #[test]
    fn errors_shorten_long_texts() {
        assert_eq!(excerpt(&"é".repeat(300)).chars().count(), 201);
        assert_eq!(excerpt("short"), "short");
    }
}
