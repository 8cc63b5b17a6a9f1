//! Child processes that end with the run.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::Failure;

/// A child process. Dropping this kills it.
#[derive(Debug)]
pub struct Spawned {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Spawned {
    /// Starts a program. It shares the error output of this program.
    ///
    /// # Errors
    ///
    /// Fails if the program does not start.
    pub fn start<A: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Self, Failure> {
        let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("the child has no output")?;
        Ok(Self { child, output: BufReader::new(output) })
    }

    /// Starts a server, and reads the line `… http://ADDRESS` in which it prints its address.
    ///
    /// # Errors
    ///
    /// Fails if the server does not start, or ends without that line.
    pub fn start_server<A: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<(Self, String), Failure> {
        let mut child = Self::start(program, arguments)?;
        while let Some(line) = child.line()? {
            if let Some((_, address)) = line.split_once("http://") {
                let address = address.to_owned();
                return Ok((child, address));
            }
        }
        Err("the server ended before it listened".into())
    }

    /// Reads the next line of its output without the line end. Returns `None` at the end of the output.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be read.
    pub fn line(&mut self) -> Result<Option<String>, Failure> {
        let mut line = String::new();
        let bytes = self.output.read_line(&mut line)?;
        Ok((bytes > 0).then(|| line.trim_end().to_owned()))
    }

    /// Reads the rest of its output until the process closes it.
    ///
    /// # Errors
    ///
    /// Fails if the output cannot be read.
    pub fn rest(&mut self) -> Result<String, Failure> {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest)?;
        Ok(rest)
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process at once (`SIGKILL`), so that it cannot clean up.
    ///
    /// # Errors
    ///
    /// Fails if the process cannot be killed.
    pub fn kill(&mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_address_of_a_server() {
        let script = "echo starting; echo 'listening on http://127.0.0.1:80'; echo more; exec cat";
        let (mut child, address) = Spawned::start_server("sh", ["-c", script]).expect("a shell");
        assert_eq!(address, "127.0.0.1:80");
        assert_eq!(child.line().expect("readable").as_deref(), Some("more"));
        child.kill().expect("the process can be killed");
        assert_eq!(child.rest().expect("readable"), "");
    }

    #[test]
    fn refuses_a_server_that_does_not_listen() {
        assert!(Spawned::start_server("sh", ["-c", "echo no"]).is_err());
    }
}
