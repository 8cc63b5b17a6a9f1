//! The description of one API operation. It contains the properties of the operation itself. The document adds the
//! common parts of all operations: path parameters, limits and server errors.

use crate::http::error::Code;

/// The description of an operation.
#[derive(Debug)]
pub(crate) struct Description {
    /// The method name in generated clients, for the mount that the document lists first.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    /// One or two sentences in addition to the summary: the effect, the atomic part, and the response.
    pub(crate) details: &'static str,
    pub(crate) group: &'static str,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
    pub(crate) answers: Vec<Answer>,
    /// The errors of this operation, without those that every operation can return.
    pub(crate) refusals: Vec<Refusal>,
}

impl Description {
    /// Describes an operation without parameters, body or responses.
    pub(crate) fn new(id: &'static str, group: &'static str, summary: &'static str) -> Self {
        Self {
            id,
            summary,
            details: "",
            group,
            parameters: vec![],
            body: None,
            answers: vec![],
            refusals: vec![],
        }
    }

    /// Sets the details. Every operation has some, as a test shows.
    pub(crate) fn details(mut self, details: &'static str) -> Self {
        self.details = details;
        self
    }

    /// Adds parameters.
    pub(crate) fn reads(mut self, parameters: &[Parameter]) -> Self {
        self.parameters.extend_from_slice(parameters);
        self
    }

    /// Sets the request body.
    pub(crate) fn takes(mut self, body: Body) -> Self {
        self.body = Some(body);
        self
    }

    /// Adds a successful response.
    pub(crate) fn answers(mut self, status: u16, summary: &'static str, content: Content) -> Self {
        self.answers.push(Answer { status, summary, content, headers: &[] });
        self
    }

    /// Sets the headers of the response that was added last.
    pub(crate) fn shows(mut self, headers: &'static [ResponseHeader]) -> Self {
        if let Some(last) = self.answers.last_mut() {
            last.headers = headers;
        }
        self
    }

    /// Adds errors that have the usual status of their code.
    pub(crate) fn refuses(mut self, codes: &[Code]) -> Self {
        self.refusals.extend(codes.iter().map(|code| Refusal { status: None, code: *code }));
        self
    }

    /// Adds an error that has another status than its code usually has.
    pub(crate) fn refuses_with(mut self, status: u16, code: Code) -> Self {
        self.refusals.push(Refusal { status: Some(status), code });
        self
    }
}

/// The part of the request that carries a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterLocation {
    Query,
    Header,
}

/// A parameter of the query string or a header. All parameters are optional.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) location: ParameterLocation,
    /// The schema, as JSON text.
    pub(crate) schema: &'static str,
    pub(crate) summary: &'static str,
}

/// Describes a parameter of the query string.
pub(crate) const fn query(name: &'static str, schema: &'static str, summary: &'static str) -> Parameter {
    Parameter { name, location: ParameterLocation::Query, schema, summary }
}

/// Describes a request header.
pub(crate) const fn header(name: &'static str, schema: &'static str, summary: &'static str) -> Parameter {
    Parameter { name, location: ParameterLocation::Header, schema, summary }
}

/// A request body. The server ignores the content type, unless it accepts several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    pub(crate) required: bool,
    /// The content by content type.
    pub(crate) contents: &'static [(&'static str, Content)],
}

/// A successful response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) summary: &'static str,
    pub(crate) content: Content,
    pub(crate) headers: &'static [ResponseHeader],
}

/// The content of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    Empty,
    /// JSON with a schema of `schemas.json`.
    Json(&'static str),
    /// JSON with a schema of `schemas.json` inside the member `data`.
    Data(&'static str),
    /// A page of rows with a schema of `schemas.json`.
    Cursor(&'static str),
    /// A filter of a list. It has the schema `V2Filter`, and an example of this name.
    Filter(&'static str),
    /// YAML with a schema of `schemas.json`.
    Yaml(&'static str),
    /// Text of this content type, without a schema.
    Text(&'static str),
}

/// A header of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ResponseHeader {
    Count,
    IdempotencyHit,
}

/// An error response of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// The status; `None` means the usual status of the code.
    pub(crate) status: Option<u16>,
    pub(crate) code: Code,
}

/// Creates the body of a list request: a filter, with the example of this name. The server reads this body from GET and
/// HEAD requests too.
macro_rules! filter {
    ($example:literal) => {
        $crate::api::openapi::description::Body {
            required: false,
            contents: &[("application/json", $crate::api::openapi::description::Content::Filter($example))],
        }
    };
}
pub(crate) use filter;

pub(crate) const TEXT: &str = r#"{"type":"string"}"#;
pub(crate) const SWITCH: &str = r#"{"type":"boolean","default":false}"#;
pub(crate) const DATE: &str = r##"{"$ref":"#/components/schemas/Timestamp"}"##;

/// The idempotency key of a write.
pub(crate) const IDEMPOTENCY_KEY: Parameter = header(
    "Idempotency-Key",
    r#"{"type":"string","maxLength":255}"#,
    "A request with a key that was used before is not done again: the first answer is given once more.",
);
/// The request header that turns amounts into strings.
pub(crate) const BIGINT_AS_STRING: Parameter = header(
    "Formance-Bigint-As-String",
    r#"{"type":"string","examples":["true"]}"#,
    "With `true`, `yes`, `y` or `1`, amounts and balances are answered as strings.",
);
