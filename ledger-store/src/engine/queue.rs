//! The queue of work for the writer, bounded by the memory that the work takes.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::work::Job;

/// Of what waits, about so much is taken at a time; with less waiting, nothing is decided ahead of the flush that is
/// under way. It is as much as stays in a processor's own cache until it is answered.
pub(super) const PART_BYTES: usize = 512 << 10;

/// Work that waits for the writer.
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    queued: Condvar,
    room: Condvar,
    bytes_max: usize,
}

/// The jobs of a [`Queue`], oldest first.
#[derive(Default)]
pub(super) struct Waiting {
    jobs: VecDeque<Job>,
    bytes: usize,
    closed: bool,
    is_writer_idle: bool,
}

impl Waiting {
    /// Adds a job.
    pub(super) fn push(&mut self, job: Job) {
        self.bytes += job.bytes;
        self.jobs.push_back(job);
    }
}

/// Why a job is not queued.
pub(super) enum NotQueued {
    Closed,
    Full,
}

impl Queue {
    /// An empty queue for jobs of so many bytes, or for one job of any size.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { waiting: Mutex::default(), queued: Condvar::new(), room: Condvar::new(), bytes_max }
    }

    /// Locks the queue as soon as it has room for a job of so many bytes. If it has none now, the caller waits or is
    /// told so.
    pub(super) fn with_room(&self, bytes: usize, wait: bool) -> Result<MutexGuard<'_, Waiting>, NotQueued> {
        let mut waiting = self.waiting.lock();
        loop {
            if waiting.closed {
                return Err(NotQueued::Closed);
            }
            if waiting.bytes == 0 || waiting.bytes + bytes <= self.bytes_max {
                return Ok(waiting);
            }
            if !wait {
                return Err(NotQueued::Full);
            }
            self.room.wait(&mut waiting);
        }
    }

    /// Wakes the writer thread, if it waits for jobs.
    pub(super) fn wake_writer(&self) {
        if self.waiting.lock().is_writer_idle {
            self.queued.notify_one();
        }
    }

    /// Waits until there are jobs; false if the queue is closed and empty. For the writer thread.
    pub(super) fn wait_for_jobs(&self) -> bool {
        let mut waiting = self.waiting.lock();
        while waiting.jobs.is_empty() {
            if waiting.closed {
                return false;
            }
            waiting.is_writer_idle = true;
            self.queued.wait(&mut waiting);
            waiting.is_writer_idle = false;
        }
        true
    }

    /// Whether less waits than is taken at a time.
    pub(super) fn is_short(&self) -> bool {
        self.waiting.lock().bytes < PART_BYTES
    }

    /// Takes the next part of what waits.
    pub(super) fn take_part(&self) -> Vec<Job> {
        let mut waiting = self.waiting.lock();
        let mut taken = 0;
        let mut count = 0;
        for job in &waiting.jobs {
            if taken >= PART_BYTES {
                break;
            }
            taken += job.bytes;
            count += 1;
        }
        let jobs: Vec<Job> = waiting.jobs.drain(..count).collect();
        waiting.bytes -= taken;
        drop(waiting);
        self.room.notify_all();
        jobs
    }

    /// Takes no more jobs.
    pub(super) fn close(&self) {
        self.waiting.lock().closed = true;
        self.queued.notify_all();
        self.room.notify_all();
    }
}
