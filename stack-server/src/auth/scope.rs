/// Permission that a route demands of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// No authentication required.
    Open,
    /// Permission to read or to write.
    Read,
    /// Permission to write.
    Write,
}

/// A service of the stack; scopes begin with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// The ledger, in every generation, and what the server says of itself.
    Ledger,
    /// Payments, connectors, and the generic connector API.
    Payments,
    /// The management routes of the authorization server.
    Auth,
}

impl Service {
    /// The word before the colon of its scopes.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ledger => "ledger",
            Self::Payments => "payments",
            Self::Auth => "auth",
        }
    }

    /// Every service.
    pub(crate) const ALL: [Self; 3] = [Self::Ledger, Self::Payments, Self::Auth];
}
