//! Limits the memory for five kinds of bytes: request bodies, the work on requests, responses that clients have not
//! read yet, parts of exports and event streams that they have not read yet, and long heads of requests.
//!
//! The operator's budget is divided into pools, so that one kind of bytes never uses the memory of another. Small requests
//! are not counted.

mod pool;

use std::sync::Arc;

use tokio::sync::Semaphore;

pub(crate) use self::pool::{Pool, Reservation};
use crate::http::error::ApiError;
use crate::limits::{ANSWER_WAIT, BODY_WAIT, DISCARDS_MAX, WORK_FACTOR, WORK_WAIT};

/// The memory pools of a server. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// Bodies of requests until the request is answered, and the logs that an import has received but not stored.
    pub(crate) bodies: Pool,
    /// Commands and results of large requests.
    pub(crate) work: Pool,
    /// Responses until the client has read them.
    pub(crate) answers: Pool,
    /// Parts of exports and of event streams until the client has read them.
    pub(crate) streams: Pool,
    /// The part of long request heads beyond the usual size.
    pub(crate) heads: Pool,
    /// Responses that wait for memory. They are in memory already, in addition to the budget.
    waiting: Pool,
    /// Slots for refused bodies that are read and discarded.
    pub(crate) discards: Arc<Semaphore>,
}

impl Memory {
    /// Divides a budget of this many bytes into pools.
    pub(crate) fn new(bytes: usize) -> Self {
        let part = |sixteenths: usize| Pool::new(bytes / 16 * sixteenths);
        Self {
            bodies: part(6),
            work: part(4),
            answers: part(3),
            streams: part(2),
            heads: part(1),
            waiting: part(3),
            discards: Arc::new(Semaphore::new(DISCARDS_MAX)),
        }
    }

    /// Waits for memory for a body.
    ///
    /// # Errors
    ///
    /// 503 if no memory is free within [`BODY_WAIT`].
    pub(crate) async fn body(&self, bytes: usize) -> Result<Reservation, ApiError> {
        self.bodies.take(bytes, BODY_WAIT).await.ok_or_else(too_many_bodies)
    }

    /// Waits for memory for the work on a large request whose body has arrived. Refuses the request at once if its
    /// response would have to wait for those of others.
    ///
    /// # Errors
    ///
    /// 503 if no memory is free within [`WORK_WAIT`], or if too many responses wait for their clients. The request has not
    /// changed anything then.
    pub(crate) async fn request(&self, body: usize) -> Result<Reservation, ApiError> {
        if self.answers.is_full() {
            return Err(too_many_answers());
        }
        self.work(body).await
    }

    /// Waits for memory for the commands and the results of a body of this length, or of a part of an import.
    ///
    /// # Errors
    ///
    /// 503 if no memory is free within [`WORK_WAIT`].
    pub(crate) async fn work(&self, body: usize) -> Result<Reservation, ApiError> {
        let held = self.work.take(body.saturating_mul(WORK_FACTOR), WORK_WAIT).await;
        held.ok_or_else(|| ApiError::busy("too many large requests are at work"))
    }

    /// Waits for memory for the response to a request that changed nothing. The response to a write does not wait: its
    /// effect cannot be refused any more.
    ///
    /// # Errors
    ///
    /// 503 if no memory is free within [`ANSWER_WAIT`], or too many responses wait already.
    pub(crate) async fn answer(&self, bytes: usize) -> Result<Reservation, ApiError> {
        if let Some(held) = self.answers.try_reserve(bytes) {
            return Ok(held);
        }
        let Some(_waiting) = self.waiting.try_reserve(bytes) else { return Err(too_many_answers()) };
        self.answers.take(bytes, ANSWER_WAIT).await.ok_or_else(too_many_answers)
    }
}

/// The error for a body for which there is no memory.
pub(crate) fn too_many_bodies() -> ApiError {
    ApiError::busy("too many large bodies are arriving")
}

fn too_many_answers() -> ApiError {
    ApiError::busy("too many large answers wait for their clients")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiting_answers_have_a_bound_in_bytes() {
        let memory = Memory::new(16);
        let all = memory.answers.reserve_beyond_limit(3);
        let wait = |bytes| {
            let memory = memory.clone();
            tokio::spawn(async move { memory.answer(bytes).await.is_ok() })
        };
        let waiting = [wait(2), wait(1)];
        tokio::task::yield_now().await;
        tokio::select! {
            biased;
            refused = memory.answer(1) => assert!(refused.is_err_and(|error| error.transient)),
            () = std::future::ready(()) => panic!("it waits beyond the bound"),
        }
        assert!(memory.request(1).await.is_err(), "a request would add to them");
        drop(all);
        for waiting in waiting {
            assert!(waiting.await.expect("no panic"));
        }
    }
}
