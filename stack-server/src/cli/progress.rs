//! Progress of long commands on standard error: a bar on a terminal, else a line every ten seconds.

use std::io::{self, IsTerminal as _, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ledger_store::{Options, Progress, ProgressWatcher};

/// Time between two drawings of a bar.
const BAR_INTERVAL: Duration = Duration::from_millis(100);

/// Time until the first line, and between lines. Work that finishes sooner prints nothing.
pub(crate) const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// Number of characters inside a bar.
const BAR_CHARS: u64 = 30;

/// The completed amount of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completed {
    pub(crate) done: u64,
    /// The total amount; `None` if it is unknown.
    pub(crate) total: Option<u64>,
    /// The unit, such as `entries`.
    pub(crate) unit: &'static str,
}

/// Limits how often progress is shown.
#[derive(Debug)]
pub(crate) struct Interval {
    last: Instant,
    length: Duration,
}

impl Interval {
    /// Starts an interval now.
    pub(crate) fn new(length: Duration) -> Self {
        Self { last: Instant::now(), length }
    }

    /// Starts the next interval if this one has passed. Returns whether it has.
    pub(crate) fn restart_if_passed(&mut self, now: Instant) -> bool {
        let has_passed = now.duration_since(self.last) >= self.length;
        if has_passed {
            self.last = now;
        }
        has_passed
    }
}

/// Shows progress on a terminal or in a log.
pub(crate) struct Meter<W> {
    out: W,
    is_terminal: bool,
    interval: Interval,
    /// True if the terminal currently shows a bar.
    is_drawn: bool,
}

impl<W: Write> Meter<W> {
    fn new(out: W, is_terminal: bool) -> Self {
        let interval = Interval::new(if is_terminal { BAR_INTERVAL } else { LINE_INTERVAL });
        Self { out, is_terminal, interval, is_drawn: false }
    }

    /// Shows the progress of work, unless it was shown less than an interval ago.
    pub(crate) fn show(&mut self, work: &str, amount: Completed, now: Instant) {
        if !self.interval.restart_if_passed(now) {
            return;
        }
        // A failure to show progress must not stop the work.
        let _ = if self.is_terminal {
            self.is_drawn = true;
            write!(self.out, "\r\x1b[K{work} {}", bar(amount)).and_then(|()| self.out.flush())
        } else {
            writeln!(self.out, "{work}: {}", words(amount))
        };
    }

    /// Removes the bar from the terminal.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(self.out, "\r\x1b[K").and_then(|()| self.out.flush());
        }
    }
}

/// Returns the completed percentage.
fn percent(amount: Completed) -> Option<u64> {
    let total = amount.total.filter(|total| *total > 0)?;
    u64::try_from(u128::from(amount.done.min(total)) * 100 / u128::from(total)).ok()
}

fn words(amount: Completed) -> String {
    let Completed { done, total, unit } = amount;
    match (total, percent(amount)) {
        (Some(total), Some(percent)) => format!("{percent} % ({done} of {total} {unit})"),
        _ => format!("{done} {unit}"),
    }
}

fn bar(amount: Completed) -> String {
    match percent(amount) {
        None => words(amount),
        Some(percent) => {
            let full = percent * BAR_CHARS / 100;
            let bar: String = (0..BAR_CHARS).map(|at| if at < full { '#' } else { '.' }).collect();
            format!("[{bar}] {}", words(amount))
        }
    }
}

/// The output of a shared meter: standard error, or a text in tests.
type Output = Box<dyn Write + Send>;

/// A meter on standard error that several parts of a command share.
#[derive(Clone)]
pub(crate) struct SharedMeter(Arc<Mutex<Meter<Output>>>);

impl SharedMeter {
    /// Creates a meter. It draws bars if standard error is a terminal.
    pub(crate) fn on_stderr() -> Self {
        let stderr = io::stderr();
        let is_terminal = stderr.is_terminal();
        Self(Arc::new(Mutex::new(Meter::new(Box::new(stderr), is_terminal))))
    }

    /// Creates a meter that draws bars on standard error, or returns `None` if that is not a terminal.
    pub(crate) fn on_terminal() -> Option<Self> {
        io::stderr().is_terminal().then(Self::on_stderr)
    }

    fn lock(&self) -> MutexGuard<'_, Meter<Output>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the progress of work.
    pub(crate) fn show(&self, work: &str, amount: Completed) {
        self.lock().show(work, amount, Instant::now());
    }

    /// Removes the bar, before something else is printed.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// Returns a watcher that shows the progress of a store here.
    pub(crate) fn watcher(&self) -> ProgressWatcher {
        let meter = self.clone();
        ProgressWatcher::new(move |progress| meter.show_store(&progress))
    }

