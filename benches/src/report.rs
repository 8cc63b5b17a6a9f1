//! The figures of a run, printed as JSON.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::histogram::Histogram;
use crate::process::{Memory, Usage};

/// Figures by name. A run prints them as one JSON object in its last line.
#[derive(Clone, Debug, Default)]
pub struct Report {
    figures: Map<String, Value>,
}

impl Report {
    /// Adds a number, rounded to six significant digits. A number with a longer whole part is rounded to a whole
    /// number. Infinite numbers and NaN become null.
    pub fn number(&mut self, name: &str, number: f64) {
        self.figures.insert(name.to_owned(), Value::from(rounded(number)));
    }

    /// Adds a count.
    pub fn count(&mut self, name: &str, count: u64) {
        self.figures.insert(name.to_owned(), Value::from(count));
    }

    /// Adds a text.
    pub fn text(&mut self, name: &str, text: &str) {
        self.figures.insert(name.to_owned(), Value::from(text));
    }

    /// Adds median, 99th and 99.9th percentile, and maximum in milliseconds, under names with this prefix. Prints them
    /// under the title `what`.
    pub fn latency(&mut self, prefix: &str, what: &str, latency: &Histogram) {
        let figures = [
            ("p50_ms", latency.quantile(0.5)),
            ("p99_ms", latency.quantile(0.99)),
            ("p999_ms", latency.quantile(0.999)),
            ("max_ms", latency.max()),
        ];
        for (name, figure) in figures {
            self.number(&format!("{prefix}{name}"), millis(figure));
        }
        let [p50, p99, p999, max] = figures.map(|(_, figure)| millis(figure));
        println!("{what}: p50 {p50:.3} ms, p99 {p99:.3} ms, p99.9 {p999:.3} ms, max {max:.3} ms");
    }

    /// Adds and prints processor time per transaction, in total and by thread, and memory. Leaves out threads that took
    /// less than 0.5 ns per transaction.
    pub fn usage(&mut self, used: &Usage, transactions: u64) {
        let each = |time: Duration| time.as_secs_f64() * 1e6 / transactions.max(1) as f64;
        self.number("cpu_us_per_tx", each(used.total));
        let mut line = format!("processor: {:.3} us/tx", each(used.total));
        let mut threads = Map::new();
        for (name, time) in &used.threads {
            if each(*time) >= 0.000_5 {
                line.push_str(&format!(", {name} {:.3}", each(*time)));
                threads.insert(name.clone(), Value::from(rounded(each(*time))));
            }
        }
        println!("{line}");
        self.figures.insert("thread_us_per_tx".to_owned(), Value::Object(threads));
        let memory = Memory::now();
        self.count("rss_bytes", memory.resident);
        self.count("rss_peak_bytes", memory.peak);
        println!("memory: {} MiB resident, {} MiB at most", memory.resident >> 20, memory.peak >> 20);
    }

    /// Returns a figure.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.figures.get(name)
    }

    /// Prints everything as one JSON object on one line.
    pub fn print(self) {
        println!("{}", Value::Object(self.figures));
    }
}

/// Converts a duration to milliseconds.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Returns how many of `count` events happened per second of `time`.
pub fn rate(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}

fn rounded(number: f64) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return number;
    }
    let digits = 5 - number.abs().log10().floor() as i32;
    // Whole numbers keep all their digits.
    if digits <= 0 {
        return number.round();
    }
    let scale = 10f64.powi(digits);
    (number * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_numbers_to_six_digits() {
        for (number, want) in
            [(1_234_567.8, 1_234_568.0), (0.001_234_567_8, 0.001_234_57), (3.0, 3.0), (0.0, 0.0)]
        {
            assert!((rounded(number) - want).abs() < 1e-12, "{number}");
        }
        assert!(rounded(f64::NAN).is_nan());
    }

    #[test]
    fn reports_latencies_under_their_prefix() {
        let mut latency = Histogram::default();
        latency.record(Duration::from_millis(4));
        let mut report = Report::default();
        report.latency("read_", "reads", &latency);
        assert_eq!(report.get("read_p50_ms"), Some(&Value::from(4.0)));
        assert_eq!(report.get("read_max_ms"), Some(&Value::from(4.0)));
    }
}
