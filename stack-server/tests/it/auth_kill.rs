//! Kills the server while requests create clients, rotate secrets, revoke tokens and use assertions. Every change with
//! a response is still in effect after a restart.
//!
//! The ordinary run has three rounds. `AUTH_KILL_ROUNDS=500 cargo test -p stack-server auth_kill` runs more.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use serde_json::{Value, json};

use crate::auth::{ONE, Signer, now};
use crate::kill::{Running, start_with};

const WORKERS: usize = 4;
const PUBLIC: &str = "https://stack.example";

/// The responses of the servers of all rounds.
#[derive(Default)]
struct Responses {
    /// Clients with a secret that must be valid.
    made: Vec<(String, String)>,
    /// Clients with a secret that must be deleted.
    rotated: Vec<(String, String)>,
    /// Tokens that must be refused, with the id and secret of their client.
    revoked: Vec<(String, String, String)>,
    /// Tokens that must be valid, with the id and secret of their client.
    kept: Vec<(String, String, String)>,
    /// Accepted assertions, which must not be accepted again.
    used: Vec<String>,
}

/// Sends a request. Returns `None` without a complete response.
fn send(address: &str, method: &str, path: &str, body: &str) -> Option<(u16, Value)> {
    crate::kill::ask(address, method, &format!("/api/auth{path}"), body)
}

