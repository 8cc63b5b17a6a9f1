//! The types of values, and of functions over them.

pub use ledger_values::Type;

use crate::options::Flag;

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

/// The form in which a script calls a function.
#[derive(Clone, Copy)]
pub(super) struct Signature {
    pub(super) name: &'static str,
    /// The types of the parameters.
    pub(super) parameters: &'static [Type],
    /// The type of the value. `None` if it is the type of the variable that receives it.
    pub(super) value: Option<Type>,
    /// The flag without which a run refuses the call.
    pub(super) flag: Option<Flag>,
}

impl Function {
    pub(super) const ALL: [Self; 5] =
        [Self::Balance, Self::Overdraft, Self::GetAsset, Self::GetAmount, Self::Meta];

    pub(super) const fn signature(self) -> Signature {
        let (name, parameters, value, flag): (_, &[Type], _, _) = match self {
            Self::Balance => ("balance", &[Type::Account, Type::Asset], Some(Type::Monetary), None),
            Self::Overdraft => {
                let flag = Some(Flag::OverdraftFunction);
                ("overdraft", &[Type::Account, Type::Asset], Some(Type::Monetary), flag)
            }
            Self::GetAsset => {
                ("get_asset", &[Type::Monetary], Some(Type::Asset), Some(Flag::GetAssetFunction))
            }
            Self::GetAmount => {
                ("get_amount", &[Type::Monetary], Some(Type::Number), Some(Flag::GetAmountFunction))
            }
            Self::Meta => ("meta", &[Type::Account, Type::Text], None, None),
        };
        Signature { name, parameters, value, flag }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|function| function.signature().name == name)
    }
}

/// Returns the names of the functions that scripts can call: in expressions first, then as statements.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    let functions = Function::ALL.into_iter().map(|function| function.signature().name);
    functions.chain(Action::ALL.into_iter().map(Action::name))
}

/// A function whose call is a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    SetTxMeta,
    SetAccountMeta,
}

impl Action {
    const ALL: [Self; 2] = [Self::SetTxMeta, Self::SetAccountMeta];

    const fn name(self) -> &'static str {
        match self {
            Self::SetTxMeta => "set_tx_meta",
            Self::SetAccountMeta => "set_account_meta",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name() == name)
    }

    /// Returns the types of the parameters. `None` accepts any type.
    pub(super) const fn parameters(self) -> &'static [Option<Type>] {
        match self {
            Self::SetTxMeta => &[Some(Type::Text), None],
            Self::SetAccountMeta => &[Some(Type::Account), Some(Type::Text), None],
        }
    }
}
