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
    /// Bytes were released.
    released: Condvar,
    bytes_max: usize,
}

/// The jobs of a [`Queue`], oldest first.
pub(super) struct Waiting {
    jobs: VecDeque<Job>,
    /// The sum of what the jobs count.
    bytes: usize,
    /// The bytes that a larger job counts.
    job_bytes_max: usize,
    closed: bool,
    is_writer_idle: bool,
}

impl Waiting {
    /// Adds a job.
    pub(super) fn push(&mut self, job: Job) {
        self.bytes += self.counted(job.bytes);
        self.jobs.push_back(job);
    }

    /// Returns the bytes that a job of `bytes` counts.
    fn counted(&self, bytes: usize) -> usize {
        bytes.min(self.job_bytes_max)
    }
}

/// The reason why a job was not queued.
pub(super) enum QueueError {
    Closed,
    Full,
}

impl Queue {
    /// Creates an empty queue that holds up to `bytes_max` bytes of jobs. A job of more than half of them counts as half,
    /// so that small jobs wait beside it, but no second one of its size.
    pub(super) fn new(bytes_max: usize) -> Self {
        let waiting = Waiting {
            jobs: VecDeque::new(),
            bytes: 0,
            job_bytes_max: bytes_max / 2 + 1,
            closed: false,
            is_writer_idle: false,
        };
        Self { waiting: Mutex::new(waiting), queued: Condvar::new(), released: Condvar::new(), bytes_max }
    }

    /// Locks the queue once it has capacity for a job of `bytes`. If it has none now, waits for it (`wait`) or returns
    /// [`QueueError::Full`].
    pub(super) fn with_capacity_for(
        &self,
        bytes: usize,
        wait: bool,
    ) -> Result<MutexGuard<'_, Waiting>, QueueError> {
        let mut waiting = self.waiting.lock();
        loop {
            if waiting.closed {
                return Err(QueueError::Closed);
            }
            if waiting.bytes == 0 || waiting.bytes + waiting.counted(bytes) <= self.bytes_max {
                return Ok(waiting);
            }
            if !wait {
                return Err(QueueError::Full);
            }
            self.released.wait(&mut waiting);
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
        waiting.bytes -= jobs.iter().map(|job| waiting.counted(job.bytes)).sum::<usize>();
        drop(waiting);
        self.released.notify_all();
        jobs
    }

    /// Closes the queue: it accepts no more jobs.
    pub(super) fn close(&self) {
        self.waiting.lock().closed = true;
        self.queued.notify_all();
        self.released.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::work::{Callback, WorkItem};

    fn push(queue: &Queue, bytes: usize) -> bool {
        let work = WorkItem::RemoveDeleted(Duration::ZERO, Callback::new(|_| {}));
        queue.with_capacity_for(bytes, false).map(|mut waiting| waiting.push(Job { work, bytes })).is_ok()
    }

    #[test]
    fn large_job_leaves_room_for_small_ones() {
        let queue = Queue::new(100);
        assert!(push(&queue, 20) && push(&queue, 1_000), "a small job stands before a large one");
        assert!(!push(&queue, 1_000), "two large jobs");
        assert!(push(&queue, 29) && !push(&queue, 1), "the other half is full");
        assert_eq!(queue.take_part().len(), 3);
        assert!(push(&queue, 1_000) && push(&queue, 49), "the queue is empty again");
    }
}