    /// Returns the options of a store that shows its progress here.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::default();
        options.progress = self.watcher();
        options
    }

    /// Shows the progress of a store.
    pub(crate) fn show_store(&self, progress: &Progress) {
        let amount = Completed { done: progress.done, total: Some(progress.total), unit: "entries" };
        self.show(progress.work.text(), amount);
    }

    /// Returns a reader that shows how many bytes of `total` were read.
    pub(crate) fn reading<R: Read>(&self, work: &'static str, inner: R, total: Option<u64>) -> Counted<R> {
        Counted { inner, meter: self.clone(), work, done: 0, total }
    }

    /// Returns a writer that shows how many of `total` logs were written. Each log is a line.
    pub(crate) fn writing_logs<W: Write>(&self, work: &'static str, inner: W, total: u64) -> Counted<W> {
        Counted { inner, meter: self.clone(), work, done: 0, total: Some(total) }
    }
}

/// A reader or writer that shows its progress.
pub(crate) struct Counted<T> {
    inner: T,
    meter: SharedMeter,
    work: &'static str,
    done: u64,
    total: Option<u64>,
}

impl<T> Counted<T> {
    fn add(&mut self, count: usize, unit: &'static str) {
        self.done += count as u64;
        self.meter.show(self.work, Completed { done: self.done, total: self.total, unit });
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let bytes = self.inner.read(to)?;
        self.add(bytes, "bytes");
        Ok(bytes)
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let bytes = self.inner.write(from)?;
        self.add(memchr::memchr_iter(b'\n', &from[..bytes]).count(), "logs");
        Ok(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A terminal in memory that shows every report of a command, without the pauses between drawings.
#[cfg(test)]
#[derive(Clone, Default)]
pub(crate) struct Screen(Arc<Mutex<Vec<u8>>>);

#[cfg(test)]
impl Screen {
    pub(crate) fn meter(&self) -> SharedMeter {
        let mut meter = Meter::new(Box::new(self.clone()) as Output, true);
        meter.interval.length = Duration::ZERO;
        SharedMeter(Arc::new(Mutex::new(meter)))
    }

    /// Returns the text before each bar, in order and without repetitions.
    pub(crate) fn labels(&self) -> Vec<String> {
        let shown = String::from_utf8(self.0.lock().expect("no panic").clone()).expect("text");
        let labels = shown.split("\r\x1b[K").filter_map(|line| Some(line.split_once(" [")?.0.to_owned()));
        let mut labels: Vec<String> = labels.collect();
        labels.dedup();
        labels
    }
}

#[cfg(test)]
impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows the same progress after each of these numbers of milliseconds.
    fn shown(is_terminal: bool, milliseconds: &[u64]) -> String {
        let mut meter = Meter::new(Vec::new(), is_terminal);
        let began = meter.interval.last;
        for after in milliseconds {
            let amount = Completed { done: 45, total: Some(200), unit: "entries" };
            meter.show("reading", amount, began + Duration::from_millis(*after));
        }
        meter.clear();
        String::from_utf8(meter.out).expect("text")
    }

    #[test]
    fn a_terminal_has_a_bar_that_goes_away() {
        let bar = "\r\x1b[Kreading [######........................] 22 % (45 of 200 entries)";
        assert_eq!(shown(true, &[50, 100, 150, 200]), format!("{bar}{bar}\r\x1b[K"));
        assert_eq!(shown(true, &[50]), "");
    }

    #[test]
    fn a_log_has_a_line_every_ten_seconds() {
        let line = "reading: 22 % (45 of 200 entries)\n";
        assert_eq!(shown(false, &[5_000, 9_999]), "");
        assert_eq!(shown(false, &[10_000, 19_999, 20_000]), format!("{line}{line}"));
    }

    #[test]
    fn writer_counts_logs() {
        let mut out = SharedMeter::on_stderr().writing_logs("exporting", Vec::new(), 3);
        out.write_all(b"{}\n{}\n{").expect("it is written");
        assert_eq!((out.done, out.total), (2, Some(3)));
    }

    #[test]
    fn work_of_unknown_size_shows_what_is_done() {
        let amount = Completed { done: 7, total: None, unit: "bytes" };
        assert_eq!((bar(amount), words(amount)), ("7 bytes".to_owned(), "7 bytes".to_owned()));
        assert_eq!(percent(Completed { total: Some(0), ..amount }), None);
        assert_eq!(percent(Completed { total: Some(5), ..amount }), Some(100));
    }
}
