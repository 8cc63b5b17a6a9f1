//! Limits of values, each with its reason.
//!
//! ```
//! use ledger_values::limits::*;
//! use ledger_values::{AccountAddress, Amount, Asset, IdempotencyKey, LedgerName, Reference, SchemaVersion};
//! let fits = |length: usize| "A".repeat(length);
//! assert!(AccountAddress::parse(&fits(ADDRESS_BYTES_MAX)).is_ok());
//! assert!(LedgerName::parse(&fits(LEDGER_NAME_BYTES_MAX + 1)).is_err());
//! assert!(Asset::parse(&fits(ASSET_BYTES_MAX + 1)).is_err());
//! assert!(Reference::parse(&fits(REFERENCE_BYTES_MAX)).is_ok());
//! assert!(IdempotencyKey::parse(&fits(IDEMPOTENCY_KEY_CHARS_MAX)).is_ok());
//! assert!(SchemaVersion::parse(&fits(SCHEMA_VERSION_BYTES_MAX)).is_ok());
//! assert!("9".repeat(AMOUNT_DIGITS_MAX + 1).parse::<Amount>().is_err());
//! assert!(Amount::parse_recorded(&"9".repeat(RECORDED_AMOUNT_DIGITS_MAX)).is_ok());
//! ```

/// Maximum length of an account address in bytes.
///
/// The API sets no limit; the keys of the index need one. Ten times the longest address in recorded traffic.
pub const ADDRESS_BYTES_MAX: usize = 1_024;

/// Maximum length of an asset: 17 letters and digits, `_` with 16 letters, `/` with 6 digits.
pub const ASSET_BYTES_MAX: usize = 41;

/// Maximum length of the name of a ledger or bucket, as the API sets it.
pub const LEDGER_NAME_BYTES_MAX: usize = 63;

/// Maximum number of decimal digits of an amount. Keeps the time to parse linear in practice; clients send up
/// to 87.
pub const AMOUNT_DIGITS_MAX: usize = 1_000;

/// Maximum number of decimal digits of an amount in a recorded transaction. A script that sends everything may move
/// the sum of many amounts: a googol of them fit.
pub const RECORDED_AMOUNT_DIGITS_MAX: usize = AMOUNT_DIGITS_MAX + 100;

/// Maximum length of a transaction reference in bytes. Bounds the keys of the index.
pub const REFERENCE_BYTES_MAX: usize = 4_096;

/// Maximum length of an idempotency key in characters. Other servers of this API have a column of that width.
pub const IDEMPOTENCY_KEY_CHARS_MAX: usize = 255;

/// Maximum length of the name of a schema version in bytes. The API sets no limit; the keys of the index need
/// one.
pub const SCHEMA_VERSION_BYTES_MAX: usize = 255;
