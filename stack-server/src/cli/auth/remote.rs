//! Clients and keys of a running server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::auth::authority::MOUNT;
use crate::auth::guard::fetch::{self, Question, Url};
use crate::http::request::encode_form;

/// A running server, and the client as which it is asked.
pub(super) struct Remote {
    runtime: Runtime,
    base: Url,
    basic: HeaderValue,
}

impl Remote {
    pub(super) fn new(server: &str, id: &str, secret: &str) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let pair = STANDARD.encode(format!("{}:{}", encode_form(id), encode_form(secret)));
        let mut basic = HeaderValue::from_str(&format!("Basic {pair}")).map_err(|error| error.to_string())?;
        basic.set_sensitive(true);
        let base = Url::parse(server)?.below(MOUNT);
        Ok(Self { runtime: runtime.map_err(|error| error.to_string())?, base, basic })
    }

    fn send(&self, path: &str, question: &Question) -> Result<Value, String> {
        let url = self.base.below(path);
        let (status, body) =
            self.runtime.block_on(fetch::send(&url, question)).map_err(|error| format!("{url}: {error}"))?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status.is_success() {
            return Ok(body);
        }
        let reason =
            ["errorMessage", "error_description", "error"].iter().find_map(|name| body[name].as_str());
        Err(format!("{url}: {status}{}", reason.map(|reason| format!(": {reason}")).unwrap_or_default()))
    }

    /// A token with these scopes, as far as the client may have them.
    pub(super) fn token(&self, scopes: &str) -> Result<String, String> {
        let form = format!("grant_type=client_credentials&scope={}", encode_form(scopes));
        let question = Question {
            method: Method::POST,
            authorization: Some(self.basic.clone()),
            content_type: "application/x-www-form-urlencoded",
            body: Bytes::from(form),
        };
        let answer = self.send("/oauth/token", &question)?;
        answer["access_token"].as_str().map(str::to_owned).ok_or_else(|| "the answer has no token".to_owned())
    }

    /// Asks with a token that may manage clients.
    fn manage(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let token = self.token("auth:read auth:write")?;
        let authorization = HeaderValue::from_str(&format!("Bearer {token}"));
        let question = Question {
            method,
            authorization: Some(authorization.map_err(|error| error.to_string())?),
            content_type: "application/json",
            body: body.map(|body| Bytes::from(body.to_string())).unwrap_or_default(),
        };
        self.send(path, &question)
    }

    pub(super) fn create(&self, draft: &Value) -> Result<String, String> {
        let made = self.manage(Method::POST, "/clients", Some(draft))?;
        made["data"]["id"].as_str().map(str::to_owned).ok_or_else(|| "the answer has no id".to_owned())
    }

    /// Adds a secret, and if that is asked for removes the others.
    pub(super) fn add_secret(&self, id: &str, replaces: bool) -> Result<String, String> {
        let path = format!("/clients/{}", encode_form(id));
        let before = self.manage(Method::GET, &path, None)?;
        let body = json!({"name": "command line"});
        let made = self.manage(Method::POST, &format!("{path}/secrets"), Some(&body))?;
        let clear = made["data"]["clear"].as_str().ok_or("the answer has no secret")?.to_owned();
        let older = before["data"]["secrets"].as_array().map(Vec::as_slice).unwrap_or_default();
        for secret in older.iter().filter_map(|secret| secret["id"].as_str()).filter(|_| replaces) {
            self.manage(Method::DELETE, &format!("{path}/secrets/{secret}"), None)?;
        }
        Ok(clear)
    }

    pub(super) fn list(&self) -> Result<Vec<Value>, String> {
        let answer = self.manage(Method::GET, "/clients", None)?;
        let clients = answer["data"].as_array().ok_or("the answer has no list")?;
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

    pub(super) fn delete(&self, id: &str) -> Result<(), String> {
        let path = format!("/clients/{}", encode_form(id));
        // The server answers the same whether there is such a client or not.
        self.manage(Method::GET, &path, None)?;
        self.manage(Method::DELETE, &path, None).map(drop)
    }

    pub(super) fn rotate_keys(&self) -> Result<(), String> {
        self.manage(Method::POST, "/keys/rotate", None).map(drop)
    }
}
