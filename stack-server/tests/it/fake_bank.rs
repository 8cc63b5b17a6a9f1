//! Fakes of WISE, MODULR, CURRENCY-CLOUD and BANKING-CIRCLE, with the paging and the authentication of each provider's
//! public contract, and with faults.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::provider::{Provider, ReceivedRequest, Reply};

/// Number of rows on a page, regardless of the request, so that the lists of a test have several pages.
const PAGE: usize = 3;

/// The provider that a fake imitates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bank {
    Wise,
    Modulr,
    CurrencyCloud,
    BankingCircle,
}

/// A fault of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    TooManyRequests,
    ServerError,
    Truncated,
    TimeOut,
    /// The provider sends the previous page again.
    Repeated,
    /// The provider sends the rows of the page in another order.
    Reordered,
    /// The session of the connector has ended.
    LoggedOut,
}

/// Every fault.
pub(crate) const FAULTS: [Fault; 7] = [
    Fault::TooManyRequests,
    Fault::ServerError,
    Fault::Truncated,
    Fault::TimeOut,
    Fault::LoggedOut,
    Fault::Reordered,
    // This must follow a successful page, because only then is there a page to repeat.
    Fault::Repeated,
];

#[derive(Default)]
struct State {
    lists: BTreeMap<String, Vec<Value>>,
    /// The faults of the next pages of each list.
    faults: BTreeMap<String, Vec<Fault>>,
    /// The previous page of each list.
    before: BTreeMap<String, String>,
    logins: usize,
}

/// A fake provider.
#[derive(Clone)]
pub(crate) struct FakeBank {
    pub(crate) provider: Provider,
    bank: Bank,
    state: Arc<Mutex<State>>,
}

impl FakeBank {
    pub(crate) fn start(bank: Bank) -> Self {
        let fake = Self { provider: Provider::start(), bank, state: Arc::default() };
        let answering = fake.clone();
        fake.provider.handle(move |asked| answering.reply(asked));
        fake
    }

    /// Sets the rows of a list.
    pub(crate) fn list(&self, path: &str, rows: Vec<Value>) {
        self.state.lock().expect("no panic").lists.insert(path.to_owned(), rows);
    }

    /// Sets the faults of the next responses of a list, in this order.
    pub(crate) fn fail(&self, path: &str, faults: &[Fault]) {
        let mut state = self.state.lock().expect("no panic");
        state.faults.insert(path.to_owned(), faults.iter().rev().copied().collect());
    }

    /// Returns the number of faults that have not occurred yet.
    pub(crate) fn faults_left(&self) -> usize {
        self.state.lock().expect("no panic").faults.values().map(Vec::len).sum()
    }

    /// Returns the response to a request, or `None` if the route is not a list.
    pub(crate) fn reply(&self, asked: &ReceivedRequest) -> Option<Reply> {
        let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
        let mut state = self.state.lock().expect("no panic");
        if let Some(reply) = self.log_in(path, asked, &mut state) {
            return Some(reply);
        }
        if !self.is_authorized(asked, state.logins) {
            return Some(Reply::Whole(401, json!({"error": "unauthorized"}).to_string()));
        }
        let rows = state.lists.get(path)?.clone();
        let parameters = parse(if query.is_empty() { &asked.body } else { query });
        let fault = state.faults.get_mut(path).and_then(Vec::pop);
        let page = self.page(path, &rows, &parameters, fault == Some(Fault::Reordered));
        let before = state.before.insert(path.to_owned(), page.clone());
        Some(match fault {
            None | Some(Fault::Reordered) => Reply::Whole(200, page),
            Some(Fault::TooManyRequests) => Reply::Whole(429, "slow down".to_owned()),
            Some(Fault::ServerError) => Reply::Whole(503, "<html>".to_owned()),
            Some(Fault::Truncated) => Reply::Truncated(page),
            Some(Fault::TimeOut) => Reply::Hanging,
            Some(Fault::Repeated) => Reply::Whole(200, before.unwrap_or(page)),
            Some(Fault::LoggedOut) => {
                state.logins += usize::from(self.has_sessions());
                Reply::Whole(401, "{}".to_owned())
            }
        })
    }

