//! The test kit for logins: an identity provider, a server whose users log in at the provider, and a client that sends
//! users to log in.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use ledger_store::Store;
use serde_json::{Value, json};
use stack_server::{AuthSettings, ProviderSettings, Server, Settings, StaticClient};

use crate::auth::{ONE, Signer, now};
use crate::auth_tokens::Known;
use crate::client::{Answer, TestServer, authorizing, escape};

pub(crate) const REDIRECT: &str = "https://app.example/cb?keep=1";
pub(crate) const ASSERTION: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// An identity provider whose users need no password. A test determines the claims that it issues for a code.
pub(crate) struct Provider {
    address: SocketAddr,
    pub(crate) signer: Arc<Signer>,
    codes: Arc<Mutex<HashMap<String, Value>>>,
}

impl Provider {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let signer = Arc::new(Signer::new(ONE, Some("one")));
        let codes: Arc<Mutex<HashMap<String, Value>>> = Arc::default();
        let (served, known) = (signer.clone(), codes.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                Self::answer(stream.expect("a connection"), address, &served, &known);
            }
        });
        Self { address, signer, codes }
    }

    pub(crate) fn name(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Logs in a user whom a server has sent to the provider. Returns the code that the browser takes back.
    pub(crate) fn log_in(&self, sent: &HashMap<String, String>, change: impl Fn(&mut Value)) -> String {
        let mut claims = json!({"iss": self.name(), "aud": "stack", "sub": "p|1", "exp": now() + 60,
            "nonce": sent["nonce"], "email": "ann@example.com", "email_verified": true});
        change(&mut claims);
        let code = format!("code-{}", sent["nonce"]);
        self.codes.lock().expect("no panic").insert(code.clone(), claims);
        code
    }

    fn answer(
        mut stream: TcpStream,
        address: SocketAddr,
        signer: &Signer,
        codes: &Mutex<HashMap<String, Value>>,
    ) {
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
            request.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&request).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        // A killed server may have sent only a part of a request.
        if !head.ends_with("\r\n\r\n") || stream.read_exact(&mut body).is_err() {
            return;
        }
        let body = String::from_utf8(body).expect("a form");
        let base = format!("http://{address}");
        let (status, answer) = if head.starts_with("get /.well-known/openid-configuration ") {
            let document = json!({"issuer": base, "jwks_uri": format!("{base}/keys"),
                "authorization_endpoint": format!("{base}/login"), "token_endpoint": format!("{base}/token")});
            (200, document)
        } else if head.starts_with("get /keys ") {
            (200, json!({"keys": [signer.public()]}))
        } else {
            assert!(head.contains("authorization: basic "), "{head}");
            let code = body.split('&').find_map(|pair| pair.strip_prefix("code=")).unwrap_or_default();
            match codes.lock().expect("no panic").remove(code) {
                Some(claims) => (
                    200,
                    json!({"access_token": "x", "token_type": "Bearer", "id_token": signer.token(&claims)}),
                ),
                None => (400, json!({"error": "invalid_grant"})),
            }
        };
        let body = answer.to_string();
        let head =
            format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        // Ignore the error of a client that has disconnected.
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
    }
}

/// A server, the identity provider of its users, and a client that may send users to log in.
pub(crate) struct World {
    pub(crate) server: TestServer,
    pub(crate) provider: Provider,
    pub(crate) app: Known,
    pub(crate) root: Known,
}

/// Returns the settings of a server whose users log in at a provider.
pub(crate) fn settings_of(provider: &Provider) -> Settings {
    let mut settings = authorizing();
    let authorization = settings.authorization.as_mut().expect("an authorization server");
    authorization.provider = Some(ProviderSettings {
        issuer: provider.name(),
        client_id: "stack".to_owned(),
        client_secret: "its secret".to_owned(),
    });
    let file = "clients: [{id: root, trusted: true, secrets: [root]}]";
    authorization.clients = StaticClient::parse(file).expect("a client");
    settings
}

/// Starts a server on a store. It accepts its own tokens.
pub(crate) fn serve(store: &Store, settings: Settings) -> TestServer {
    let auth = AuthSettings {
        issuers: vec![],
        audiences: vec![],
        check_scopes: false,
        service: "ledger".to_owned(),
        own: true,
        check_management_scopes: false,
    };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let running = Server::start_guarded(store, settings, &auth, listener).expect("a server");
    TestServer { address: running.address(), server: Some(running) }
}

