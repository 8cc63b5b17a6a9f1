//! Code of the program `load`, with one module for each of its sub-commands, and parts that the benchmarks in
//! `benches/` share with it: a workload, a histogram, measurements of the machine (`calibration`), and a naive engine
//! for comparison.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "counts and figures of a measurement are small"
)]

pub mod arguments;
pub mod attack;
pub mod bare;
pub mod bench_store;
pub mod calibration;
pub mod child;
pub mod compare;
pub mod data_dir;
pub mod deliveries;
pub mod embedded;
pub mod events;
pub mod histogram;
pub mod hot_account;
pub mod http_auth;
pub mod http_client;
pub mod http_lists;
pub mod http_load;
pub mod http_mixed;
pub mod http_questions;
pub mod http_reads;
pub mod in_flight;
pub mod mixed;
pub mod naive;
pub mod payments;
pub mod process;
pub mod reads;
pub mod reopen;
pub mod report;
pub mod wire;
pub mod workload;

/// Reason why a run ended without measurements. The program prints it and exits.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
