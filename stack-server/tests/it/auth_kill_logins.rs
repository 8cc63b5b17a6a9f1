//! Kills the server while users log in. After a restart, used codes and refresh tokens are still used, ended sessions
//! are still ended, and issued tokens are still valid.
//!
//! The ordinary run has three rounds. `AUTH_KILL_ROUNDS=500 cargo test -p stack-server auth_kill` runs more.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use serde_json::{Value, json};

use crate::auth_world::{Provider, REDIRECT, parameters};
use crate::client::escape;
use crate::kill::{Running, ask, ask_with, start_with};

const WORKERS: usize = 4;

/// An access token and a refresh token.
#[derive(Clone, Debug)]
struct Tokens {
    access: String,
    refresh: String,
}

/// The responses of servers since the last check.
#[derive(Default)]
struct Responses {
    /// Exchanged codes with their tokens.
    used: Vec<(String, Tokens)>,
    /// Codes whose exchange got no response. Each can be used at most once.
    begun: Vec<String>,
    /// Tokens before and after a refresh.
    rotated: Vec<(Tokens, Tokens)>,
    /// Refresh tokens whose use got no response.
    refreshing: Vec<Tokens>,
    /// Tokens of ended sessions.
    ended: Vec<Tokens>,
}

/// The application to which users log in.
struct App {
    id: String,
    secret: String,
}

