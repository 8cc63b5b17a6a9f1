//! The description of the API, as `OpenAPI` 3.1.
//!
//! The document is built from the routing table, where each row is an operation. `v2.rs`, `v1.rs`, `service.rs` and the
//! other files of this module describe the parameters and responses of operations; the compiler demands a description
//! for each operation. `error.rs` defines the statuses and codes of errors, and the row of an operation its body limit.
//! `CONTRIBUTING.md` lists the steps to add an operation.

mod auth;
mod description;
mod document;
mod examples;
mod parameters;
mod paths;
mod payments;
mod pipelines;
mod responses;
mod service;
mod tags;
pub(crate) mod texts;
mod v1;
mod v2;
mod variables;
mod yaml;

use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CONTENT_SECURITY_POLICY, HeaderValue, LOCATION};

use crate::api::context::Context;
use crate::api::operations::DocumentForm;
use crate::http::response::{self, Reply};

const PAGE: &str = include_str!("page.html");

/// The page may load the document from this server, and nothing else.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);

/// Returns the document in the requested form.
pub(crate) fn answer(context: &Context<'_>, form: DocumentForm) -> Reply {
    let texts = context.app.description();
    let make = || document::document(context.app.guard(), context.app.settings());
    match form {
        DocumentForm::Json => {
            let text = texts.json.get_or_init(|| Bytes::from(format!("{}\n", make().to_json())));
            response::text(StatusCode::OK, "application/json", text.clone())
        }
        DocumentForm::Yaml => {
            let text = texts.yaml.get_or_init(|| Bytes::from(make().to_yaml()));
            response::text(StatusCode::OK, "application/yaml", text.clone())
        }
        DocumentForm::Page => {
            let mut reply = response::text(
                StatusCode::OK,
                "text/html; charset=utf-8",
                Bytes::from_static(PAGE.as_bytes()),
            );
            reply.headers_mut().insert(CONTENT_SECURITY_POLICY, PAGE_POLICY);
            reply
        }
        DocumentForm::Link => {
            let mut reply = response::text(StatusCode::SEE_OTHER, "application/json", Bytes::new());
            reply.headers_mut().insert(LOCATION, HeaderValue::from_static("/docs"));
            reply
        }
    }
}
