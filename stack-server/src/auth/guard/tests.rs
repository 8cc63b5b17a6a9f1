//! Tests how long the guard accepts tokens of an external issuer.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hyper::header::HeaderValue;
use ledger_store::Store;
use serde_json::{Value, json};

use super::*;
use crate::auth::authority::AuthorizationSettings;
use crate::auth::keys::master::{KeySource, MasterKey};
use crate::limits::{KEYS_FRESH, KEYS_KEPT};

/// Returns an authority that signs tokens for the external issuer.
fn signer() -> Arc<Authority> {
    let key = KeySource::Given(MasterKey::random().expect("random bytes"));
    let settings = AuthorizationSettings::new(key);
    Arc::new(Authority::new(&Store::in_memory(), settings, "http://127.0.0.1:1").expect("an issuer"))
}

fn public(signer: &Authority) -> Value {
    signer.open().expect("the keys can be opened").keys.current().public()
}

/// An external issuer. Without keys, its responses are invalid.
struct Issuer {
    address: SocketAddr,
    keys: Arc<Mutex<Option<Value>>>,
    asked: Arc<AtomicUsize>,
}

impl Issuer {
    fn start(signer: &Authority) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (keys, asked) = (Arc::new(Mutex::new(Some(public(signer)))), Arc::new(AtomicUsize::new(0)));
        let (served, counter) = (keys.clone(), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let mut head = [0; 4_096];
                let read = stream.read(&mut head).expect("the request can be read");
                let base = format!("http://{address}");
                let body = match &*served.lock().expect("no thread panicked with the lock") {
                    None => json!(null),
                    Some(_) if head[..read].starts_with(b"GET /.well-known/") => {
                        json!({"issuer": base, "jwks_uri": format!("{base}/keys")})
                    }
                    Some(key) => {
                        counter.fetch_add(1, Ordering::SeqCst);
                        json!({"keys": [key]})
                    }
                };
                let body = body.to_string();
                let head =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                // Ignore a guard that has closed the connection.
                let _ = stream.write_all(format!("{head}{body}").as_bytes());
            }
        });
        Self { address, keys, asked }
    }

    fn give(&self, key: Option<Value>) {
        *self.keys.lock().expect("no thread panicked with the lock") = key;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn guard(&self, audiences: &[&str]) -> Guard {
        let settings = AuthSettings {
            issuers: vec![format!("http://{}", self.address)],
            audiences: audiences.iter().map(|name| (*name).to_owned()).collect(),
            check_scopes: false,
            service: "ledger".to_owned(),
            own: false,
            check_management_scopes: false,
        };
        Guard::new(&settings, &Store::in_memory(), None).expect("a guard")
    }

    /// Returns the headers of a request with a token that is valid for this number of seconds.
    fn request(&self, signer: &Authority, audience: &Value, seconds: u64) -> HeaderMap {
        let claims = json!({"iss": format!("http://{}", self.address), "aud": audience, "exp": signer.now() + seconds});
        let token = signer
            .open()
            .expect("the keys can be opened")
            .keys
            .current()
            .sign("JWT", &claims)
            .expect("the key can sign");
        let mut headers = HeaderMap::new();
        headers.insert(
            AUTHORIZATION,
            HeaderValue::from_str(&format!("Bearer {token}")).expect("a token is visible ASCII"),
        );
        headers
    }
}

async fn verified(guard: &Guard, headers: &HeaderMap) -> Option<VerifiedToken> {
    match guard.admit(headers, &LastToken::default(), Service::Ledger, Scope::Write).await {
        Admission::By(verified) => Some(verified),
        Admission::Open | Admission::Refused => None,
    }
}