impl App {
    fn make(address: &str) -> Self {
        let body = json!({"name": "app", "redirectUris": [REDIRECT]}).to_string();
        let (_, made) = ask(address, "POST", "/api/auth/clients", &body).expect("an answer");
        let id = made["data"]["id"].as_str().expect("an id").to_owned();
        let path = format!("/api/auth/clients/{id}/secrets");
        let (_, made) = ask(address, "POST", &path, r#"{"name":"s"}"#).expect("an answer");
        Self { id, secret: made["data"]["clear"].as_str().expect("a secret").to_owned() }
    }

    fn ask(&self, address: &str, path: &str, form: &str) -> Option<(u16, Value)> {
        let form = format!("{form}&client_id={}&client_secret={}", self.id, self.secret);
        ask(address, "POST", &format!("/api/auth{path}"), &form)
    }

    fn granted(&self, address: &str, form: &str) -> Option<Result<Tokens, u16>> {
        let (status, tokens) = self.ask(address, "/oauth/token", form)?;
        if status != 200 {
            return Some(Err(status));
        }
        let text = |name: &str| tokens[name].as_str().map(str::to_owned);
        Some(Ok(Tokens { access: text("access_token")?, refresh: text("refresh_token")? }))
    }

    fn exchange(&self, address: &str, code: &str) -> Option<Result<Tokens, u16>> {
        let form = format!("grant_type=authorization_code&code={code}&redirect_uri={}", escape(REDIRECT));
        self.granted(address, &form)
    }

    fn refresh(&self, address: &str, tokens: &Tokens) -> Option<Result<Tokens, u16>> {
        self.granted(address, &format!("grant_type=refresh_token&refresh_token={}", tokens.refresh))
    }

    fn is_active(&self, address: &str, tokens: &Tokens) -> bool {
        let asked = self.ask(address, "/oauth/introspect", &format!("token={}", tokens.access));
        asked.expect("an answer").1["active"] == true
    }

    /// Logs in a user from an address and returns the code.
    fn code(&self, address: &str, provider: &Provider, from: &str) -> Option<String> {
        let path = format!(
            "/api/auth/authorize?client_id={}&redirect_uri={}&response_type=code&scope=openid+offline_access",
            self.id,
            escape(REDIRECT)
        );
        let header = |head: &str, name: &str| {
            head.lines().find_map(|line| {
                let (have, value) = line.split_once(": ")?;
                have.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let (_, head, _) = ask_with(address, "GET", &path, &format!("X-Forwarded-For: {from}\r\n"), "")?;
        let (sent, cookie) = (parameters(&header(&head, "location")?), header(&head, "set-cookie")?);
        let code = provider.log_in(&sent, |_| {});
        let path = format!("/api/auth/authorize/callback?code={code}&state={}", sent["state"]);
        let cookie = format!("Cookie: {}\r\n", cookie.split(';').next()?);
        let (_, head, _) = ask_with(address, "GET", &path, &cookie, "")?;
        parameters(&header(&head, "location")?).remove("code")
    }
}

/// Sends the requests of one worker until the server is killed.
fn work(
    address: &str,
    app: &App,
    provider: &Provider,
    worker: usize,
    responses: &Mutex<Responses>,
    answered: &AtomicUsize,
) -> Option<()> {
    let lock = || responses.lock().expect("no worker panics");
    for attempt in 0.. {
        let from = format!("10.{worker}.{}.{}", attempt / 250, attempt % 250);
        let log_in = || {
            let code = app.code(address, provider, &from)?;
            lock().begun.push(code.clone());
            let tokens = app.exchange(address, &code)?.expect("a new code is good");
            lock().begun.retain(|have| *have != code);
            Some((code, tokens))
        };
        let (code, tokens) = log_in()?;
        lock().used.push((code, tokens));
        let (_, first) = log_in()?;
        lock().refreshing.push(first.clone());
        let second = app.refresh(address, &first)?.expect("a new refresh token is good");
        lock().refreshing.retain(|have| have.refresh != first.refresh);
        lock().rotated.push((first, second));
        let (_, tokens) = log_in()?;
        let (status, _) = app.ask(address, "/revoke", &format!("token={}", tokens.refresh))?;
        assert_eq!(status, 200);
        lock().ended.push(tokens);
        answered.fetch_add(1, Ordering::Relaxed);
    }
    Some(())
}

/// Checks that the changes that the previous server confirmed are in effect. Each check uses a code or a token, so each
/// response can be checked only once.
fn judge(address: &str, app: &App, responses: Responses) {
    let exchange = |code: &str| app.exchange(address, code).expect("an answer");
    let refresh = |tokens: &Tokens| app.refresh(address, tokens).expect("an answer");
    for (code, tokens) in responses.used {
        assert!(app.is_active(address, &tokens), "the tokens of a code were lost");
        assert_eq!(exchange(&code).err(), Some(400), "a code was used twice");
        assert!(!app.is_active(address, &tokens), "a code that two have ends its session");
    }
    for code in responses.begun {
        let first = exchange(&code);
        assert_eq!(exchange(&code).err(), Some(400), "a code was used twice: {first:?} before");
    }
    for (before, after) in responses.rotated {
        assert!(!app.is_active(address, &before), "a token before a refresh is good");
        assert!(app.is_active(address, &after), "a token after a refresh was lost");
        let next = refresh(&after).expect("a refresh token that was granted is good");
        assert_eq!(refresh(&before).err(), Some(400), "a refresh token was used twice");
        assert!(!app.is_active(address, &next), "a refresh token that two have ends its session");
    }
    for tokens in responses.refreshing {
        if let Ok(next) = refresh(&tokens) {
            assert!(!app.is_active(address, &tokens) && app.is_active(address, &next));
        }
        assert_eq!(refresh(&tokens).err(), Some(400), "a refresh token was used twice");
    }
    for tokens in responses.ended {
        assert_eq!(refresh(&tokens).err(), Some(400), "a session that was ended goes on");
        assert!(!app.is_active(address, &tokens), "a token of an ended session is good");
    }
}

fn start(data: &std::path::Path, provider: &Provider) -> Running {
    let flags = ["--auth-public-url", "https://stack.example", "--trusted-proxies", "127.0.0.1"];
    let client = ["--delegated-client-id", "stack", "--delegated-client-secret", "its secret"];
    let issuer = provider.name();
    let flags = [&flags[..], &client, &["--delegated-issuer", &issuer]].concat();
    start_with(data, &flags.iter().map(|flag| (*flag).to_owned()).collect::<Vec<_>>())
}

#[test]
fn logins_outlive_kills() {
    let rounds =
        std::env::var("AUTH_KILL_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(3_usize);
    let home = tempfile::tempdir().expect("a directory");
    let data = home.path().join("store");
    let provider = Provider::start();
    let mut running = start(&data, &provider);
    let app = App::make(&running.address);
    for round in 0..rounds {
        let responses = Mutex::new(Responses::default());
        let answered = AtomicUsize::new(0);
        let enough = 1 + round * 5 % 7;
        let address = running.address.clone();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS)
                .map(|worker| {
                    let (address, app, provider, responses, answered) =
                        (&address, &app, &provider, &responses, &answered);
                    // The worker ends when the server is killed.
                    scope.spawn(move || work(address, app, provider, worker, responses, answered))
                })
                .collect();
            // If all workers failed, no more responses will arrive.
            while answered.load(Ordering::Relaxed) < enough
                && !workers.iter().all(ScopedJoinHandle::is_finished)
            {
                std::thread::yield_now();
            }
            running.child.kill().expect("the process can be killed");
            running.child.wait().expect("the process ends");
        });
        running = start(&data, &provider);
        let responses = responses.into_inner().expect("no panic");
        assert!(!responses.ended.is_empty(), "the workers were refused");
        let open = responses.begun.len() + responses.refreshing.len();
        judge(&running.address, &app, responses);
        println!("round {round}: what was answered holds, {open} uses without an answer");
    }
}
