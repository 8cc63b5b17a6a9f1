//! Parses the elements of a bulk that are written as JSON.

use ledger_core::{Command, ErrorWording, Idempotency, IdempotencyKey, Overdraft, request_hash};
use ledger_store::Request;
use serde::de::MapAccess;
use serde_json::value::RawValue;

use crate::api::ledger_v2::wire::{CreateBody, MetadataElement, RevertElement};
use crate::http::error::{ApiError, Code};
use crate::http::json::{self, Array, Fields, JsonError, Object, Text};
use crate::limits::COMMANDS_PER_PART;

/// The kinds of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    CreateTransaction,
    AddMetadata,
    RevertTransaction,
    DeleteMetadata,
}

impl Action {
    /// Returns the name in requests and answers.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::CreateTransaction => "CREATE_TRANSACTION",
            Self::AddMetadata => "ADD_METADATA",
            Self::RevertTransaction => "REVERT_TRANSACTION",
            Self::DeleteMetadata => "DELETE_METADATA",
        }
    }
}

/// An element after parsing: its kind, and its request or the reason why it has none.
pub(crate) struct Element {
    pub(crate) action: Action,
    pub(crate) request: Result<Request, ApiError>,
}

impl Element {
    /// Adds the idempotency key of the element to its command. An empty key counts as none.
    pub(crate) fn new(action: Action, command: Result<Command, ApiError>, key: &str) -> Self {
        let request = command.and_then(|command| {
            let idempotency = match key {
                "" => None,
                key => {
                    let key = IdempotencyKey::parse(key)
                        .map_err(|error| ApiError::validation(error.to_string()))?;
                    Some(Box::new(Idempotency { key, hash: request_hash(&command) }))
                }
            };
            Ok(Request { idempotency, ..Request::from(command) })
        });
        Self { action, request }
    }
}

/// An element as the client sent it.
#[derive(Default)]
struct ElementBody<'a> {
    action: Text<'a>,
    key: Text<'a>,
    data: Option<&'a RawValue>,
}

impl<'de> Fields<'de> for ElementBody<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<bool, A::Error> {
        if name.eq_ignore_ascii_case("action") {
            self.action = map.next_value()?;
        } else if name.eq_ignore_ascii_case("ik") {
            self.key = map.next_value()?;
        } else if name.eq_ignore_ascii_case("data") {
            self.data = Some(map.next_value()?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

impl ElementBody<'_> {
    /// Reads the data by the action.
    ///
    /// # Errors
    ///
    /// `VALIDATION`, for the whole bulk: an unknown action, no data, or data of another shape.
    fn read(&self, at: usize, wording: ErrorWording) -> Result<Element, ApiError> {
        let missing = || ApiError::validation(format!("error parsing element {at}: data: is missing"));
        let data = self.data.ok_or_else(missing)?.get().as_bytes();
        let malformed = |error: JsonError| unreadable(at, &error.within("data"));
        let (action, command) = match self.action.0.as_ref() {
            "CREATE_TRANSACTION" => {
                let Object(body) = json::first::<Object<CreateBody<'_>>>(data).map_err(malformed)?;
                (Action::CreateTransaction, body.into_command(Overdraft::Refuse, wording))
            }
            "ADD_METADATA" => {
                let Object(body) = json::first::<Object<MetadataElement<'_>>>(data).map_err(malformed)?;
                (Action::AddMetadata, body.into_set())
            }
            "REVERT_TRANSACTION" => {
                let Object(body) = json::first::<Object<RevertElement<'_>>>(data).map_err(malformed)?;
                (Action::RevertTransaction, body.into_command())
            }
            "DELETE_METADATA" => {
                let Object(body) = json::first::<Object<MetadataElement<'_>>>(data).map_err(malformed)?;
                (Action::DeleteMetadata, body.into_delete())
            }
            other => {
                let other: String = other.chars().take(100).collect();
                return Err(ApiError::validation(format!("unsupported action '{other}' of element {at}")));
            }
        };
        Ok(Element::new(action, command, &self.key.0))
    }
}

/// The elements of a bulk, in two lists of equal length.
#[derive(Default)]
pub(crate) struct Elements {
    pub(crate) actions: Vec<Action>,
    /// One for each action.
    pub(crate) requests: Vec<Result<Request, ApiError>>,
    /// The error that ended a stream before its end.
    pub(crate) fault: Option<ApiError>,
}

impl Elements {
    fn with_capacity(count: usize) -> Self {
        Self { actions: Vec::with_capacity(count), requests: Vec::with_capacity(count), fault: None }
    }

    /// Adds the next element.
    pub(crate) fn push(&mut self, Element { action, request }: Element) {
        self.actions.push(action);
        self.requests.push(request);
    }
}

/// Parses an array of elements.
///
/// # Errors
///
/// Returns `BULK_SIZE_EXCEEDED` if there are more than `limit` elements, and `VALIDATION` if the body is no such array.
pub(crate) fn array(body: &[u8], wording: ErrorWording, limit: usize) -> Result<Elements, ApiError> {
    let Array(bodies) = json::first::<Array<Object<ElementBody<'_>>>>(body)
        .map_err(|error| ApiError::validation(format!("error parsing bulk: {error}")))?;
    if bodies.len() > limit {
        return Err(too_long(limit));
    }
    let mut elements = Elements::with_capacity(bodies.len());
    for (at, Object(body)) in bodies.iter().enumerate() {
        elements.push(body.read(at, wording)?);
    }
    Ok(elements)
}

/// Returns the error of a malformed element.
fn unreadable(at: usize, error: &JsonError) -> ApiError {
    ApiError::validation(format!("error parsing element {at}: {error}"))
}

/// Returns the refusal of a bulk with too many elements.
pub(crate) fn too_long(limit: usize) -> ApiError {
    ApiError::new(Code::BulkSizeExceeded, format!("bulk size exceeded, max size is {limit}"))
}

/// Parses elements one after the other. The first malformed one ends the stream. Other requests of the thread get their
/// turn between the parts of a long stream.
pub(crate) async fn stream(body: &[u8], wording: ErrorWording) -> Elements {
    let mut elements = Elements::default();
    let mut bodies = serde_json::Deserializer::from_slice(body).into_iter::<Object<ElementBody<'_>>>();
    for at in 0.. {
        let from = bodies.byte_offset();
        let element = match bodies.next() {
            None => break,
            Some(Ok(Object(body))) => body.read(at, wording),
            Some(Err(error)) => {
                let error = JsonError::of::<Object<ElementBody<'_>>>(error, &body[from..]);
                Err(unreadable(at, &error))
            }
        };
        match element {
            Ok(element) => elements.push(element),
            Err(error) => {
                elements.fault = Some(error);
                break;
            }
        }
        yield_to_others(at).await;
    }
    elements
}

/// Lets other requests of the thread go on after each part of a bulk; `at` is the element that was done last.
pub(crate) async fn yield_to_others(at: usize) {
    if at % COMMANDS_PER_PART == COMMANDS_PER_PART - 1 {
        tokio::task::yield_now().await;
    }
}