fn make(address: &str) -> Option<(String, String)> {
    let (status, made) = send(address, "POST", "/clients", r#"{"name":"x","trusted":true,"scopes":["a"]}"#)?;
    assert_eq!(status, 201, "{made}");
    let id = made["data"]["id"].as_str()?.to_owned();
    secret(address, &id).map(|secret| (id, secret))
}

fn secret(address: &str, id: &str) -> Option<String> {
    let (status, made) = send(address, "POST", &format!("/clients/{id}/secrets"), r#"{"name":"s"}"#)?;
    assert_eq!(status, 200, "{made}");
    made["data"]["clear"].as_str().map(str::to_owned)
}

fn token(address: &str, id: &str, secret: &str) -> Option<(u16, String)> {
    let body = format!("grant_type=client_credentials&scope=a&client_id={id}&client_secret={secret}");
    let (status, answer) = send(address, "POST", "/oauth/token", &body)?;
    Some((status, answer["access_token"].as_str().unwrap_or_default().to_owned()))
}

fn is_active(address: &str, id: &str, secret: &str, token: &str) -> Option<bool> {
    let body = format!("token={token}&client_id={id}&client_secret={secret}");
    let (status, answer) = send(address, "POST", "/oauth/introspect", &body)?;
    assert_eq!(status, 200, "{answer}");
    answer["active"].as_bool()
}

fn use_assertion(address: &str, assertion: &str) -> Option<u16> {
    let grant = "grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer";
    Some(send(address, "POST", "/oauth/token", &format!("{grant}&assertion={assertion}"))?.0)
}

/// Sends the requests of one worker until the server is killed.
fn work(
    address: &str,
    assertion: impl Fn(usize) -> String,
    responses: &Mutex<Responses>,
    answered: &AtomicUsize,
) -> Option<()> {
    let lock = || responses.lock().expect("no worker panics");
    for attempt in 0.. {
        let (id, first) = make(address)?;
        // Record the secrets only after the response, because both are valid between rotation and deletion.
        let second = secret(address, &id)?;
        let (_, shown) = send(address, "GET", &format!("/clients/{id}"), "")?;
        let older = shown["data"]["secrets"][0]["id"].as_str()?.to_owned();
        let (status, _) = send(address, "DELETE", &format!("/clients/{id}/secrets/{older}"), "")?;
        assert_eq!(status, 204);
        lock().rotated.push((id.clone(), first));
        lock().made.push((id.clone(), second.clone()));
        let (_, kept) = token(address, &id, &second)?;
        lock().kept.push((id.clone(), second.clone(), kept));
        let (_, gone) = token(address, &id, &second)?;
        let body = format!("token={gone}&client_id={id}&client_secret={second}");
        let (status, _) = send(address, "POST", "/revoke", &body)?;
        assert_eq!(status, 200);
        lock().revoked.push((id, second, gone));
        let assertion = assertion(attempt);
        if use_assertion(address, &assertion)? == 200 {
            lock().used.push(assertion);
        }
        answered.fetch_add(1, Ordering::Relaxed);
    }
    Some(())
}

/// Checks that the changes that earlier servers confirmed are in effect.
fn judge(address: &str, responses: &Responses) {
    for (id, secret) in &responses.made {
        assert_eq!(token(address, id, secret).expect("an answer").0, 200, "a secret was lost");
    }
    for (id, secret) in &responses.rotated {
        assert_eq!(token(address, id, secret).expect("an answer").0, 401, "a deleted secret came back");
    }
    for (id, secret, token) in &responses.kept {
        assert_eq!(is_active(address, id, secret, token), Some(true), "a good token is refused");
    }
    for (id, secret, token) in &responses.revoked {
        assert_eq!(is_active(address, id, secret, token), Some(false), "a revoked token came back");
    }
    for assertion in &responses.used {
        assert_eq!(use_assertion(address, assertion), Some(400), "an assertion was used twice");
    }
}

/// Starts a server that requires no tokens. `provider` issues assertions, and only serves its keys.
fn start(data: &std::path::Path, provider: &str) -> Running {
    let flags =
        ["--auth-public-url", PUBLIC, "--auth-wrong-secrets", "1000000", "--delegated-client-id", "x"];
    let mut flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    flags.extend(["--delegated-issuer".to_owned(), provider.to_owned()]);
    start_with(data, &flags)
}

#[test]
fn acknowledged_changes_survive_kills() {
    let rounds =
        std::env::var("AUTH_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(3_usize);
    let home = tempfile::tempdir().expect("a directory");
    let data = home.path().join("store");
    let signer = Signer::new(ONE, Some("one"));
    let issuer = crate::auth::Issuer::start(vec![signer.public()]);
    let responses = Mutex::new(Responses::default());
    for round in 0..rounds {
        let mut running = start(&data, &issuer.name());
        let address = running.address.clone();
        let answered = AtomicUsize::new(0);
        let enough = 2 + round * 7 % 9;
        std::thread::scope(|scope| {
            let mut workers = Vec::new();
            for worker in 0..WORKERS {
                let (address, responses, answered, signer, issuer) =
                    (&address, &responses, &answered, &signer, &issuer);
                workers.push(scope.spawn(move || {
                    let assertion = |attempt: usize| {
                        signer.token(
                            &json!({"iss": issuer.name(), "sub": "u", "aud": format!("{PUBLIC}/api/auth"),
                            "exp": now() + 3_600, "jti": format!("{round}-{worker}-{attempt}")}),
                        )
                    };
                    // The worker ends when the server is killed.
                    let _ = work(address, assertion, responses, answered);
                }));
            }
            // If all workers failed, no more responses will arrive.
            while answered.load(Ordering::Relaxed) < enough
                && !workers.iter().all(ScopedJoinHandle::is_finished)
            {
                std::thread::yield_now();
            }
            running.child.kill().expect("the process can be killed");
            running.child.wait().expect("the process ends");
        });
        let running = start(&data, &issuer.name());
        judge(&running.address, &responses.lock().expect("no panic"));
        let mut responses = responses.lock().expect("no panic");
        assert!(!responses.made.is_empty() && !responses.used.is_empty());
        // Keep only some of the earlier responses. Otherwise the last of many rounds would take hours.
        let keep = 24;
        let Responses { made, rotated, revoked, kept, used } = &mut *responses;
        made.drain(..made.len().saturating_sub(keep));
        rotated.drain(..rotated.len().saturating_sub(keep));
        revoked.drain(..revoked.len().saturating_sub(keep));
        kept.drain(..kept.len().saturating_sub(keep));
        used.drain(..used.len().saturating_sub(keep));
        println!("round {round}: what was answered holds");
    }
}
