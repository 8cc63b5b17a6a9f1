//! What a caller chooses: the profile and the experimental features.

/// An experimental feature. Without its flag a construct is read, but refused when it is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// The function `overdraft`.
    OverdraftFunction,
    /// `oneof` in sources and destinations.
    OneOf,
    /// Variables inside account literals.
    AccountInterpolation,
    /// Function calls outside of the `vars` block, and any expression as a variable's origin.
    MidScriptFunctionCall,
    /// The function `get_asset`.
    GetAssetFunction,
    /// The function `get_amount`.
    GetAmountFunction,
    /// `\ colour` after a source.
    AssetColors,
    /// `with scaling through`.
    AssetScaling,
}

impl Flag {
    /// Every flag.
    pub const ALL: [Self; 8] = [
        Self::OverdraftFunction,
        Self::OneOf,
        Self::AccountInterpolation,
        Self::MidScriptFunctionCall,
        Self::GetAssetFunction,
        Self::GetAmountFunction,
        Self::AssetColors,
        Self::AssetScaling,
    ];

    /// The name by which a script or a caller turns it on.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OverdraftFunction => "experimental-overdraft-function",
            Self::OneOf => "experimental-oneof",
            Self::AccountInterpolation => "experimental-account-interpolation",
            Self::MidScriptFunctionCall => "experimental-mid-script-function-call",
            Self::GetAssetFunction => "experimental-get-asset-function",
            Self::GetAmountFunction => "experimental-get-amount-function",
            Self::AssetColors => "experimental-asset-colors",
            Self::AssetScaling => "experimental-asset-scaling",
        }
    }

    /// The flag of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flag| flag.name() == name)
    }
}

/// A set of flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);

    /// Every flag.
    pub const ALL: Self = Self(u8::MAX);

    /// With this flag too.
    #[must_use]
    pub const fn with(self, flag: Flag) -> Self {
        Self(self.0 | 1 << flag as u8)
    }

    /// Without this flag.
    #[must_use]
    pub const fn without(self, flag: Flag) -> Self {
        Self(self.0 & !(1 << flag as u8))
    }

    /// The flags of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether a flag is on.
    pub const fn has(self, flag: Flag) -> bool {
        self.0 & 1 << flag as u8 != 0
    }
}

/// All of them: a script may use the whole language unless the caller says otherwise.
impl Default for Flags {
    fn default() -> Self {
        Self::ALL
    }
}

/// Whose answers a script gets where the known engines differ. One engine runs all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Profile {
    /// The language of the newer interpreter with the safety of the older machine: what a ledger runs.
    #[default]
    Default,
    /// Exactly the newer interpreter: nothing is checked before the run.
    Interpreter,
    /// The machine of ledger 2.0: postings of nothing are kept, and its checks come first.
    Machine,
}

impl Profile {
    /// The profile of the name that the command line knows: `default`, `interpreter`, `machine-2.0`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "default" => Some(Self::Default),
            "interpreter" => Some(Self::Interpreter),
            "machine-2.0" => Some(Self::Machine),
            _ => None,
        }
    }
}

/// What a script is run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// Whose answers it gets where engines differ.
    pub profile: Profile,
    /// The features that are on besides those that the script itself names.
    pub flags: Flags,
    /// Whether it is recorded how the postings came about.
    pub trace: Tracing,
    /// What becomes of a `send` that moves nothing.
    pub empty_sends: EmptySends,
}

/// What becomes of a `send` of nothing, or of everything of an account that is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EmptySends {
    /// It leaves no posting.
    #[default]
    Dropped,
    /// It leaves a posting of zero, from its first account to each account that it would have given to: ledgers
    /// record what was asked of them, even where that was nothing.
    Recorded,
}

/// Whether a run records how its postings came about. Costs nothing when off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Tracing {
    /// It does not.
    #[default]
    Off,
    /// It does.
    On,
}
