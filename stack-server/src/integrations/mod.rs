//! Work that the server does beside answering requests: events, exporters, and the removal of deleted buckets.

pub(crate) mod cleanup;
pub(crate) mod events;
pub(crate) mod pipelines;
