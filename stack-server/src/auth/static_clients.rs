//! Static clients, from the operator's file. They take precedence over stored clients, are never listed and cannot be
//! changed.
//!
//! People choose the secrets of these clients. So the server keeps only a hash of each secret that is slow to compute
//! (argon2id).

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use argon2::{Algorithm, Argon2, Params, Version};
use thiserror::Error;
use yaml_rust2::{Yaml, YamlLoader};

use crate::auth::keys::error::NoRandomBytes;
use crate::auth::keys::random;
use crate::auth::keys::vault::{Tag, Use, Vault, same_secret};
use crate::auth::resources::client::ScopeRef;
use crate::limits::{STATIC_CLIENTS_BYTES_MAX, STATIC_SECRETS_MAX};

/// Memory of a hash. The recommended minimum for argon2id is 19 MiB with two passes and one lane.
const MEMORY_KIB: u32 = 19 * 1_024;
const PASSES: u32 = 2;

/// The hash of a secret cannot be computed.
#[derive(Debug, Error)]
pub(crate) enum HashError {
    #[error(transparent)]
    Random(#[from] NoRandomBytes),
    #[error("argon2id: {0}")]
    Argon2(argon2::Error),
}

impl From<argon2::Error> for HashError {
    fn from(error: argon2::Error) -> Self {
        Self::Argon2(error)
    }
}

/// The reason why a file of clients cannot be used. The text shows no secret.
#[derive(Debug, Error)]
#[error("{path}: {reason}", path = path.display())]
pub struct ClientsFileError {
    path: PathBuf,
    #[source]
    reason: ClientsFileFault,
}

#[derive(Debug, Error)]
enum ClientsFileFault {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error(transparent)]
    Text(#[from] ClientsError),
}

/// The reason why a text cannot be read as clients. It shows no secret.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct ClientsError(#[from] ClientsFault);

#[derive(Debug, Error)]
enum ClientsFault {
    #[error("it is longer than {STATIC_CLIENTS_BYTES_MAX} bytes")]
    TooLong,
    /// The parser's own error text is dropped: it may contain a secret from this position.
    #[error("it is no YAML: line {line}, column {column}")]
    NotYaml { line: usize, column: usize },
    #[error("it holds no document, or more than one")]
    NotOneDocument,
    #[error("it has no list named \"clients\"")]
    NoClients,
    #[error("client {number}: {reason}")]
    Client { number: usize, reason: ClientFault },
}

/// The reason why an entry is not a client.
#[derive(Debug, Error)]
enum ClientFault {
    #[error("it is no mapping")]
    NoMapping,
    #[error("it has an unknown field; known are {}", FIELDS.join(", "))]
    UnknownField,
    #[error("its id is no text")]
    NoId,
    #[error("id {0:?} is there twice")]
    SameId(String),
    #[error("{0} is neither true nor false")]
    NoFlag(&'static str),
    #[error("it has {0} secrets, at most {STATIC_SECRETS_MAX}")]
    TooManySecrets(usize),
    #[error("it has no secret, or an empty one, and is not public")]
    NoSecret,
    #[error("an item of {0} is no text: put it in quotes")]
    NoText(&'static str),
    #[error("{0} is no list")]
    NoList(&'static str),
    #[error(transparent)]
    Hash(#[from] HashError),
}

/// The fields of a client in the file.
const FIELDS: [&str; 10] = [
    "id",
    "name",
    "public",
    "trusted",
    "description",
    "redirectUris",
    "postLogoutRedirectUris",
    "metadata",
    "scopes",
    "secrets",
];

/// The hash of a secret.
#[derive(Clone, PartialEq, Eq)]
struct SlowHash {
    salt: [u8; 16],
    hash: [u8; 32],
}

impl SlowHash {
    fn of(secret: &str) -> Result<Self, HashError> {
        let salt = random()?;
        Ok(Self { salt, hash: slow_hash(secret, &salt)? })
    }

    fn is_of(&self, secret: &str) -> bool {
        slow_hash(secret, &self.salt).is_ok_and(|hash| same_secret(&hash, &self.hash))
    }
}

fn slow_hash(secret: &str, salt: &[u8]) -> Result<[u8; 32], HashError> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, Some(32))?;
    let mut hash = [0; 32];
    let hasher = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    hasher.hash_password_into(secret.as_bytes(), salt, &mut hash)?;
    Ok(hash)
}

/// A client of the file.
#[derive(Clone, PartialEq, Eq)]
pub struct StaticClient {
    pub(crate) id: String,
    pub(crate) public: bool,
    pub(crate) trusted: bool,
    pub(crate) redirect_uris: Vec<String>,
    pub(crate) post_logout_redirect_uris: Vec<String>,
    pub(crate) scopes: Vec<ScopeRef>,
    secrets: Vec<SlowHash>,
}

impl fmt::Debug for StaticClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticClient").field("id", &self.id).finish_non_exhaustive()
    }
}

impl StaticClient {
    /// Reads the clients of a file in YAML, which includes JSON.
    ///
    /// # Errors
    ///
    /// Names the wrong entry of the file. No error shows a secret.
    pub fn load(path: &Path) -> Result<Vec<Self>, ClientsFileError> {
        let read = || Ok::<_, ClientsFileFault>(Self::parse(&std::fs::read_to_string(path)?)?);
        read().map_err(|reason| ClientsFileError { path: path.to_owned(), reason })
    }