fn run<R>(future: impl Future<Output = R>) -> R {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

#[test]
fn refuses_withdrawn_key_after_a_minute() {
    let (signer, next) = (signer(), signer());
    let issuer = Issuer::start(&signer);
    run(async {
        let guard = issuer.guard(&[]);
        let request = issuer.request(&signer, &Value::Null, 600);
        assert!(verified(&guard, &request).await.is_some());
        issuer.give(Some(public(&next)));
        assert!(verified(&guard, &request).await.is_some(), "the keys at hand are fresh");
        assert_eq!(issuer.asked(), 1);
        guard.issuers[0].keys.age(KEYS_FRESH);
        assert!(verified(&guard, &request).await.is_none(), "a token that was known");
        let new = issuer.request(&next, &Value::Null, 600);
        assert!(verified(&guard, &new).await.is_some());
    });
}

#[test]
fn refreshes_keys_before_they_are_old() {
    let signer = signer();
    let issuer = Issuer::start(&signer);
    run(async {
        let guard = issuer.guard(&[]);
        let request = issuer.request(&signer, &Value::Null, 600);
        verified(&guard, &request).await.expect("the token is accepted");
        guard.issuers[0].keys.age(KEYS_FRESH / 2);
        for _ in 0..20 {
            verified(&guard, &request).await.expect("the token is accepted");
        }
        assert_eq!(issuer.asked(), 1, "nobody waits for the answer");
        let refreshed = async {
            while issuer.asked() == 1 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), refreshed).await.expect("a refresh");
        guard.issuers[0].keys.settled().await;
        verified(&guard, &request).await.expect("the token is accepted");
        assert_eq!(issuer.asked(), 2, "one refresh for all");
    });
}

#[test]
fn outlives_an_issuer_that_is_down_for_an_hour() {
    let signer = signer();
    let issuer = Issuer::start(&signer);
    run(async {
        let guard = issuer.guard(&[]);
        let request = issuer.request(&signer, &Value::Null, 600);
        verified(&guard, &request).await.expect("the token is accepted");
        issuer.give(None);
        guard.issuers[0].keys.age(KEYS_FRESH * 2);
        assert!(verified(&guard, &request).await.is_some());
        guard.issuers[0].keys.age(KEYS_KEPT);
        assert!(verified(&guard, &request).await.is_none());
    });
}

#[test]
fn a_pass_ends_with_its_token() {
    let (signer, next) = (signer(), signer());
    let issuer = Issuer::start(&signer);
    run(async {
        let guard = issuer.guard(&[]);
        let short =
            verified(&guard, &issuer.request(&signer, &Value::Null, 1)).await.expect("the token is accepted");
        let request = issuer.request(&signer, &Value::Null, 600);
        let long = verified(&guard, &request).await.expect("the token is accepted");
        tokio::select! {
            () = short.ended(signer.now()) => {}
            () = long.ended(signer.now()) => panic!("it lasts ten minutes"),
        }
        // Another request discovers that the key was withdrawn.
        issuer.give(Some(public(&next)));
        guard.issuers[0].keys.age(KEYS_FRESH);
        let others = async {
            assert!(verified(&guard, &request).await.is_none());
            std::future::pending::<()>().await;
        };
        let ended = tokio::time::timeout(Duration::from_secs(30), long.ended(signer.now()));
        tokio::select! {
            ended = ended => ended.expect("it ends with its key"),
            () = others => {}
        }
    });
}

#[test]
fn takes_tokens_for_its_audience_only() {
    let signer = signer();
    let issuer = Issuer::start(&signer);
    run(async {
        let (any, ours) = (issuer.guard(&[]), issuer.guard(&["stack", "books"]));
        for (audience, is_ours) in [
            (json!("stack"), true),
            (json!(["other", "books"]), true),
            (json!("other"), false),
            (json!("stack2"), false),
            (json!([]), false),
            (json!(["Stack"]), false),
            (Value::Null, false),
        ] {
            let request = issuer.request(&signer, &audience, 600);
            assert!(verified(&any, &request).await.is_some(), "{audience}");
            assert_eq!(verified(&ours, &request).await.is_some(), is_ours, "{audience}");
        }
    });
}
