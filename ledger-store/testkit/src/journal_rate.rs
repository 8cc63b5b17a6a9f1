//! Measures durable writes and bytes per second, with the journal and without it.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger_journal::disk::{AlignedBuffer, BLOCK_BYTES, Disk, OpenMode, RealDisk, Space};
use ledger_journal::{
    CHUNK_BYTES, ChunkDraft, Identity, Journal, JournalReader, Position, SectionId, SegmentOptions,
    SegmentedJournal,
};

use crate::failure::Failure;

/// Measures sequential durable writes of `bytes` each into prepared space, which is the fastest that the disk offers.
/// Removes the file afterwards.
///
/// # Errors
///
/// Returns errors of the file system.
pub fn bare_writes(directory: &Path, bytes: usize, writes: u64) -> io::Result<Duration> {
    let path = directory.join("bare");
    drop(RealDisk.open(&path, OpenMode::CreateNew)?);
    let file = RealDisk.open_durable(&path)?;
    let bytes = bytes.next_multiple_of(BLOCK_BYTES);
    file.set_aside(0, bytes as u64 * writes, Space::Zeroed)?;
    let mut buffer = AlignedBuffer::default();
    buffer.reserve(bytes);
    let filled = buffer.end().len() + bytes;
    buffer.end().resize(filled, 0xa5);
    let begun = Instant::now();
    for write in 0..writes {
        file.write_durably(write * bytes as u64, buffer.bytes())?;
    }
    let took = begun.elapsed();
    RealDisk.remove(&path)?;
    Ok(took)
}

/// Measures `appends` appends of about `bytes` each, in chunks of the usual size, to a new journal in an empty
/// directory. A thread prepares its space, like that of the engine. If `is_prepared`, all of the space is prepared
/// before the measurement, as for [`bare_writes`].
///
/// # Errors
///
/// Returns errors of the journal.
pub fn journal_appends(
    directory: &Path,
    bytes: usize,
    appends: u64,
    is_prepared: bool,
) -> Result<Duration, Failure> {
    let mut options = SegmentOptions::default();
    if is_prepared {
        // Frames and the padding of blocks add less than an eighth.
        options.space_bytes = options.space_bytes.max((bytes + bytes / 8) as u64 * appends);
    }
    let journal = new_journal(directory, options)?;
    journal.make_room()?;
    let mut drafts = drafts_of(bytes);
    std::thread::scope(|scope| {
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        let tended = &journal;
        scope.spawn(move || {
            while is_done.recv_timeout(Duration::from_millis(1))
                == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                if tended.needs_space() && !is_prepared {
                    // Ignore the error: the append that needs the space reports the same failure.
                    let _ = tended.prepare_space();
                }
            }
        });
        let begun = Instant::now();
        for _ in 0..appends {
            let mut next = journal.head().next;
            for draft in &mut drafts {
                draft.first = next;
                next = next.next();
            }
            if !is_prepared {
                journal.make_room()?;
            }
            journal.append(drafts[0].first, &drafts)?;
        }
        drop(done);
        Ok(begun.elapsed())
    })
}

/// Creates a journal in a directory.
fn new_journal(directory: &Path, options: SegmentOptions) -> Result<SegmentedJournal, Failure> {
    let identity = Identity::random()?;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    SegmentedJournal::initialise(disk.clone(), directory.to_owned(), identity.clone())?;
    Ok(SegmentedJournal::open(disk, directory.to_owned(), identity, options)?)
}

/// Creates chunks of about `bytes` in total. They are created once, because the measurement is about the journal.
fn drafts_of(bytes: usize) -> Vec<ChunkDraft> {
    let section: Vec<u8> = (0..CHUNK_BYTES - 200).map(|i| (i * 7 + i / 13) as u8).collect();
    let section = section[..section.len().min(bytes)].to_vec();
    let sections = vec![(SectionId(1), section.into())];
    let draft = ChunkDraft { first: Position::FIRST, entries: 1, sections };
    vec![draft; bytes.div_ceil(CHUNK_BYTES).max(1)]
}
