//! The server stores records of providers byte for byte, with their spaces, their escapes and the digits of their
//! numbers.

use serde_json::json;
use stack_server::Settings;

use crate::client::TestServer;
use crate::fake_bank::Bank;
use crate::payments::{get, install, until};
use crate::provider::{Provider, ReceivedRequest, Reply};

/// Members that would change if JSON were parsed and written again.
const ODD: &str = r#" "z":1 , "note" :"\u00e9 \/ é",  "rate":1.50,"exponent":1E+2,"big":123456789012345678901234567890 ,"a":[ ]"#;

/// Returns the record of a payment in the form of a provider.
fn record(name: &str) -> String {
    let members = match name {
        "STRIPE" => {
            r#""type":"charge","id":"t1","created":7,"amount":1,
               "source":{ "object":"charge","amount":500 ,"currency":"usd","balance_transaction":"t1"}"#
        }
        "GENERIC" => {
            r#""id":"t1","createdAt":"2024-01-01T00:00:00Z","updatedAt":"2024-01-01T00:00:00Z","currency":"EUR",
               "type":"PAYIN","status":"SUCCEEDED","amount":"500""#
        }
        "WISE" => {
            r#""id":1,"targetAccount":7,"sourceAccount":null,"status":"outgoing_payment_sent",
               "created":"2024-01-01 00:00:00","targetValue":5.00,"targetCurrency":"EUR""#
        }
        "MODULR" => {
            r#""id":"t1","amount":5.00,"currency":"EUR","transactionDate":"2024-01-01T00:00:00+0000","credit":true,
               "type":"PI_SECT""#
        }
        "CURRENCY-CLOUD" => {
            r#""id":"t1","account_id":"C1","currency":"EUR","amount":"5.00","type":"credit","status":"completed",
               "created_at":"2024-01-01T00:00:00+00:00","updated_at":"2024-01-01T00:00:00+00:00""#
        }
        _ => {
            r#""paymentId":"t1","status":"Processed","classification":"Outgoing",
               "latestStatusChangedTimestamp":"2024-01-01T00:00:00+00:00","debtorInformation":{"accountId":"B1"},
               "transfer":{"amount":{"currency":"EUR","amount":5.00}}"#
        }
    };
    format!("{{{ODD},\n{members} }}")
}

/// Returns the response of a provider to a request: a page with the record, or a response that leads to the record.
fn reply(name: &str, asked: &ReceivedRequest) -> Reply {
    let path = asked.path.split('?').next().unwrap_or_default();
    let is_later = ["&page=2", "offset=1", "PageNumber=2", "starting_after", "ending_before"];
    let rows =
        if is_later.iter().any(|part| asked.path.contains(part)) { String::new() } else { record(name) };
    let answer = match (name, path) {
        ("STRIPE", "/v1/balance_transactions") => format!(r#"{{"data":[{rows}],"has_more":false}}"#),
        ("STRIPE", _) => r#"{"data":[],"has_more":false}"#.to_owned(),
        ("GENERIC", "/transactions") | ("WISE", "/v1/transfers") => format!("[{rows}]"),
        ("WISE", "/v1/profiles") => r#"[{"id":11}]"#.to_owned(),
        ("MODULR", "/accounts/A1/transactions") => format!(r#"{{"content":[{rows}],"totalPages":1}}"#),
        ("MODULR", "/accounts") => r#"{"content":[{"id":"A1","name":"main","currency":"EUR","balance":"1.00",
            "createdDate":"2020-05-20T14:43:16.000+0000"}],"totalPages":1}"#
            .to_owned(),
        ("MODULR", _) => r#"{"content":[],"totalPages":1}"#.to_owned(),
        ("CURRENCY-CLOUD", "/v2/authenticate/api") => r#"{"auth_token":"t"}"#.to_owned(),
        ("CURRENCY-CLOUD", "/v2/transactions/find") => {
            format!(r#"{{"transactions":[{rows}],"pagination":{{"next_page":-1}}}}"#)
        }
        ("BANKING-CIRCLE", "/api/v1/authorizations/authorize") => r#"{"access_token":"t"}"#.to_owned(),
        ("BANKING-CIRCLE", "/api/v1/payments/singles") => format!(r#"{{"result":[{rows}]}}"#),
        ("GENERIC" | "WISE", _) => "[]".to_owned(),
        _ => r#"{"accounts":[],"beneficiaries":[],"balances":[],"result":[]}"#.to_owned(),
    };
    Reply::Whole(200, answer)
}

#[track_caller]
fn keeps_records(name: &'static str, bank: Option<Bank>) {
    let provider = Provider::start();
    provider.handle(move |asked| Some(reply(name, asked)));
    let mut settings = Settings::default();
    if matches!(name, "STRIPE" | "WISE") {
        settings.provider_addresses.insert(name.to_owned(), provider.url());
    }
    let server = TestServer::with(settings);
    let url = provider.url();
    let config = bank.map_or_else(
        || json!({"name": "p", "apiKey": "k", "endpoint": url, "pollingPeriod": "50ms"}),
        |bank| bank.config(&url),
    );
    install(&server, name, &config);
    let expected = format!("\"raw\":{}", record(name));
    until("the record is there as it came", || get(&server, "/payments").is(200).body.contains(&expected));
}

#[test]
fn stripe_keeps_records() {
    keeps_records("STRIPE", None);
}

#[test]
fn generic_keeps_records() {
    keeps_records("GENERIC", None);
}

#[test]
fn wise_keeps_records() {
    keeps_records("WISE", Some(Bank::Wise));
}

#[test]
fn modulr_keeps_records() {
    keeps_records("MODULR", Some(Bank::Modulr));
}

#[test]
fn currency_cloud_keeps_records() {
    keeps_records("CURRENCY-CLOUD", Some(Bank::CurrencyCloud));
}

#[test]
fn banking_circle_keeps_records() {
    keeps_records("BANKING-CIRCLE", Some(Bank::BankingCircle));
}

#[test]
fn dummy_pay_keeps_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = format!(
        "{{{ODD},\n \"reference\":\"t1\", \"createdAt\":\"2024-01-01T00:00:00Z\",\"amount\":500,\"asset\":\"EUR/2\",\
         \"type\":\"PAY-IN\",\"status\":\"SUCCEEDED\",\"scheme\":\"visa\"}}"
    );
    let file = format!("{{\"kind\":\"payment\",\n\"payment\":{record}}}\n");
    std::fs::write(folder.path().join("one.json"), file).expect("the file is written");
    let server = TestServer::start();
    install(&server, "DUMMY-PAY", &json!({"directory": folder.path(), "filePollingPeriod": "50ms"}));
    let expected = format!("\"raw\":{record}");
    until("the record is there as it came", || get(&server, "/payments").is(200).body.contains(&expected));
}
