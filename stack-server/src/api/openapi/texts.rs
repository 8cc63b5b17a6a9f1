//! The texts of the API description that the server serves.

use std::sync::OnceLock;

use hyper::body::Bytes;

/// The API description in its served forms. The first request builds them.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    pub(crate) json: OnceLock<Bytes>,
    pub(crate) yaml: OnceLock<Bytes>,
}
