//! The exit statuses of the program. `docs/operating.md` has the same table.

use std::fmt::Write as _;
use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The command did what it was asked for.
    Done,
    /// The command failed.
    Failed,
    /// The command line is invalid.
    InvalidCommandLine,
    /// `verify` found damage, or a history that is not the expected one.
    Damaged,
    /// `verify` found no damage, but could not check everything.
    Incomplete,
    /// `verify` could not open the store.
    CannotOpen,
}

impl Exit {
    /// The ends of every command but `verify`.
    pub const OF_COMMANDS: [Self; 3] = [Self::Done, Self::Failed, Self::InvalidCommandLine];
    /// The ends of `verify`.
    pub const OF_VERIFY: [Self; 5] =
        [Self::Done, Self::Damaged, Self::Incomplete, Self::InvalidCommandLine, Self::CannotOpen];

    /// Returns the exit status.
    pub const fn status(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed | Self::Damaged => 1,
            Self::InvalidCommandLine | Self::Incomplete => 2,
            Self::CannotOpen => 3,
        }
    }

    /// Returns what the status means, for help texts and the documentation.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "success",
            Self::Failed => "the command failed",
            Self::InvalidCommandLine => "the command line is invalid",
            Self::Damaged => "stored data is damaged, or its history is not the expected one",
            Self::Incomplete => "some data could not be checked",
            Self::CannotOpen => "the store cannot be opened",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.status())
    }
}

/// Returns the part of a help text about exit statuses, with one line for each end.
pub fn help(ends: &[Exit]) -> String {
    let mut text = String::new();
    for (index, end) in ends.iter().enumerate() {
        let title = if index == 0 { "Exit status:" } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{title:<12} {} {}", end.status(), end.meaning());
    }
    text
}
