//! Tests the connectors WISE, MODULR, CURRENCY-CLOUD and BANKING-CIRCLE with fake providers.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use stack_server::Settings;

use crate::client::TestServer;
use crate::fake_bank::{Bank, FAULTS, FakeBank};
use crate::kill::ask;
use crate::payments::{get, install, post, rows, status, until};

const WISE_TRANSFERS: &str = "/v1/transfers";
const MODULR_TRANSACTIONS: &str = "/accounts/A1/transactions";
const CLOUD_TRANSACTIONS: &str = "/v2/transactions/find";
const CIRCLE_PAYMENTS: &str = "/api/v1/payments/singles";

impl Bank {
    const fn name(self) -> &'static str {
        match self {
            Self::Wise => "WISE",
            Self::Modulr => "MODULR",
            Self::CurrencyCloud => "CURRENCY-CLOUD",
            Self::BankingCircle => "BANKING-CIRCLE",
        }
    }

    pub(crate) fn config(self, url: &str) -> Value {
        let mut config = match self {
            Self::Wise => json!({"apiKey": "canary-key"}),
            Self::Modulr => json!({"apiKey": "canary-id", "apiSecret": "canary-key"}),
            Self::CurrencyCloud => json!({"loginID": "me", "apiKey": "canary-key"}),
            Self::BankingCircle => {
                let made = rcgen::generate_simple_self_signed(["client".to_owned()]).expect("a certificate");
                json!({"username": "me", "password": "canary-key", "authorizationEndpoint": url,
                    "userCertificate": made.cert.pem(), "userCertificateKey": made.signing_key.serialize_pem()})
            }
        };
        config["name"] = json!("bank");
        config["pollingPeriod"] = json!("50ms");
        if self != Self::Wise {
            config["endpoint"] = json!(url);
        }
        config
    }

    /// Returns the path of the provider's list of payments.
    const fn payments(self) -> &'static str {
        match self {
            Self::Wise => WISE_TRANSFERS,
            Self::Modulr => MODULR_TRANSACTIONS,
            Self::CurrencyCloud => CLOUD_TRANSACTIONS,
            Self::BankingCircle => CIRCLE_PAYMENTS,
        }
    }

    /// Returns a payment in the provider's form. Its amount is `number` euros and five cents.
    fn payment(self, number: i64) -> Value {
        let date = format!("2024-05-{:02}T10:{:02}:00", 1 + number / 60, number % 60);
        let amount = format!("{number}.05");
        let raw = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        match self {
            Self::Wise => json!({"id": number, "targetAccount": 7, "sourceAccount": null,
                "status": "outgoing_payment_sent", "created": date.replace('T', " "),
                "targetValue": raw(&amount), "targetCurrency": "EUR"}),
            Self::Modulr => json!({"id": number.to_string(), "amount": raw(&amount), "currency": "EUR",
                "transactionDate": format!("{date}+0000"), "credit": true, "type": "PI_SECT"}),
            Self::CurrencyCloud => json!({"id": number.to_string(), "account_id": "C1", "currency": "EUR",
                "amount": amount, "type": "credit", "status": "completed",
                "created_at": format!("{date}+00:00"), "updated_at": format!("{date}+00:00")}),
            Self::BankingCircle => json!({"paymentId": number.to_string(), "status": "Processed",
                "classification": "Outgoing", "latestStatusChangedTimestamp": format!("{date}.1234567+00:00"),
                "debtorInformation": {"accountId": "B1"}, "creditorInformation": {"accountId": null},
                "transfer": {"amount": {"currency": "EUR", "amount": raw(&amount)}}}),
        }
    }
}

