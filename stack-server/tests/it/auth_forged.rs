//! Sends forged tokens of many kinds to every guarded route. The server refuses all of them, without a server error.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use stack_server::{Scope, routes};

use crate::auth::{ONE, Signer, now};
use crate::auth_enforced::{guarded, paths};

fn encode(text: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// Returns a copy of a JSON object with one changed member.
fn with(value: &Value, name: &str, change: Value) -> Value {
    let mut value = value.clone();
    value[name] = change;
    value
}

/// A forger with a valid token, the public keys of the server, and another private key.
struct Forger<'a> {
    /// The header, claims and signature of the valid token.
    parts: [&'a str; 3],
    header: Value,
    claims: Value,
    keys: &'a [Value],
    own: Signer,
}

/// Forged tokens, each with a description of its defect.
type Forgeries = Vec<(String, String)>;

impl<'a> Forger<'a> {
    fn new(valid: &'a str, keys: &'a Value) -> Self {
        let parts: Vec<&str> = valid.split('.').collect();
        let decode = |part: &str| -> Value {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON")
        };
        Self {
            parts: [parts[0], parts[1], parts[2]],
            header: decode(parts[0]),
            claims: decode(parts[1]),
            keys: keys.as_array().expect("keys"),
            own: Signer::new(ONE, Some("one")),
        }
    }

    fn all(&self) -> Forgeries {
        [
            self.of_other_algorithms(),
            self.with_public_key_as_secret(),
            self.of_own_keys(),
            self.with_names_of_no_key(),
            self.of_other_claims(),
            self.of_other_form(),
        ]
        .concat()
    }

    /// Returns tokens with another algorithm: with the valid token's signature, without one, and with that of another
    /// key.
    fn of_other_algorithms(&self) -> Forgeries {
        let names = [
            "none", "None", "NONE", "nOnE", "", "HS256", "HS384", "HS512", "RS384", "RS512", "PS256",
            "ES256", "EdDSA", "rs256", "RS256 ",
        ];
        let others = [Value::Null, json!(["RS256"]), json!(256), json!({})];
        let mut all = Forgeries::new();
        let [_, claims, signature] = self.parts;
        for algorithm in names.into_iter().map(Value::from).chain(others) {
            let header = with(&self.header, "alg", algorithm.clone());
            let head = encode(header.to_string());
            all.push((format!("alg {algorithm}"), format!("{head}.{claims}.{signature}")));
            all.push((format!("alg {algorithm}, unsigned"), format!("{head}.{claims}.")));
            all.push((format!("alg {algorithm}, signed by another"), self.own.sign(&header, &self.claims)));
        }
        all
    }

    /// Returns tokens that use the public key as the secret of a symmetric algorithm.
    fn with_public_key_as_secret(&self) -> Forgeries {
        let mut all = Forgeries::new();
        for key in self.keys {
            let modulus = key["n"].as_str().expect("base64");
            for (what, secret) in [
                ("modulus", URL_SAFE_NO_PAD.decode(modulus).expect("base64")),
                ("text of the modulus", modulus.as_bytes().to_vec()),
                ("text of the key", key.to_string().into_bytes()),
            ] {
                let head = json!({"alg": "HS256", "kid": key["kid"], "typ": "at+jwt"});
                let signed = format!("{}.{}", encode(head.to_string()), self.parts[1]);
                let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), signed.as_bytes());
                all.push((format!("HMAC with the {what}"), format!("{signed}.{}", encode(tag))));
            }
        }
        all
    }

    /// Returns tokens signed by another key under the name of a server's key, some of which contain that key.
    fn of_own_keys(&self) -> Forgeries {
        let mut all = Forgeries::new();
        for key in self.keys {
            let named = json!({"alg": "RS256", "kid": key["kid"], "typ": "at+jwt"});
            all.push(("another key under our name".to_owned(), self.own.sign(&named, &self.claims)));
            for (name, value) in [
                ("jwk", self.own.public()),
                ("jku", json!("http://127.0.0.1:9/keys")),
                ("x5u", json!("http://127.0.0.1:9/cert")),
                ("x5c", json!([STANDARD.encode("certificate")])),
                ("crit", json!(["exp"])),
                ("b64", json!(false)),
            ] {
                let header = with(&named, name, value);
                all.push((format!("{name} of its own"), self.own.sign(&header, &self.claims)));
            }
        }
        all
    }

    fn with_names_of_no_key(&self) -> Forgeries {
        let names = ["", "nosuch", "one", "../../etc/passwd"].map(Value::from);
        let names = names.into_iter().chain([Value::Null, json!(7), json!(["a"])]);
        names
            .map(|kid| {
                let header = with(&self.header, "kid", kid.clone());
                (format!("kid {kid}"), self.own.sign(&header, &self.claims))
            })
            .collect()
    }

    /// Returns tokens with other claims, with the valid token's signature or with that of another key.
    fn of_other_claims(&self) -> Forgeries {
        let [header, _, signature] = self.parts;
        let mut all = Forgeries::new();
        for (name, value) in [
            ("scope", json!("auth:write ledger:write payments:write")),
            ("exp", json!(now() + 1_000_000)),
            ("exp", Value::Null),
            ("exp", json!("9999999999")),
            ("exp", json!(1e30)),
            ("exp", json!(now() - 1)),
            ("iss", json!("http://else")),
            ("iss", json!([])),
            ("aud", json!([])),
            ("aud", Value::Null),
            ("nbf", json!(now() + 600)),
            ("jti", Value::Null),
            ("sub", json!("root")),
            ("client_id", json!("else")),
        ] {
            let changed = with(&self.claims, name, value.clone());
            let payload = encode(changed.to_string());
            all.push((format!("{name} {value}"), format!("{header}.{payload}.{signature}")));
            all.push((format!("{name} {value}, signed by another"), self.own.sign(&self.header, &changed)));
        }
        all
    }

    /// Returns texts that do not have three parts, or whose parts are malformed.
    fn of_other_form(&self) -> Forgeries {
        let (parts, header, valid) = (self.parts, &self.header, self.parts.join("."));
        let mut flipped = URL_SAFE_NO_PAD.decode(parts[2]).expect("base64");
        flipped[0] ^= 1;
        let jws = json!({"protected": parts[0], "payload": parts[1], "signature": parts[2]}).to_string();
        [
            ("nothing", String::new()),
            ("two parts", format!("{}.{}", parts[0], parts[1])),
            ("no parts", "nonsense".to_owned()),
            ("dots", "..".to_owned()),
            ("two signatures", format!("{valid}.{}", parts[2])),
            ("five parts", format!("{valid}.{}.{}", parts[2], parts[2])),
            ("no signature", format!("{}.{}.", parts[0], parts[1])),
            ("a signature of zeros", format!("{}.{}.{}", parts[0], parts[1], encode([0; 256]))),
            ("a flipped bit", format!("{}.{}.{}", parts[0], parts[1], encode(&flipped))),
            ("a cut signature", valid[..valid.len() - 4].to_owned()),
            ("a longer signature", format!("{valid}AAAA")),
            ("padding", format!("{valid}==")),
            ("parts in another order", format!("{}.{}.{}", parts[1], parts[0], parts[2])),
            ("no header", format!(".{}.{}", parts[1], parts[2])),
            ("a list of headers", format!("{}.{}.{}", encode(format!("[{header}]")), parts[1], parts[2])),
            ("a header twice", format!("{}.{}.{}", encode(format!("{header}{header}")), parts[1], parts[2])),
            ("upper case", valid.to_uppercase()),
            ("a comma between two", format!("{valid},{valid}")),
            ("JSON", jws),
            ("too long", format!("{valid}{}", "A".repeat(9_000))),
        ]
        .map(|(what, token)| (what.to_owned(), token))
        .into()
    }
}