    /// Reads the clients of a text.
    ///
    /// # Errors
    ///
    /// Fails like [`StaticClient::load`].
    pub fn parse(text: &str) -> Result<Vec<Self>, ClientsError> {
        if text.len() > STATIC_CLIENTS_BYTES_MAX {
            return Err(ClientsFault::TooLong.into());
        }
        let documents = YamlLoader::load_from_str(text).map_err(|error| ClientsFault::NotYaml {
            line: error.marker().line(),
            column: error.marker().col() + 1,
        })?;
        let [document] = documents.as_slice() else { return Err(ClientsFault::NotOneDocument.into()) };
        let entries = document["clients"].as_vec().ok_or(ClientsFault::NoClients)?;
        let mut clients: Vec<Self> = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            let wrong = |reason| ClientsFault::Client { number: at + 1, reason };
            let client = Self::read(entry).map_err(wrong)?;
            if clients.iter().any(|have| have.id == client.id) {
                return Err(wrong(ClientFault::SameId(client.id)).into());
            }
            clients.push(client);
        }
        Ok(clients)
    }

    fn read(entry: &Yaml) -> Result<Self, ClientFault> {
        let fields = entry.as_hash().ok_or(ClientFault::NoMapping)?;
        for name in fields.keys() {
            if !name.as_str().is_some_and(|name| FIELDS.contains(&name)) {
                return Err(ClientFault::UnknownField);
            }
        }
        let id = entry["id"].as_str().filter(|id| !id.is_empty()).ok_or(ClientFault::NoId)?.to_owned();
        let flag = |name: &'static str| match &entry[name] {
            Yaml::BadValue | Yaml::Null => Ok(false),
            value => value.as_bool().ok_or(ClientFault::NoFlag(name)),
        };
        let secrets = texts(entry, "secrets")?;
        let public = flag("public")?;
        if secrets.len() > STATIC_SECRETS_MAX {
            return Err(ClientFault::TooManySecrets(secrets.len()));
        }
        if secrets.iter().any(String::is_empty) || secrets.is_empty() && !public {
            return Err(ClientFault::NoSecret);
        }
        Ok(Self {
            id,
            public,
            trusted: flag("trusted")?,
            redirect_uris: texts(entry, "redirectUris")?,
            post_logout_redirect_uris: texts(entry, "postLogoutRedirectUris")?,
            scopes: texts(entry, "scopes")?.into_iter().map(ScopeRef::Name).collect(),
            secrets: secrets.iter().map(|secret| SlowHash::of(secret)).collect::<Result<_, _>>()?,
        })
    }
}

/// Returns a list of texts, which is empty if the member is missing.
fn texts(entry: &Yaml, name: &'static str) -> Result<Vec<String>, ClientFault> {
    match &entry[name] {
        Yaml::BadValue | Yaml::Null => Ok(vec![]),
        Yaml::Array(items) => {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
            texts.ok_or(ClientFault::NoText(name))
        }
        _ => Err(ClientFault::NoList(name)),
    }
}

/// The static clients of a server.
pub(crate) struct StaticClients {
    clients: Vec<StaticClient>,
    /// Tags of secrets that were right, by client. A known secret needs no slow hash. The tags are keyed, and never
    /// leave this process.
    known: Mutex<HashMap<String, Tag>>,
    /// The hash to compare with when a client has no more hashes. Every check computes as many hashes as the client
    /// with the most secrets has, so that its time does not tell which clients exist.
    nobody: Option<SlowHash>,
    most_secrets: usize,
    /// Number of slow hashes that checks have computed.
    #[cfg(test)]
    pub(crate) computed: std::sync::atomic::AtomicUsize,
}

impl StaticClients {
    /// Creates the static clients of a server.
    ///
    /// # Errors
    ///
    /// Fails if a hash cannot be computed. The error is for the operator.
    pub(crate) fn new(clients: Vec<StaticClient>) -> Result<Self, HashError> {
        let nobody = if clients.is_empty() { None } else { Some(SlowHash::of("nobody")?) };
        let most_secrets = clients.iter().map(|client| client.secrets.len()).max().unwrap_or(0);
        Ok(Self {
            clients,
            known: Mutex::default(),
            nobody,
            most_secrets,
            #[cfg(test)]
            computed: 0.into(),
        })
    }

