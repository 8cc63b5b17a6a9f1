//! Lets a fuzz target send any bytes to a connector as the response of its payment provider.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ledger_core::{Balance, Timestamp};
use tokio::runtime::Runtime;

use crate::connectors::config::Values;
use crate::connectors::http::ProviderAccess;
use crate::connectors::{Connector, Order, Page, TaskContext, Transfer, registry};
use crate::outbound::OutboundPolicy;
use crate::payments::codec::Metadata;
use crate::payments::enumerations::InitiationType;
use crate::payments::ids::ConnectorId;
use crate::uuid::Uuid;

/// Calls of connectors: each has the provider, and the descriptor of the task to poll, or `None` to make a payment.
const CALLS: [(&str, Option<&str>); 29] = [
    ("STRIPE", Some(r#"{"name":"Fetch accounts from client"}"#)),
    ("STRIPE", Some(r#"{"name":"Fetch payments from client"}"#)),
    ("STRIPE", Some(r#"{"name":"Fetch transactions for a specific connected account","account":"acct_1"}"#)),
    ("STRIPE", Some(r#"{"name":"Fetch balance for the root account"}"#)),
    ("STRIPE", Some(r#"{"name":"Fetch balance for a specific connected account","account":"acct_1"}"#)),
    (
        "STRIPE",
        Some(r#"{"name":"Fetch external account for a specific connected account","account":"acct_1"}"#),
    ),
    ("GENERIC", Some(r#"{"key":"fetch-accounts"}"#)),
    ("GENERIC", Some(r#"{"key":"fetch-beneficiaries"}"#)),
    ("GENERIC", Some(r#"{"key":"fetch-transactions"}"#)),
    ("GENERIC", Some(r#"{"key":"fetch-balances","accountID":"a"}"#)),
    ("WISE", Some(r#"{"key":"fetch-profiles"}"#)),
    ("WISE", Some(r#"{"key":"fetch-balances","profileID":"1"}"#)),
    ("WISE", Some(r#"{"key":"fetch-recipient-accounts","profileID":"1"}"#)),
    ("WISE", Some(r#"{"key":"fetch-transfers","profileID":"1"}"#)),
    ("MODULR", Some(r#"{"key":"fetch-accounts"}"#)),
    ("MODULR", Some(r#"{"key":"fetch-beneficiaries"}"#)),
    ("MODULR", Some(r#"{"key":"fetch-transactions","accountID":"A1"}"#)),
    ("CURRENCY-CLOUD", Some(r#"{"key":"fetch-accounts"}"#)),
    ("CURRENCY-CLOUD", Some(r#"{"key":"fetch-beneficiaries"}"#)),
    ("CURRENCY-CLOUD", Some(r#"{"key":"fetch-balances"}"#)),
    ("CURRENCY-CLOUD", Some(r#"{"key":"fetch-transactions"}"#)),
    ("BANKING-CIRCLE", Some(r#"{"key":"fetch-accounts"}"#)),
    ("BANKING-CIRCLE", Some(r#"{"key":"fetch-payments"}"#)),
    ("DUMMY-PAY", Some(r#"{"key":"ingest","fileName":"x.json"}"#)),
    ("STRIPE", None),
    ("WISE", None),
    ("MODULR", None),
    ("CURRENCY-CLOUD", None),
    ("BANKING-CIRCLE", None),
];

/// Connectors whose provider sends the same response to every request.
pub struct ConnectorsUnderTest {
    connectors: BTreeMap<&'static str, Arc<dyn Connector>>,
    answer: Arc<Mutex<Vec<u8>>>,
    file: PathBuf,
    runtime: Runtime,
}

impl ConnectorsUnderTest {
    /// Creates all connectors. The certificate and key, in PEM form, and the folder are settings that some connectors
    /// need.
    ///
    /// # Panics
    ///
    /// Panics if a connector cannot be created.
    pub fn new(certificate: &str, key: &str, folder: &Path) -> Self {
        let answer: Arc<Mutex<Vec<u8>>> = Arc::default();
        let url = serve(answer.clone());
        let names = registry::DEFINITIONS.iter().map(|row| row.provider);
        let addresses = names.map(|name| (name.to_owned(), url.clone())).collect();
        let access = ProviderAccess::new(OutboundPolicy::Any, addresses, Duration::from_secs(10))
            .with_folder(Some(folder.to_owned()));
        let config = serde_json::json!({
            "name": "fuzz", "apiKey": "key", "apiSecret": "secret", "loginID": "me", "username": "me",
            "password": "password", "endpoint": url, "authorizationEndpoint": url, "directory": folder,
            "userCertificate": certificate, "userCertificateKey": key
        });
        let config = config.to_string();
        let built = registry::DEFINITIONS.iter().map(|row| {
            let values = Values::read(config.as_bytes(), row.parameters)
                .expect("the configuration has the parameters of every connector");
            (
                row.provider,
                (row.build)(&values, &access).expect("a complete configuration builds its connector"),
            )
        });
        let connectors = built.collect();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("the system allows another runtime");
        Self { connectors, answer, file: folder.join("x.json"), runtime }
    }

    /// Calls a connector: polls a task once, or makes a payment. The number selects which. The provider sends `answer`
    /// as the response to every request.
    ///
    /// # Panics
    ///
    /// Panics if the resulting page is much larger than the response.
    pub fn call(&self, number: u8, state: &str, answer: &[u8]) {
        let (provider, descriptor) = CALLS[usize::from(number) % CALLS.len()];
        answer.clone_into(&mut self.answer.lock().unwrap_or_else(PoisonError::into_inner));
        let connector = &self.connectors[provider];
        let Some(descriptor) = descriptor else {
            // The result does not matter, only that the connector does not panic.
            let _ = self.runtime.block_on(connector.pay(&order()));
            return;
        };
        if provider == "DUMMY-PAY" {
            std::fs::write(&self.file, answer).expect("the folder is new and belongs to this process");
        }
        let context = TaskContext {
            connector: ConnectorId { provider: provider.into(), installation: Uuid::from_bytes([7; 16]) },
            descriptor: descriptor.to_owned(),
            state: state.to_owned(),
            now: Timestamp::from_micros(1_700_000_000_000_000),
        };
        if let Ok(page) = self.runtime.block_on(connector.poll(&context)) {
            let (held, sent) = (approximate_bytes(&page), answer.len());
            // A page contains each record in its raw form and again in fields, hence the factor. New tasks and empty
            // fields take space whatever the size of the response, hence the constant.
            assert!(held <= 64 * sent + 4_096, "{provider} {descriptor}: {sent} bytes became {held}");
        }
    }
}

/// Returns about how many bytes a page holds: the lengths of its texts, plus one for each of its rows.
fn approximate_bytes(page: &Page) -> usize {
    let batch = &page.batch;
    let texts =
        |metadata: &Metadata| metadata.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
    let accounts = batch.accounts.iter().map(|row| {
        row.raw.as_ref().map_or(0, String::len) + row.name.len() + row.reference.len() + texts(&row.metadata)
    });
    let payments = batch.payments.iter().map(|row| {
        let adjustments: usize = row.adjustments.iter().map(|one| one.raw.len()).sum();
        row.raw.as_ref().map_or(0, String::len) + row.reference.len() + texts(&row.metadata) + adjustments
    });
    let rows = batch.accounts.len() + batch.balances.len() + batch.payments.len();
    let children: usize = page.children.iter().map(|child| child.descriptor.len()).sum();
    let state = page.state.as_ref().map_or(0, String::len);
    accounts.sum::<usize>() + payments.sum::<usize>() + rows + children + state
}

fn order() -> Order {
    Order::Send(Transfer {
        kind: InitiationType::Payout,
        source: "1".to_owned(),
        destination: "2".to_owned(),
        amount: Balance::from(100_i64),
        asset: "EUR/2".to_owned(),
        description: "d".to_owned(),
        idempotency_key: "k".to_owned(),
        metadata: Metadata::new(),
        source_metadata: Metadata::from([("profile_id".to_owned(), "1".to_owned())]),
        bank_account: None,
    })
}

/// Starts a server that sends the response to every request, except to requests for a token. Returns its address.
fn serve(answer: Arc<Mutex<Vec<u8>>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the system has a free port");
    let address = listener.local_addr().expect("a bound listener has an address");
    // The thread ends with the process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            std::thread::spawn(move || serve_connection(&stream, &answer));
        }
    });
    format!("http://{address}")
}

/// Responds to the requests of a connection until it ends.
fn serve_connection(stream: &TcpStream, answer: &Mutex<Vec<u8>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut is_login, mut line) = (0, false, String::new());
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        is_login |= line.contains("/authenticate/") || line.contains("/authorizations/");
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
            if let Some(text) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = text.trim().parse().ok()?;
            }
        }
        std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).ok()?;
        let body = if is_login {
            br#"{"auth_token":"t","access_token":"t"}"#.to_vec()
        } else {
            answer.lock().unwrap_or_else(PoisonError::into_inner).clone()
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let mut writer = stream;
        writer.write_all(&[head.as_bytes(), &body].concat()).ok()?;
    }
}