/// Starts a fake provider with accounts of both kinds and some payments.
fn bank(bank: Bank, payments: i64) -> FakeBank {
    let fake = FakeBank::start(bank);
    match bank {
        Bank::Wise => {
            fake.list("/v1/profiles", vec![json!({"id": 11, "type": "business"})]);
            fake.list(
                "/v4/profiles/11/balances",
                vec![json!({"id": 21, "currency": "EUR", "name": "main",
                "amount": {"value": 310.86, "currency": "EUR"}, "creationTime": "2020-05-20T14:43:16.658Z"})],
            );
            fake.list("/v2/accounts", vec![json!({"id": 7, "currency": "EUR", "name": {"fullName": "Ann"}})]);
        }
        Bank::Modulr => {
            fake.list(
                "/accounts",
                vec![json!({"id": "A1", "name": "main", "currency": "EUR",
                "balance": "310.86", "createdDate": "2020-05-20T14:43:16.000+0000"})],
            );
            fake.list(
                "/beneficiaries",
                vec![json!({"id": "N1", "name": "Ann", "created": "2020-05-20T14:43:16+0000"})],
            );
        }
        Bank::CurrencyCloud => {
            let dates =
                json!({"created_at": "2020-05-20T14:43:16+00:00", "updated_at": "2020-05-20T14:43:16+00:00"});
            let with = |mut row: Value| {
                for (name, value) in dates.as_object().expect("an object") {
                    row[name] = value.clone();
                }
                row
            };
            fake.list("/v2/accounts/find", vec![with(json!({"id": "C1", "account_name": "main"}))]);
            fake.list(
                "/v2/beneficiaries/find",
                vec![with(json!({"id": "N1", "name": "Ann", "currency": "EUR"}))],
            );
            fake.list(
                "/v2/balances/find",
                vec![with(json!({"id": "x", "account_id": "C1", "currency": "EUR", "amount": "310.86"}))],
            );
        }
        Bank::BankingCircle => fake.list(
            "/api/v1/accounts",
            vec![json!({"accountId": "B1",
            "accountDescription": "main", "currency": "EUR", "openingDate": "2020-05-20",
            "balances": [{"type": "IntraDay", "currency": "EUR", "intraDayAmount": 310.86}]})],
        ),
    }
    fake.list(bank.payments(), (0..payments).map(|number| bank.payment(number)).collect());
    fake
}

/// Starts a server whose connectors wait at most a second for their provider.
fn server(fake: &FakeBank, bank: Bank) -> TestServer {
    let mut settings = Settings::default();
    settings.provider_timeout = Duration::from_secs(1);
    if bank == Bank::Wise {
        settings.provider_addresses.insert("WISE".to_owned(), fake.provider.url());
    }
    TestServer::with(settings)
}

fn references(server: &TestServer) -> BTreeSet<(String, String)> {
    let found = rows(server, "/payments?pageSize=1000");
    let pairs: BTreeSet<_> =
        found.iter().map(|row| (row["reference"].to_string(), row["amount"].to_string())).collect();
    assert_eq!(pairs.len(), found.len(), "a payment came twice");
    pairs
}

/// Checks that a pool of one account has its balance from the time of the provider's first report on.
#[track_caller]
fn sums_the_newest_balance(server: &TestServer, account: &Value, balance: &Value) {
    let body = json!({"name": "own", "accountIDs": [account]});
    let pool = post(server, "/pools", &body).is(200).json()["data"]["id"].clone();
    let at = |date: &str| {
        let path = format!("/pools/{}/balances?at={date}", pool.as_str().expect("an id"));
        get(server, &path).is(200).json()["data"]["balances"].clone()
    };
    let sum = json!([{"amount": 31086, "asset": "EUR/2"}]);
    assert_eq!(at(balance["createdAt"].as_str().expect("a date")), sum);
    assert_eq!(at("2999-01-01T00:00:00Z"), sum, "it is valid until there is another one");
    assert_eq!(at("2000-01-01T00:00:00Z"), json!([]));
}

