//! TLS connections to hosts that the operating system trusts.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::error::{IdentityError, TlsError};

/// Performs a TLS handshake with a host, which is a name or an address without brackets.
///
/// # Errors
///
/// Fails if this machine trusts no certificate authorities, or does not trust this host.
pub(crate) async fn connect_tls(stream: TcpStream, host: &str) -> Result<TlsStream<TcpStream>, TlsError> {
    let name = match host.parse::<IpAddr>() {
        Ok(address) => ServerName::IpAddress(address.into()),
        Err(_) => ServerName::try_from(host.to_owned())?,
    };
    Ok(TlsConnector::from(config()?).connect(name, stream).await?)
}

/// A certificate and its key, for servers that request client certificates. `Debug` hides both.
#[derive(Clone)]
pub(crate) struct Identity(Arc<ClientConfig>);

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity")
    }
}

impl Identity {
    /// Reads a certificate with its chain, and its key.
    ///
    /// # Errors
    ///
    /// Fails if they are not in PEM form, or do not belong together.
    pub(crate) fn parse(certificate: &[u8], key: &[u8]) -> Result<Self, IdentityError> {
        let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
        let (chain, key) = (chain?, PrivateKeyDer::from_pem_slice(key)?);
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?;
        let config = builder.with_root_certificates(roots()).with_client_auth_cert(chain, key);
        Ok(Self(Arc::new(config?)))
    }

    /// Performs a TLS handshake like [`connect_tls`], with this certificate.
    ///
    /// # Errors
    ///
    /// Fails if this machine does not trust the host, or the host does not trust this certificate.
    pub(super) async fn connect_tls(
        &self,
        stream: TcpStream,
        host: &str,
    ) -> Result<TlsStream<TcpStream>, TlsError> {
        let name = ServerName::try_from(host.to_owned())?;
        Ok(TlsConnector::from(self.0.clone()).connect(name, stream).await?)
    }
}

/// Returns the certificate authorities that this machine trusts. Skips unreadable certificates.
fn roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    roots
}

fn config() -> Result<Arc<ClientConfig>, TlsError> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    let roots = roots();
    if roots.is_empty() {
        return Err(TlsError::NoAuthorities);
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(CONFIG.get_or_init(|| Arc::new(config)).clone())
}
