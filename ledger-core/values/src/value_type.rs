//! The types of typed values.

/// Type of a value of a script, or of typed metadata.
///
/// ```
/// use ledger_values::Type;
/// assert_eq!(Type::from_name("string"), Some(Type::Text));
/// assert_eq!((Type::Text.name(), Type::Portion.name()), ("string", "portion"));
/// assert_eq!(Type::from_name("text"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Type {
    /// An account address, without its `@`.
    Account,
    /// The code of an asset.
    Asset,
    /// A whole number of any sign and size.
    Number,
    /// An amount of an asset.
    Monetary,
    /// An exact rational number.
    Portion,
    /// A text.
    Text,
}

impl Type {
    /// Returns the name of the type in declarations and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Asset => "asset",
            Self::Number => "number",
            Self::Monetary => "monetary",
            Self::Portion => "portion",
            Self::Text => "string",
        }
    }

    /// Finds a type by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Account, Self::Asset, Self::Number, Self::Monetary, Self::Portion, Self::Text]
            .into_iter()
            .find(|known| known.name() == name)
    }
}