    fn has_sessions(&self) -> bool {
        matches!(self.bank, Bank::CurrencyCloud | Bank::BankingCircle)
    }

    fn log_in(&self, path: &str, asked: &ReceivedRequest, state: &mut State) -> Option<Reply> {
        let (is_right, member) = match (self.bank, path) {
            (Bank::CurrencyCloud, "/v2/authenticate/api") => {
                (asked.body == "login_id=me&api_key=canary-key", "auth_token")
            }
            (Bank::BankingCircle, "/api/v1/authorizations/authorize") => {
                // me:canary-key
                (asked.header("authorization") == "Basic bWU6Y2FuYXJ5LWtleQ==", "access_token")
            }
            _ => return None,
        };
        if !is_right {
            return Some(Reply::Whole(401, "{}".to_owned()));
        }
        state.logins += 1;
        Some(Reply::Whole(200, json!({ member: format!("token-{}", state.logins) }).to_string()))
    }

    fn is_authorized(&self, asked: &ReceivedRequest, logins: usize) -> bool {
        match self.bank {
            Bank::Wise => asked.header("authorization") == "Bearer canary-key",
            Bank::Modulr => is_signed(asked),
            Bank::CurrencyCloud => asked.header("x-auth-token") == format!("token-{logins}"),
            Bank::BankingCircle => asked.header("authorization") == format!("Bearer token-{logins}"),
        }
    }

    /// Returns the requested page in the provider's form.
    fn page(&self, path: &str, rows: &[Value], asked: &BTreeMap<String, String>, reorders: bool) -> String {
        let number = |name: &str| asked.get(name).and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
        let is_whole = path.ends_with("/profiles") || path.ends_with("/balances");
        let start = match self.bank {
            Bank::Wise => number("offset") + number("seekPosition"),
            Bank::Modulr => number("page") * PAGE,
            Bank::CurrencyCloud => number("page").saturating_sub(1) * PAGE,
            Bank::BankingCircle => number("PageNumber").saturating_sub(1) * PAGE,
        };
        let length = if self.bank == Bank::Wise && is_whole { rows.len() } else { PAGE };
        let mut page: Vec<_> = rows.iter().skip(start).take(length).cloned().collect();
        if reorders {
            page.reverse();
        }
        let end = start + page.len();
        match self.bank {
            Bank::Wise if path.ends_with("/accounts") => {
                json!({"content": page, "seekPositionForNext": if end < rows.len() { end } else { 0 }})
            }
            Bank::Wise => json!(page),
            Bank::Modulr => {
                json!({"content": page, "size": PAGE, "totalSize": rows.len(),
                    "totalPages": rows.len().div_ceil(PAGE), "page": number("page")})
            }
            Bank::CurrencyCloud => {
                let next = if end < rows.len() { (number("page") + 1) as i64 } else { -1 };
                let name = path.split('/').nth(2).unwrap_or_default();
                json!({ name: page, "pagination": {"next_page": next, "per_page": PAGE} })
            }
            Bank::BankingCircle => {
                json!({"result": page, "pageInfo": {"currentPage": number("PageNumber"), "pageSize": PAGE}})
            }
        }
        .to_string()
    }
}

/// Returns whether a request carries the parts of a signature. The unit tests of the connector check its value.
fn is_signed(asked: &ReceivedRequest) -> bool {
    let authorization = asked.header("authorization");
    authorization.starts_with("Signature keyId=\"canary-id\",algorithm=\"hmac-sha512\"")
        && asked.header("date").ends_with(" GMT")
        && asked.header("x-mod-nonce").len() == 36
}

fn parse(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
