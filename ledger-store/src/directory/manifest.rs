//! Parses and writes the manifest of a store.
//!
//! ```text
//! ledger store
//! format 1
//! store <32 hexadecimal digits>
//! secret-check <32>    derived from the secret without disclosing it
//! check <32>           hash of the lines above
//! ```

use ledger_journal::{Identity, Secret, StoreId};

/// The newest supported version of the directory's layout and of its files.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// Maximum size of a manifest in bytes. A real one has about 150; a larger file is not a manifest.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 4096;

/// A parsed manifest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Manifest {
    /// A manifest of a version that this software reads.
    Known {
        /// The store's id.
        store: StoreId,
        /// The check of the secret, to compare with [`secret_check`].
        secret_check: String,
    },
    /// A manifest of a newer version. Its other lines were not read.
    Newer(u32),
}

impl Manifest {
    /// Returns the text of the manifest for a store with this identity.
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

    /// Parses a manifest. The error says which rule it breaks.
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

/// Returns the manifest's line about the secret, which proves that the two belong together. It does not disclose the
/// secret and is not used as a key.
pub(crate) fn secret_check(secret: &Secret) -> String {
    hex_half(blake3::derive_key("ledger store 2026 check of the secret", &secret.0))
}

fn hex_half(hash: [u8; 32]) -> String {
    let (half, _) = hash.split_first_chunk().expect("the first 16 of 32 bytes exist");
    format!("{:032x}", u128::from_be_bytes(*half))
}

fn parse_hex(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)
}