/// Checks that all records of a provider arrive once, even if single requests fail.
#[track_caller]
fn brings_in_everything_once(kind: Bank) {
    let fake = bank(kind, 17);
    fake.fail(kind.payments(), &FAULTS);
    let server = server(&fake, kind);
    let connector = install(&server, kind.name(), &kind.config(&fake.provider.url()));
    let expected: BTreeSet<_> =
        (0..17).map(|number| (format!("\"{number}\""), (number * 100 + 5).to_string())).collect();
    until("all faults have happened and all payments are there", || {
        fake.faults_left() == 0 && references(&server) == expected
    });
    let accounts = rows(&server, "/accounts");
    let kinds: BTreeSet<_> = accounts.iter().map(|row| row["type"].as_str().expect("a type")).collect();
    let wanted: &[&str] = if kind == Bank::BankingCircle { &["INTERNAL"] } else { &["EXTERNAL", "INTERNAL"] };
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), wanted);
    let own = accounts.iter().find(|row| row["type"] == "INTERNAL").expect("an account")["id"].clone();
    let path = format!("/accounts/{}/balances", own.as_str().expect("an id"));
    until("the balance is there", || rows(&server, &path).len() == 1);
    let balance = rows(&server, &path).remove(0);
    assert_eq!((&balance["balance"], &balance["asset"]), (&json!(31086), &json!("EUR/2")));
    sums_the_newest_balance(&server, &own, &balance);
    let payment = rows(&server, "/payments").remove(0);
    assert_eq!((&payment["asset"], &payment["scheme"]), (&json!("EUR/2"), &json!("other")));
    assert!(payment["raw"].is_object() && payment["status"] == "SUCCEEDED", "{payment}");
    // Add later payments, and one with a date in the future, which must not hide the others.
    let mut more: Vec<_> = (0..19).map(|number| kind.payment(number)).collect();
    let future = kind.payment(60 * 20).to_string().replace("2024-", "2999-");
    more.push(serde_json::from_str(&future).expect("JSON"));
    fake.list(kind.payments(), more);
    until("later payments are there", || references(&server).len() == 20);
    let tasks = get(&server, &format!("/connectors/{}/{connector}/tasks", kind.name())).is(200).json();
    assert!(!tasks.to_string().contains("canary-key") && !tasks.to_string().contains("token-"), "{tasks}");
}

#[test]
fn wise_brings_in_everything_once() {
    brings_in_everything_once(Bank::Wise);
}

#[test]
fn modulr_brings_in_everything_once() {
    brings_in_everything_once(Bank::Modulr);
}

#[test]
fn currency_cloud_brings_in_everything_once() {
    brings_in_everything_once(Bank::CurrencyCloud);
}

#[test]
fn banking_circle_brings_in_everything_once() {
    brings_in_everything_once(Bank::BankingCircle);
}

#[test]
fn bad_record_hides_no_other() {
    for kind in [Bank::Wise, Bank::Modulr, Bank::CurrencyCloud, Bank::BankingCircle] {
        let fake = bank(kind, 2);
        let mut odd = kind.payment(2);
        let text = odd.to_string().replace("2.05", "2.055");
        odd = serde_json::from_str(&text).expect("JSON");
        fake.list(kind.payments(), vec![kind.payment(0), odd, json!(7), json!({}), kind.payment(1)]);
        let server = server(&fake, kind);
        let connector = install(&server, kind.name(), &kind.config(&fake.provider.url()));
        until("the good payments are there", || references(&server).len() == 2);
        let path = format!("/connectors/{}/{connector}/tasks", kind.name());
        until("a task tells of the bad one", || {
            let errors = get(&server, &path).is(200).column("error");
            errors.iter().any(|error| error.contains("passed over"))
        });
    }
}

/// Returns the ids of an internal and an external account of an installation.
fn accounts(server: &TestServer) -> (String, String) {
    let id = |kind: &str| {
        let found = rows(server, "/accounts").into_iter().find(|row| row["type"] == kind);
        found.map(|row| row["id"].as_str().expect("an id").to_owned())
    };
    until("both accounts are there", || id("INTERNAL").is_some() && id("EXTERNAL").is_some());
    (id("INTERNAL").expect("an id"), id("EXTERNAL").expect("an id"))
}

/// Sends money to a counterparty and returns the id of the initiation.
fn payout(server: &TestServer, connector: &str, (source, destination): (&str, &str)) -> String {
    let body = json!({"reference": "t", "description": "rent", "sourceAccountID": source,
        "destinationAccountID": destination, "connectorID": connector, "type": "PAYOUT", "amount": 1050,
        "asset": "EUR/2", "validated": true});
    let made = post(server, "/transfer-initiations", &body).is(200).json();
    made["data"]["id"].as_str().expect("an id").to_owned()
}

/// Returns the bodies of the requests to a path, except empty ones.
fn sent(fake: &FakeBank, path: &str) -> Vec<String> {
    let asked = fake.provider.requests().into_iter();
    asked.filter(|asked| asked.path == path && !asked.body.is_empty()).map(|asked| asked.body).collect()
}

