//! Tests how DUMMY-PAY parses and lists files.

use super::file::parse;
use super::*;
use crate::payments::ids::ConnectorId;

fn context() -> TaskContext {
    let installation = Uuid::from_bytes([7; 16]);
    TaskContext {
        connector: ConnectorId { provider: PROVIDER.into(), installation },
        descriptor: String::new(),
        state: NO_STATE.to_owned(),
        now: Timestamp::from_micros(5),
    }
}

#[test]
fn a_file_is_an_account_or_a_payment() {
    let text = r#"{"kind":"payment","payment":{"reference":"p","amount":15000000000000000000000,"asset":"EUR/2",
        "type":"PAY-IN","status":"SUCCEEDED","scheme":"Visa","destinationAccountId":"a","metadata":{"k":"v"}}}"#;
    let payment = parse(text.as_bytes(), &context()).expect("a payment").payments.remove(0);
    assert_eq!(payment.amount.to_string(), "15000000000000000000000");
    assert_eq!((payment.created_at, payment.scheme), (context().now, Scheme::Visa));
    assert_eq!(payment.destination, context().account("a"));
    assert_eq!(payment.source, None);
    let text = r#"{"kind":"account","account":{"reference":"a","type":"INTERNAL","accountName":"main"}}"#;
    let account = parse(text.as_bytes(), &context()).expect("an account").accounts.remove(0);
    assert_eq!((&*account.name, account.kind), ("main", AccountType::Internal));
}

#[test]
fn other_files_are_refused() {
    for text in [
        "",
        "{",
        "[]",
        r#"{"kind":"coin"}"#,
        r#"{"kind":"payment"}"#,
        r#"{"kind":"account","account":{"type":"INTERNAL"}}"#,
        r#"{"kind":"account","account":{"reference":"a","type":"SOURCE"}}"#,
        r#"{"kind":"payment","payment":{"reference":"p","amount":1.5,"type":"PAY-IN","status":"PENDING","scheme":"visa"}}"#,
        r#"{"kind":"payment","payment":{"reference":"p","amount":1,"type":"GIFT","status":"PENDING","scheme":"visa"}}"#,
        r#"{"kind":"payment","payment":{"reference":"p","amount":1,"type":"PAY-IN","status":"DONE","scheme":"visa"}}"#,
        r#"{"kind":"payment","payment":{"reference":"p","amount":1,"type":"PAY-IN","status":"PENDING","scheme":"x"}}"#,
    ] {
        assert!(parse(text.as_bytes(), &context()).is_err(), "{text}");
    }
}

/// Returns a connector that reads the files of a directory.
fn reading(directory: PathBuf) -> DummyPay {
    DummyPay {
        directory,
        prefix: String::new(),
        period: Duration::from_secs(1),
        generation_period: Duration::ZERO,
        accounts: 0,
        payments: 0,
        generated: Mutex::default(),
        listed: Mutex::default(),
    }
}

#[test]
fn file_is_listed_until_its_task_is_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.json"), "{}").expect("written");
    let connector = reading(folder.path().to_owned());
    let page = connector.list(&context()).expect("a page");
    assert_eq!(page.children.len(), 1);
    // The state is unchanged because the page was not recorded.
    let again = connector.list(&context()).expect("a page");
    assert_eq!(again, page);
    let state = again.state.expect("a state");
    let next = connector.list(&TaskContext { state: state.clone(), ..context() }).expect("a page");
    assert_eq!(next, Page::default());
    std::fs::write(folder.path().join("b.json"), "{}").expect("written");
    let next = connector.list(&TaskContext { state, ..context() }).expect("a page");
    assert_eq!(next.children.len(), 1);
    // The second page was asked for before the first was recorded, and then neither was.
    assert_eq!(connector.list(&context()).expect("a page").children.len(), 2);
}

#[test]
fn directory_that_is_a_file_is_found_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file");
    std::fs::write(&path, "").expect("written");
    assert!(reading(path).check().is_err());
    assert!(reading(folder.path().join("new")).check().is_ok());
}
