//! Encryption of private values, and tags of secrets.
//!
//! The operator's key encrypts one random *pepper* and the private parts of signing keys. The pepper is the HMAC key
//! for the tags of secrets, codes and refresh tokens. A data directory does not reveal any of them without the
//! operator's key.

use std::fmt;

use aws_lc_rs::hmac;
use ledger_store::{DocumentRejection, Expected, Store, WriteError};
use subtle::ConstantTimeEq as _;

use crate::auth::keys::error::{NoRandomBytes, VaultError};
use crate::auth::keys::master::{KeySource, MasterKey};
use crate::auth::keys::random;
use crate::collections::AUTH_VAULT;
use crate::documents::put;
use crate::sealing::Sealer;

/// The key of the document with the pepper.
const PEPPER: &[u8] = b"pepper";

/// An HMAC-SHA-256 tag.
pub(crate) type Tag = [u8; 32];

/// The purposes of tags. A value has a different tag for each purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    ClientSecret,
    RefreshToken,
    Code,
    State,
    /// The value with which a browser proves that it has started a login.
    Browser,
    Nonce,
    Verifier,
    /// The right secrets of static clients that this process remembers.
    StaticSecret,
}

impl Use {
    const fn label(self) -> &'static [u8] {
        match self {
            Self::ClientSecret => b"client secret\0",
            Self::RefreshToken => b"refresh token\0",
            Self::Code => b"code\0",
            Self::State => b"state\0",
            Self::Browser => b"browser\0",
            Self::Nonce => b"nonce\0",
            Self::Verifier => b"verifier\0",
            Self::StaticSecret => b"static secret\0",
        }
    }
}

/// Compares two secrets in a time that does not depend on where they differ. Use this function for all comparisons of
/// secrets.
pub(crate) fn same_secret(one: &[u8], other: &[u8]) -> bool {
    one.ct_eq(other).into()
}

/// The open vault of a store.
pub(crate) struct Vault {
    sealer: Sealer,
    pepper: hmac::Key,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vault(hidden)")
    }
}

