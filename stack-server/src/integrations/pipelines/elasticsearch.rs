//! Stores logs as documents of Elasticsearch with its bulk interface.

use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use ledger_store::FedLog;
use serde::Deserialize;

use super::error::{ConfigError, PushError};
use crate::http::response::{Json, Numbers};
use crate::limits::{DELIVERY_ANSWER_BYTES_MAX, DELIVERY_TIMEOUT};
use crate::outbound::{Client, OutboundRequest, Target};
use crate::shapes::log::write_log_of;

/// The default index.
pub(super) const INDEX: &str = "unified-stack-data";

/// The fields of a new index. By default the server adds a field for every account and every asset that it sees, until it
/// has a thousand fields and refuses all further documents. It also refuses amounts that do not fit into 64 bits.
const MAPPING: &str = r#"{"mappings":{"properties":{"ID":{"type":"keyword"},"module":{"type":"keyword"},"payload":{"dynamic":false,"properties":{"ledger":{"type":"keyword"},"id":{"type":"long"},"type":{"type":"keyword"},"date":{"type":"date"}}}}}}"#;

/// Maximum number of characters of an invalid index that an error repeats.
const SHOWN_CHARS_MAX: usize = 100;

/// An index of an Elasticsearch server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Elasticsearch {
    /// The address of the bulk interface.
    target: Target,
    /// The address of the index.
    index_target: Target,
    index: String,
}

/// The part of a bulk response that this module reads.
#[derive(Deserialize)]
struct BulkAnswer {
    errors: bool,
}

impl Elasticsearch {
    /// Creates a destination from the address of a server and the name of an index.
    ///
    /// # Errors
    ///
    /// Fails if the address or the name is invalid.
    pub(super) fn new(endpoint: &str, user: Option<(&str, &str)>, index: &str) -> Result<Self, ConfigError> {
        let target = Target::parse(endpoint).map_err(ConfigError::Endpoint)?;
        let is_name = !index.starts_with(['-', '_', '+', '.'])
            && index
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte));
        if !is_name {
            return Err(ConfigError::Index(index.chars().take(SHOWN_CHARS_MAX).collect()));
        }
        // Only request the faults: the complete response would be as long as the request.
        let base = target.path().split('?').next().unwrap_or_default().trim_end_matches('/').to_owned();
        let target = match user {
            Some((name, password)) => target.with_user(name, password),
            None => target,
        };
        Ok(Self {
            target: target.with_path(format!("{base}/_bulk?filter_path=errors")),
            index_target: target.with_path(format!("{base}/{index}")),
            index: index.to_owned(),
        })
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Creates the index, unless it exists or the server does not let this client create it.
    ///
    /// # Errors
    ///
    /// Fails if the server does not answer, or is not ready.
    pub(super) async fn create_index(&self, client: &Client) -> Result<(), PushError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(authorization) = self.index_target.authorization() {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let request = OutboundRequest {
            method: Method::PUT,
            target: self.index_target.clone(),
            headers,
            body: Bytes::from_static(MAPPING.as_bytes()),
            bytes_max: DELIVERY_ANSWER_BYTES_MAX,
            connect_timeout: DELIVERY_TIMEOUT,
            timeout: DELIVERY_TIMEOUT,
        };
        match client.ask(&request).await?.status {
            status if status.is_success() => Ok(()),
            // The index exists, or somebody else has to create it.
            StatusCode::BAD_REQUEST
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED => Ok(()),
            status => Err(PushError::IndexRefused(self.index_target.clone(), status)),
        }
    }

    /// Indexes logs. A log that is pushed again replaces itself.
    ///
    /// # Errors
    ///
    /// Fails if the server does not confirm all of them.
    pub(super) async fn push(&self, client: &Client, logs: &[FedLog]) -> Result<(), PushError> {
        let said =
            client.post_for_answer(&self.target, &HeaderMap::new(), Bytes::from(self.lines(logs))).await?;
        let answer = said.and_then(|said| serde_json::from_slice::<BulkAnswer>(&said).ok());
        match answer {
            Some(BulkAnswer { errors: false }) => Ok(()),
            Some(BulkAnswer { errors: true }) => Err(PushError::DocumentsRefused(self.target.clone())),
            None => Err(PushError::UnknownAnswer(self.target.clone())),
        }
    }

    fn lines(&self, logs: &[FedLog]) -> Vec<u8> {
        let mut json = Json::with_capacity(Numbers::Plain, logs.len() * 1_024);
        for fed in logs {
            let id = format!("{}-{}", fed.ledger, fed.log.entry.id.get());
            json.raw("{\"index\":{\"_index\":").plain_string(&self.index);
            json.raw(",\"_id\":").plain_string(&id).raw("}}\n");
            json.raw("{\"ID\":").plain_string(&id).raw(",\"payload\":");
            write_log_of(&mut json, fed);
            json.raw(",\"module\":\"ledger\"}\n");
        }
        json.into_bytes()
    }
}
