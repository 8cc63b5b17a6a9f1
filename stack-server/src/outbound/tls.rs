//! TLS to hosts that the operating system trusts.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

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

fn config() -> Result<Arc<ClientConfig>, String> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(config.clone());
    }
    let mut roots = RootCertStore::empty();
    // Ignore certificates that cannot be read. They are then not trusted.
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
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
