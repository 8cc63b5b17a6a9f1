//! Laws of the filters of payment lists.

use ledger_core::Balance;

use crate::payments::account::Account;
use crate::payments::filter::{Filter, Keys, Row, Value};
use crate::payments::initiation::Initiation;
use crate::payments::payment::Payment;

/// A row with the same text in every text field.
struct Sample<'a> {
    text: &'a str,
    number: i64,
}

impl Row for Sample<'_> {
    fn value(&self, key: &str) -> Option<Value> {
        Some(match key {
            "amount" | "initialAmount" => Value::Number(Balance::from(self.number)),
            _ => Value::Text(self.text.to_owned()),
        })
    }

    fn metadata(&self, key: &str) -> Option<&str> {
        key.len().is_multiple_of(2).then_some(self.text)
    }
}

/// Parses bytes as a filter of each list. For each list that takes the filter, checks that white space around it
/// changes nothing, `$not` inverts it, and `$and` and `$or` with a neutral operand change nothing. A filter that
/// requires a reference accepts no other reference, and one that matches nothing accepts no row.
///
/// # Panics
///
/// Panics if a law does not hold.
pub fn payment_filter_laws(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let unfiltered = Keys { keys: &[], has_metadata: false };
    for keys in [Payment::FILTER, Account::FILTER, Initiation::FILTER, unfiltered] {
        if let Ok(filter) = Filter::parse(text, keys) {
            laws(&filter, text, keys);
        }
    }
}

fn laws(filter: &Filter, text: &str, keys: Keys) {
    assert_eq!(Filter::parse(&format!(" {text}\n"), keys).ok().as_ref(), Some(filter), "{text}");
    let wanted = filter.required_text("reference").map(str::to_owned);
    // Wrapping the filter may exceed the depth limit. `around` then returns `None`, and its check is skipped.
    let around = |begin: &str, end: &str| Filter::parse(&format!("{begin}{text}{end}"), keys).ok();
    let [not, both, either] =
        [around("{\"$not\":", "}"), around("{\"$and\":[{},", "]}"), around("{\"$or\":[{\"$not\":{}},", "]}")];
    let texts = ["", "PAY-IN", "SUCCEEDED", "EUR/2", wanted.as_deref().unwrap_or("r")];
    for (text, number) in texts.into_iter().flat_map(|text| [-1, 0, 1_000].map(|number| (text, number))) {
        let row = Sample { text, number };
        let accepted = filter.accepts(&row);
        assert!(!accepted || !filter.matches_nothing(), "{filter:?} accepts {text:?}");
        assert!(not.as_ref().is_none_or(|not| not.accepts(&row) != accepted), "{filter:?}");
        for same in [&both, &either].into_iter().flatten() {
            assert_eq!(same.accepts(&row), accepted, "{filter:?}");
        }
        if let Some(wanted) = &wanted {
            assert!(!accepted || wanted == text, "{filter:?} accepts {text:?}");
        }
    }
}
