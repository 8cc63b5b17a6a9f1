//! A wallet service in axum: deposits and payments over HTTP, idempotent by a header. A payment may overdraw its wallet
//! by up to 20.00. A worker of the runtime serves other requests while a payment is written.
//!
//! ```text
//! POST /users/1/deposits 10000 key=d1 -> 200 transaction 1
//! POST /users/1/deposits 10000 key=d1 -> 200 transaction 1 (replayed)
//! POST /users/1/deposits 777 key=d1 -> 409 a different request used the idempotency key "d1" before
//! POST /users/1/payments 16000 key=p1 -> 422 account users:1 lacks funds: 16000 USD/2 needed, 12000 available
//! POST /users/1/payments 6000 key=p2 -> 200 transaction 2
//! POST /users/1/payments 5000 key=p3 -> 200 transaction 3
//! POST /users/1/payments 1001 key=p4 -> 422 account users:1 lacks funds: 1001 USD/2 needed, 1000 available
//! POST /users/a:/payments 1 key=p5 -> 400 invalid account address 'users:a:': segments of '0-9a-zA-Z_-', separated by ':', at most 1024 bytes
//! GET /users/1 -> 200 -1000
//! ```

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use axum::{Json, Router};
use ledger_store::{TransactionBuilder, prelude::*};

type Answer = Result<String, (StatusCode, String)>;

const ASSET: &str = "USD/2";
/// Limit of the overdraft of each wallet, in cents.
const OVERDRAFT: u64 = 20_00;

async fn deposit(
    State(ledger): State<Ledger>,
    Path(user): Path<String>,
    headers: HeaderMap,
    Json(amount): Json<u64>,
) -> Answer {
    commit(ledger.transaction().posting("world", format!("users:{user}"), amount, ASSET), &headers).await
}

async fn pay(
    State(ledger): State<Ledger>,
    Path(user): Path<String>,
    headers: HeaderMap,
    Json(amount): Json<u64>,
) -> Answer {
    let user = format!("users:{user}");
    let payment = ledger.transaction().posting(&user, "shop", amount, ASSET);
    commit(payment.allow_overdraft_up_to(&user, OVERDRAFT, ASSET), &headers).await
}

async fn commit(transaction: TransactionBuilder<'_>, headers: &HeaderMap) -> Answer {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
    let key = key.ok_or((StatusCode::BAD_REQUEST, "an idempotency-key is required".to_owned()))?;
    // The worker serves other requests until the payment is on disk.
    let done = transaction.idempotency_key(key).commit_async().await.map_err(|error| refused(&error))?;
    let replayed = if done.replayed { " (replayed)" } else { "" };
    Ok(format!("transaction {}{replayed}", done.id))
}

async fn balance(State(ledger): State<Ledger>, Path(user): Path<String>) -> Answer {
    let balance = ledger.balance(format!("users:{user}"), ASSET);
    balance.map(|balance| balance.to_string()).map_err(|error| refused(&error))
}

/// Returns the status and text of an error. The status is 500 if the outcome is unknown, so that the client repeats the
/// request with the same key.
fn refused(error: &LedgerError) -> (StatusCode, String) {
    let status = match error {
        LedgerError::Name(_) | LedgerError::Amount(_) => StatusCode::BAD_REQUEST,
        LedgerError::IdempotencyConflict { .. } => StatusCode::CONFLICT,
        LedgerError::Refused(_) => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, error.to_string())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let store = Store::in_memory(); // a service uses Store::open("data")
    let routes = Router::new()
        .route("/users/{user}", get(balance))
        .route("/users/{user}/deposits", post(deposit))
        .route("/users/{user}/payments", post(pay))
        .with_state(store.ledger("wallet")?);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async { axum::serve(listener, routes).await });
    tokio::task::spawn_blocking(move || run_client(address)).await??;
    Ok(())
}

/// Calls the service as a client would.
fn run_client(address: SocketAddr) -> std::io::Result<()> {
    for (path, amount, key) in [
        ("/users/1/deposits", 100_00, "d1"),
        ("/users/1/deposits", 100_00, "d1"),
        ("/users/1/deposits", 7_77, "d1"),
        ("/users/1/payments", 160_00, "p1"),
        ("/users/1/payments", 60_00, "p2"),
        ("/users/1/payments", 50_00, "p3"),
        ("/users/1/payments", 10_01, "p4"),
        ("/users/a:/payments", 1, "p5"),
    ] {
        let answer = call(address, "POST", path, &amount.to_string(), key)?;
        println!("POST {path} {amount} key={key} -> {answer}");
    }
    println!("GET /users/1 -> {}", call(address, "GET", "/users/1", "", "")?);
    Ok(())
}

fn call(address: SocketAddr, method: &str, path: &str, body: &str, key: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    let head = format!("{method} {path} HTTP/1.0\r\nidempotency-key: {key}");
    let length = format!("content-type: application/json\r\ncontent-length: {}", body.len());
    write!(stream, "{head}\r\n{length}\r\n\r\n{body}")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    Ok(format!("{} {body}", head.split(' ').nth(1).unwrap_or("no status")))
}
