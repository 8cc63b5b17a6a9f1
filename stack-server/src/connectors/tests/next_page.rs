//! Tests that the engine fetches the next page of a provider while it records the one before, and fetches it again if
//! that one could not be recorded.

use std::time::Duration;

use super::{Fixture, page, payment};

#[test]
fn fetches_next_page_while_one_is_recorded() {
    let fixture = Fixture::new();
    fixture.install();
    fixture.until("the first run has ended", |fixture| fixture.clock.waiting() == 1);
    fixture.answer([
        Ok(page(&[payment("a", 1)], "{\"at\":\"1\"}", true)),
        Ok(page(&[payment("b", 2)], "{\"at\":\"2\"}", false)),
    ]);
    let payments = fixture.engine.payments().clone();
    // The engine can fetch pages but not record them while this lock is held, as it is during a removal.
    let lock = payments.write_lock();
    fixture.clock.advance(Duration::from_mins(1));
    fixture.until("both pages are fetched", |fixture| fixture.asked() == 3);
    assert!(fixture.payments().is_empty());
    drop(lock);
    fixture.until("both pages are recorded", |fixture| fixture.payments().len() == 2);
    fixture.worker.stop();
}

#[test]
fn fetches_page_again_that_was_not_recorded() {
    let fixture = Fixture::new();
    // The first page cannot be recorded, because its state is longer than a document. The page after it, with `b`, is
    // fetched meanwhile and dropped. The third answer is for the repeated request.
    let too_long = format!("{{\"at\":\"{}\"}}", "9".repeat(ledger_store::DOCUMENT_BYTES_MAX));
    fixture.answer([
        Ok(page(&[payment("a", 1)], &too_long, true)),
        Ok(page(&[payment("b", 2)], "{}", false)),
        Ok(page(&[payment("c", 3)], "{\"at\":\"1\"}", false)),
    ]);
    let id = fixture.install();
    fixture.until("it waits", |fixture| fixture.clock.waiting() == 1);
    assert!(!fixture.tasks(&id)[0].error.is_empty() && fixture.payments().is_empty());
    // The first pause after a failure is at most 1.2 s.
    fixture.clock.advance(Duration::from_millis(1_200));
    fixture.until("it has recovered", |fixture| fixture.tasks(&id)[0].error.is_empty());
    let references: Vec<_> = fixture.payments().into_iter().map(|payment| payment.id.reference).collect();
    assert_eq!(references, ["c"]);
    let states = fixture.provider.0.lock().expect("no panic").states.clone();
    assert_eq!((&*states[0], &*states[2]), ("main {}", "main {}"));
    fixture.worker.stop();
}
