//! The context of a request: everything that its handler needs.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderMap, USER_AGENT};
use ledger_core::{IdempotencyKey, LedgerName, SchemaVersion};
use ledger_store::LedgerView;

use crate::api::app::App;
use crate::auth::authority::Authority;
use crate::auth::guard::VerifiedToken;
use crate::http::error::{ApiError, Profile};
use crate::http::request::{Query, numbers};
use crate::http::response::{Json, Numbers};

/// A request whose route is known and whose body has arrived.
pub(crate) struct Context<'a> {
    pub(crate) app: &'a App,
    pub(crate) profile: Profile,
    /// The variable segments of the path, in order. The route defines how many there are.
    pub(crate) variables: Vec<Cow<'a, str>>,
    pub(crate) query: Query<'a>,
    /// The path and query as the client sent them.
    pub(crate) target: &'a str,
    /// The address at the other end of the connection.
    pub(crate) peer: IpAddr,
    /// The token that allows the request. `None` if the route requires none.
    pub(crate) token: Option<VerifiedToken>,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: Bytes,
    /// The unread body, for routes that read it in parts.
    pub(crate) stream: Mutex<Option<Incoming>>,
}

impl Context<'_> {
    /// Returns a variable segment of the path by its index in the route's template.
    pub(crate) fn variable(&self, at: usize) -> &str {
        &self.variables[at]
    }

    /// Returns the authorization server. Its routes are served only if it runs.
    ///
    /// # Errors
    ///
    /// 500 if it does not run, which is a defect of this server.
    pub(crate) fn authority(&self) -> Result<Arc<Authority>, ApiError> {
        let authority = self.app.authority().cloned();
        authority.ok_or_else(|| ApiError::fault("a route of the authorization server without one"))
    }

    /// Takes the unread body. Only the first call returns it.
    pub(crate) fn take_stream(&self) -> Option<Incoming> {
        self.stream.lock().ok()?.take()
    }

    /// Returns the name of the ledger in the path.
    ///
    /// # Errors
    ///
    /// 404 `LEDGER_NOT_FOUND` if it is not a valid name: no ledger can have it.
    pub(crate) fn ledger_name(&self) -> Result<LedgerName, ApiError> {
        LedgerName::parse(self.variable(0)).map_err(|_| ApiError::ledger_not_found())
    }

    /// Returns a current view of the ledger in the path.
    ///
    /// # Errors
    ///
    /// 404 `LEDGER_NOT_FOUND`.
    pub(crate) fn ledger(&self) -> Result<LedgerView, ApiError> {
        let name = self.ledger_name()?;
        self.app.snapshot().ledger(&name).ok_or_else(ApiError::ledger_not_found)
    }

    /// Returns `LEDGER_NOT_FOUND` if the ledger does not exist, and otherwise the given error. A missing ledger takes
    /// precedence over other errors.
    pub(crate) fn or_ledger_not_found(&self, error: ApiError) -> ApiError {
        self.ledger().err().unwrap_or(error)
    }

    /// Returns the idempotency key of the request.
    ///
    /// # Errors
    ///
    /// `VALIDATION` if it is too long or not UTF-8.
    pub(crate) fn idempotency_key(&self) -> Result<Option<IdempotencyKey>, ApiError> {
        let Some(value) = self.headers.get("idempotency-key").filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(value.as_bytes())
            .map_err(|_| ApiError::validation("invalid idempotency key: not UTF-8"))?;
        let key = IdempotencyKey::parse(text).map_err(|error| ApiError::validation(error.to_string()))?;
        Ok(Some(key))
    }

    /// Returns the schema version that the request names.
    ///
    /// # Errors
    ///
    /// 404 `NOT_FOUND` if it is not a valid name: no version can have it.
    pub(crate) fn schema_version(&self) -> Result<Option<SchemaVersion>, ApiError> {
        match self.query.get("schemaVersion") {
            None | Some("") => Ok(None),
            Some(text) => match SchemaVersion::parse(text) {
                Ok(version) => Ok(Some(version)),
                Err(_) => Err(ApiError::not_found("schema version not found")),
            },
        }
    }

    /// Returns whether the client understands log ids in bulk results and the later form of reverts in logs. Clients
    /// behind the mount of the stack refuse unknown members, except for the SDK of its third release, which requires
    /// them.
    pub(crate) fn reads_later_forms(&self) -> bool {
        let later_client = || {
            let agent = self.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok());
            agent.is_some_and(|agent| agent.starts_with("speakeasy-sdk/go 3."))
        };
        self.profile == Profile::Ledger || later_client()
    }

    /// Returns the form of amounts that the client asks for.
    pub(crate) fn numbers(&self) -> Numbers {
        numbers(self.headers)
    }

    /// Creates an empty JSON text for the response, with amounts in the form that the client asks for.
    pub(crate) fn json(&self) -> Json {
        Json::new(self.numbers())
    }
}
