//! The writer: decides commands in one order and makes them durable.

mod accounts;
mod ahead;
mod apply;
mod batch;
mod documents;
mod execute;
mod fence;
mod half_hash;
mod holding;
mod import;
mod numbers;
mod payload;
mod recent;
mod recent_keys;
mod removal;
mod schema;
mod script;
mod state;

pub(crate) use accounts::Near;
pub(crate) use ahead::{Ahead, COMMANDS_AHEAD, KeyPrints};
pub(crate) use apply::{Hints, holding_key, value_of};
pub(crate) use batch::Batch;
pub(crate) use execute::{Decided, RecordedTransaction, Setting, Written};
pub(crate) use fence::Fence;
pub(crate) use state::State;
