//! The wire hashes of logs: a projection of its own, off the way to an acknowledgement.
//!
//! A thread hashes what the writer feeds it, and what it finds in the journal from before, and keeps a
//! checkpoint of each ledger's chain every so many entries. Whoever asks for a hash starts at the checkpoint
//! before it and computes the few that follow.

mod chain;
mod checkpoints;
mod feed;

pub(crate) use self::chain::{Chain, ChainId, checkpoint_key};
pub(crate) use self::checkpoints::Hashes;
pub(crate) use self::feed::{FedBatch, Scratch, Unhashed, UnhashedMark};
