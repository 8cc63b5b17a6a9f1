//! The transport: connections, TLS, requests and responses of any route.

pub(crate) mod browsers;
pub(crate) mod connection;
pub(crate) mod error;
pub(crate) mod json;
pub(crate) mod memory;
pub(crate) mod mount_path;
pub(crate) mod rejection;
pub(crate) mod reply_body;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod slots;
pub(crate) mod strict_lines;
pub(crate) mod tls;
