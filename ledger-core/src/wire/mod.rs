//! Hashes that other servers of the ledger API compute, and the texts that they cover: the chains of logs of v2
//! ([`wire_hash`]) over their [`memento`]s, those of v1 ([`legacy_hash`]), and the hashes of requests ([`request_hash`]).

mod base64;
mod legacy_hash;
mod memento;
mod request_hash;
mod wire_hash;

pub use legacy_hash::{LegacyHashChain, LegacyLog};
pub use memento::Memento;
pub use request_hash::{batch_hash, log_request_hash, request_hash};
pub use wire_hash::{HashChain, WireHash, wire_hash};
