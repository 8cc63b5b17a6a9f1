//! The wording of a script's errors.

/// Wording of a script's errors. It does not change how the script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Runtime {
    /// The wording of the machine, which all clients know.
    #[default]
    Machine,
    /// The wording of the interpreter, the newer engine.
    Interpreter,
}

impl Runtime {
    /// Finds a runtime by its name on the wire.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Machine, Self::Interpreter].into_iter().find(|runtime| runtime.name() == name)
    }

    /// Returns the name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Interpreter => "experimental-interpreter",
        }
    }
}
