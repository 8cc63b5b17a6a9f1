//! Signs events for HTTP receivers. The signature proves who sent the event and when.
//!
//! The signature is `v1,` and the base64 of HMAC-SHA-256 over `id.timestamp.body`. While a secret is being replaced
//! there is one signature per secret, separated by a space. A receiver accepts the message if one of them is valid.
//! It should refuse timestamps (seconds since 1970) that differ from its clock by more than five minutes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use std::fmt;

/// The secrets that are shared with receivers: usually one, and two during a replacement.
#[derive(Clone, Default)]
pub(super) struct Secrets(Vec<Vec<u8>>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

impl Secrets {
    /// Parses one secret per line and skips blank lines.
    pub(super) fn of_lines(text: &str) -> Self {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Self(lines.map(|line| line.as_bytes().to_vec()).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value of the signature header.
    pub(super) fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let head = format!("{id}.{timestamp}.");
        let one =
            |secret: &Vec<u8>| format!("v1,{}", STANDARD.encode(hmac(secret, &[head.as_bytes(), body])));
        self.0.iter().map(one).collect::<Vec<_>>().join(" ")
    }
}

/// Computes the HMAC-SHA-256 (RFC 2104) of the concatenated parts.
fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    const BLOCK: usize = 64;
    let mut block = [0; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let mut inner = Sha256::new();
    inner.update(block.map(|byte| byte ^ 0x36));
    for part in parts {
        inner.update(part);
    }
    let mut outer = Sha256::new();
    outer.update(block.map(|byte| byte ^ 0x5c));
    outer.update(inner.finalize());
    outer.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }

    #[test]
    fn matches_published_hmac_vectors() {
        // Test cases 1, 2 and 6 of RFC 4231.
        for (key, text, expected) in [
            (
                &[0x0b; 20][..],
                &b"Hi There"[..],
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(hex(&hmac(key, &[text])), expected);
            let (head, tail) = text.split_at(3);
            assert_eq!(hex(&hmac(key, &[head, tail])), expected);
        }
    }

    #[test]
    fn every_secret_signs_id_time_and_body() {
        let secrets = Secrets::of_lines("new\n\n old \n");
        let header = secrets.sign("id", 7, b"body");
        let signatures: Vec<_> = header.split(' ').collect();
        for (secret, signature) in ["new", "old"].iter().zip(&signatures) {
            let expected = STANDARD.encode(hmac(secret.as_bytes(), &[b"id.7.body"]));
            assert_eq!(*signature, format!("v1,{expected}"));
        }
        assert_eq!(signatures.len(), 2);
        for other in
            [secrets.sign("id", 8, b"body"), secrets.sign("ie", 7, b"body"), secrets.sign("id", 7, b"bodY")]
        {
            assert!(!signatures.iter().any(|signature| other.contains(signature)), "{other}");
        }
        assert!(!format!("{secrets:?}").contains("new"));
    }
}
