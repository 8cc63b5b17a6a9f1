//! Reads the processor time and memory of processes. For this process, reads the processor time by thread, too.

use std::collections::BTreeMap;
use std::time::Duration;

/// Length of the ticks in which `/proc` counts processor time: 1/100 s on all common architectures (`USER_HZ`).
const TICK: Duration = Duration::from_millis(10);

/// Processor time used so far.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Time of all threads, including ended ones, to 10 ms.
    pub total: Duration,
    /// Time of the threads that have not ended, added up by name.
    pub threads: BTreeMap<String, Duration>,
}

impl Usage {
    /// Reads the current usage. Empty without `/proc`.
    pub fn now() -> Self {
        let total = processor_time(std::process::id());
        Self { total: total.unwrap_or_default(), threads: threads().unwrap_or_default() }
    }

    /// Returns the usage since an earlier one.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let threads = self
            .threads
            .iter()
            .map(|(name, time)| {
                let before = earlier.threads.get(name).copied().unwrap_or_default();
                (name.clone(), time.saturating_sub(before))
            })
            .collect();
        Self { total: self.total.saturating_sub(earlier.total), threads }
    }
}

/// Returns the processor time of a process to 10 ms, or `None` if there is no such process or no `/proc`.
pub fn processor_time(process: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    ticks(&stat).map(|ticks| TICK * ticks)
}

/// Adds the time in user mode and in kernel mode, fields 14 and 15. Field 2, the name, may contain any
/// characters.
fn ticks(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u32>().ok();
    Some(next()? + next()?)
}

fn threads() -> Option<BTreeMap<String, Duration>> {
    let mut used = BTreeMap::new();
    for entry in std::fs::read_dir("/proc/self/task").ok()? {
        // A thread may end in the meantime. Skip it.
        let Ok(path) = entry.map(|entry| entry.path()) else { continue };
        let name = std::fs::read_to_string(path.join("comm"));
        let time = std::fs::read_to_string(path.join("schedstat"));
        let (Ok(name), Ok(time)) = (name, time) else { continue };
        let nanos = time.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0);
        *used.entry(name.trim_end().to_owned()).or_default() += Duration::from_nanos(nanos);
    }
    Some(used)
}

/// Memory of a process in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Resident memory now.
    pub resident: u64,
    /// Maximum resident memory so far.
    pub peak: u64,
}

impl Memory {
    /// Reads the memory of this process. Zero without `/proc`.
    pub fn now() -> Self {
        Self::of_process(std::process::id())
    }

    /// Reads the memory of a process. Zero if there is no such process, or without `/proc`.
    pub fn of_process(process: u32) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"));
        status.map_or_else(|_| Self::default(), |status| Self::of(&status))
    }

    fn of(status: &str) -> Self {
        let bytes = |field: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
        };
        Self { resident: bytes("VmRSS:").unwrap_or(0), peak: bytes("VmHWM:").unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_ticks_after_any_thread_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 95 0 0 0 120 34 0 0 20 0 5 0 100 1 1";
        assert_eq!(ticks(stat), Some(154));
        assert_eq!(ticks("7 (a"), None);
    }

    #[test]
    fn parses_memory_in_kibibytes() {
        let status = "Name:\tload\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!(Memory::of(status), Memory { resident: 1 << 20, peak: 2 << 20 });
    }

    #[test]
    fn subtracts_usage_by_thread() {
        let at = |total, main| Usage {
            total: Duration::from_millis(total),
            threads: BTreeMap::from([("main".to_owned(), Duration::from_millis(main))]),
        };
        let used = at(50, 40).since(&at(20, 30));
        assert_eq!(used.total, Duration::from_millis(30));
        assert_eq!(used.threads["main"], Duration::from_millis(10));
    }
}
