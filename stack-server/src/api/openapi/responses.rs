//! The answers of an operation, with what every operation can answer beside its own.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::api::ledger_v1;
use crate::api::openapi::description::{Answer, Content, Description, Refusal, ResponseHeader};
use crate::api::openapi::examples;
use crate::api::routes::{Mount, Route, STREAM};
use crate::auth::Scope;
use crate::http::error::{ApiError, Code, Profile};

/// The forms of an answer with one status.
#[derive(Default)]
struct Response {
    summary: Option<&'static str>,
    /// Schemas by content type; several of one type are alternatives.
    contents: BTreeMap<&'static str, Vec<Value>>,
    /// Examples by content type, of what succeeds.
    examples: BTreeMap<&'static str, Value>,
    codes: BTreeSet<&'static str>,
    headers: BTreeMap<&'static str, Value>,
    /// True if refusals have the form of the generic connector API.
    is_generic: bool,
    /// True if refusals have the form of OAuth.
    is_protocol: bool,
}

/// The answers of a route below a mount, by status.
pub(crate) fn responses(route: &Route, profile: Profile, description: &Description) -> Value {
    let is_v1 = route.mount == Mount::LedgerV1;
    let mut all: BTreeMap<u16, Response> = BTreeMap::new();
    for answer in &description.answers {
        add_answer(all.entry(answer.status).or_default(), answer);
    }
    for refusal in description.refusals.iter().chain(&common(route)) {
        let error = ApiError::new(refusal.code, "");
        let (status, word) = if is_v1 {
            (error.status(Profile::Ledger), ledger_v1::v1_code(&error))
        } else {
            (error.status(profile), error.code.text(profile))
        };
        all.entry(refusal.status.unwrap_or(status.as_u16())).or_default().codes.insert(word);
    }
    if route.template.contains('{') || route.operation.is_of_exporters() || route.mount == Mount::Auth {
        // What a mount reserves is no variable segment; what the operator did not switch on is not there.
        let response = all.entry(404).or_default();
        response.contents.entry("text/plain").or_default().push(json!({"type": "string"}));
    }
    if route.scope != Scope::Open {
        let challenge = json!({"schema": {"type": "string"}, "required": true});
        let response = all.entry(401).or_default();
        response.summary = Some("No token that allows this; only where the server asks for tokens");
        response.headers.insert("WWW-Authenticate", challenge);
        if route.mount == Mount::Generic {
            let error = json!({"$ref": "#/components/schemas/GenericError"});
            response.contents.entry("application/json").or_default().push(error);
        }
    }
    let rendered = all.into_iter().map(|(status, mut response)| {
        response.is_generic = route.mount == Mount::Generic;
        response.is_protocol = route.operation.is_protocol();
        (status.to_string(), render(status, response, is_v1, route.method == "HEAD"))
    });
    Value::Object(rendered.collect())
}

/// Refusals that every operation has.
fn common(route: &Route) -> Vec<Refusal> {
    // Heads without a host, and escapes that are none; foreign pages; late bodies; long targets and heads, packed bodies.
    let mut statuses = vec![400, 403, 408, 414, 415, 431];
    if route.body_limit != STREAM {
        statuses.push(413);
    }
    let mut codes = vec![(503, Code::Internal), (500, Code::Internal)];
    if !matches!(route.method, "GET" | "HEAD") {
        codes.push((400, Code::ReadOnly));
    }
    let refused = |status: &u16| Refusal { status: Some(*status), code: Code::Validation };
    let mut refusals: Vec<Refusal> = statuses.iter().map(refused).collect();
    refusals.extend(codes.into_iter().map(|(status, code)| Refusal { status: Some(status), code }));
    refusals
}

fn add_answer(response: &mut Response, answer: &Answer) {
    response.summary = Some(answer.summary);
    if let Some((content_type, schema)) = content(answer.content) {
        response.contents.entry(content_type).or_default().push(schema);
        if answer.status < 300
            && let Some(example) = examples::reference(content_type, answer.content)
        {
            response.examples.insert(content_type, example);
        }
    }
    for header in answer.headers {
        let (name, value) = match header {
            ResponseHeader::Count => {
                ("Count", json!({"schema": {"type": "integer", "minimum": 0}, "required": true}))
            }
            ResponseHeader::IdempotencyHit => (
                "Idempotency-Hit",
                json!({"schema": {"type": "string", "enum": ["true"]}, "description": "This was answered before."}),
            ),
        };
        response.headers.insert(name, value);
    }
}

