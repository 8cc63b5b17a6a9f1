//! What the machine can do in the minute of the run, so that figures of different minutes can be compared.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::histogram::Histogram;
use crate::report::{Report, millis};

const BLOCK: usize = 4096;
/// The file is written before it is measured: no block is allocated while the clock runs.
const BLOCKS: u64 = 64;
const WRITES: u64 = 200;

/// The latencies of writing 4 KB and of waiting until the disk has them (`fdatasync`).
///
/// # Errors
///
/// If the directory cannot be written.
pub fn disk(directory: &Path) -> Result<Histogram, Failure> {
    let path = directory.join("calibration");
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
    let measured = write_blocks(&file);
    drop(file);
    std::fs::remove_file(&path)?;
    Ok(measured?)
}

fn write_blocks(file: &File) -> std::io::Result<Histogram> {
    let block = [0xa5; BLOCK];
    for at in 0..BLOCKS {
        file.write_all_at(&block, at * BLOCK as u64)?;
    }
    file.sync_all()?;
    let mut latency = Histogram::default();
    for n in 0..WRITES {
        let begin = Instant::now();
        file.write_all_at(&block, n % BLOCKS * BLOCK as u64)?;
        file.sync_data()?;
        latency.record(begin.elapsed());
    }
    Ok(latency)
}

/// The rate of durable writes of 4 KB, one after the other: past the page cache into space that was written before,
/// which is the fastest that a disk offers. `None` where the file system has no such writes.
///
/// # Errors
///
/// If the directory cannot be written.
pub fn durable_rate(directory: &Path) -> Result<Option<f64>, Failure> {
    let path = directory.join("calibration");
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
    file.write_all_at(&vec![0; BLOCK * BLOCKS as usize], 0)?;
    file.sync_all()?;
    let measured = direct_writes(&path);
    std::fs::remove_file(&path)?;
    Ok(measured.ok().map(|took| WRITES as f64 / took.as_secs_f64()))
}

fn direct_writes(path: &Path) -> std::io::Result<Duration> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = (rustix::fs::OFlags::DIRECT | rustix::fs::OFlags::DSYNC).bits().cast_signed();
    let file = OpenOptions::new().write(true).custom_flags(flags).open(path)?;
    let memory = vec![0xa5; 2 * BLOCK];
    let start = memory.as_ptr().align_offset(BLOCK);
    let block = &memory[start..start + BLOCK];
    let begin = Instant::now();
    for n in 0..WRITES {
        file.write_all_at(block, n % BLOCKS * BLOCK as u64)?;
    }
    Ok(begin.elapsed())
}

/// Measures the disk and notes it, with the number of processors and how busy they are.
///
/// # Errors
///
/// As [`disk`].
pub fn note_machine(directory: &Path, report: &mut Report) -> Result<(), Failure> {
    let processors = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    report.number("processors", processors as f64);
    let load = load_average().unwrap_or(0.0);
    report.number("load_average", load);
    let latency = disk(directory)?;
    let (p50, p99): (Duration, Duration) = (latency.quantile(0.5), latency.quantile(0.99));
    report.number("fdatasync_p50_ms", millis(p50));
    report.number("fdatasync_p99_ms", millis(p99));
    let rate = durable_rate(directory)?.unwrap_or(0.0);
    report.number("durable_writes_per_s", rate);
    println!(
        "machine: {processors} processors, load average {load:.2}, 4 KB pwrite+fdatasync p50 {:.3} ms, p99 {:.3} ms, \
         direct durable writes {rate:.0}/s",
        millis(p50),
        millis(p99)
    );
    Ok(())
}

/// How many threads of the machine ran or wanted to, over the last minute.
fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_write_is_measured_and_nothing_is_left() {
        let directory = tempfile::tempdir().expect("a directory");
        let latency = disk(directory.path()).expect("a disk that takes writes");
        assert_eq!(latency.count(), WRITES);
        assert!(latency.max() > Duration::ZERO);
        assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 0);
    }
}
