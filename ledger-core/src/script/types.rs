//! The types of values.

/// What a value can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Type {
    /// An address, written without its `@`.
    Account,
    /// The name of an asset.
    Asset,
    /// A whole number of any sign and size.
    Number,
    /// An amount of an asset.
    Monetary,
    /// An exact rational.
    Portion,
    /// A text.
    Text,
}

impl Type {
    /// The name in declarations and messages.
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

    /// The type of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Account, Self::Asset, Self::Number, Self::Monetary, Self::Portion, Self::Text]
            .into_iter()
            .find(|known| known.name() == name)
    }
}

/// A function that an expression may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Balance,
    Overdraft,
    GetAsset,
    GetAmount,
    /// Only as the whole origin of a variable.
    Meta,
}

impl Function {
    /// The name of the one that only a variable's origin may call.
    pub(super) const META: &str = "meta";

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "balance" => Self::Balance,
            "overdraft" => Self::Overdraft,
            "get_asset" => Self::GetAsset,
            "get_amount" => Self::GetAmount,
            Self::META => Self::Meta,
            _ => return None,
        })
    }

    /// The types of its arguments.
    pub(super) const fn parameters(self) -> &'static [Type] {
        match self {
            Self::Balance | Self::Overdraft => &[Type::Account, Type::Asset],
            Self::GetAsset | Self::GetAmount => &[Type::Monetary],
            Self::Meta => &[Type::Account, Type::Text],
        }
    }
}

/// A function that is a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    SetTxMeta,
    SetAccountMeta,
}

impl Action {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "set_tx_meta" => Self::SetTxMeta,
            "set_account_meta" => Self::SetAccountMeta,
            _ => return None,
        })
    }

    /// The types of its arguments; `None` is any.
    pub(super) const fn parameters(self) -> &'static [Option<Type>] {
        match self {
            Self::SetTxMeta => &[Some(Type::Text), None],
            Self::SetAccountMeta => &[Some(Type::Account), Some(Type::Text), None],
        }
    }
}
