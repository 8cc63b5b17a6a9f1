//! Files of DUMMY-PAY: what is read, and in which order.

use super::file::parse;
use super::*;
use crate::payments::ids::ConnectorId;

fn work() -> Work {
    let installation = Uuid::from_bytes([7; 16]);
    Work {
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
    let payment = parse(text.as_bytes(), &work()).expect("a payment").payments.remove(0);
    assert_eq!(payment.amount.to_string(), "15000000000000000000000");
    assert_eq!((payment.created_at, payment.scheme), (work().now, Scheme::Visa));
    assert_eq!(payment.destination, work().account("a"));
    assert_eq!(payment.source, None);
    let text = r#"{"kind":"account","account":{"reference":"a","type":"INTERNAL","accountName":"main"}}"#;
    let account = parse(text.as_bytes(), &work()).expect("an account").accounts.remove(0);
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
        assert!(parse(text.as_bytes(), &work()).is_err(), "{text}");
    }
}
