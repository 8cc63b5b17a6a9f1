//! Conversion of STRIPE's balance transactions to payments and adjustments.

use ledger_core::{Balance, Timestamp};

use crate::connectors::json_object::JsonObject;
use crate::connectors::{TaskContext, currency};
use crate::payments::enumerations::{PaymentStatus, PaymentType, Scheme};
use crate::payments::ids::AccountId;
use crate::payments::payment::{Adjustment, NewPayment};

use PaymentStatus as S;

/// Currencies whose decimals at this provider are not those of ISO 4217.
const UNSUPPORTED: [&str; 10] = ["MGA", "BHD", "JOD", "KWD", "OMR", "TND", "ISK", "HUF", "UGX", "TWD"];

/// Returns whether a currency is known and has the decimals of ISO 4217 at this provider.
pub(super) fn is_supported(code: &str) -> bool {
    currency::decimals(code).is_some() && !UNSUPPORTED.contains(&code)
}

/// Returns a date that the provider gives in seconds since the epoch.
pub(super) fn date(row: &JsonObject<'_>, name: &str) -> Option<Timestamp> {
    let micros = row.text(name).parse::<i64>().ok()?.checked_mul(1_000_000)?;
    Some(Timestamp::from_micros(micros)).filter(|at| (Timestamp::MIN..=Timestamp::MAX).contains(at))
}

/// Returns the id of a member, which is either an id or an expanded object.
pub(super) fn id_of(row: &JsonObject<'_>, name: &str) -> String {
    row.object(name).map_or_else(|| row.text(name), |expanded| expanded.text("id"))
}

/// The payment to which a balance transaction belongs.
struct ParentPayment<'r, 'a> {
    /// The charge, payout or transfer that is the payment.
    original: &'r JsonObject<'a>,
    kind: PaymentType,
    status: PaymentStatus,
    /// The amount minus refunds or reversals.
    amount: Balance,
    initial_amount: Balance,
    scheme: Scheme,
    /// The change of an existing payment; `None` if the balance transaction is the payment itself.
    adjustment: Option<(PaymentStatus, Option<Balance>)>,
}

/// Returns the payment to which a balance transaction of an account belongs, or `None` if there is none.
pub(super) fn payment(row: &JsonObject<'_>, context: &TaskContext, account: &str) -> Option<NewPayment> {
    // Skip the transaction if its source is missing or not expanded.
    let source = row.object("source")?;
    let charge = source.object("charge");
    let parent = parent_payment(row, &source, charge.as_ref())?;
    let id = row.text("id");
    let reference = match parent.adjustment {
        None => id.clone(),
        Some(_) => id_of(parent.original, "balance_transaction"),
    };
    let code = parent.original.text("currency").to_ascii_uppercase();
    if reference.is_empty() || id.is_empty() || !is_supported(&code) {
        return None;
    }
    let happened_at = date(row, "created")?;
    let created_at = match parent.adjustment {
        None => happened_at,
        Some(_) => date(parent.original, "created")?,
    };
    let (source_account, destination) = sides(&parent, context, account);
    let mut metadata = parent.original.object_or_empty("metadata").texts();
    metadata.extend(source.object_or_empty("metadata").texts());
    metadata.extend(parent.original.object_or_empty("payment_intent").object_or_empty("metadata").texts());
    metadata.extend(source.object_or_empty("payment_intent").object_or_empty("metadata").texts());
    let raw = row.raw();
    let adjustments = parent.adjustment.map(|(status, amount)| Adjustment {
        reference: id,
        created_at: happened_at,
        status,
        amount,
        raw: raw.clone(),
    });
    Some(NewPayment {
        kind: parent.kind,
        reference,
        source: source_account,
        destination,
        status: parent.status,
        initial_amount: parent.initial_amount,
        amount: parent.amount,
        scheme: parent.scheme,
        asset: currency::asset(&code),
        created_at,
        raw: Some(raw),
        adjustments: adjustments.into_iter().collect(),
        metadata,
        // The payment in a later balance transaction is more recent.
        revision: Some(happened_at.min(context.now)),
    })
}

fn sides(
    parent: &ParentPayment<'_, '_>,
    context: &TaskContext,
    account: &str,
) -> (Option<AccountId>, Option<AccountId>) {
    match parent.kind {
        PaymentType::PayIn => (None, context.account(account)),
        PaymentType::Transfer => {
            (context.account(account), context.account(&id_of(parent.original, "destination")))
        }
        _ => (context.account(account), None),
    }
}

