//! TLS for those who connect: TLS 1.2 and later, with certificates from files that are read again when they change.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::limits::HEADER_READ_TIMEOUT;
use crate::log::{self, Level};

/// The files are looked at so often, when somebody connects.
const LOOK: Duration = Duration::from_secs(10);

/// Where the server's certificate is, and whose clients it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and those that lead from it to an authority, as PEM.
    pub certificate: PathBuf,
    /// Its private key, as PEM.
    pub key: PathBuf,
    /// Authorities as PEM: then every client must show a certificate of one of them.
    pub client_authorities: Option<PathBuf>,
}

impl TlsFiles {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let both = [self.certificate.as_path(), self.key.as_path()];
        both.into_iter().chain(self.client_authorities.as_deref())
    }

    /// When they were changed; what cannot be told counts as a change once it can.
    fn changed(&self) -> Vec<Option<SystemTime>> {
        self.paths().map(|path| std::fs::metadata(path).and_then(|about| about.modified()).ok()).collect()
    }

    fn load(&self) -> Result<ServerConfig, String> {
        let wrong = |path: &Path, error: &dyn fmt::Display| format!("{}: {error}", path.display());
        let certificates = |path: &Path| {
            let all = CertificateDer::pem_file_iter(path)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| wrong(path, &error))?;
            if all.is_empty() { Err(wrong(path, &"there is no certificate in it")) } else { Ok(all) }
        };
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| wrong(&self.key, &error))?;
        let provider = Arc::new(default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let builder = match &self.client_authorities {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(path)? {
                    roots.add(authority).map_err(|error| wrong(path, &error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| wrong(path, &error))?)
            }
        };
        let mut config =
            builder.with_single_cert(chain, key).map_err(|error| wrong(&self.certificate, &error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// What was read from the files, and when.
#[derive(Debug)]
struct Loaded {
    config: Arc<ServerConfig>,
    changed: Vec<Option<SystemTime>>,
    looked: Instant,
}

/// Speaks TLS with clients.
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
    /// Which of them is not what it should be.
    pub(crate) fn new(files: TlsFiles) -> Result<Self, String> {
        let changed = files.changed();
        let config = Arc::new(files.load()?);
        Ok(Self { files, loaded: Mutex::new(Loaded { config, changed, looked: Instant::now() }) })
    }

    /// Reads the files again if they have changed. What cannot be used leaves what was there.
    fn look(&self, loaded: &mut Loaded) {
        loaded.looked = Instant::now();
        let changed = self.files.changed();
        if changed == loaded.changed {
            return;
        }
        // Also if they cannot be used: they are told of once, and tried again when they change.
        loaded.changed = changed;
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
        if loaded.looked.elapsed() >= LOOK {
            self.look(&mut loaded);
        }
        loaded.config.clone()
    }

    /// Begins to speak TLS over a connection; `None` if the client does not, or takes too long.
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
    fn files_are_read_again_when_they_change_and_what_is_wrong_changes_nothing() {
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
        let look = || {
            tls.look(&mut tls.loaded.lock().expect("no panic"));
            tls.config()
        };
        assert!(Arc::ptr_eq(&first, &look()), "nothing has changed");
        put(60);
        let second = look();
        assert!(!Arc::ptr_eq(&first, &second));
        // A certificate without its key, and no certificate at all.
        let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
        write(&files.certificate, &other.cert.pem(), 30);
        assert!(Arc::ptr_eq(&second, &look()));
        write(&files.certificate, "nothing", 20);
        assert!(Arc::ptr_eq(&second, &look()));
        assert!(Tls::new(files.clone()).is_err());
        put(10);
        assert!(!Arc::ptr_eq(&second, &look()));
    }
}
