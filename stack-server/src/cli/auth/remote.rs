//! Commands on the clients and keys of a running server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::auth::authority::MOUNT;
use crate::auth::guard::fetch::{self, FetchRequest, Url};
use crate::cli::auth::error::RemoteError;
use crate::http::request::encode_form;

/// A running server, and the client that authenticates the requests.
pub(super) struct Remote {
    runtime: Runtime,
    base: Url,
    basic: HeaderValue,
}

impl Remote {
    pub(super) fn new(server: &str, id: &str, secret: &str) -> Result<Self, RemoteError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let pair = STANDARD.encode(format!("{}:{}", encode_form(id), encode_form(secret)));
        let mut basic = HeaderValue::from_str(&format!("Basic {pair}"))?;
        basic.set_sensitive(true);
        let base = Url::parse(server)?.below(MOUNT);
        Ok(Self { runtime: runtime?, base, basic })
    }

    fn send(&self, path: &str, outgoing: &FetchRequest) -> Result<Value, RemoteError> {
        let url = self.base.below(path);
        let answer = self.runtime.block_on(fetch::send(&url, outgoing));
        let (status, body) = answer.map_err(|source| RemoteError::Fetch { url: url.to_string(), source })?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status.is_success() {
            return Ok(body);
        }
        let reason =
            ["errorMessage", "error_description", "error"].iter().find_map(|name| body[name].as_str());
        let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        Err(RemoteError::Refused { url: url.to_string(), status, reason })
    }

    /// Requests a token with these scopes, without those that the client does not have.
    pub(super) fn token(&self, scopes: &str) -> Result<String, RemoteError> {
        let form = format!("grant_type=client_credentials&scope={}", encode_form(scopes));
        let outgoing = FetchRequest {
            method: Method::POST,
            authorization: Some(self.basic.clone()),
            content_type: "application/x-www-form-urlencoded",
            body: Bytes::from(form),
        };
        let answer = self.send("/oauth/token", &outgoing)?;
        answer["access_token"].as_str().map(str::to_owned).ok_or(RemoteError::Missing("token"))
    }

    /// Sends a request with a token that may manage clients.
    fn manage(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, RemoteError> {
        let token = self.token("auth:read auth:write")?;
        let authorization = HeaderValue::from_str(&format!("Bearer {token}"));
        let outgoing = FetchRequest {
            method,
            authorization: Some(authorization?),
            content_type: "application/json",
            body: body.map(|body| Bytes::from(body.to_string())).unwrap_or_default(),
        };
        self.send(path, &outgoing)
    }

    pub(super) fn create(&self, draft: &Value) -> Result<String, RemoteError> {
        let made = self.manage(Method::POST, "/clients", Some(draft))?;
        made["data"]["id"].as_str().map(str::to_owned).ok_or(RemoteError::Missing("id"))
    }

    /// Adds a secret to a client. If `replaces` is set, removes the other secrets.
    pub(super) fn add_secret(&self, id: &str, replaces: bool) -> Result<String, RemoteError> {
        let path = format!("/clients/{}", encode_form(id));
        let before = self.manage(Method::GET, &path, None)?;
        let body = json!({"name": "command line"});
        let made = self.manage(Method::POST, &format!("{path}/secrets"), Some(&body))?;
        let clear = made["data"]["clear"].as_str().ok_or(RemoteError::Missing("secret"))?.to_owned();
        let older = before["data"]["secrets"].as_array().map(Vec::as_slice).unwrap_or_default();
        for secret in older.iter().filter_map(|secret| secret["id"].as_str()).filter(|_| replaces) {
            self.manage(Method::DELETE, &format!("{path}/secrets/{secret}"), None)?;
        }
        Ok(clear)
    }

    pub(super) fn list(&self) -> Result<Vec<Value>, RemoteError> {
        let answer = self.manage(Method::GET, "/clients", None)?;
        let clients = answer["data"].as_array().ok_or(RemoteError::Missing("list"))?;
        let shown = clients.iter().map(|client| {
            let secrets = client["secrets"].as_array().map(Vec::as_slice).unwrap_or_default();
            let digits: Vec<&Value> = secrets.iter().map(|secret| &secret["lastDigits"]).collect();
            json!({
                "id": client["id"],
                "name": client["name"],
                "public": client["public"],
                "trusted": client["trusted"],
                "scopes": client["scopes"],
                "secrets": digits
            })
        });
        Ok(shown.collect())
    }

    pub(super) fn delete(&self, id: &str) -> Result<(), RemoteError> {
        let path = format!("/clients/{}", encode_form(id));
        // The response does not tell whether the client exists, so read the client first.
        self.manage(Method::GET, &path, None)?;
        self.manage(Method::DELETE, &path, None).map(drop)
    }

    pub(super) fn rotate_keys(&self) -> Result<(), RemoteError> {
        self.manage(Method::POST, "/keys/rotate", None).map(drop)
    }
}
