//! Pages of accounts and of holdings, by their dense numbers.
//!
//! ```text
//! holdings page := count:u16 account:u32 { width:u8 } columns extras
//!                  little-endian; the first places of 256, up to the last with a holding; five widths in bytes
//! columns       := account, asset, transaction count, input, output of each place, each as wide as its column
//!                  accounts minus the smallest of the page; transaction count 0 marks an empty place
//! extras        := { place:u8 flags:u8 [input:amount output:amount] [backdated count, input, output] }
//!                  flags: 1 volumes, because one exceeds 64 bits; 2 sums over backdated transactions
//! accounts page := { place:u8 address:text holdings:varint { asset:varint holding:varint } }
//!                  ascending by place; holdings ascending by asset; of 64 accounts
//! usage page    := 480 * { first usage:i64 }
//!                  little-endian
//! ```
//!
//! A page contains the accounts or holdings with consecutive numbers. Each has a place in its page, which follows from
//! its number.
//!
//! First usages have pages of their own. A transaction with an early date can change those of accounts anywhere, and
//! separate pages keep the bytes to write again few.

mod accounts;
mod columns;
mod holdings;
mod usages;

pub(crate) use accounts::{ACCOUNT_PLACES, AccountPage, FoundHolding, StoredAccount};
pub(crate) use columns::HOLDING_PLACES;
pub(crate) use holdings::{CurrentHolding, HoldingPage, StoredHolding};
pub(crate) use usages::{BEFORE_ALL, UsagePage};

fn page_key(ledger: u32, page: u32) -> [u8; 8] {
    (u64::from(ledger) << 32 | u64::from(page)).to_be_bytes()
}
