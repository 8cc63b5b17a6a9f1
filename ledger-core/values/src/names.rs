//! Names with a grammar: ledger, bucket, account address, asset, reference, idempotency key, schema version.
//!
//! `parse` is the only constructor, so no other code has to check a name again.

use std::fmt;

use smol_str::SmolStr;

use crate::limits::{
    ADDRESS_BYTES_MAX, ASSET_BYTES_MAX, IDEMPOTENCY_KEY_CHARS_MAX, LEDGER_NAME_BYTES_MAX,
    REFERENCE_BYTES_MAX, SCHEMA_VERSION_BYTES_MAX,
};
use crate::short_text::short_text;

/// Refusal of a text that breaks the grammar of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    /// The grammar that the text breaks.
    pub kind: NameKind,
    /// The refused text, cut to 100 characters.
    pub text: String,
}

/// The kinds of names, each with its own grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// The name of a ledger. See [`LedgerName`].
    Ledger,
    /// The name of a bucket. See [`BucketName`].
    Bucket,
    /// The address of an account. See [`AccountAddress`].
    Address,
    /// The code of an asset. See [`Asset`].
    Asset,
    /// The reference of a transaction. See [`Reference`].
    Reference,
    /// The key of a request. See [`IdempotencyKey`].
    IdempotencyKey,
    /// The version of a schema. See [`SchemaVersion`].
    SchemaVersion,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        match self.kind {
            NameKind::Ledger if is_plain_name(text) => {
                write!(f, "invalid ledger name '{text}': name is reserved")
            }
            NameKind::Ledger => {
                write!(f, "invalid ledger name '{text}': name must match format '^[0-9a-zA-Z_-]{{1,63}}$'")
            }
            NameKind::Bucket => {
                write!(f, "invalid bucket name '{text}': name must match format '^[0-9a-zA-Z_-]{{1,63}}$'")
            }
            NameKind::Address => write!(
                f,
                "invalid account address '{text}': segments of '0-9a-zA-Z_-', separated by ':', at most \
                 {ADDRESS_BYTES_MAX} bytes"
            ),
            NameKind::Asset => write!(f, "invalid asset '{text}'"),
            NameKind::Reference => write!(f, "invalid reference: 1 to {REFERENCE_BYTES_MAX} bytes"),
            NameKind::SchemaVersion => {
                write!(f, "invalid schema version: 1 to {SCHEMA_VERSION_BYTES_MAX} bytes")
            }
            NameKind::IdempotencyKey => {
                write!(f, "invalid idempotency key: 1 to {IDEMPOTENCY_KEY_CHARS_MAX} characters")
            }
        }
    }
}

impl std::error::Error for NameError {}

/// A checked name is converted into itself without an error.
impl From<std::convert::Infallible> for NameError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl NameError {
    /// Makes the error for a text that breaks the grammar of a kind of names.
    pub fn new(kind: NameKind, text: &str) -> Self {
        Self { kind, text: text.chars().take(100).collect() }
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $kind:expr, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(SmolStr);

        impl $name {
            /// Checks the grammar of a text and makes a name of it.
            ///
            /// # Errors
            ///
            /// [`NameError`] if the text does not follow the grammar of this type.
            pub fn parse(text: &str) -> Result<Self, NameError> {
                Self::check(text)?;
                Ok(Self(short_text(text)))
            }

            fn check(text: &str) -> Result<(), NameError> {
                let valid: fn(&str) -> bool = $valid;
                if valid(text) { Ok(()) } else { Err(NameError::new($kind, text)) }
            }

            /// Returns the name as text.
            #[inline]
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), f)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }

        // `Borrow` is sound: names compare and hash like their texts.
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }

        impl TryFrom<&str> for $name {
            type Error = NameError;

            fn try_from(text: &str) -> Result<Self, NameError> {
                Self::parse(text)
            }
        }

        /// Does not copy the text.
        impl TryFrom<SmolStr> for $name {
            type Error = NameError;

            fn try_from(text: SmolStr) -> Result<Self, NameError> {
                Self::check(&text)?;
                Ok(Self(text))
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                Self::parse(&text)
            }
        }

        impl From<&$name> for $name {
            fn from(name: &$name) -> Self {
                name.clone()
            }
        }

        impl std::str::FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::parse(text)
            }
        }
    };
}

name!(
    /// The name of a ledger: 1 to 63 characters of `0-9 a-z A-Z _ -`. The names `_`, `_info` and
    /// `_healthcheck` are reserved for routes.
    LedgerName,
    NameKind::Ledger,
    |text| is_plain_name(text) && !matches!(text, "_" | "_info" | "_healthcheck")
);

name!(
    /// The name of a bucket: 1 to 63 characters of `0-9 a-z A-Z _ -`. The ledgers of a bucket are removed
    /// together.
    BucketName,
    NameKind::Bucket,
    is_plain_name
);

name!(
    /// The address of an account: one or more segments of `0-9 a-z A-Z _ -`, separated by `:`.
    ///
    /// Addresses are ordered bytewise, and lists of accounts have that order.
    AccountAddress,
    NameKind::Address,
    is_address
);

name!(
    /// An asset: `[A-Z][A-Z0-9]{0,16}`, an optional `_` with 1 to 16 capital letters, and an optional `/`
    /// with 1 to 6 digits. The digits give the number of decimal places of the smallest unit: `USD/2` counts
    /// cents.
    Asset,
    NameKind::Asset,
    is_asset
);

