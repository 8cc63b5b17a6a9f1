//! TLS for clients: version 1.2 and later. The server reloads its certificate files when they change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::limits::HEADER_READ_TIMEOUT;
use crate::log::{self, Level};

/// Minimum time between two checks of the files. A new connection starts a check.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// A file for TLS that cannot be used.
#[derive(Debug, Error)]
#[error("{}: {reason}", .path.display())]
pub(crate) struct TlsFileError {
    path: PathBuf,
    #[source]
    reason: TlsFileFault,
}

/// The reason why a file for TLS cannot be used.
#[derive(Debug, Error)]
enum TlsFileFault {
    #[error(transparent)]
    Pem(#[from] pem::Error),
    #[error("there is no certificate in it")]
    NoCertificate,
    /// The certificate is invalid, or the key belongs to another one.
    #[error(transparent)]
    Certificate(#[from] rustls::Error),
    #[error(transparent)]
    Authorities(#[from] VerifierBuilderError),
}

/// The paths of the files for TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the server and its chain, in PEM form.
    pub certificate: PathBuf,
    /// The private key of the certificate, in PEM form.
    pub key: PathBuf,
    /// The certificate authorities for client certificates, in PEM form. If set, every client must present a
    /// certificate of one of them.
    pub client_authorities: Option<PathBuf>,
}

impl TlsFiles {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let both = [self.certificate.as_path(), self.key.as_path()];
        both.into_iter().chain(self.client_authorities.as_deref())
    }

    /// Returns when each file was last modified, or `None` for a file whose date cannot be read.
    fn modified(&self) -> Vec<Option<SystemTime>> {
        self.paths().map(|path| std::fs::metadata(path).and_then(|about| about.modified()).ok()).collect()
    }

    fn load(&self) -> Result<ServerConfig, TlsFileError> {
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| file_error(&self.key, error))?;
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| file_error(&self.certificate, error))?;
        let builder = match &self.client_authorities {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(path)? {
                    roots.add(authority).map_err(|error| file_error(path, error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| file_error(path, error))?)
            }
        };
        let mut config =
            builder.with_single_cert(chain, key).map_err(|error| file_error(&self.certificate, error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn file_error(path: &Path, reason: impl Into<TlsFileFault>) -> TlsFileError {
    TlsFileError { path: path.to_owned(), reason: reason.into() }
}

/// Reads the certificates of a file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let all = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|error| file_error(path, error))?;
    if all.is_empty() { Err(file_error(path, TlsFileFault::NoCertificate)) } else { Ok(all) }
}

/// The configuration that is in use, and the state of the files at the last check.
#[derive(Debug)]
struct Loaded {
    config: Arc<ServerConfig>,
    /// The time when each file was last modified, as the last check found it.
    modified: Vec<Option<SystemTime>>,
    checked_at: Instant,
}

/// Accepts TLS connections.
#[derive(Debug)]
pub(crate) struct Tls {
    files: TlsFiles,
    loaded: Mutex<Loaded>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, or if its content cannot be used.
    pub(crate) fn new(files: TlsFiles) -> Result<Self, TlsFileError> {
        let modified = files.modified();
        let config = Arc::new(files.load()?);
        Ok(Self { files, loaded: Mutex::new(Loaded { config, modified, checked_at: Instant::now() }) })
    }

    /// Reloads the files if they have changed. Keeps the current configuration if the new files cannot be used.
    fn reload_if_changed(&self, loaded: &mut Loaded) {
        loaded.checked_at = Instant::now();
        let modified = self.files.modified();
        if modified == loaded.modified {
            return;
        }
        // Record the change even if the files cannot be used. The error is then logged once, and the next change is
        // tried again.
        loaded.modified = modified;
        match self.files.load() {
            Ok(config) => {
                loaded.config = Arc::new(config);
                log::event(Level::Info, "certificate", &[("file", &self.files.certificate.display())]);
            }
            Err(reason) => log::event(Level::Error, "certificate", &[("reason", &reason)]),
        }
    }

    fn config(&self) -> Arc<ServerConfig> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.checked_at.elapsed() >= CHECK_INTERVAL {
            self.reload_if_changed(&mut loaded);
        }
        loaded.config.clone()
    }

    /// Performs the handshake with a client. Returns `None` if the handshake fails or takes too long.
    pub(crate) async fn accept(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        let accepting = TlsAcceptor::from(self.config()).accept(stream);
        tokio::time::timeout(HEADER_READ_TIMEOUT, accepting).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str, age: u64) {
        std::fs::write(path, text).expect("it is written");
        let time = SystemTime::now() - Duration::from_secs(age);
        let file = std::fs::File::options().append(true).open(path).expect("it is there");
        file.set_modified(time).expect("a date");
    }

    #[test]
    fn reloads_changed_files_and_keeps_config_on_error() {
        let home = tempfile::tempdir().expect("a directory");
        let files = TlsFiles {
            certificate: home.path().join("certificate.pem"),
            key: home.path().join("key.pem"),
            client_authorities: None,
        };
        let put = |age| {
            let made =
                rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
            write(&files.certificate, &made.cert.pem(), age);
            write(&files.key, &made.signing_key.serialize_pem(), age);
        };
        assert!(Tls::new(files.clone()).is_err());
        put(90);
        let tls = Tls::new(files.clone()).expect("a certificate and its key");
        let first = tls.config();
        let check = || {
            tls.reload_if_changed(&mut tls.loaded.lock().expect("no panic"));
            tls.config()
        };
        assert!(Arc::ptr_eq(&first, &check()), "nothing has changed");
        put(60);
        let second = check();
        assert!(!Arc::ptr_eq(&first, &second));
        // First a certificate whose key does not match, then a file without a certificate.
        let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        write(&files.certificate, &other.cert.pem(), 30);
        assert!(Arc::ptr_eq(&second, &check()));
        write(&files.certificate, "nothing", 20);
        assert!(Arc::ptr_eq(&second, &check()));
        assert!(Tls::new(files.clone()).is_err());
        put(10);
        assert!(!Arc::ptr_eq(&second, &check()));
    }
}
