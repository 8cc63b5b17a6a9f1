//! Tests the connector STRIPE with localstripe, a third-party program that imitates the provider.
//!
//! `tests/localstripe/serve.py` runs localstripe, and describes its additions. localstripe supports charges and refunds
//! with their balance transactions, and payouts. It does not support connected accounts, transfers and disputes.

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use stack_server::Settings;

use crate::client::TestServer;
use crate::payments::{get, install, post, rows, status, until};
use crate::sdk::has;

/// A running localstripe. Dropping this ends it.
struct LocalStripe {
    child: Child,
    address: String,
    _folder: tempfile::TempDir,
}

impl LocalStripe {
    /// Starts localstripe. Returns `None` if it is not installed.
    fn start() -> Option<Self> {
        let python = env::var("LOCALSTRIPE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let mut asked = Command::new(&python);
        asked.arg("-c");
        if !has(asked, "import localstripe") {
            println!("skipped: localstripe is not installed; LOCALSTRIPE_PYTHON names a Python that has it");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let mut child = Command::new(python)
            .current_dir(folder.path())
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/localstripe/serve.py"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("the line with the address");
        Some(Self { child, address: line.trim().to_owned(), _folder: folder })
    }

    /// Sends a request, and returns the body of the answer.
    fn ask(&self, method: &str, path: &str, form: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer sk_test\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
            form.len()
        );
        stream.write_all(request.as_bytes()).expect("the request is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{method} {path}: {answer}");
        answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
    }

    fn post(&self, path: &str, form: &str) -> Value {
        serde_json::from_str(&self.ask("POST", path, form)).expect("JSON")
    }

    fn charge(&self, card: &str, amount: u64) -> String {
        let form = format!("amount={amount}&currency=eur&source={card}&metadata[order]=o{amount}");
        self.post("/v1/charges", &form)["id"].as_str().expect("an id").to_owned()
    }
}

impl Drop for LocalStripe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn server(provider: &LocalStripe) -> (TestServer, String) {
    let mut settings = Settings::default();
    settings.provider_addresses.insert("STRIPE".to_owned(), format!("http://{}", provider.address));
    let server = TestServer::with(settings);
    let config = json!({"name": "s", "apiKey": "sk_test_canary", "pollingPeriod": "100ms", "pageSize": 3});
    let connector = install(&server, "STRIPE", &config);
    (server, connector)
}

/// Returns the known data of payments, ordered by their first amounts.
fn known(server: &TestServer) -> Vec<(i64, i64, usize)> {
    let mut found: Vec<_> = rows(server, "/payments?pageSize=1000")
        .iter()
        .map(|row| {
            let number = |name: &str| row[name].as_i64().expect("a number");
            (number("initialAmount"), number("amount"), row["adjustments"].as_array().map_or(0, Vec::len))
        })
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn brings_in_charges_and_refunds_of_localstripe() {
    let Some(provider) = LocalStripe::start() else { return };
    let card = "type=card&card[number]=4242424242424242&card[exp_month]=12&card[exp_year]=2040&card[cvc]=123";
    let card = provider.post("/v1/payment_methods", card)["id"].as_str().expect("an id").to_owned();
    // Create several pages of charges before the installation, and more charges after it.
    let charges: Vec<_> = (1..=8).map(|number| provider.charge(&card, number * 100)).collect();
    provider.post("/v1/refunds", &format!("charge={}&amount=50", charges[1]));
    let (server, _) = server(&provider);
    let mut expected: Vec<_> = (1..=8).map(|number| (number * 100, number * 100, 0)).collect();
    expected[1] = (200, 150, 1);
    until("the history is there", || known(&server) == expected);
    let more: Vec<_> = (9..=14).map(|number| provider.charge(&card, number * 100)).collect();
    provider.post("/v1/refunds", &format!("charge={}", more[0]));
    expected.extend((9..=14).map(|number| (number * 100, number * 100, 0)));
    expected[8] = (900, 0, 1);
    until("the news are there", || known(&server) == expected);
    for payment in rows(&server, "/payments?pageSize=1000") {
        assert_eq!((&payment["asset"], &payment["type"]), (&json!("EUR/2"), &json!("PAY-IN")));
        assert_eq!((&payment["scheme"], &payment["status"]), (&json!("other"), &json!("SUCCEEDED")));
        assert_eq!(payment["metadata"]["order"], json!(format!("o{}", payment["initialAmount"])));
    }
    // The server stores records unchanged. The provider has changed the refunded ones since.
    let path = "/v1/balance_transactions?limit=100&expand[]=data.source";
    let answer = provider.ask("GET", path, "");
    let listed: BTreeMap<&str, &RawValue> = serde_json::from_str(&answer).expect("JSON");
    let listed: Vec<&RawValue> = serde_json::from_str(listed["data"].get()).expect("rows");
    let shown = get(&server, "/payments?pageSize=1000").is(200).body;
    let plain = listed.iter().map(|row| row.get()).filter(|row| row.contains("\"amount_refunded\": 0,"));
    assert_eq!((listed.len(), plain.clone().count()), (16, 12));
    for row in plain {
        assert!(shown.contains(&format!("\"raw\":{row},")), "{row}");
    }
}

#[test]
fn pays_out_through_localstripe() {
    let Some(provider) = LocalStripe::start() else { return };
    let (server, connector) = server(&provider);
    let body = json!({"reference": "ba_1", "connectorID": connector, "createdAt": "2024-01-01T00:00:00Z",
        "accountName": "bank", "type": "EXTERNAL"});
    let account = post(&server, "/accounts", &body).is(200).json()["data"]["id"].clone();
    let payout = |reference: &str| {
        let body = json!({"reference": reference, "destinationAccountID": account, "connectorID": connector,
            "type": "PAYOUT", "amount": 500, "asset": "EUR/2", "validated": true});
        let made = post(&server, "/transfer-initiations", &body).is(200).json();
        made["data"]["id"].as_str().expect("an id").to_owned()
    };
    let [paid, failed] = ["paid", "failed"].map(|word| {
        let id = payout(word);
        let listed =
            || -> Value { serde_json::from_str(&provider.ask("GET", "/v1/payouts", "")).expect("JSON") };
        let mut sent = Value::Null;
        until("it is sent", || {
            let is_new = |row: &Value| row["status"] == "pending";
            listed()["data"].as_array().expect("rows").iter().any(is_new)
        });
        for row in listed()["data"].as_array().expect("rows") {
            if row["status"] == "pending" {
                sent = row.clone();
            }
        }
        assert_eq!((&sent["amount"], &sent["currency"]), (&json!(500), &json!("eur")));
        assert_eq!(status(&server, &id), "PROCESSING");
        let path = format!("/v1/payouts/{}", sent["id"].as_str().expect("an id"));
        provider.post(&path, &format!("status={word}&failure_message=no+such+account"));
        (id, sent["balance_transaction"].as_str().expect("an id").to_owned())
    });
    until("the one is paid", || status(&server, &paid.0) == "PROCESSED");
    until("the other has failed", || status(&server, &failed.0) == "FAILED");
    let found = get(&server, &format!("/transfer-initiations/{}", failed.0)).is(200).json();
    assert_eq!(found["data"]["error"], "no such account");
    let found = get(&server, &format!("/transfer-initiations/{}", paid.0)).is(200).json();
    let related = found["data"]["relatedPayments"].as_array().expect("payments").len();
    assert_eq!(related, 1, "{found}");
}
