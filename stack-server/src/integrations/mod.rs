//! Background work of the server: events, exporters, and the removal of deleted buckets.

pub(crate) mod cleanup;
pub(crate) mod events;
pub(crate) mod pipelines;
