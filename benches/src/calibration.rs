//! Measures the machine at the start of a run, so that figures of different runs can be compared.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::histogram::Histogram;
use crate::report::{Report, millis};

const BLOCK: usize = 4096;
/// Number of blocks in the file. They are written before the measurement, so that it allocates none.
const BLOCKS: u64 = 64;
const WRITES: u64 = 200;

/// Measures the latencies of writing 4 KB and flushing them to the disk (`fdatasync`).
///
/// # Errors
///
/// Fails if the directory cannot be written.
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

/// Measures the rate of consecutive durable writes of 4 KB, past the page cache into allocated space. A disk has no
/// faster durable writes. Returns `None` if the file system has no such writes, or if one fails.
///
/// # Errors
///
/// Fails if the directory cannot be written.
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

/// Measures the disk and reports it, with the number of processors and the load of the machine.
///
/// # Errors
///
/// Returns the same errors as [`disk`].
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

/// Returns the average number of threads that ran or wanted to run in the last minute.
fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_each_write_and_leaves_no_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let latency = disk(directory.path()).expect("a disk that takes writes");
        assert_eq!(latency.count(), WRITES);
        assert!(latency.max() > Duration::ZERO);
        assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 0);
    }
}
