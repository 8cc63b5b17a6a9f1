//! The text of a store's manifest.
//!
//! ```text
//! ledger store
//! format 1
//! store <32 hexadecimal digits>
//! secret-check <32>    derived from the secret, which it does not disclose
//! check <32>           of the lines above
//! ```

use ledger_journal::{Identity, Secret, StoreId};

/// The newest version of the directory's layout, and of all in it.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// A manifest is some 150 bytes; a file of this size is none.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 4096;

/// A parsed manifest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Manifest {
    /// Of a version that this one reads.
    Known {
        /// The store's id.
        store: StoreId,
        /// To be compared with [`secret_check`].
        secret_check: String,
    },
    /// Of a newer version, and not read further.
    Newer(u32),
}

impl Manifest {
    /// The text of the manifest of the store with this identity.
    pub(crate) fn text(identity: &Identity) -> String {
        let mut text = format!(
            "ledger store\nformat {FORMAT_VERSION}\nstore {}\nsecret-check {}\n",
            identity.store,
            secret_check(&identity.secret)
        );
        let check = hex_half(*blake3::hash(text.as_bytes()).as_bytes());
        text.push_str(&format!("check {check}\n"));
        text
    }

    /// Reads a manifest, or says what does not hold.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let text = str::from_utf8(bytes).map_err(|_| "it is not text")?;
        let rest = text.strip_prefix("ledger store\nformat ");
        let rest = rest.ok_or("it does not begin as a manifest does")?;
        let (version, _) = rest.split_once('\n').ok_or(TOO_SHORT)?;
        let version: u32 = version.parse().map_err(|_| "its format version is no number")?;
        if version > FORMAT_VERSION {
            return Ok(Self::Newer(version));
        }
        let before = text.rfind("\ncheck ").ok_or(TOO_SHORT)? + 1;
        let check = hex_half(*blake3::hash(&bytes[..before]).as_bytes());
        if text[before..] != format!("check {check}\n") {
            return Err("it does not match its check");
        }
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.ok_or(TOO_SHORT)
        };
        let store = StoreId(parse_hex(field("store")?).ok_or("its store id is no number")?);
        Ok(Self::Known { store, secret_check: field("secret-check")?.to_owned() })
    }
}

const TOO_SHORT: &str = "it ends too early";

/// The manifest's line about the secret, so that the two are known to belong
/// together. It does not disclose the secret, and keys nothing.
pub(crate) fn secret_check(secret: &Secret) -> String {
    hex_half(blake3::derive_key("ledger store 2026 check of the secret", &secret.0))
}

fn hex_half(hash: [u8; 32]) -> String {
    let (half, _) = hash.split_first_chunk().expect("32 bytes have a first half");
    format!("{:032x}", u128::from_be_bytes(*half))
}

fn parse_hex(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)
}
