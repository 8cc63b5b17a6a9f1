//! Options of a run: the profile and the experimental features.

/// An experimental feature of the language. Without its flag, the script parses but the run refuses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flag {
    /// Enables the function `overdraft`.
    OverdraftFunction,
    /// Enables `oneof` in sources and destinations.
    OneOf,
    /// Enables variables inside account literals.
    AccountInterpolation,
    /// Enables function calls outside the `vars` block, and any expression as the origin of a variable.
    MidScriptFunctionCall,
    /// Enables the function `get_asset`.
    GetAssetFunction,
    /// Enables the function `get_amount`.
    GetAmountFunction,
    /// Enables `\ colour` after a source.
    AssetColors,
    /// Enables `with scaling through`.
    AssetScaling,
}

impl Flag {
    /// All flags.
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

    /// Returns the name under which a script or a caller turns the flag on.
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

    /// Finds a flag by its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flag| flag.name() == name)
    }
}

/// A set of feature flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u8);

const _: () = assert!(Flag::ALL.len() <= u8::BITS as usize, "`Flags` has too few bits for the flags");

impl Flags {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// The set of all flags.
    pub const ALL: Self = Self(u8::MAX);

    /// Adds a flag.
    #[must_use]
    pub const fn with(self, flag: Flag) -> Self {
        Self(self.0 | 1 << flag as u8)
    }

    /// Removes a flag.
    #[must_use]
    pub const fn without(self, flag: Flag) -> Self {
        Self(self.0 & !(1 << flag as u8))
    }

    /// Returns the union of two sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Tells whether a flag is in the set.
    pub const fn has(self, flag: Flag) -> bool {
        self.0 & 1 << flag as u8 != 0
    }
}

/// All flags: a script may use the whole language unless the caller restricts it.
impl Default for Flags {
    fn default() -> Self {
        Self::ALL
    }
}

/// Selects between the behaviours of the known engines where they differ. One implementation runs all
/// profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Profile {
    /// The language of the interpreter with the safety checks of the machine. Ledgers run this profile.
    #[default]
    Default,
    /// Exactly the interpreter, which checks nothing before the run.
    Interpreter,
    /// The machine of ledger 2.0, which keeps empty postings and checks before it runs.
    Machine,
}

impl Profile {
    /// Finds a profile by its name on the command line: `default`, `interpreter`, `machine-2.0`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "default" => Some(Self::Default),
            "interpreter" => Some(Self::Interpreter),
            "machine-2.0" => Some(Self::Machine),
            _ => None,
        }
    }
}

/// Options of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Options {
    /// The engine whose behaviour the run shows.
    pub profile: Profile,
    /// The features that are on in addition to those that the script names.
    pub flags: Flags,
    /// The switch for the trace of the postings.
    pub trace: Tracing,
    /// The treatment of a `send` that moves nothing.
    pub empty_sends: EmptySends,
}

/// The treatment of a `send` of a zero amount, or of everything in an empty account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EmptySends {
    /// The send leaves no posting.
    #[default]
    Dropped,
    /// The send leaves zero postings from its first account to each account that would receive a part.
    /// Ledgers record requests in this way even if nothing moves.
    Recorded,
}

/// The switch for a record of how the postings of a run came about. Costs nothing when off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Tracing {
    /// The run records nothing.
    #[default]
    Off,
    /// The run records a trace.
    On,
}
