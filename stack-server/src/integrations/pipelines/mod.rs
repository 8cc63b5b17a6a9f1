//! Exporters and pipelines: they push the logs of a ledger to an external system.
//!
//! An *exporter* describes a destination. A *pipeline* connects a ledger to an exporter and has a position, which is
//! the last log that the destination accepted. Both are documents of the store, and the [`worker`] runs the pipelines.
//! A failed push is retried without limit, and after a restart each pipeline continues at its position. A pipeline
//! reads its logs from the ledger, so nothing waits for it, and a slow pipeline needs memory for only one part of the
//! log. Removing a ledger permanently also removes its pipelines.
//!
//! - [`exporter`]: parses configurations. [`password`]: hides passwords in them. [`stored`]: stores exporters and
//!   pipelines as documents.
//! - [`worker`]: starts and stops pipelines. [`pipeline`]: one running pipeline. [`monitor`]: the progress of each
//!   pipeline. [`destination`], [`file`]: deliver logs.

mod clickhouse;
mod destination;
mod elasticsearch;
mod error;
pub(crate) mod exporter;
mod file;
mod monitor;
pub(crate) mod password;
mod pipeline;
pub(crate) mod stored;
mod worker;

pub(crate) use monitor::PipelineMonitor;
pub(crate) use worker::Worker;