#[test]
fn wise_pays_a_recipient_once() {
    let fake = bank(Bank::Wise, 0);
    fake.provider.answer("/v3/profiles/11/quotes", &json!({"id": "q-1"}));
    // The list of transfers has the same path as the route that creates a transfer.
    fake.list(WISE_TRANSFERS, vec![]);
    let listing = fake.clone();
    fake.provider.handle(move |asked| {
        let made = json!({"id": 99, "status": "incoming_payment_waiting"}).to_string();
        let is_new = asked.path == WISE_TRANSFERS && !asked.body.is_empty();
        if is_new { Some(crate::provider::Reply::Whole(200, made)) } else { listing.reply(asked) }
    });
    fake.provider.answer("/v3/profiles/11/transfers/99/payments", &json!({"status": "COMPLETED"}));
    fake.provider.answer("/v1/transfers/99", &json!({"id": 99, "status": "outgoing_payment_sent"}));
    let server = server(&fake, Bank::Wise);
    let connector = install(&server, "WISE", &Bank::Wise.config(""));
    let (own, other) = accounts(&server);
    let id = payout(&server, &connector, (&own, &other));
    until("it is processed", || status(&server, &id) == "PROCESSED");
    let made = sent(&fake, WISE_TRANSFERS);
    assert_eq!(made.len(), 1);
    assert!(made[0].contains("\"targetAccount\":7,\"quoteUuid\":\"q-1\""), "{made:?}");
    assert_eq!(sent(&fake, "/v3/profiles/11/transfers/99/payments").len(), 1);
    assert!(sent(&fake, "/v3/profiles/11/quotes")[0].contains("\"targetAmount\":10.50"));
    let body = json!({"amount": 500, "asset": "EUR/2", "source": "11", "destination": "7"});
    let made = post(&server, "/connectors/WISE/transfers", &body).is(200).json();
    assert_eq!(made["id"], made["data"]["id"]);
    let list = || get(&server, "/connectors/WISE/transfers").is(200).json()["data"][0].clone();
    until("the old transfer has ended", || list()["status"] == "SUCCEEDED");
    assert_eq!(
        (&list()["amount"], &list()["asset"], &list()["id"]),
        (&json!(500), &json!("EUR/2"), &made["id"])
    );
}

#[test]
fn modulr_pays_a_beneficiary_once() {
    let fake = bank(Bank::Modulr, 0);
    fake.provider.answer(
        "/payments",
        &json!({"id": "P1", "status": "SUBMITTED",
        "content": [{"id": "P1", "status": "PROCESSED"}]}),
    );
    let server = server(&fake, Bank::Modulr);
    let connector = install(&server, "MODULR", &Bank::Modulr.config(&fake.provider.url()));
    let (own, other) = accounts(&server);
    let id = payout(&server, &connector, (&own, &other));
    until("it is processed", || status(&server, &id) == "PROCESSED");
    let made = sent(&fake, "/payments");
    assert_eq!(made.len(), 1);
    let part = r#"{"sourceAccountId":"A1","destination":{"type":"BENEFICIARY","id":"N1"},"currency":"EUR","amount":10.50"#;
    assert!(made[0].starts_with(part), "{made:?}");
    let body = json!({"amount": 5, "asset": "EUR/2", "destination": "N1"});
    post(&server, "/connectors/MODULR/transfers", &body).refused(400, "VALIDATION");
}

#[test]
fn currency_cloud_shows_why_a_payment_failed() {
    let fake = bank(Bank::CurrencyCloud, 0);
    fake.provider.answer("/v2/payments/create", &json!({"id": "P1", "status": "ready_to_send"}));
    fake.provider.answer("/v2/payments/P1", &json!({"id": "P1", "status": "failed"}));
    let server = server(&fake, Bank::CurrencyCloud);
    let connector = install(&server, "CURRENCY-CLOUD", &Bank::CurrencyCloud.config(&fake.provider.url()));
    let (own, other) = accounts(&server);
    let id = payout(&server, &connector, (&own, &other));
    until("it has failed", || status(&server, &id) == "FAILED");
    let made = sent(&fake, "/v2/payments/create");
    assert_eq!(made.len(), 1);
    assert!(made[0].starts_with("currency=EUR&amount=10.50&reason=rent&unique_request_id=t_"), "{made:?}");
    let found = get(&server, &format!("/transfer-initiations/{id}")).json();
    assert!(found["data"]["error"].as_str().is_some_and(|error| error.contains("failed")), "{found}");
}