fn parent_payment<'r, 'a>(
    row: &JsonObject<'_>,
    source: &'r JsonObject<'a>,
    charged: Option<&'r JsonObject<'a>>,
) -> Option<ParentPayment<'r, 'a>> {
    let of_refund = |status| Some((status, source.integer("amount")));
    let of_row = |status| Some((status, row.integer("amount")));
    match &*row.text("type") {
        "charge" => charge(source, card(source), S::Succeeded, None),
        "payment" => charge(source, Scheme::Other, S::Succeeded, None),
        "refund" => charge(charged?, card(charged?), S::Succeeded, of_refund(S::Refunded)),
        "payment_refund" => charge(charged?, Scheme::Other, S::Succeeded, of_refund(S::Refunded)),
        "refund_failure" => charge(charged?, card(charged?), S::Succeeded, of_refund(S::RefundedFailure)),
        "payment_failure_refund" => {
            charge(charged?, Scheme::Other, S::Succeeded, of_refund(S::RefundedFailure))
        }
        "payout" => payout(source, payout_status(source), None),
        "payout_failure" => payout(source, S::Failed, Some((S::Failed, None))),
        "payout_cancel" => payout(source, S::Cancelled, Some((S::Cancelled, None))),
        "transfer" => transfer(source, S::Succeeded, None),
        "transfer_refund" => transfer(source, S::Succeeded, of_row(S::Refunded)),
        "transfer_cancel" => transfer(source, S::Cancelled, of_row(S::Cancelled)),
        "transfer_failure" => transfer(source, S::Failed, of_row(S::Failed)),
        "adjustment" if source.text("object") == "dispute" => {
            let (status, event) = match &*source.text("status") {
                "won" => (S::Succeeded, S::DisputeWon),
                "lost" => (S::Failed, S::DisputeLost),
                _ => (S::Pending, S::Dispute),
            };
            charge(charged?, card(charged?), status, Some((event, None)))
        }
        _ => None,
    }
}

/// Returns the amount of a record minus another amount, which may be absent.
fn remaining_amount(row: &JsonObject<'_>, less: &str) -> Option<Balance> {
    Some(row.integer("amount")? - row.integer(less).unwrap_or(Balance::ZERO))
}

fn charge<'r, 'a>(
    original: &'r JsonObject<'a>,
    scheme: Scheme,
    status: PaymentStatus,
    adjustment: Option<(PaymentStatus, Option<Balance>)>,
) -> Option<ParentPayment<'r, 'a>> {
    Some(ParentPayment {
        original,
        kind: PaymentType::PayIn,
        status,
        amount: remaining_amount(original, "amount_refunded")?,
        initial_amount: original.integer("amount")?,
        scheme,
        adjustment,
    })
}

fn payout<'r, 'a>(
    original: &'r JsonObject<'a>,
    status: PaymentStatus,
    adjustment: Option<(PaymentStatus, Option<Balance>)>,
) -> Option<ParentPayment<'r, 'a>> {
    let amount = original.integer("amount")?;
    let scheme = match &*original.text("type") {
        "bank_account" => Scheme::SepaCredit,
        "card" => brand(&original.object_or_empty("destination").text("brand")),
        _ => Scheme::Unknown,
    };
    let (kind, initial_amount) = (PaymentType::Payout, amount.clone());
    Some(ParentPayment { original, kind, status, amount, initial_amount, scheme, adjustment })
}

fn payout_status(payout: &JsonObject<'_>) -> PaymentStatus {
    match &*payout.text("status") {
        "paid" => S::Succeeded,
        "pending" | "in_transit" => S::Pending,
        "failed" => S::Failed,
        "canceled" => S::Cancelled,
        _ => S::Other,
    }
}

fn transfer<'r, 'a>(
    original: &'r JsonObject<'a>,
    status: PaymentStatus,
    adjustment: Option<(PaymentStatus, Option<Balance>)>,
) -> Option<ParentPayment<'r, 'a>> {
    Some(ParentPayment {
        original,
        kind: PaymentType::Transfer,
        status,
        amount: remaining_amount(original, "amount_reversed")?,
        initial_amount: original.integer("amount")?,
        scheme: Scheme::Other,
        adjustment,
    })
}

/// Returns the scheme of the card with which a charge was paid.
fn card(charge: &JsonObject<'_>) -> Scheme {
    brand(&charge.object_or_empty("payment_method_details").object_or_empty("card").text("brand"))
}

