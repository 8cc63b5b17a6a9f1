//! Login tokens of a provider. A token is kept until the provider refuses it.

use std::future::Future;

use tokio::sync::Mutex;

use crate::connectors::Failure;

/// The token of the current login.
#[derive(Default)]
pub(super) struct Session(Mutex<String>);

impl Session {
    /// Sends a request with the token. If the provider refuses the token, logs in again and repeats the request once.
    ///
    /// # Errors
    ///
    /// Returns errors of `login` and `send`.
    pub(super) async fn ask<T, L, A>(
        &self,
        login: impl Fn() -> L,
        send: impl Fn(String) -> A,
    ) -> Result<T, Failure>
    where
        L: Future<Output = Result<String, Failure>>,
        A: Future<Output = Result<T, Failure>>,
    {
        let token = self.token("", &login).await?;
        match send(token.clone()).await {
            Err(failure) if failure.status == 401 => send(self.token(&token, &login).await?).await,
            result => result,
        }
    }

    /// Returns the current token. Logs in first if there is none, or if it is the refused one; an empty `refused` means
    /// that no token was refused. Holds the lock during the login, so that concurrent tasks log in only once.
    async fn token<L>(&self, refused: &str, login: &impl Fn() -> L) -> Result<String, Failure>
    where
        L: Future<Output = Result<String, Failure>>,
    {
        let mut token = self.0.lock().await;
        if *token == refused || token.is_empty() {
            token.clear();
            *token = login().await?;
        }
        Ok(token.clone())
    }
}

/// Returns the token in the response to a login.
///
/// # Errors
///
/// Fails if the response contains no token that is a valid header value.
pub(super) fn token_of(body: &[u8], name: &str) -> Result<String, Failure> {
    let answer: serde_json::Value =
        serde_json::from_slice(body).map_err(|_| Failure::retryable("the answer to the login is no JSON"))?;
    let token = answer[name].as_str().unwrap_or_default();
    let is_valid = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    if is_valid {
        Ok(token.to_owned())
    } else {
        Err(Failure::retryable("the answer to the login has no token"))
    }
}
