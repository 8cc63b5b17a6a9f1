//! The file driver of exporters: writes the logs of ledgers as lines of JSON to a series of files.
//!
//! The files of a series are numbered: the first is `name.000000000001.ndjson`, and the next one starts when the last
//! is full. The lines are on disk before a push is acknowledged. A crash may leave a partial last line. The push that
//! wrote it was not acknowledged, so the next push removes the partial line and its caller sends the line again.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::exporter::FileConfig;

/// Number of digits in the number of a file.
const DIGITS: usize = 12;
/// Number of bytes to read at once while searching for the last line from the end of a file.
const TAIL_BYTES: u64 = 64 << 10;

/// The files in one folder.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    /// The series by name. Each push holds the lock of its series: a stopped pipeline may still be finishing a push when
    /// the next one begins.
    series: Mutex<BTreeMap<String, Arc<Mutex<Series>>>>,
}

/// The numbered files with one name, which the configuration of an exporter states.
#[derive(Debug, Default)]
struct Series {
    /// The current file. `None` before the first line, and after a failure.
    open: Option<OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    number: u64,
    bytes: u64,
}

impl Files {
    /// Returns the files in a folder. Creates the folder if it does not exist.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be created.
    pub(super) fn in_folder(folder: PathBuf) -> io::Result<Self> {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| with_folder(&folder, &error))?;
        Ok(Self { folder, series: Mutex::default() })
    }

    /// Appends lines, each with its line end. The lines are on disk when this returns.
    ///
    /// # Errors
    ///
    /// Fails if some lines might not be on disk. The caller must then append all of them again.
    pub(super) fn append(&self, config: &FileConfig, lines: &[Vec<u8>]) -> io::Result<()> {
        let series = {
            let mut all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
            // Drop the series to which no push writes. Everything that is needed to continue them is on disk.
            all.retain(|name, series| *name == config.name || Arc::strong_count(series) > 1);
            all.entry(config.name.clone()).or_default().clone()
        };
        let mut series = series.lock().unwrap_or_else(PoisonError::into_inner);
        let written = series.append(&self.folder, config, lines);
        if written.is_err() {
            series.open = None;
        }
        written.map_err(|error| with_folder(&self.folder, &error))
    }
}

/// Adds the path of the folder to an error, so that an operator learns which folder it concerns.
fn with_folder(folder: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", folder.display()))
}

impl Series {
    fn append(&mut self, folder: &Path, config: &FileConfig, lines: &[Vec<u8>]) -> io::Result<()> {
        let open = match self.open.take() {
            Some(open) if open.is_unchanged(folder, config) => open,
            // Somebody has removed, replaced or truncated the file. Lines that are written to it might be lost.
            Some(open) => {
                let last = numbers(folder, &config.name)?.last().copied().unwrap_or_default();
                OpenFile::create(folder, config, last.max(open.number) + 1)?
            }
            None => OpenFile::last(folder, config)?,
        };
        let open = self.open.insert(open);
        let mut gathered = Vec::new();
        for line in lines {
            let bytes = open.bytes + gathered.len() as u64;
            if bytes > 0 && bytes + line.len() as u64 > config.bytes_max {
                open.write(&gathered)?;
                gathered.clear();
                *open = OpenFile::create(folder, config, open.number + 1)?;
                remove_old(folder, config, open.number)?;
            }
            gathered.extend_from_slice(line);
        }
        open.write(&gathered)
    }
}

impl OpenFile {
    /// Opens the last file of a series for appending, or creates the first.
    fn last(folder: &Path, config: &FileConfig) -> io::Result<Self> {
        let Some(number) = numbers(folder, &config.name)?.last().copied() else {
            return Self::create(folder, config, 1);
        };
        let mut file = OpenOptions::new().read(true).write(true).open(path(folder, &config.name, number))?;
        let bytes = complete_lines_len(&mut file)?;
        file.set_len(bytes)?;
        file.seek(SeekFrom::Start(bytes))?;
        Ok(Self { file, number, bytes })
    }

    fn create(folder: &Path, config: &FileConfig, number: u64) -> io::Result<Self> {
        let path = path(folder, &config.name, number);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        File::open(folder)?.sync_all()?;
        Ok(Self { file, number, bytes: 0 })
    }

    /// Returns whether the path still leads to the open file, and whether the file has the same length as after the
    /// last push.
    fn is_unchanged(&self, folder: &Path, config: &FileConfig) -> bool {
        let (Ok(named), Ok(open)) =
            (std::fs::metadata(path(folder, &config.name, self.number)), self.file.metadata())
        else {
            return false;
        };
        (named.dev(), named.ino(), named.len()) == (open.dev(), open.ino(), self.bytes)
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        self.file.write_all(lines)?;
        self.file.sync_data()?;
        self.bytes += lines.len() as u64;
        Ok(())
    }
}

/// Returns the length of the file up to the end of its last complete line.
fn complete_lines_len(file: &mut File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut tail = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(TAIL_BYTES);
        file.seek(SeekFrom::Start(start))?;
        tail.clear();
        Read::by_ref(file).take(end - start).read_to_end(&mut tail)?;
        if let Some(at) = tail.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

fn path(folder: &Path, name: &str, number: u64) -> PathBuf {
    folder.join(format!("{name}.{number:0DIGITS$}.ndjson"))
}

/// Returns the numbers of the files of a series in ascending order.
fn numbers(folder: &Path, name: &str) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?.file_name();
        let number = entry.to_str().and_then(|file| {
            let digits = file.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".ndjson")?;
            if digits.len() == DIGITS { digits.parse::<u64>().ok() } else { None }
        });
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

