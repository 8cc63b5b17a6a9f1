//! The types of values, and of functions over them.

pub use ledger_values::Type;

/// A function that an expression may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Balance,
    Overdraft,
    GetAsset,
    GetAmount,
    /// The function `meta`, which is allowed only as the whole origin of a variable.
    Meta,
}

impl Function {
    /// Name of the function that only the origin of a variable may call.
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

    /// Returns the types of the parameters.
    pub(super) const fn parameters(self) -> &'static [Type] {
        match self {
            Self::Balance | Self::Overdraft => &[Type::Account, Type::Asset],
            Self::GetAsset | Self::GetAmount => &[Type::Monetary],
            Self::Meta => &[Type::Account, Type::Text],
        }
    }
}

/// A function whose call is a statement.
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

    /// Returns the types of the parameters. `None` accepts any type.
    pub(super) const fn parameters(self) -> &'static [Option<Type>] {
        match self {
            Self::SetTxMeta => &[Some(Type::Text), None],
            Self::SetAccountMeta => &[Some(Type::Account), Some(Type::Text), None],
        }
    }
}