/// Returns the scheme of a card brand, or `other` for an unknown brand.
fn brand(word: &str) -> Scheme {
    let brands = [
        Scheme::Visa,
        Scheme::Mastercard,
        Scheme::Amex,
        Scheme::Diners,
        Scheme::Discover,
        Scheme::Jcb,
        Scheme::Unionpay,
    ];
    let word = word.to_ascii_lowercase();
    brands.into_iter().find(|brand| brand.name() == word).unwrap_or(Scheme::Other)
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;
    use serde_json::{Value, json};

    use super::*;
    use crate::payments::ids::ConnectorId;
    use crate::uuid::Uuid;

    fn context() -> TaskContext {
        let installation = Uuid::from_bytes([7; 16]);
        TaskContext {
            connector: ConnectorId { provider: "STRIPE".into(), installation },
            descriptor: String::new(),
            state: String::new(),
            now: Timestamp::from_micros(5),
        }
    }

    fn charge_object() -> Value {
        json!({"object": "charge", "amount": 1_500, "amount_refunded": 600, "currency": "eur", "created": 100,
            "balance_transaction": "txn_charge", "payment_method_details": {"card": {"brand": "Visa"}},
            "metadata": {"order": "1", "kind": "a"}, "payment_intent": {"metadata": {"kind": "b"}}})
    }

    fn payout_object() -> Value {
        json!({"object": "payout", "amount": 900, "currency": "usd", "created": 100, "status": "in_transit",
            "type": "bank_account", "balance_transaction": {"id": "txn_payout"}})
    }

    fn transfer_object() -> Value {
        json!({"object": "transfer", "amount": 500, "amount_reversed": 200, "currency": "jpy", "created": 100,
            "destination": "acct_1", "balance_transaction": "txn_transfer"})
    }

    fn mapped(kind: &str, source: &Value) -> Option<NewPayment> {
        let row = json!({"id": "txn_1", "type": kind, "amount": -77, "created": 200, "source": source});
        let raw = to_raw_value(&row).expect("JSON");
        payment(&JsonObject::of(&raw).expect("an object"), &context(), "root")
    }

    /// The mapping of a balance transaction: the type, status, amount, initial amount, scheme and asset of its payment,
    /// the source and destination, the payment's reference, and the status and amount of the adjustment.
    type Mapped =
        (PaymentType, PaymentStatus, (i64, i64), Scheme, &'static str, (&'static str, &'static str));
    type Adjusted = Option<(&'static str, PaymentStatus, Option<i64>)>;

    const PAY_IN: PaymentType = PaymentType::PayIn;
    const PAYOUT: PaymentType = PaymentType::Payout;
    const TRANSFER: PaymentType = PaymentType::Transfer;
    /// The accounts of pay-ins, payouts and transfers.
    const IN: (&str, &str) = ("", "root");
    const OUT: (&str, &str) = ("root", "");
    const BETWEEN: (&str, &str) = ("root", "acct_1");

    /// Every type of balance transaction that has a payment, with the source of an example.
    #[rustfmt::skip]
    fn mappings() -> Vec<(&'static str, Value, Mapped, Adjusted)> {
        let (visa, other, sepa) = (Scheme::Visa, Scheme::Other, Scheme::SepaCredit);
        let refund = || json!({"object": "refund", "amount": 600, "charge": charge_object()});
        let dispute = |status: &str| json!({"object": "dispute", "status": status, "charge": charge_object()});
        let charged = |status, scheme| (PAY_IN, status, (900, 1_500), scheme, "EUR/2", IN);
        let paid_out = |status| (PAYOUT, status, (900, 900), sepa, "USD/2", OUT);
        let moved = |status| (TRANSFER, status, (300, 500), other, "JPY", BETWEEN);
        let of_charge = |status, amount| Some(("txn_charge", status, amount));
        let of_payout = |status| Some(("txn_payout", status, None));
        let of_transfer = |status| Some(("txn_transfer", status, Some(-77)));
        vec![
            ("charge", charge_object(), charged(S::Succeeded, visa), None),
            ("payment", charge_object(), charged(S::Succeeded, other), None),
            ("refund", refund(), charged(S::Succeeded, visa), of_charge(S::Refunded, Some(600))),
            ("payment_refund", refund(), charged(S::Succeeded, other), of_charge(S::Refunded, Some(600))),
            ("refund_failure", refund(), charged(S::Succeeded, visa), of_charge(S::RefundedFailure, Some(600))),
            ("payment_failure_refund", refund(), charged(S::Succeeded, other), of_charge(S::RefundedFailure, Some(600))),
            ("payout", payout_object(), paid_out(S::Pending), None),
            ("payout_failure", payout_object(), paid_out(S::Failed), of_payout(S::Failed)),
            ("payout_cancel", payout_object(), paid_out(S::Cancelled), of_payout(S::Cancelled)),
            ("transfer", transfer_object(), moved(S::Succeeded), None),
            ("transfer_refund", transfer_object(), moved(S::Succeeded), of_transfer(S::Refunded)),
            ("transfer_cancel", transfer_object(), moved(S::Cancelled), of_transfer(S::Cancelled)),
            ("transfer_failure", transfer_object(), moved(S::Failed), of_transfer(S::Failed)),
            ("adjustment", dispute("won"), charged(S::Succeeded, visa), of_charge(S::DisputeWon, None)),
            ("adjustment", dispute("lost"), charged(S::Failed, visa), of_charge(S::DisputeLost, None)),
            ("adjustment", dispute("needs_response"), charged(S::Pending, visa), of_charge(S::Dispute, None)),
        ]
    }

    #[test]
    fn every_type_has_its_mapping() {
        let seconds = |seconds: i64| Timestamp::from_micros(seconds * 1_000_000);
        for (kind, source, (of, status, (amount, initial), scheme, asset, (from, to)), adjusted) in mappings()
        {
            let news = mapped(kind, &source).expect(kind);
            assert_eq!(
                (news.kind, news.status, news.scheme, &*news.asset),
                (of, status, scheme, asset),
                "{kind}"
            );
            assert_eq!((news.amount, news.initial_amount), (amount.into(), initial.into()), "{kind}");
            let accounts = (context().account(from), context().account(to));
            assert_eq!((news.source, news.destination), accounts, "{kind}");
            let adjustments = news.adjustments.iter();
            let seen: Vec<_> = adjustments
                .map(|one| (&*one.reference, one.created_at, one.status, one.amount.clone()))
                .collect();
            let (reference, created_at, expected) = match adjusted {
                None => ("txn_1", seconds(200), vec![]),
                Some((reference, status, amount)) => {
                    let adjustment = ("txn_1", seconds(200), status, amount.map(Balance::from));
                    (reference, seconds(100), vec![adjustment])
                }
            };
            assert_eq!(
                (&*news.reference, news.created_at, seen),
                (reference, created_at, expected),
                "{kind}"
            );
            assert!(news.raw.is_some_and(|raw| raw.contains("\"amount\":-77")), "{kind}");
        }
    }

    #[test]
    fn payouts_have_the_status_of_their_word() {
        for (word, status) in [
            ("paid", S::Succeeded),
            ("pending", S::Pending),
            ("in_transit", S::Pending),
            ("failed", S::Failed),
            ("canceled", S::Cancelled),
            ("on_hold", S::Other),
        ] {
            let mut payout = payout_object();
            payout["status"] = word.into();
            assert_eq!(mapped("payout", &payout).expect("a payment").status, status, "{word}");
        }
    }

    #[test]
    fn schemes_are_those_of_cards_and_banks() {
        let scheme = |kind: &str, source: Value| mapped(kind, &source).expect("a payment").scheme;
        for word in ["visa", "mastercard", "amex", "diners", "discover", "jcb", "unionpay"] {
            let mut charge = charge_object();
            charge["payment_method_details"]["card"]["brand"] = word.into();
            assert_eq!(scheme("charge", charge).name(), word);
        }
        let mut charge = charge_object();
        charge["payment_method_details"] = json!({"card": {"brand": "eftpos_au"}});
        assert_eq!(scheme("charge", charge.clone()), Scheme::Other);
        charge["payment_method_details"] = json!({"sepa_debit": {}});
        assert_eq!(scheme("charge", charge), Scheme::Other);
        let mut payout = payout_object();
        (payout["type"], payout["destination"]) = ("card".into(), json!({"brand": "Visa"}));
        assert_eq!(scheme("payout", payout.clone()), Scheme::Visa);
        payout["type"] = "fpx".into();
        assert_eq!(scheme("payout", payout), Scheme::Unknown);
    }

    #[test]
    fn metadata_of_the_intent_overlays_that_of_the_charge() {
        let metadata = mapped("charge", &charge_object()).expect("a payment").metadata;
        let expected = [("kind", "b"), ("order", "1")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(metadata, expected.into());
    }

    #[test]
    fn what_tells_of_no_payment_is_passed_over() {
        let huf = json!({"object": "charge", "amount": 1, "currency": "huf", "balance_transaction": "t", "created": 1});
        let unexpanded = json!({"object": "refund", "amount": 1, "charge": "ch_1"});
        for (kind, source) in [
            ("stripe_fee", charge_object()),
            ("application_fee", charge_object()),
            ("topup", charge_object()),
            ("adjustment", charge_object()),
            ("charge", json!("ch_1")),
            ("charge", Value::Null),
            ("charge", json!({"amount": "x", "currency": "eur"})),
            ("charge", huf),
            ("refund", unexpanded),
            ("payout", json!({})),
        ] {
            assert_eq!(mapped(kind, &source), None, "{kind}");
        }
    }
}
