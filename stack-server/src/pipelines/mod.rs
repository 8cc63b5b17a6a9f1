//! Exporters and pipelines: the logs of a ledger, pushed to somebody else.
//!
//! An *exporter* says to whom and how; a *pipeline* connects a ledger to one, and remembers the last log that was
//! taken. Both are documents of the store, and the [`worker`] does what they say: a push that fails is tried again
//! for as long as it takes, and after a restart each pipeline goes on where it was. Logs are read from the ledger, so
//! nothing waits for a pipeline, and a slow one holds one part of its log in memory. It goes with its ledger when that
//! is removed for good.
//!
//! - [`exporter`]: what an exporter is configured with. [`password`]: what of it is not shown. [`stored`]: both as documents.
//! - [`worker`]: which pipelines run. [`pipeline`]: one of them at work. [`destination`], [`file`]: where logs go.

mod destination;
pub(crate) mod exporter;
mod file;
pub(crate) mod password;
mod pipeline;
pub(crate) mod stored;
mod worker;

pub(crate) use worker::{Live, Worker};
