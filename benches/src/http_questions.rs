//! Read requests of API v2 about a ledger filled with rich transactions.

use ledger_core::Timestamp;

use crate::Failure;
use crate::workload::{GROUP, Profile, Random, reference_and_order};

/// The ledger to read, and the source of random request parameters.
#[derive(Clone, Debug)]
pub struct ReadTarget {
    /// Name of the ledger.
    pub ledger: String,
    /// Kind of its transactions, which determines the addresses of its accounts.
    pub profile: Profile,
    /// Number of rich transactions.
    pub transactions: u64,
    /// Dates of the first and the last transaction.
    pub dates: (Timestamp, Timestamp),
    /// Source of random choices.
    pub random: Random,
}

impl ReadTarget {
    fn account(&mut self) -> String {
        let number = self.random.below(self.profile.accounts);
        self.profile.address(number).to_string()
    }

    fn group(&mut self) -> String {
        // The last group may be incomplete.
        let number = self.random.below((self.profile.accounts / GROUP).max(1)) * GROUP;
        self.profile.group_prefix_of(number)
    }

    /// Returns the id of a random transaction.
    pub fn id(&mut self) -> u64 {
        1 + self.random.below(self.transactions)
    }

    fn date(&mut self) -> String {
        let (from, to) = self.dates;
        let span = to.as_micros().abs_diff(from.as_micros()).max(1);
        let date = Timestamp::from_micros(from.as_micros() + self.random.below(span) as i64);
        encoded(&date.to_string())
    }
}

/// A kind of request with its target latencies.
#[derive(Clone, Copy, Debug)]
pub struct ReadRequest {
    /// Name of the kind in figures.
    pub name: &'static str,
    /// Required median and 99th percentile in milliseconds.
    pub required_ms: (f64, f64),
    /// True if the answer has no body.
    pub is_head: bool,
    /// Returns path and query below the ledger.
    pub path: fn(&mut ReadTarget) -> String,
}

impl ReadRequest {
    /// Makes a request of this kind.
    pub fn request(&self, target: &mut ReadTarget) -> Vec<u8> {
        let path = (self.path)(target);
        request(if self.is_head { "HEAD" } else { "GET" }, &target.ledger, &path)
    }
}

/// Makes a request without a body.
pub fn request(method: &str, ledger: &str, path: &str) -> Vec<u8> {
    format!("{method} /v2/{ledger}/{path} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes()
}

/// Returns a query parameter with a filter of one condition.
pub fn filter(operator: &str, key: &str, value: &str) -> String {
    format!("query={}", encoded(&format!(r#"{{"{operator}":{{"{key}":{value}}}}}"#)))
}

/// Returns a query parameter with the condition that a field matches a text.
fn matches_text(key: &str, value: &str) -> String {
    filter("$match", key, &format!("\"{value}\""))
}

/// Required latencies of a read of one account.
const POINT: (f64, f64) = (0.3, 1.0);
/// Required latencies of a first page.
const PAGE: (f64, f64) = (0.5, 3.0);
/// No required latency: the question is only measured.
const ANY: (f64, f64) = (f64::INFINITY, f64::INFINITY);

const fn get(
    name: &'static str,
    required_ms: (f64, f64),
    path: fn(&mut ReadTarget) -> String,
) -> ReadRequest {
    ReadRequest { name, required_ms, is_head: false, path }
}

/// An account with its volumes, now and at a past date on either time axis.
pub const POINTS: [ReadRequest; 3] = [
    get("account", POINT, |target| format!("accounts/{}?expand=volumes", target.account())),
    get("account_at_insertion", POINT, |target| {
        format!("accounts/{}?expand=volumes&pit={}", target.account(), target.date())
    }),
    get("account_at_effect", POINT, |target| {
        format!("accounts/{}?expand=effectiveVolumes&pit={}", target.account(), target.date())
    }),
];

/// First pages of transactions.
pub const FIRST_PAGES: [ReadRequest; 5] = [
    get("newest_15", PAGE, |_| "transactions?pageSize=15".to_owned()),
    get("of_account", PAGE, |target| {
        format!("transactions?pageSize=15&{}", matches_text("account", &target.account()))
    }),
    get("by_metadata", PAGE, |target| {
        format!(
            "transactions?pageSize=15&{}",
            matches_text("metadata[order]", &reference_and_order(target.id()).1)
        )
    }),
    get("by_frequent_metadata", PAGE, |_| {
        format!("transactions?pageSize=15&{}", matches_text("metadata[channel]", "phone"))
    }),
    get("by_reference", PAGE, |target| {
        format!(
            "transactions?pageSize=15&{}",
            matches_text("reference", reference_and_order(target.id()).0.as_str())
        )
    }),
];

/// A sum over a thousand accounts.
pub const SUM_OF_GROUP: ReadRequest = get("aggregate_1k", (3.0, 3.0), |target| {
    format!("aggregate/balances?{}", matches_text("address", &target.group()))
});

/// Sums and counts.
pub const SUMS: [ReadRequest; 7] = [
    SUM_OF_GROUP,
    get("aggregate_1k_at_effect", ANY, |target| {
        format!("aggregate/balances?pit={}&{}", target.date(), matches_text("address", &target.group()))
    }),
    get("aggregate_1k_at_insertion", ANY, |target| {
        let date = target.date();
        let group = matches_text("address", &target.group());
        format!("aggregate/balances?useInsertionDate=true&pit={date}&{group}")
    }),
    get("aggregate_all", (60.0, 60.0), |_| {
        format!("aggregate/balances?{}", matches_text("address", "users:..."))
    }),
    get("volumes_grouped", (100.0, 100.0), |_| "volumes?groupBy=2&pageSize=15".to_owned()),
    ReadRequest {
        name: "count_transactions",
        required_ms: (0.3, 0.3),
        is_head: true,
        path: |_| "transactions".to_owned(),
    },
    ReadRequest {
        name: "count_accounts",
        required_ms: (0.3, 0.3),
        is_head: true,
        path: |_| "accounts".to_owned(),
    },
];

/// Encodes a text for use in a query.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Checks that an answer is a success and has content: an account, a sum, or a list with at least one element.
///
/// # Errors
///
/// Fails if the status is not 200, or the answer has no content.
pub fn check(name: &str, status: u16, body: &[u8]) -> Result<(), Failure> {
    let is_empty = [&br#""data":[]"#[..], br#""data":{}"#].iter().any(|empty| is_short_with(body, empty));
    if status == 200 && !is_empty {
        return Ok(());
    }
    let start: String = String::from_utf8_lossy(body).chars().take(500).collect();
    Err(format!("{name}: the server answered {status}: {start}").into())
}

/// Returns whether a short answer contains `part`. An answer without content is short, so a long one is not searched.
fn is_short_with(body: &[u8], part: &[u8]) -> bool {
    body.len() < 256 && body.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_queries_and_checks_answers() {
        assert_eq!(encoded(r#"{"a":"b c"}"#), "%7B%22a%22%3A%22b%20c%22%7D");
        assert!(check("x", 200, br#"{"data":{"a":1}}"#).is_ok());
        assert!(check("x", 200, br#"{"cursor":{"data":[]}}"#).is_err());
        assert!(check("x", 404, b"{}").is_err());
    }
}