#[test]
fn forged_tokens_open_no_route() {
    let (server, root) = guarded(false);
    let valid = root.token(&server, "auth:write ledger:write");
    let keys = server.get("/api/auth/keys").is(200).json()["keys"].clone();
    let forged = Forger::new(&valid, &keys).all();
    assert!(forged.len() >= 60, "{}", forged.len());
    let mut asked = 0;
    let mut services = [0; 3];
    for route in routes().iter().filter(|route| route.scope != Scope::Open) {
        services[route.mount.service() as usize] += 1;
        for path in paths(route) {
            for (what, token) in &forged {
                let value = format!("Bearer {token}");
                let status = server.send(route.method, &path, &[("Authorization", &value)], "").status;
                assert_eq!(status, 401, "{what}: {} {path}", route.method);
                asked += 1;
            }
        }
    }
    assert!(services.iter().all(|count| *count > 10), "of each service there are routes: {services:?}");
    println!("{} kinds, {asked} requests", forged.len());
    let value = format!("Bearer {valid}");
    server.send("GET", "/v2", &[("Authorization", &value)], "").is(200);
}

#[test]
fn paths_in_other_spellings_are_guarded_too() {
    let (server, _) = guarded(false);
    for path in [
        "/api/auth/clients/",
        "/api/auth//clients",
        "/api/auth/./clients",
        "/api/auth/x/../clients",
        "/api/auth/%63lients",
        "/api%2fauth%2fclients",
        "/api/auth/clients;x",
        "/API/auth/clients",
        "/api/auth/Clients",
        "/api/auth/clients?x",
        "/api/auth/clients/%2e",
        "/v2/",
        "/%76%32",
        "/api/ledger/v2/main/accounts/",
        "//v2",
    ] {
        let status = server.send("GET", path, &[], "").status;
        assert!(matches!(status, 401 | 404), "{path}: {status}");
    }
}