/// The content type and schema of a body, if there is one.
pub(crate) fn content(content: Content) -> Option<(&'static str, Value)> {
    let schema = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    match content {
        Content::Empty => None,
        Content::Json(name) => Some(("application/json", schema(name))),
        Content::Filter(_) => Some(("application/json", schema("V2Filter"))),
        Content::Yaml(name) => Some(("application/yaml", schema(name))),
        Content::Data(name) => Some((
            "application/json",
            json!({"type": "object", "required": ["data"], "properties": {"data": schema(name)}}),
        )),
        Content::Cursor(name) => Some(("application/json", page(&schema(name)))),
        Content::Text(content_type) => Some((content_type, json!({"type": "string"}))),
    }
}

fn page(item: &Value) -> Value {
    let size = json!({"type": "integer", "minimum": 1});
    let more = json!({"type": "boolean"});
    json!({
        "type": "object",
        "required": ["cursor"],
        "properties": {
            "cursor": {
                "type": "object",
                "required": ["pageSize", "hasMore", "data"],
                "properties": {
                    "pageSize": size,
                    "hasMore": more,
                    "previous": {"type": "string"},
                    "next": {"type": "string"},
                    "data": {"type": "array", "items": item},
                    // The older names, in API v1.
                    "page_size": size,
                    "has_more": more
                }
            }
        }
    })
}

/// Returns the form of a body of one content type.
pub(crate) fn media(schema: &Value, examples: Option<Value>) -> Value {
    let mut media = json!({"schema": schema});
    if let Some(examples) = examples {
        media["examples"] = examples;
    }
    media
}

fn render(status: u16, mut response: Response, is_v1: bool, is_head: bool) -> Value {
    if !response.codes.is_empty() {
        let form = if is_v1 { "V1ErrorResponse" } else { "ErrorResponse" };
        // What is refused before a route is found has the same form everywhere.
        let is_early = matches!(status, 414 | 415 | 431);
        let form = if is_early { "ErrorResponse" } else { form };
        let generic = json!({"$ref": "#/components/schemas/GenericError"});
        let error = json!({"allOf": [
            {"$ref": format!("#/components/schemas/{form}")},
            {"properties": {"errorCode": {"enum": response.codes}}}
        ]});
        let oauth = json!({"$ref": "#/components/schemas/OAuthError"});
        let error = match (response.is_generic, response.is_protocol) {
            (true, _) if !is_early => generic,
            (_, true) if !is_early => oauth,
            _ => error,
        };
        let forms = response.contents.entry("application/json").or_default();
        if !forms.contains(&error) {
            forms.push(error);
        }
        if status == 503 {
            response.headers.insert("Retry-After", json!({"schema": {"type": "string"}}));
        }
    }
    let summary = response.summary.unwrap_or(match status {
        403 => "The host, or the page that sent this, is foreign to a server without tokens",
        404 => "There is no such thing",
        408 => "The body did not arrive in time",
        412 => "The options exclude each other",
        413 => "The body is too large, or holds too much",
        414 => "The target is too long",
        415 => "The body is encoded",
        431 => "The headers are too long",
        500 => "A fault of the server",
        503 => "Not now; come back in a moment",
        _ => "Refused",
    });
    let mut rendered = json!({"description": summary});
    if !response.headers.is_empty() {
        rendered["headers"] = json!(response.headers);
    }
    if !is_head && !response.contents.is_empty() {
        let examples = response.examples;
        let contents = response.contents.into_iter().map(|(content_type, mut schemas)| {
            let schema = if schemas.len() == 1 { schemas.remove(0) } else { json!({"anyOf": schemas}) };
            (content_type.to_owned(), media(&schema, examples.get(content_type).cloned()))
        });
        rendered["content"] = Value::Object(contents.collect());
    }
    rendered
}
