//! A cache of compiled scripts by their text.
//!
//! The submitting thread compiles a script, so that a large one delays its caller and not the writer. Recently used
//! scripts are kept within a budget of bytes.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use ledger_core::{Command, Movement, Script, script};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::submission::{Request, Submission};

/// The result of compiling a script.
pub(crate) type Compiled = Arc<script::Compiled>;

/// The compiled scripts of the requests in a submission, by index. Empty if no request has a script.
pub(crate) type Programs = SmallVec<[Option<Compiled>; 1]>;

/// A cache of compiled scripts in two generations. Using a script moves it to the young generation. When that fills
/// half of the budget, it becomes the old one, and the previous old one is dropped.
pub(crate) struct Scripts {
    bytes_max: usize,
    kept: Mutex<CachedScript>,
}

#[derive(Default)]
struct CachedScript {
    young: HashMap<Arc<str>, Compiled, RandomState>,
    old: HashMap<Arc<str>, Compiled, RandomState>,
    /// Number of bytes in the young generation.
    bytes: usize,
}

/// Estimates the memory of an entry in bytes.
fn entry_bytes(text: &str, compiled: &Compiled) -> usize {
    /// Memory apart from the program and its text.
    const OVERHEAD: usize = 128;
    OVERHEAD + text.len() + compiled.as_ref().as_ref().map_or(0, |script| script.memory())
}

impl Scripts {
    /// Creates an empty cache of up to `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, kept: Mutex::default() }
    }

    /// Returns the programs for a submission.
    pub(crate) fn of(&self, submission: &Submission) -> Programs {
        self.of_requests(submission.requests.iter())
    }

    /// Returns the programs for requests, by index.
    pub(crate) fn of_requests<'a>(&self, requests: impl ExactSizeIterator<Item = &'a Request>) -> Programs {
        let mut programs = Programs::new();
        let count = requests.len();
        for (at, request) in requests.enumerate() {
            if let Command::CreateTransaction(create) = &request.command
                && let Movement::Script(script) = &create.movement
            {
                programs.resize(count, None);
                programs[at] = Some(self.compile(script));
            }
        }
        programs
    }

    /// Returns the compiled form of a script.
    pub(crate) fn compile(&self, script: &Script) -> Compiled {
        let text = script.plain.as_str();
        if let Some(kept) = self.kept.lock().find(text) {
            return kept;
        }
        let compiled = Arc::new(script.language.compile(text));
        let bytes = entry_bytes(text, &compiled);
        // Do not keep a script that would evict most of the others.
        if bytes <= self.bytes_max / 8 {
            self.kept.lock().keep(text, &compiled, bytes, self.bytes_max);
        }
        compiled
    }
}

impl CachedScript {
    fn find(&mut self, text: &str) -> Option<Compiled> {
        if let Some(found) = self.young.get(text) {
            return Some(found.clone());
        }
        let (text, found) = self.old.remove_entry(text)?;
        self.bytes += entry_bytes(&text, &found);
        self.young.insert(text, found.clone());
        Some(found)
    }

    fn keep(&mut self, text: &str, compiled: &Compiled, bytes: usize, bytes_max: usize) {
        if self.bytes + bytes > bytes_max / 2 {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.young.insert(text.into(), compiled.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(scripts: &Scripts, text: &str) -> Compiled {
        scripts.compile(&Script { plain: text.to_owned(), ..Script::default() })
    }

    #[test]
    fn evicts_scripts_that_are_not_used() {
        let scripts = Scripts::new(64 << 10);
        let popular = compile(&scripts, "print 0");
        assert!(popular.is_ok());
        for n in 1..1_000 {
            let other = compile(&scripts, &format!("print {n}"));
            assert!(other.is_ok());
            assert!(Arc::ptr_eq(&popular, &compile(&scripts, "print 0")), "{n}");
        }
        let kept = scripts.kept.lock();
        assert!(kept.young.len() + kept.old.len() < 500 && kept.bytes <= 40 << 10, "{}", kept.bytes);
    }

    #[test]
    fn a_text_that_is_no_script_is_remembered_as_such() {
        let scripts = Scripts::new(64 << 10);
        let wrong = compile(&scripts, "sned");
        assert!(wrong.is_err());
        assert!(Arc::ptr_eq(&wrong, &compile(&scripts, "sned")));
    }
}