fn remove_old(folder: &Path, config: &FileConfig, newest: u64) -> io::Result<()> {
    let Some(files_max) = config.files_max else { return Ok(()) };
    for number in numbers(folder, &config.name)? {
        if newest - number.min(newest) >= files_max {
            std::fs::remove_file(path(folder, &config.name, number))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(bytes_max: u64, files_max: Option<u64>) -> FileConfig {
        FileConfig { name: "main".to_owned(), bytes_max, files_max }
    }

    fn lines(range: std::ops::Range<u32>) -> Vec<Vec<u8>> {
        range.map(|number| format!("{{\"id\":{number}}}\n").into_bytes()).collect()
    }

    fn text(folder: &Path) -> Vec<String> {
        let numbers = numbers(folder, "main").expect("a folder");
        numbers
            .iter()
            .map(|number| std::fs::read_to_string(path(folder, "main", *number)).expect("text"))
            .collect()
    }

    #[test]
    fn appends_to_last_file_and_starts_next_when_full() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("made/anew");
        let whole: String =
            lines(0..30).iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        for from in [0, 7, 14, 21] {
            // Open the files each time, as after a restart.
            let files = Files::in_folder(folder.clone()).expect("a folder");
            files.append(&config(40, None), &lines(from..from + 4)).expect("written");
            files.append(&config(40, None), &lines(from + 4..from + 7)).expect("written");
        }
        Files::in_folder(folder.clone())
            .expect("a folder")
            .append(&config(40, None), &lines(28..30))
            .expect("written");
        let texts = text(&folder);
        assert_eq!(texts.concat(), whole);
        assert!(
            texts.len() > 5 && texts.iter().all(|text| text.len() <= 40 && text.ends_with('\n')),
            "{texts:?}"
        );
        std::fs::write(folder.join("main.2.000000000099.ndjson"), "other").expect("written");
        std::fs::write(folder.join("main.99.ndjson"), "other").expect("written");
        Files::in_folder(folder.clone())
            .expect("a folder")
            .append(&config(40, Some(2)), &lines(30..39))
            .expect("written");
        let kept = text(&folder);
        assert_eq!(kept.len(), 2);
        assert!(kept.concat().ends_with(&String::from_utf8(lines(30..39).concat()).expect("text")[60..]));
    }

    #[test]
    fn removes_incomplete_last_line() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().to_owned();
        let files = || Files::in_folder(folder.clone()).expect("a folder");
        files().append(&config(1 << 20, None), &lines(0..3)).expect("written");
        let long = "x".repeat(3 * TAIL_BYTES as usize);
        for (cut, expected) in [("{\"id", 3..4), (long.as_str(), 4..5)] {
            let mut file =
                OpenOptions::new().append(true).open(path(&folder, "main", 1)).expect("an open file");
            file.write_all(cut.as_bytes()).expect("written");
            files().append(&config(1 << 20, None), &lines(expected)).expect("written");
        }
        assert_eq!(text(&folder).concat().into_bytes(), lines(0..5).concat());
        // A file that contains only an incomplete line.
        std::fs::write(path(&folder, "main", 2), "half").expect("written");
        files().append(&config(1 << 20, None), &lines(5..6)).expect("written");
        assert_eq!(text(&folder)[1].clone().into_bytes(), lines(5..6).concat());
    }

    #[test]
    fn starts_next_file_after_removal_or_truncation() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().to_owned();
        let files = Files::in_folder(folder.clone()).expect("a folder");
        let all = config(1 << 20, None);
        files.append(&all, &lines(0..2)).expect("written");
        std::fs::remove_file(path(&folder, "main", 1)).expect("removed");
        files.append(&all, &lines(2..4)).expect("written");
        std::fs::rename(path(&folder, "main", 2), folder.join("taken")).expect("renamed");
        files.append(&all, &lines(4..6)).expect("written");
        File::create(path(&folder, "main", 3)).expect("truncated");
        files.append(&all, &lines(6..8)).expect("written");
        files.append(&all, &lines(8..9)).expect("written");
        assert_eq!(numbers(&folder, "main").expect("numbers"), [3, 4]);
        let read = |path: PathBuf| std::fs::read(path).expect("a file");
        assert_eq!(read(folder.join("taken")), lines(2..4).concat());
        assert!(read(path(&folder, "main", 3)).is_empty());
        assert_eq!(read(path(&folder, "main", 4)), lines(6..9).concat());
    }

    #[test]
    fn reopens_file_after_failure() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("f");
        let files = Files::in_folder(folder.clone()).expect("a folder");
        files.append(&config(60, None), &lines(0..2)).expect("written");
        std::fs::remove_dir_all(&folder).expect("removed");
        let refused = files.append(&config(60, None), &lines(2..20)).expect_err("there is no folder");
        assert!(refused.to_string().starts_with(&folder.display().to_string()), "{refused}");
        std::fs::create_dir(&folder).expect("made");
        files.append(&config(60, None), &lines(2..4)).expect("written");
        assert_eq!(text(&folder).concat().into_bytes(), lines(2..4).concat());
    }
}
