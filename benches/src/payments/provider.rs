//! A payment provider on this machine that speaks the generic connector API.
//!
//! The first segment of a path names the behaviour: `/N/…` has N transactions, `/hanging/…` accepts requests and never
//! answers.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response, StatusCode};
use ledger_core::Timestamp;

use crate::{Failure, bare};

/// Date of the first transaction: 2024-01-01. Each of the others is dated one second after its predecessor.
const FIRST_SECOND: i64 = 1_704_067_200;

/// Starts a provider on a new thread, which ends with the process.
///
/// # Errors
///
/// Fails if the provider cannot listen.
pub fn start() -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::Builder::new().name("provider".to_owned()).spawn(|| {
        let Err(error) = bare::serve_with(listener, answer);
        eprintln!("load: the provider ended: {error}");
    })?;
    Ok(address)
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let uri = request.uri();
    let (_, rest) = uri.path().split_once('/').unwrap_or_default();
    let (behaviour, list) = rest.split_once('/').unwrap_or_default();
    if behaviour == "hanging" {
        std::future::pending::<()>().await;
    }
    let body = behaviour.parse().ok().and_then(|count| body(count, list, uri.query().unwrap_or_default()));
    let status = if body.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    let mut response = Response::new(Full::new(Bytes::from(body.unwrap_or_default())));
    *response.status_mut() = status;
    Ok(response)
}

/// Returns the response of a provider with `count` transactions, or `None` if the list is unknown or a parameter is not
/// valid.
fn body(count: u64, list: &str, query: &str) -> Option<String> {
    let value = |name: &str| {
        let mut parameters = query.split('&').filter_map(|parameter| parameter.split_once('='));
        parameters.find(|(have, _)| *have == name).map(|(_, value)| value)
    };
    match list {
        "transactions" => {
            let size: u64 = value("pageSize").unwrap_or("100").parse().ok()?;
            let page: u64 = value("page").unwrap_or("1").parse().ok()?;
            let skipped = match value("updatedAtFrom") {
                None => 0,
                Some(date) => number_from(&date.replace("%3A", ":"))?,
            };
            let first = page.checked_sub(1)?.checked_mul(size)?.checked_add(skipped)?;
            Some(rows(first..count.min(first.saturating_add(size))))
        }
        "accounts" | "beneficiaries" => Some("[]".to_owned()),
        _ => None,
    }
}

/// Returns the number of the first transaction that is dated at or after `date`.
fn number_from(date: &str) -> Option<u64> {
    let micros = Timestamp::parse(date).ok()?.as_micros() - FIRST_SECOND * 1_000_000;
    Some(u64::try_from(micros).unwrap_or(0).div_ceil(1_000_000))
}

/// Returns the date of a transaction.
pub fn date(number: u64) -> Timestamp {
    Timestamp::from_micros((FIRST_SECOND + number as i64) * 1_000_000)
}

/// Returns the provider's id of a transaction. Ids are in no order, like those of most providers.
pub fn id(number: u64) -> String {
    format!("tx_{:016x}", mixed(number))
}

/// Maps each number to a different, random-looking number, by the finalizer of `SplitMix64`.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn rows(numbers: std::ops::Range<u64>) -> String {
    let rows: Vec<String> = numbers.map(row).collect();
    format!("[{}]", rows.join(","))
}

/// Returns a transaction as JSON. Nine in ten transactions succeeded, seven in ten are in euros, and one in ten is a
/// transfer.
fn row(number: u64) -> String {
    let (id, at, random) = (id(number), date(number), mixed(number));
    let amount = random % 1_000_000 + 1;
    let kind =
        ["PAYIN", "PAYIN", "PAYIN", "PAYIN", "PAYIN", "PAYIN", "PAYOUT", "PAYOUT", "PAYOUT", "TRANSFER"];
    let kind = kind[(random >> 32) as usize % 10];
    let status = match (random >> 40) % 20 {
        0 => "PENDING",
        1 => "FAILED",
        _ => "SUCCEEDED",
    };
    let currency = match (random >> 48) % 10 {
        0 => "JPY",
        1 | 2 => "USD",
        _ => "EUR",
    };
    let (source, destination) = ((random >> 16) % 1_000, (random >> 24) % 1_000);
    format!(
        "{{\"id\":\"{id}\",\"createdAt\":\"{at}\",\"updatedAt\":\"{at}\",\"currency\":\"{currency}\",\
         \"scheme\":\"sepa\",\"type\":\"{kind}\",\"status\":\"{status}\",\"amount\":\"{amount}\",\
         \"sourceAccountID\":\"acc-{source}\",\"destinationAccountID\":\"ben-{destination}\",\
         \"metadata\":{{\"invoice\":\"{number}\"}}}}"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn ids(query: &str) -> Vec<String> {
        let body = body(250, "transactions", query).expect("a page");
        let rows: Vec<Value> = serde_json::from_str(&body).expect("rows");
        rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
    }

    #[test]
    fn pages_follow_each_other() {
        let all: Vec<String> = (0..250).map(id).collect();
        assert_eq!(ids("pageSize=100&page=1"), all[..100]);
        assert_eq!(ids("pageSize=100&page=3"), all[200..]);
        assert!(ids("pageSize=100&page=4").is_empty());
        let since = date(240).to_string().replace(':', "%3A");
        assert_eq!(ids(&format!("pageSize=100&page=1&updatedAtFrom={since}")), all[240..]);
    }

    #[test]
    fn refuses_what_is_no_list() {
        assert_eq!(body(1, "payments", ""), None);
        assert_eq!(body(1, "transactions", "page=0"), None);
        assert_eq!(body(1, "transactions", "updatedAtFrom=soon"), None);
    }
}
