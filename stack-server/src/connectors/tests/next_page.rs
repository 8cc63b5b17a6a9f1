//! Pages that are fetched while the page before them is recorded.

use std::time::Duration;

use super::{Bench, page, payment};

#[test]
fn fetches_next_page_while_one_is_recorded() {
    let bench = Bench::new();
    bench.install();
    bench.until("the first run has ended", |bench| bench.clock.waiting() == 1);
    bench.answer([
        Ok(page(&[payment("a", 1)], "{\"at\":\"1\"}", true)),
        Ok(page(&[payment("b", 2)], "{\"at\":\"2\"}", false)),
    ]);
    let payments = bench.engine.payments().clone();
    // Nothing is recorded while somebody changes installations.
    let change = payments.change_installations();
    bench.clock.advance(Duration::from_mins(1));
    bench.until("both pages are fetched", |bench| bench.asked() == 3);
    assert!(bench.payments().is_empty());
    drop(change);
    bench.until("both pages are recorded", |bench| bench.payments().len() == 2);
    bench.worker.stop();
}

#[test]
fn fetches_page_again_that_was_not_recorded() {
    let bench = Bench::new();
    let too_long = format!("{{\"at\":\"{}\"}}", "9".repeat(ledger_store::DOCUMENT_BYTES_MAX));
    bench.answer([
        Ok(page(&[payment("a", 1)], &too_long, true)),
        Ok(page(&[payment("b", 2)], "{}", false)),
        Ok(page(&[payment("c", 3)], "{\"at\":\"1\"}", false)),
    ]);
    let id = bench.install();
    bench.until("it waits", |bench| bench.clock.waiting() == 1);
    assert!(!bench.tasks(&id)[0].error.is_empty() && bench.payments().is_empty());
    bench.clock.advance(Duration::from_millis(1_200));
    bench.until("it has recovered", |bench| bench.tasks(&id)[0].error.is_empty());
    let references: Vec<_> = bench.payments().into_iter().map(|payment| payment.id.reference).collect();
    assert_eq!(references, ["c"]);
    let states = bench.provider.0.lock().expect("no panic").states.clone();
    assert_eq!((&*states[0], &*states[2]), ("main {}", "main {}"));
    bench.worker.stop();
}