#[test]
fn banking_circle_pays_a_forwarded_bank_account() {
    let fake = bank(Bank::BankingCircle, 0);
    fake.provider.answer(
        "/api/v1/accounts/B1",
        &json!({"accountIdentifiers": [
        {"account": "DK1", "financialInstitution": "SXPY", "country": "DK"}]}),
    );
    let listing = fake.clone();
    fake.provider.handle(move |asked| {
        let made = json!({"paymentId": "P1", "status": "PendingProcessing"}).to_string();
        let is_new = asked.path == CIRCLE_PAYMENTS && !asked.body.is_empty();
        if is_new { Some(crate::provider::Reply::Whole(200, made)) } else { listing.reply(asked) }
    });
    fake.provider.answer("/api/v1/payments/singles/P1/status", &json!({"status": "Processed"}));
    let server = server(&fake, Bank::BankingCircle);
    let connector = install(&server, "BANKING-CIRCLE", &Bank::BankingCircle.config(&fake.provider.url()));
    let account = json!({"name": "Ann", "country": "FR", "iban": "FR7630001007941234567890185",
        "swiftBicCode": "BNPAFRPP"});
    let id = post(&server, "/bank-accounts", &account).is(200).json()["data"]["id"].clone();
    let id = id.as_str().expect("an id");
    let forward = json!({"connectorID": connector});
    let forwarded = post(&server, &format!("/bank-accounts/{id}/forward"), &forward).is(200).json();
    assert_eq!(forwarded["data"]["relatedAccounts"].as_array().map(Vec::len), Some(1));
    assert!(!forwarded.to_string().contains("FR763"), "{forwarded}");
    post(&server, &format!("/bank-accounts/{id}/forward"), &forward).refused(400, "VALIDATION");
    let (own, other) = accounts(&server);
    assert_eq!(forwarded["data"]["accountID"], json!(other));
    let id = payout(&server, &connector, (&own, &other));
    until("it is processed", || status(&server, &id) == "PROCESSED");
    let made = sent(&fake, CIRCLE_PAYMENTS);
    assert_eq!(made.len(), 1);
    for part in ["\"account\":\"FR7630001007941234567890185\"", "\"account\":\"DK1\"", "\"amount\":10.50"] {
        assert!(made[0].contains(part), "{made:?}");
    }
}

#[test]
fn banking_circle_names_own_transfers_as_listed() {
    let kind = Bank::BankingCircle;
    let fake = bank(kind, 0);
    let identifiers = json!([{"account": "DK1", "financialInstitution": "SXPY", "country": "DK"}]);
    fake.provider.answer("/api/v1/accounts/B1", &json!({"accountIdentifiers": identifiers}));
    let mut listed = kind.payment(1);
    listed["classification"] = json!("Own");
    fake.list(CIRCLE_PAYMENTS, vec![listed]);
    let listing = fake.clone();
    fake.provider.handle(move |asked| {
        let made = json!({"paymentId": "1", "status": "Processed"}).to_string();
        let is_new = asked.path == CIRCLE_PAYMENTS && !asked.body.is_empty();
        if is_new { Some(crate::provider::Reply::Whole(200, made)) } else { listing.reply(asked) }
    });
    let server = server(&fake, kind);
    let connector = install(&server, kind.name(), &kind.config(&fake.provider.url()));
    until("all is there", || rows(&server, "/accounts").len() == 1 && rows(&server, "/payments").len() == 1);
    let own = rows(&server, "/accounts")[0]["id"].clone();
    let body = json!({"reference": "t", "sourceAccountID": own, "destinationAccountID": own, "type": "TRANSFER",
        "connectorID": connector, "amount": 105, "asset": "EUR/2", "validated": true});
    let made = post(&server, "/transfer-initiations", &body).is(200).json();
    let id = made["data"]["id"].as_str().expect("an id");
    until("it is processed", || status(&server, id) == "PROCESSED");
    let found = get(&server, &format!("/transfer-initiations/{id}")).json();
    assert_eq!(found["data"]["relatedPayments"][0]["paymentID"], rows(&server, "/payments")[0]["id"]);
}