name!(
    /// The name that a caller gives to a transaction. No other transaction of the ledger ever gets the same
    /// one.
    Reference,
    NameKind::Reference,
    |text| !text.is_empty() && text.len() <= REFERENCE_BYTES_MAX
);

name!(
    /// A caller's key for one write. The ledger answers a repeated key from the first write and does not
    /// execute it again.
    IdempotencyKey,
    NameKind::IdempotencyKey,
    |text| !text.is_empty() && text.chars().count() <= IDEMPOTENCY_KEY_CHARS_MAX
);

name!(
    /// The name of a version of a ledger's schema: any text.
    SchemaVersion,
    NameKind::SchemaVersion,
    |text| !text.is_empty() && text.len() <= SCHEMA_VERSION_BYTES_MAX
);

/// Address of the account that needs no funds. Money enters and leaves a ledger through it.
pub const WORLD: &str = "world";

impl AccountAddress {
    /// Returns the address of the account [`WORLD`].
    ///
    /// ```
    /// use ledger_values::{AccountAddress, WORLD};
    /// assert_eq!(AccountAddress::world().as_str(), WORLD);
    /// let wallet = AccountAddress::parse("users:1:main")?;
    /// assert!(!wallet.is_world());
    /// assert_eq!(wallet.segments().collect::<Vec<_>>(), ["users", "1", "main"]);
    /// # Ok::<(), ledger_values::NameError>(())
    /// ```
    pub fn world() -> Self {
        Self(SmolStr::new_static(WORLD))
    }

    /// Tells whether this is the account [`WORLD`].
    pub fn is_world(&self) -> bool {
        self.as_str() == WORLD
    }

    /// Iterates over the segments between the colons.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.as_str().split(':')
    }
}

impl Asset {
    /// Returns the code without the number of fractional digits: `USD` of `USD/2`.
    pub fn code(&self) -> &str {
        self.as_str().split_once('/').map_or(self.as_str(), |(code, _)| code)
    }

    /// Returns the number of fractional digits: 2 of `USD/2`, 0 of `USD`.
    pub fn scale(&self) -> u32 {
        // The grammar allows at most six digits.
        self.as_str().split_once('/').map_or(0, |(_, digits)| digits.parse().unwrap_or_default())
    }
}

impl BucketName {
    /// Returns the bucket of ledgers that name none.
    ///
    /// ```
    /// use ledger_values::BucketName;
    /// assert_eq!(BucketName::default_bucket().as_str(), "_default");
    /// ```
    pub fn default_bucket() -> Self {
        Self(SmolStr::new_static("_default"))
    }
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn is_plain_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= LEDGER_NAME_BYTES_MAX && text.bytes().all(is_word)
}

fn is_address(text: &str) -> bool {
    let mut in_segment = false;
    for byte in text.bytes() {
        if is_word(byte) {
            in_segment = true;
        } else if byte == b':' && in_segment {
            in_segment = false;
        } else {
            return false;
        }
    }
    in_segment && text.len() <= ADDRESS_BYTES_MAX
}

fn is_asset(text: &str) -> bool {
    if text.len() > ASSET_BYTES_MAX {
        return false;
    }
    let (name, digits) = match text.split_once('/') {
        Some((name, digits)) => (name, Some(digits)),
        None => (text, None),
    };
    let (code, suffix) = match name.split_once('_') {
        Some((code, suffix)) => (code, Some(suffix)),
        None => (name, None),
    };
    let mut bytes = code.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_uppercase())
        && code.len() <= 17
        && bytes.all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        && suffix.is_none_or(|s| matches!(s.len(), 1..=16) && s.bytes().all(|b| b.is_ascii_uppercase()))
        && digits.is_none_or(|d| matches!(d.len(), 1..=6) && d.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_the_grammar_of_addresses() {
        for good in ["world", "a", "users:001", "users:001:main", "A_b-c:9"] {
            assert!(AccountAddress::parse(good).is_ok(), "{good}");
        }
        for bad in ["", ":", "a:", ":a", "a::b", "a b", "ä", "a.b", "a/b", "@a", "a\n"] {
            assert!(AccountAddress::parse(bad).is_err(), "{bad:?}");
            assert!(AccountAddress::try_from(SmolStr::new(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn names_are_equal_however_they_are_made() {
        // At and above the length that a `SmolStr` holds itself.
        for length in [1, 22, 23, 24, 200] {
            let text = "a".repeat(length);
            let parsed = AccountAddress::parse(&text).expect("an address");
            assert_eq!(parsed.as_str(), text);
            assert_eq!(AccountAddress::try_from(SmolStr::new(&text)), Ok(parsed));
        }
    }

    #[test]
    fn checks_the_grammar_of_assets() {
        for good in ["USD", "USD/2", "A", "EUR_TEST/2", "A2345678901234567", "U/123456"] {
            assert!(Asset::parse(good).is_ok(), "{good}");
        }
        for bad in
            ["", "usd", "2USD", "USD/", "USD/1234567", "USD_", "USD_a", "A23456789012345678", "USD/2/2"]
        {
            assert!(Asset::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn refuses_ledger_names_that_are_routes() {
        assert!(LedgerName::parse("main").is_ok());
        assert!(LedgerName::parse("_info2").is_ok());
        for bad in ["_", "_info", "_healthcheck", "", "a:b", "a/b", &"x".repeat(64)] {
            assert!(LedgerName::parse(bad).is_err(), "{bad}");
        }
        let reserved = LedgerName::parse("_info").expect_err("a route has this name").to_string();
        assert_eq!(reserved, "invalid ledger name '_info': name is reserved");
        assert!(BucketName::parse("_").is_ok());
    }
}