    pub(crate) fn get(&self, id: &str) -> Option<&StaticClient> {
        self.clients.iter().find(|client| client.id == id)
    }

    fn tag(vault: &Vault, client: &StaticClient, secret: &str) -> Tag {
        let value = [&(client.id.len() as u64).to_be_bytes(), client.id.as_bytes(), secret.as_bytes()];
        vault.tag(Use::StaticSecret, &value.concat())
    }

    /// Returns whether this secret was right before. Needs no slow hash.
    pub(crate) fn knows(&self, vault: &Vault, client: &StaticClient, secret: &str) -> bool {
        let tag = Self::tag(vault, client, secret);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&client.id).is_some_and(|have| same_secret(have, &tag))
    }

    /// Returns whether the check of a wrong secret computes slow hashes. It does so for all clients if there is any
    /// static client.
    pub(crate) const fn are_slow(&self) -> bool {
        self.nobody.is_some()
    }

    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "tests count the hashes"))]
    fn is_of(&self, hash: &SlowHash, secret: &str) -> bool {
        #[cfg(test)]
        self.computed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        hash.is_of(secret)
    }

    /// Returns whether a text is a secret of the client. Takes the same slow work for an unknown client.
    pub(crate) fn check(&self, vault: &Vault, client: Option<&StaticClient>, secret: &str) -> bool {
        let hashes = client.map_or(&[][..], |client| &client.secrets);
        let is_right = hashes.iter().fold(false, |found, hash| self.is_of(hash, secret) | found);
        for nobody in self.nobody.iter().cycle().take(self.most_secrets.saturating_sub(hashes.len())) {
            std::hint::black_box(self.is_of(nobody, secret));
        }
        if let Some(client) = client.filter(|_| is_right) {
            let tag = Self::tag(vault, client, secret);
            self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(client.id.clone(), tag);
        }
        is_right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::keys::master::{KeySource, MasterKey};

    const FILE: &str = "clients:\n  - id: global\n    name: global\n    trusted: true\n    metadata: {env: dev}\n    \
        redirectUris: []\n    scopes: [openid, ledger:read]\n    secrets: [\"global\", other]\n  - {\"id\": \"spa\", \"public\": true}\n";

    #[test]
    fn reads_the_file_of_other_servers() {
        let clients = StaticClient::parse(FILE).expect("two clients");
        assert_eq!(clients.iter().map(|client| client.id.as_str()).collect::<Vec<_>>(), ["global", "spa"]);
        assert_eq!(
            clients[0].scopes,
            [ScopeRef::Name("openid".into()), ScopeRef::Name("ledger:read".into())]
        );
        assert!(clients[0].trusted && !clients[0].public && clients[1].public);
        assert_eq!(format!("{:?}", clients[0]), "StaticClient { id: \"global\", .. }");
        let json = r#"{"clients":[{"id":"a","secrets":["b"]}]}"#;
        assert_eq!(StaticClient::parse(json).expect("one client").len(), 1);
    }

    #[test]
    fn refuses_bad_files_without_showing_secrets() {
        for text in [
            "",
            "clients: 7",
            "clients: [7]",
            "clients: [{id: a}]",
            "clients: [{id: '', secrets: [hidden]}]",
            "clients: [{id: a, secrets: hidden}]",
            "clients: [{id: a, secrets: [hidden, '']}]",
            "clients: [{id: a, secrets: [7, hidden]}]",
            "clients: [{id: a, secrets: [hidden], secret: hidden}]",
            "clients: [{id: a, public: maybe, secrets: [hidden]}]",
            "clients: [{id: a, secrets: [hidden]}, {id: a, secrets: [hidden]}]",
            "clients: [{id: a, secrets: [hidden}",
            "clients: []\n---\nclients: []\n",
        ] {
            let error = StaticClient::parse(text).expect_err(text).to_string();
            assert!(!error.contains("hidden"), "{error}");
        }
    }

    #[test]
    fn knows_a_secret_once_it_was_right() {
        let store = ledger_store::Store::in_memory();
        let key = KeySource::Given(MasterKey::random().expect("random bytes"));
        let vault = Vault::open(&store, &key).expect("a vault");
        let clients = StaticClients::new(StaticClient::parse(FILE).expect("the file is well formed"))
            .expect("the secrets can be hashed");
        let global = clients.get("global").expect("a client");
        assert!(!clients.knows(&vault, global, "other"));
        assert!(!clients.check(&vault, Some(global), "wrong") && !clients.check(&vault, None, "other"));
        assert!(clients.check(&vault, Some(global), "other"));
        assert!(clients.knows(&vault, global, "other") && !clients.knows(&vault, global, "wrong"));
        assert!(clients.get("nosuch").is_none() && clients.are_slow());
    }
}