#[test]
fn wrong_key_of_a_provider_is_shown() {
    let fake = bank(Bank::CurrencyCloud, 1);
    let server = server(&fake, Bank::CurrencyCloud);
    let mut config = Bank::CurrencyCloud.config(&fake.provider.url());
    config["apiKey"] = json!("canary-wrong");
    let connector = install(&server, "CURRENCY-CLOUD", &config);
    let path = format!("/connectors/CURRENCY-CLOUD/{connector}/tasks");
    until("a task shows it", || {
        get(&server, &path).is(200).column("error").iter().any(|error| error.contains("401"))
    });
    assert!(!get(&server, &path).json().to_string().contains("canary-wrong"));
    let mut config = Bank::BankingCircle.config("http://127.0.0.1:9");
    config["userCertificateKey"] = json!("no key");
    post(&server, "/connectors/BANKING-CIRCLE", &config).refused(400, "VALIDATION");
}

#[test]
fn stripe_transfers_of_1_10_are_made() {
    let provider = crate::provider::Provider::start();
    provider.answer(
        "/v1/transfers",
        &json!({"id": "tr_1", "object": "transfer", "balance_transaction": "txn_9"}),
    );
    let mut settings = Settings::default();
    settings.provider_addresses.insert("STRIPE".to_owned(), provider.url());
    let server = TestServer::with(settings);
    let body = json!({"amount": 100, "asset": "USD/2", "destination": "acct_1", "metadata": {"order": "7"}});
    post(&server, "/connectors/stripe/transfers", &body).refused(400, "VALIDATION");
    install(&server, "STRIPE", &json!({"name": "s", "apiKey": "sk", "pollingPeriod": "1h"}));
    let made = post(&server, "/connectors/stripe/transfers", &body).is(200).json();
    assert_eq!((&made["data"]["id"], &made["data"]["object"]), (&json!("tr_1"), &json!("transfer")));
    let asked = provider.requests();
    let made = asked.iter().find(|asked| asked.path == "/v1/transfers").expect("a request");
    assert!(made.body.contains("metadata%5Border%5D=7"), "{made:?}");
    for wrong in [
        json!({"amount": 0, "asset": "USD/2", "destination": "a"}),
        json!({"amount": 1, "asset": "GBP/2", "destination": "a"}),
        json!({"amount": 1, "asset": "USD/2"}),
    ] {
        post(&server, "/connectors/stripe/transfers", &wrong).refused(400, "VALIDATION");
    }
    post(&server, "/connectors/STRIPE/transfers", &body).is(200);
    let list = || get(&server, "/connectors/STRIPE/transfers").is(200).json()["data"][0].clone();
    until("it has succeeded", || list()["status"] == "SUCCEEDED");
    // Clients of 1.10 may name a currency without its decimals.
    let in_cents = json!({"amount": 100, "asset": "EUR", "destination": "acct_1"});
    post(&server, "/connectors/STRIPE/transfers", &in_cents).is(200);
    until("it has succeeded too", || list()["asset"] == "EUR" && list()["status"] == "SUCCEEDED");
    let last = provider.requests().pop().expect("a request");
    assert!(last.body.contains("amount=100") && last.body.contains("currency=eur"), "{last:?}");
    provider.refuse("/v1/transfers", 402, &json!({"error": "no funds"}));
    post(&server, "/connectors/STRIPE/transfers", &body).is(200);
    until("it has failed", || list()["status"] == "FAILED");
    assert!(list()["error"].as_str().is_some_and(|error| error.contains("no funds")));
    // The test client fails on status 500, so use another client.
    let path = "/api/payments/connectors/stripe/transfers";
    let answer = ask(&server.address.to_string(), "POST", path, &body.to_string()).expect("an answer");
    assert_eq!((answer.0, &answer.1["errorCode"]), (500, &json!("INTERNAL")));
}
