//! Checked values of double-entry accounting. The constructor of each type checks its rule, so that a value
//! is always valid.
//!
//! Amounts are exact integers of any size in the smallest unit of their asset. This crate reads no file, no
//! clock and no random source.
//!
//! ```
//! use ledger_values::{AccountAddress, Amount, Asset, Posting};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let posting = Posting {
//!     source: AccountAddress::parse("world")?,
//!     destination: AccountAddress::parse("users:001")?,
//!     amount: Amount::from(100_00_u64),
//!     asset: Asset::parse("USD/2")?,
//! };
//! assert_eq!(posting.amount.to_string(), "10000");
//! assert!(AccountAddress::parse("users::001").is_err());
//! # Ok(())
//! # }
//! ```

#![warn(missing_debug_implementations)]

pub mod decimal;
pub mod json_text;
pub mod limits;
pub mod typed_text;

mod amount;
mod convert;
mod json_reader;
mod json_writer;
mod metadata;
mod monetary;
mod names;
#[cfg(feature = "serde")]
mod serde_values;
mod short_text;
mod system_time;
mod timestamp;
mod transaction;
mod units;
mod value_type;
mod volumes;

pub use amount::{Amount, AmountError, Balance};
pub use convert::IntoAmount;
pub use json_reader::{JsonError, JsonKind, JsonReader};
pub use json_writer::JsonWriter;
pub use metadata::{Metadata, MetadataValue};
pub use monetary::{Monetary, MonetaryError};
pub use names::{
    AccountAddress, Asset, BucketName, IdempotencyKey, LedgerName, NameError, NameKind, Reference,
    SchemaVersion, WORLD,
};
pub use short_text::short_text;
pub use smol_str::SmolStr;
pub use timestamp::{Timestamp, TimestampError, TimestampText};
pub use transaction::{Posting, Postings, Transaction, TransactionId};
pub use value_type::Type;
pub use volumes::{HoldingVolumes, Volumes};
