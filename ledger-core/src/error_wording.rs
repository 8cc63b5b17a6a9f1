//! Whose errors a script has.

/// The engine whose errors a script has: their codes in the HTTP API, which calls it the runtime. It does not change how
/// the script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ErrorWording {
    /// Those of the machine, which all clients know.
    #[default]
    Machine,
    /// Those of the interpreter, the newer engine.
    Interpreter,
}

impl ErrorWording {
    /// Finds a value by its name on the wire.
    ///
    /// ```
    /// use ledger_core::ErrorWording;
    /// let interpreter = ErrorWording::parse("experimental-interpreter");
    /// assert_eq!(interpreter.map(ErrorWording::name), Some("experimental-interpreter"));
    /// ```
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Machine, Self::Interpreter].into_iter().find(|wording| wording.name() == name)
    }

    /// Returns the name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Interpreter => "experimental-interpreter",
        }
    }
}
