//! Positions in the balance transactions of a STRIPE account.

use crate::connectors::http::escape;
use crate::connectors::json_object::JsonObject;
use crate::connectors::{TaskContext, stripe_mapping};
use crate::http::response::{Json, Numbers};

/// The range of an account's balance transactions that has been fetched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Timeline {
    oldest: String,
    oldest_date: String,
    newest: String,
    newest_date: String,
    no_more_history: bool,
}

impl Timeline {
    pub(super) fn of(context: &TaskContext) -> Self {
        Self {
            oldest: context.state_member("oldestID"),
            oldest_date: context.state_member("oldestDate"),
            newest: context.state_member("moreRecentID"),
            newest_date: context.state_member("moreRecentDate"),
            no_more_history: context.state_member("noMoreHistory") == "true",
        }
    }

    pub(super) fn path(&self, context: &TaskContext, size: u64) -> String {
        let expand = "expand[]=data.source&expand[]=data.source.charge&expand[]=data.source.payment_intent";
        let place = if self.no_more_history && !self.newest.is_empty() {
            format!("ending_before={}", escape(&self.newest))
        } else if self.oldest.is_empty() {
            format!("created[lte]={}", context.now.as_micros() / 1_000_000)
        } else {
            format!("starting_after={}", escape(&self.oldest))
        };
        format!("/v1/balance_transactions?limit={size}&{place}&{expand}")
    }

    /// Returns the state after a page, and whether to fetch another page at once. The newest row of a page is the
    /// first.
    pub(super) fn after(mut self, listed: &[JsonObject<'_>], has_more: bool) -> (Self, bool) {
        let place = |row: &JsonObject<'_>| {
            let date = stripe_mapping::date(row, "created").map(|at| at.to_string()).unwrap_or_default();
            (row.text("id"), date)
        };
        if self.no_more_history && !self.newest.is_empty() {
            let known = self.newest.clone();
            if let Some(first) = listed.first() {
                (self.newest, self.newest_date) = place(first);
            }
            // Stop if the provider returns the same page again.
            let goes_on = has_more && self.newest != known;
            return (self, goes_on);
        }
        let known = self.oldest.clone();
        if let Some(first) = listed.first().filter(|_| self.newest.is_empty()) {
            (self.newest, self.newest_date) = place(first);
        }
        if let Some(last) = listed.last() {
            (self.oldest, self.oldest_date) = place(last);
        }
        // If there is no transaction yet, the next run starts from the beginning.
        self.no_more_history = !has_more && !self.oldest.is_empty();
        // After the oldest transaction, fetch those that are newer than the first page.
        let goes_on = self.no_more_history || (has_more && self.oldest != known);
        (self, goes_on)
    }

    pub(super) fn json(&self) -> String {
        let mut json = Json::new(Numbers::Plain);
        json.raw("{\"oldestID\":").string(&self.oldest).raw(",\"oldestDate\":").string(&self.oldest_date);
        json.raw(",\"moreRecentID\":")
            .string(&self.newest)
            .raw(",\"moreRecentDate\":")
            .string(&self.newest_date);
        json.raw(",\"noMoreHistory\":").boolean(self.no_more_history).raw("}");
        json.into_string()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn step(timeline: Timeline, ids: &[&str], has_more: bool) -> (Timeline, bool) {
        let texts = ids.iter().map(|id| format!(r#"{{"id":"{id}","created":1700000000}}"#));
        let raws: Vec<_> = texts.map(|text| RawValue::from_string(text).expect("JSON")).collect();
        let rows: Vec<_> = raws.iter().map(|raw| JsonObject::of(raw).expect("an object")).collect();
        timeline.after(&rows, has_more)
    }

    #[test]
    fn walks_to_the_end_and_then_forward() {
        let (first, goes_on) = step(Timeline::default(), &["t9", "t8"], true);
        assert!(goes_on && first.newest == "t9" && first.oldest == "t8" && !first.no_more_history);
        let (last, goes_on) = step(first, &["t7"], false);
        assert!(goes_on && last.no_more_history && last.oldest == "t7" && last.newest == "t9");
        let (news, goes_on) = step(last, &["t11", "t10"], true);
        assert!(goes_on && news.newest == "t11" && news.oldest == "t7");
        let (same, goes_on) = step(news.clone(), &[], false);
        assert_eq!((same, goes_on), (news, false));
    }

    #[test]
    fn asks_again_while_nothing_is_known() {
        let (state, goes_on) = step(Timeline::default(), &[], false);
        assert_eq!((state, goes_on), (Timeline::default(), false));
    }

    #[test]
    fn page_without_progress_ends_the_run() {
        let (history, _) = step(Timeline::default(), &["t9", "t8"], true);
        let (same, goes_on) = step(history.clone(), &["t9", "t8"], true);
        assert_eq!((same, goes_on), (history.clone(), false));
        let (news, _) = step(history, &["t7"], false);
        let (same, goes_on) = step(news.clone(), &["t9"], true);
        assert_eq!((same, goes_on), (news, false));
    }
}
