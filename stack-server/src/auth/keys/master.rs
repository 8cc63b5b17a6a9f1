//! The operator's key: 32 random bytes as hexadecimal digits or base64, in a file or an environment variable.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use crate::auth::keys::error::{KeyFileError, KeyFileFault, NoRandomBytes, NotAKey};
use crate::auth::keys::random;
use crate::log::{self, Level};

/// The key that seals the private values of the authorization server, such as its signing keys. Another key,
/// [`EncryptionKey`](crate::EncryptionKey), seals the secrets of connectors.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey([u8; 32]);

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(hidden)")
    }
}

impl MasterKey {
    /// Creates a new random key.
    ///
    /// # Errors
    ///
    /// Fails if the operating system returns no random bytes.
    pub fn random() -> Result<Self, NoRandomBytes> {
        random().map(Self)
    }

    /// Reads 64 hexadecimal digits, or the base64 of 32 bytes.
    ///
    /// # Errors
    ///
    /// Fails if the text is neither. The error does not repeat the text.
    pub fn parse(text: &str) -> Result<Self, NotAKey> {
        let text = text.trim();
        let bytes = if text.len() == 64 { from_hex(text) } else { None };
        let bytes = bytes.or_else(|| {
            let engine = if text.ends_with('=') { STANDARD } else { STANDARD_NO_PAD };
            engine.decode(text).ok()
        });
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or(NotAKey)
    }

    pub(super) const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads the key in a file. Returns `None` if the file does not exist.
    fn read(path: &Path) -> Result<Option<Self>, KeyFileFault> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let key = Self::parse(&text)?;
        if std::fs::metadata(path).is_ok_and(|about| about.mode() & 0o077 != 0) {
            let reason = "others may read the key that seals the keys of tokens: give the file mode 0600";
            log::event(Level::Warning, "exposed", &[("file", &path.display()), ("reason", &reason)]);
        }
        Ok(Some(key))
    }

    /// Writes a new key into a file that only its owner can read. The file is durable when this returns.
    fn create(path: &Path) -> Result<Self, KeyFileFault> {
        let key = Self::random()?;
        let mut hex = String::new();
        for byte in key.0 {
            hex.push_str(&format!("{byte:02x}"));
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(format!("{hex}\n").as_bytes())?;
        file.sync_all()?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(key)
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c.to_digit(16)?).ok()).collect();
    Some(digits?.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// The source of the operator's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// The key itself, from an environment variable or an application.
    Given(MasterKey),
    /// A file with the key. A missing file is created with a new key, but only before the first use in a store: a new
    /// key could not open the values that an earlier one sealed.
    File(PathBuf),
}

impl KeySource {
    /// Returns the key. `may_create` says whether a missing file is created, because no key has sealed anything yet.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or created, or does not contain a key.
    pub(super) fn resolve(&self, may_create: bool) -> Result<MasterKey, KeyFileError> {
        let path = match self {
            Self::Given(key) => return Ok(key.clone()),
            Self::File(path) => path,
        };
        let found = match MasterKey::read(path) {
            Ok(None) if may_create => MasterKey::create(path),
            Ok(None) => Err(KeyFileFault::Missing),
            Ok(Some(key)) => Ok(key),
            Err(fault) => Err(fault),
        };
        found.map_err(|reason| KeyFileError { path: path.clone(), reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_keys_as_hex_and_base64() {
        let key = MasterKey([7; 32]);
        for text in ["07".repeat(32), STANDARD.encode([7; 32]), STANDARD_NO_PAD.encode([7; 32])] {
            assert_eq!(MasterKey::parse(&format!(" {text}\n")).as_ref(), Ok(&key), "{text}");
        }
        for text in ["", "07", &"zz".repeat(32), &STANDARD.encode([7; 31]), &"07".repeat(33)] {
            let error = MasterKey::parse(text).expect_err(text).to_string();
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
        assert_eq!(format!("{key:?}"), "MasterKey(hidden)");
    }

    #[test]
    fn makes_a_key_file_for_its_owner_alone() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("auth.key");
        let source = KeySource::File(path.clone());
        assert!(
            source.resolve(false).expect_err("the file is missing").to_string().contains("bring it back")
        );
        let key = source.resolve(true).expect("a new key");
        assert_eq!(std::fs::metadata(&path).expect("a file").mode() & 0o777, 0o600);
        assert_eq!(source.resolve(false).expect("the file is there"), key);
        std::fs::write(&path, "nonsense").expect("the file can be written");
        assert!(source.resolve(true).is_err(), "a damaged file is never replaced");
    }
}
