//! The wire hashes of logs. They are a projection of the journal, and no acknowledgement waits for them.
//!
//! A thread hashes the entries that the writer feeds it, and those of the journal that it has missed. At regular
//! intervals it stores a checkpoint of each ledger's chain. A reader who needs a hash starts at the checkpoint before
//! it and computes the few that follow.

mod chain;
mod checkpoints;
mod feed;

pub(crate) use self::chain::{Chain, ChainId, checkpoint_key};
pub(crate) use self::checkpoints::Hashes;
pub(crate) use self::feed::{QueuedBatch, Scratch, Unhashed, UnhashedMark};