/// Returns the query parameters of an address.
pub(crate) fn parameters(address: &str) -> HashMap<String, String> {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    let decode = |text: &str| {
        let mut bytes = Vec::new();
        let mut rest = text.bytes();
        while let Some(byte) = rest.next() {
            if byte == b'%' {
                let digits = [rest.next().expect("a digit"), rest.next().expect("a digit")];
                let digits = std::str::from_utf8(&digits).expect("digits").to_owned();
                bytes.push(u8::from_str_radix(&digits, 16).expect("a number"));
            } else {
                bytes.push(byte);
            }
        }
        String::from_utf8(bytes).expect("UTF-8")
    };
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}

pub(crate) fn error(answer: &Answer) -> String {
    answer.json()["error"].as_str().unwrap_or_default().to_owned()
}

impl World {
    pub(crate) fn new() -> Self {
        Self::on(&Store::in_memory())
    }

    /// Starts a provider, and a server on this store.
    pub(crate) fn on(store: &Store) -> Self {
        let provider = Provider::start();
        let settings = settings_of(&provider);
        let server = serve(store, settings);
        Self::with_app(server, provider)
    }

    /// Creates a client that may send users to log in.
    pub(crate) fn with_app(server: TestServer, provider: Provider) -> Self {
        let root = Known { id: "root".into(), secret: "root".into() };
        let token = root.token(&server, "");
        let body = json!({"name": "app", "redirectUris": [REDIRECT], "scopes": ["ledger:read"],
            "postLogoutRedirectUris": ["https://app.example/bye"]});
        let app = Known::make(&server, &body, Some(&token));
        Self { server, provider, app, root }
    }

    /// Sends a user to log in. Returns the parameters of the server's redirect to the provider, and the cookie.
    pub(crate) fn authorize(&self, client: &str, more: &str) -> (HashMap<String, String>, String) {
        let redirect = escape(REDIRECT);
        let path = format!(
            "/api/auth/authorize?client_id={client}&redirect_uri={redirect}&response_type=code&{more}"
        );
        let answer = self.server.get(&path).is(302);
        let location = answer.header("location").expect("a location").to_owned();
        assert!(location.starts_with(&format!("{}/login?", self.provider.name())), "{location}");
        let cookie = answer.header("set-cookie").expect("a cookie");
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
        (parameters(&location), cookie.split(';').next().expect("a pair").to_owned())
    }

    /// Follows the provider's redirect back to the server.
    pub(crate) fn come_back(
        &self,
        sent: &HashMap<String, String>,
        cookie: &str,
        change: impl Fn(&mut Value),
    ) -> Answer {
        let code = self.provider.log_in(sent, change);
        let path = format!("/api/auth/authorize/callback?code={code}&state={}", sent["state"]);
        self.server.send("GET", &path, &[("Cookie", cookie)], "")
    }

    /// Logs in a user and returns the code.
    pub(crate) fn code(&self, client: &str, more: &str) -> String {
        let (sent, cookie) = self.authorize(client, more);
        let back = self.come_back(&sent, &cookie, |_| {}).is(302);
        let location = back.header("location").expect("a location").to_owned();
        assert!(location.starts_with(&format!("{REDIRECT}&code=")), "{location}");
        parameters(&location)["code"].clone()
    }

    pub(crate) fn exchange(&self, code: &str) -> Answer {
        let body = format!("grant_type=authorization_code&code={code}&redirect_uri={}", escape(REDIRECT));
        self.app.ask(&self.server, "/oauth/token", &body)
    }

    pub(crate) fn refresh(&self, token: &Value, more: &str) -> Answer {
        let token = token["refresh_token"].as_str().expect("a refresh token");
        self.app.ask(
            &self.server,
            "/oauth/token",
            &format!("grant_type=refresh_token&refresh_token={token}{more}"),
        )
    }

    /// Returns whether the server accepts an access token.
    pub(crate) fn takes(&self, tokens: &Value) -> bool {
        let value = format!("Bearer {}", tokens["access_token"].as_str().expect("a token"));
        self.server.send("GET", "/v2", &[("Authorization", &value)], "").status == 200
    }

    pub(crate) fn bearer(&self, path: &str, tokens: &Value) -> Answer {
        let value = format!("Bearer {}", tokens["access_token"].as_str().expect("a token"));
        self.server.send("GET", path, &[("Authorization", &value)], "")
    }
}
