//! The queue of work for the writer. The memory of the queued work bounds it.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::work::Job;

/// Number of bytes of jobs that one batch starts with. A shorter queue is not decided ahead of the running commit. A
/// part of this size stays in a core's own cache until it is answered.
pub(super) const PART_BYTES: usize = 512 << 10;

/// Jobs that wait for the writer.
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

/// The reason why a job was not queued.
pub(super) enum QueueError {
    Closed,
    Full,
}

impl Queue {
    /// Creates an empty queue that holds up to `bytes_max` bytes of jobs, or a single job of any size.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { waiting: Mutex::default(), queued: Condvar::new(), room: Condvar::new(), bytes_max }
    }

    /// Locks the queue once it has capacity for a job of `bytes`. If it has none now, waits for it (`wait`) or returns
    /// [`QueueError::Full`].
    pub(super) fn with_room(&self, bytes: usize, wait: bool) -> Result<MutexGuard<'_, Waiting>, QueueError> {
        let mut waiting = self.waiting.lock();
        loop {
            if waiting.closed {
                return Err(QueueError::Closed);
            }
            if waiting.bytes == 0 || waiting.bytes + bytes <= self.bytes_max {
                return Ok(waiting);
            }
            if !wait {
                return Err(QueueError::Full);
            }
            self.room.wait(&mut waiting);
        }
    }

    /// Wakes the writer thread if it waits for jobs.
    pub(super) fn wake_writer(&self) {
        if self.waiting.lock().is_writer_idle {
            self.queued.notify_one();
        }
    }

    /// Waits until there are jobs. Returns `false` if the queue is closed and empty. Only the writer thread calls
    /// this.
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

    /// Returns whether fewer bytes are queued than one batch starts with.
    pub(super) fn is_short(&self) -> bool {
        self.waiting.lock().bytes < PART_BYTES
    }

    /// Takes the oldest jobs, up to the bytes that one batch starts with.
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

    /// Closes the queue: it accepts no more jobs.
    pub(super) fn close(&self) {
        self.waiting.lock().closed = true;
        self.queued.notify_all();
        self.room.notify_all();
    }
}
