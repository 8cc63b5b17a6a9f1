/// The permission that a route requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// No authentication required.
    Open,
    /// Permission to read or to write.
    Read,
    /// Permission to write.
    Write,
}

/// A service of the stack. Scopes begin with its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Both versions of the ledger API, and the information about the server.
    Ledger,
    /// Payments, connectors, and the generic connector API.
    Payments,
    /// The management routes of the authorization server.
    Auth,
}

impl Service {
    /// Returns the name of the service in its scopes, before the colon.
    pub const fn scope_prefix(self) -> &'static str {
        match self {
            Self::Ledger => "ledger",
            Self::Payments => "payments",
            Self::Auth => "auth",
        }
    }

    /// Every service.
    pub(crate) const ALL: [Self; 3] = [Self::Ledger, Self::Payments, Self::Auth];
}
