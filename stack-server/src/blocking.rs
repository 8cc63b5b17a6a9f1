//! Runs blocking work on the threads that the runtime keeps for such work.

use std::any::Any;

use tokio::task::{JoinError, JoinHandle};

use crate::http::error::ApiError;

/// A result whose type is erased.
type Answer = Box<dyn Any + Send>;

/// Runs work on a thread that may block.
///
/// Erases the types of the work and its result, so that the compiler generates the runtime's code for a task only once.
/// When it generated that code for each of more than a hundred callers, the code was a tenth of the executable.
///
/// # Errors
///
/// Fails if the work panics.
pub(crate) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    let answer = spawn(Box::new(|| Box::new(work()))).await?;
    Ok(*answer.downcast().expect("the box holds the result of `work`, which is a `T`"))
}

/// Runs the blocking work of a request.
///
/// # Errors
///
/// Returns the error of the work, or 500 if it panics.
pub(crate) async fn answer<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    run(work).await.unwrap_or_else(|panic| Err(ApiError::fault(&panic.to_string())))
}

fn spawn(work: Box<dyn FnOnce() -> Answer + Send>) -> JoinHandle<Answer> {
    tokio::task::spawn_blocking(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_what_the_work_returns() {
        assert_eq!(run(|| vec!["a"]).await.expect("no panic"), ["a"]);
        run(|| ()).await.expect("no panic");
    }

    #[tokio::test]
    async fn says_when_the_work_panics() {
        let panic = run(|| -> u8 { panic!("on purpose") }).await.expect_err("a panic");
        assert!(panic.is_panic() && panic.to_string().contains("on purpose"), "{panic}");
    }
}
