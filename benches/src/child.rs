//! A process of the run's own, which ends with it.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::Failure;

/// A child process. It is killed when this is dropped.
#[derive(Debug)]
pub struct Spawned {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Spawned {
    /// Starts a program. What it reports as errors goes where this program's errors go.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn start<A: AsRef<OsStr>>(
        program: impl AsRef<OsStr>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Self, Failure> {
        let mut child = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().ok_or("the child has no output")?;
        Ok(Self { child, output: BufReader::new(output) })
    }

    /// Starts a server, which says in a line `… http://ADDRESS` where it listens.
    ///
    /// # Errors
    ///
    /// If it does not start, or ends without that line.
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

    /// Its next line of output, without the line's end; `None` when it closed its output.
    ///
    /// # Errors
    ///
    /// If that cannot be read.
    pub fn line(&mut self) -> Result<Option<String>, Failure> {
        let mut line = String::new();
        let bytes = self.output.read_line(&mut line)?;
        Ok((bytes > 0).then(|| line.trim_end().to_owned()))
    }

    /// Everything it still has to say, until it closes its output.
    ///
    /// # Errors
    ///
    /// If that cannot be read.
    pub fn rest(&mut self) -> Result<String, Failure> {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest)?;
        Ok(rest)
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it at once, without giving it a chance to put anything in order (`SIGKILL`).
    ///
    /// # Errors
    ///
    /// If it cannot be killed.
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
    fn a_server_is_found_by_its_line() {
        let script = "echo starting; echo 'listening on http://127.0.0.1:80'; echo more; exec cat";
        let (mut child, address) = Spawned::start_server("sh", ["-c", script]).expect("a shell");
        assert_eq!(address, "127.0.0.1:80");
        assert_eq!(child.line().expect("readable").as_deref(), Some("more"));
        child.kill().expect("it runs");
        assert_eq!(child.rest().expect("readable"), "");
    }

    #[test]
    fn one_that_does_not_listen_is_a_failure() {
        assert!(Spawned::start_server("sh", ["-c", "echo no"]).is_err());
    }
}
