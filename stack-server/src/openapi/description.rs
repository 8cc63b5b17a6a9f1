//! What an operation is described with. A description says what is particular to its operation; what holds of all
//! (path parameters, limits, faults of the server) is added where the document is made.

use crate::error::Code;

/// The description of an operation.
#[derive(Debug)]
pub(crate) struct Description {
    /// The name by which generated clients call it, below the mount that the document names first.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) group: &'static str,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
    pub(crate) answers: Vec<Answer>,
    /// What it is refused with, beside what every operation can be refused with.
    pub(crate) refusals: Vec<Refusal>,
}

impl Description {
    /// Of an operation without parameters, body and answers.
    pub(crate) fn new(id: &'static str, group: &'static str, summary: &'static str) -> Self {
        Self { id, summary, group, parameters: vec![], body: None, answers: vec![], refusals: vec![] }
    }

    /// With these parameters too.
    pub(crate) fn reads(mut self, parameters: &[Parameter]) -> Self {
        self.parameters.extend_from_slice(parameters);
        self
    }

    /// With a body.
    pub(crate) fn takes(mut self, body: Body) -> Self {
        self.body = Some(body);
        self
    }

    /// With an answer that is no error.
    pub(crate) fn answers(mut self, status: u16, summary: &'static str, content: Content) -> Self {
        self.answers.push(Answer { status, summary, content, headers: &[] });
        self
    }

    /// With these headers on the last answer.
    pub(crate) fn shows(mut self, headers: &'static [Shown]) -> Self {
        if let Some(last) = self.answers.last_mut() {
            last.headers = headers;
        }
        self
    }

    /// With refusals that have the status of their code.
    pub(crate) fn refuses(mut self, codes: &[Code]) -> Self {
        self.refusals.extend(codes.iter().map(|code| Refusal { status: None, code: *code }));
        self
    }

    /// With a refusal of another status.
    pub(crate) fn refuses_with(mut self, status: u16, code: Code) -> Self {
        self.refusals.push(Refusal { status: Some(status), code });
        self
    }
}

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Query,
    Header,
}

/// A parameter. None of them is required.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    /// The JSON text of its schema.
    pub(crate) schema: &'static str,
    pub(crate) summary: &'static str,
}

/// A parameter behind the `?`.
pub(crate) const fn query(name: &'static str, schema: &'static str, summary: &'static str) -> Parameter {
    Parameter { name, place: Place::Query, schema, summary }
}

/// A header.
pub(crate) const fn header(name: &'static str, schema: &'static str, summary: &'static str) -> Parameter {
    Parameter { name, place: Place::Header, schema, summary }
}

/// A body. Content types are not looked at, but where there are several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body {
    pub(crate) required: bool,
    /// By content type.
    pub(crate) contents: &'static [(&'static str, Content)],
}

/// An answer that is no error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) summary: &'static str,
    pub(crate) content: Content,
    pub(crate) headers: &'static [Shown],
}

/// What a body holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    Empty,
    /// JSON, by a schema of `schemas.json`.
    Json(&'static str),
    /// That below `data`.
    Data(&'static str),
    /// A page of those.
    Cursor(&'static str),
    /// That in YAML.
    Yaml(&'static str),
    /// Text without a schema, of this content type.
    Text(&'static str),
}

/// A header of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown {
    Count,
    IdempotencyHit,
}

/// An error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// `None` is that of the code.
    pub(crate) status: Option<u16>,
    pub(crate) code: Code,
}

pub(crate) const TEXT: &str = r#"{"type":"string"}"#;
pub(crate) const SWITCH: &str = r#"{"type":"boolean","default":false}"#;
pub(crate) const DATE: &str = r##"{"$ref":"#/components/schemas/Timestamp"}"##;

/// What every write takes that can be repeated.
pub(crate) const IDEMPOTENCY_KEY: Parameter = header(
    "Idempotency-Key",
    r#"{"type":"string","maxLength":255}"#,
    "A request with a key that was used before is not done again: the first answer is given once more.",
);
/// What every answer with amounts looks at.
pub(crate) const BIGINT_AS_STRING: Parameter = header(
    "Formance-Bigint-As-String",
    r#"{"type":"string","examples":["true"]}"#,
    "With `true`, `yes`, `y` or `1`, amounts and balances are answered as strings.",
);
