//! A request on its way to its handler.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderMap, USER_AGENT};
use ledger_core::{IdempotencyKey, LedgerName, SchemaVersion};
use ledger_store::LedgerView;

use crate::api::app::App;
use crate::auth::authority::Authority;
use crate::auth::guard::Pass;
use crate::http::error::{ApiError, Profile};
use crate::http::request::{Query, numbers};
use crate::http::response::{Json, Numbers};

/// A request whose route is known and whose body has arrived.
pub(crate) struct Call<'a> {
    pub(crate) app: &'a App,
    pub(crate) profile: Profile,
    /// The variable segments of the path, in order; the route says how many there are.
    pub(crate) variables: Vec<Cow<'a, str>>,
    pub(crate) query: Query<'a>,
    /// Path and query as they were sent.
    pub(crate) target: &'a str,
    /// The address of the sender: the other end of the connection.
    pub(crate) peer: IpAddr,
    /// The token that allows the request, where one is asked for.
    pub(crate) pass: Option<Pass>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: Bytes,
    /// The body of a route that reads it itself.
    pub(crate) stream: Mutex<Option<Incoming>>,
}

impl Call<'_> {
    /// A variable segment by its place in the template.
    pub(crate) fn variable(&self, at: usize) -> &str {
        &self.variables[at]
    }

    /// The authorization server, which is there where its routes are.
    ///
    /// # Errors
    ///
    /// 500 if it is not.
    pub(crate) fn authority(&self) -> Result<Arc<Authority>, ApiError> {
        let authority = self.app.authority().cloned();
        authority.ok_or_else(|| ApiError::fault("a route of the authorization server without one"))
    }

    /// The body, if it was not read: the first who asks gets it.
    pub(crate) fn take_stream(&self) -> Option<Incoming> {
        self.stream.lock().ok()?.take()
    }

    /// The ledger of the path: no ledger can have a name that breaks the grammar.
    ///
    /// # Errors
    ///
    /// 404 `LEDGER_NOT_FOUND` for such a name.
    pub(crate) fn ledger_name(&self) -> Result<LedgerName, ApiError> {
        LedgerName::parse(self.variable(0)).map_err(|_| ApiError::ledger_not_found())
    }

    /// The ledger of the path, as of now.
    ///
    /// # Errors
    ///
    /// 404 `LEDGER_NOT_FOUND`.
    pub(crate) fn ledger(&self) -> Result<LedgerView, ApiError> {
        let name = self.ledger_name()?;
        self.app.snapshot().ledger(&name).ok_or_else(ApiError::ledger_not_found)
    }

    /// Of two faults of a request into a ledger, that the ledger is not there goes first.
    pub(crate) fn unless_no_ledger(&self, error: ApiError) -> ApiError {
        self.ledger().err().unwrap_or(error)
    }

    /// The caller's idempotency key.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if it is too long or no text.
    pub(crate) fn idempotency_key(&self) -> Result<Option<IdempotencyKey>, ApiError> {
        let Some(value) = self.headers.get("idempotency-key").filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(value.as_bytes())
            .map_err(|_| ApiError::validation("invalid idempotency key: not UTF-8"))?;
        let key = IdempotencyKey::parse(text).map_err(|error| ApiError::validation(error.to_string()))?;
        Ok(Some(key))
    }

    /// The version of the ledger's schema that the caller names.
    ///
    /// # Errors
    ///
    /// 404 `NOT_FOUND` for a text that is the name of none.
    pub(crate) fn schema_version(&self) -> Result<Option<SchemaVersion>, ApiError> {
        match self.query.get("schemaVersion") {
            None | Some("") => Ok(None),
            Some(text) => match SchemaVersion::parse(text) {
                Ok(version) => Ok(Some(version)),
                Err(_) => Err(ApiError::not_found("schema version not found")),
            },
        }
    }

    /// Whether the caller reads the later forms of bulk results and of reverts in logs. Behind the stack's mount
    /// the strict client of its first release must not be shown them, and the strict client of its third, which
    /// calls the same paths, must.
    pub(crate) fn reads_later_forms(&self) -> bool {
        let later_client = || {
            let agent = self.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
            agent.is_some_and(|agent| agent.starts_with("speakeasy-sdk/go 3."))
        };
        self.profile == Profile::Ledger || later_client()
    }

    /// How the caller wants amounts.
    pub(crate) fn numbers(&self) -> Numbers {
        numbers(self.headers)
    }

    /// An answer to be filled, with amounts as the caller wants them.
    pub(crate) fn json(&self) -> Json {
        Json::new(self.numbers())
    }
}
