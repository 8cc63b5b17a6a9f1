//! TLS to hosts that the operating system trusts.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore};

/// Performs a TLS handshake with a host, which is a name or an address without brackets.
///
/// # Errors
///
/// Fails if this machine trusts no authority, or not this host. The text is for the log.
pub(crate) async fn secured(stream: TcpStream, host: &str) -> Result<TlsStream<TcpStream>, String> {
    let name = match host.parse::<IpAddr>() {
        Ok(address) => ServerName::IpAddress(address.into()),
        Err(_) => ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?,
    };
    TlsConnector::from(config()?).connect(name, stream).await.map_err(|error| error.to_string())
}

/// A certificate and its key, for servers that ask clients for one. It prints nothing.
#[derive(Clone)]
pub(crate) struct Identity(Arc<ClientConfig>);

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

/// The reason why a certificate and a key are no identity.
#[derive(Debug)]
pub(crate) enum IdentityError {
    /// The texts are not in PEM form.
    Pem(pem::Error),
    /// There is no certificate, or the key is not its key.
    Pair(Error),
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pem(error) => error.fmt(f),
            Self::Pair(error) => error.fmt(f),
        }
    }
}

impl Identity {
    /// Reads a certificate with its chain, and its key.
    ///
    /// # Errors
    ///
    /// Fails if they are not in PEM form, or no pair.
    pub(crate) fn parse(certificate: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(IdentityError::Pem)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(IdentityError::Pem)?;
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(IdentityError::Pair)?;
        let config = builder.with_root_certificates(roots()).with_client_auth_cert(chain, key);
        Ok(Self(Arc::new(config.map_err(IdentityError::Pair)?)))
    }

    /// Performs a TLS handshake as [`secured`] does, with this certificate.
    ///
    /// # Errors
    ///
    /// Fails if this machine does not trust the host, or the host does not trust this certificate.
    pub(super) async fn secured(&self, stream: TcpStream, host: &str) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        TlsConnector::from(self.0.clone()).connect(name, stream).await
    }
}

/// The authorities that this machine trusts. Certificates that cannot be read are not trusted.
fn roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    roots
}

fn config() -> Result<Arc<ClientConfig>, String> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    let roots = roots();
    if roots.is_empty() {
        return Err("this machine trusts no certificate authority".to_owned());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(CONFIG.get_or_init(|| Arc::new(config)).clone())
}