impl Vault {
    /// Opens the vault of a store, or creates it.
    ///
    /// # Errors
    ///
    /// Fails if the key cannot be read, if another key encrypted the vault, or if the store fails. The error is for the
    /// operator.
    pub(crate) fn open(store: &Store, source: &KeySource) -> Result<Self, VaultError> {
        let stored = |store: &Store| {
            let found = store.snapshot().document(AUTH_VAULT, PEPPER)?;
            Ok::<_, VaultError>(found.map(|document| document.value))
        };
        if let Some(sealed) = stored(store)? {
            return Self::unsealed(&source.resolve(false)?, &sealed);
        }
        let master = source.resolve(true)?;
        let sealed = sealer_of(&master).seal(PEPPER, &random::<32>()?).map_err(NoRandomBytes::from)?;
        match store.change_documents(vec![put(AUTH_VAULT, PEPPER, sealed.clone(), vec![], Expected::Absent)])
        {
            Ok(_) => Self::unsealed(&master, &sealed),
            // Another thread has created the vault at the same time.
            Err(WriteError::Document(DocumentRejection::Changed { .. })) => {
                Self::unsealed(&master, &stored(store)?.ok_or(VaultError::Gone)?)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn unsealed(master: &MasterKey, sealed: &[u8]) -> Result<Self, VaultError> {
        let sealer = sealer_of(master);
        let pepper = sealer.open(PEPPER, sealed).map_err(|_| VaultError::OtherKey)?;
        Ok(Self { sealer, pepper: hmac::Key::new(hmac::HMAC_SHA256, &pepper) })
    }

    /// Encrypts a value with a name. Decryption requires the same name.
    ///
    /// # Errors
    ///
    /// Fails if the operating system returns no random bytes.
    pub(crate) fn seal(&self, name: &[u8], clear: &[u8]) -> Result<Vec<u8>, NoRandomBytes> {
        Ok(self.sealer.seal(name, clear)?)
    }

    /// Decrypts a value. Returns `None` if it was encrypted with another key or name, or if it was changed.
    pub(crate) fn unseal(&self, name: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        self.sealer.open(name, sealed).ok()
    }

    /// Returns the tag of a value. The tag cannot be computed without the operator's key.
    pub(crate) fn tag(&self, of: Use, value: &[u8]) -> Tag {
        let mut context = hmac::Context::with_key(&self.pepper);
        context.update(of.label());
        context.update(value);
        let mut tag = [0; 32];
        tag.copy_from_slice(context.sign().as_ref());
        tag
    }
}

/// Returns the sealer of the authorization server. Its key is derived from the operator's key.
fn sealer_of(master: &MasterKey) -> Sealer {
    Sealer::new(&blake3::derive_key("stack-server 2026 authorization server", master.bytes()))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn given() -> KeySource {
        KeySource::Given(MasterKey::random().expect("random bytes"))
    }

    #[test]
    fn opens_with_its_own_key_only() {
        let store = Store::in_memory();
        let source = given();
        let vault = Vault::open(&store, &source).expect("a new vault");
        let sealed = vault.seal(b"a", b"private").expect("the vault can seal");
        let again = Vault::open(&store, &source).expect("the same vault");
        assert_eq!(again.unseal(b"a", &sealed).as_deref(), Some(&b"private"[..]));
        assert_eq!(again.unseal(b"b", &sealed), None, "of another name");
        assert_eq!(again.tag(Use::Code, b"x"), vault.tag(Use::Code, b"x"));
        assert_ne!(vault.tag(Use::Code, b"x"), vault.tag(Use::State, b"x"));
        let error = Vault::open(&store, &given()).expect_err("another key").to_string();
        assert!(error.contains("another key sealed it"), "{error}");
    }

    #[test]
    fn refuses_changed_seals() {
        let vault = Vault::open(&Store::in_memory(), &given()).expect("a vault");
        let sealed = vault.seal(b"a", b"private").expect("the vault can seal");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(vault.unseal(b"a", &changed), None, "byte {at}");
        }
        assert_eq!(vault.unseal(b"a", &sealed[..8]), None);
        assert!(!sealed.windows(7).any(|window| window == b"private"));
    }

    #[test]
    fn compares_whole_secrets() {
        assert!(same_secret(b"abc", b"abc"));
        assert!(!same_secret(b"abc", b"abd") && !same_secret(b"abc", b"ab") && !same_secret(b"", b"a"));
    }

    /// Returns how clearly a comparison takes longer for secrets that differ late than for those that differ early. The
    /// result is Welch's t over alternating runs, without the slowest tenth, which other processes may have delayed.
    fn t_value(rounds: usize, compare: impl Fn(&[u8], &[u8]) -> bool) -> f64 {
        let secret = vec![7; 16 * 1_024];
        let (mut early, mut late) = (secret.clone(), secret.clone());
        early[0] ^= 1;
        *late.last_mut().expect("a long secret") ^= 1;
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (guess, times) in [&early, &late].into_iter().zip(&mut times) {
                let begun = std::time::Instant::now();
                assert!(!std::hint::black_box(compare(
                    std::hint::black_box(&secret),
                    std::hint::black_box(guess)
                )));
                times.push(begun.elapsed().as_nanos() as f64);
            }
        }
        let [(mean, square), (other_mean, other_square)] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times.truncate(rounds / 10 * 9);
            let count = times.len() as f64;
            let mean = times.iter().sum::<f64>() / count;
            (mean, times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0) / count)
        });
        (other_mean - mean) / (square + other_square).sqrt().max(f64::MIN_POSITIVE)
    }

    #[test]
    fn a_comparison_does_not_tell_where_secrets_differ() {
        // Set this variable for longer measurements.
        let rounds =
            std::env::var("TIMING_ROUNDS").ok().and_then(|count| count.parse().ok()).unwrap_or(2_000);
        let ours = t_value(rounds, same_secret);
        // The measurement must detect that a plain comparison depends on the position.
        let plain = t_value(rounds, |one, other| one == other);
        let found =
            format!("{rounds} comparisons of secrets: t = {ours:.1}; of a plain comparison {plain:.1}");
        // The test harness captures printed text, but not text that is written to standard error.
        writeln!(std::io::stderr(), "{found}").expect("standard error is open");
        assert!(plain > 20.0 && ours.abs() < plain / 4.0, "{found}");
    }
}
