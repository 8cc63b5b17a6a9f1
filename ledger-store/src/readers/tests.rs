//! Tests of the threads of async reads.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::task::Wake;
use std::thread::Thread;

use super::*;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Counts how often it wakes its task.
#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn poll<T>(future: &mut ReadFuture<T>, wakes: &Arc<Wakes>) -> Poll<T> {
    Pin::new(future).poll(&mut Context::from_waker(&Waker::from(wakes.clone())))
}

/// Occupies the only thread until the sender is dropped.
fn occupy(readers: &Readers) -> (ReadFuture<()>, Sender<()>) {
    let (open, gate): (Sender<()>, Receiver<()>) = mpsc::channel();
    let (begun, begins) = mpsc::channel();
    let future = readers.run(move || {
        begun.send(()).expect("the test waits");
        // Ends when the test drops its side.
        let _ = gate.recv();
    });
    begins.recv().expect("the read begins");
    (future, open)
}

fn queued(readers: &Readers) -> usize {
    readers.shared.state.lock().jobs.len()
}

#[test]
fn runs_no_more_reads_at_once_than_it_has_threads() {
    let readers = Readers::new(2, QUEUE_MAX);
    let (begun, begins) = mpsc::channel();
    let mut gates = Vec::new();
    let mut futures = Vec::new();
    for number in 0..5 {
        let (open, gate) = mpsc::channel::<()>();
        let begun = begun.clone();
        futures.push(readers.run(move || {
            begun.send(number).expect("the test waits");
            // Ends when the test drops its side.
            let _ = gate.recv();
            number
        }));
        gates.push(open);
    }
    let mut first = [begins.recv().expect("a read begins"), begins.recv().expect("another one")];
    first.sort_unstable();
    assert_eq!(first, [0, 1]);
    assert_eq!(queued(&readers), 3);
    // An abandoned read never begins.
    drop(futures.remove(3));
    drop(gates);
    let mut rest = [begins.recv().expect("a read begins"), begins.recv().expect("the last one")];
    rest.sort_unstable();
    assert_eq!(rest, [2, 4]);
    drop((begun, readers));
    assert!(begins.recv().is_err(), "the threads end, and nothing else began");
}

#[test]
fn full_queue_makes_callers_wait_and_loses_none() {
    let readers = Readers::new(1, 3);
    let (held, open) = occupy(&readers);
    let mut futures: Vec<_> = (0..20).map(|number| readers.run(move || number)).collect();
    let wakes = Arc::new(Wakes::default());
    for future in &mut futures {
        assert!(poll(future, &wakes).is_pending());
        assert!(queued(&readers) <= 3, "the queue is bounded");
    }
    drop(open);
    block_on(held);
    let numbers: Vec<i32> = futures.into_iter().map(block_on).collect();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
}

#[test]
fn unpolled_callers_do_not_hold_up_the_others() {
    let readers = Readers::new(1, 2);
    let (held, open) = occupy(&readers);
    let mut futures: Vec<_> = (0..10).map(|number| readers.run(move || number)).collect();
    let wakes = Arc::new(Wakes::default());
    for future in &mut futures {
        assert!(poll(future, &wakes).is_pending());
    }
    drop(open);
    block_on(held);
    // The callers before it are never polled again.
    assert_eq!(block_on(futures.remove(9)), 9);
    // A dropped caller leaves nothing behind, and a new call takes its capacity.
    drop(futures);
    assert_eq!(block_on(readers.run(|| 10)), 10);
    assert!(readers.shared.state.lock().callers.is_empty());
}

#[test]
fn late_call_does_not_overtake_waiting_callers() {
    let readers = Readers::new(1, 2);
    let (held, open) = occupy(&readers);
    let (begun, begins) = mpsc::channel();
    let (open_first, gate) = mpsc::channel::<()>();
    let first = readers.run(move || {
        begun.send(()).expect("the test waits");
        let _ = gate.recv();
    });
    let second = readers.run(|| ());
    let (mut third, mut fourth) = (readers.run(|| ()), readers.run(|| ()));
    let (wakes, later_wakes) = (Arc::<Wakes>::default(), Arc::<Wakes>::default());
    assert!(poll(&mut third, &wakes).is_pending() && poll(&mut fourth, &later_wakes).is_pending());
    drop(open);
    begins.recv().expect("the first read begins");
    // The free capacity belongs to the third read, and the fourth waits for the next.
    assert_eq!((wakes.0.load(Ordering::Relaxed), later_wakes.0.load(Ordering::Relaxed)), (1, 0));
    let late = readers.run(|| ());
    assert!(late.unqueued.is_some());
    drop(open_first);
    for future in [held, first, second, third, fourth, late] {
        block_on(future);
    }
}
