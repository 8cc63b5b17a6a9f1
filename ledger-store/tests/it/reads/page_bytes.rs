//! Pages that end early because their items are large.

use ledger_core::{AccountAddress, Metadata, TransactionId};
use ledger_store::{
    LedgerView, LogHashes, LogQuery, Page, TransactionKey, TransactionOrder, TransactionQuery,
};

use super::*;

/// Size of the metadata of each item.
const NOTE_BYTES: usize = 1_000;

/// Maximum number of bytes on a page: enough for two items and a part of the third one, which ends the page.
const PAGE_BYTES: usize = 2 * NOTE_BYTES + 1_500;

/// Maximum number of items of such a page: three with a note, and the account that pays, which has none.
const ITEMS_MAX: usize = 4;

fn note() -> Metadata {
    Metadata::from_iter([("note", "x".repeat(NOTE_BYTES))])
}

/// Creates a ledger with seven transactions to seven accounts, each with a note.
fn ledger() -> (Store, LedgerName) {
    let store = Store::in_memory();
    let ledger = store.ledger("main").expect("a name");
    for at in 0..7 {
        let account = format!("users:{at}");
        let transaction = ledger.transaction().posting("world", account.as_str(), 1_u64, "USD");
        transaction.metadata("note", "x".repeat(NOTE_BYTES)).commit().expect("the write succeeds");
        ledger.set_account_metadata(&account, note()).expect("the write succeeds");
    }
    (store, LedgerName::parse("main").expect("a name"))
}

/// Reads a list in pages to its end and back, and checks that all pages together are the list.
fn walk<T, K: Clone>(whole: &[T], ask: impl Fn(PageRequest<K>) -> Page<T>, key: impl Fn(&T) -> K)
where
    T: Clone + PartialEq + std::fmt::Debug,
{
    let mut pages = vec![ask(page(100))];
    while let Some(last) = pages.last().and_then(|page| page.items.last().filter(|_| page.has_next)) {
        let next = ask(PageRequest { start: Start::After(key(last)), ..page(100) });
        assert!(next.has_previous);
        pages.push(next);
    }
    let joined: Vec<T> = pages.iter().flat_map(|page| page.items.clone()).collect();
    assert_eq!(joined, whole);
    assert!(pages.len() > 2, "the pages end early");
    assert!(pages.iter().all(|page| page.items.len() <= ITEMS_MAX));
    // Pages that are read backwards count their bytes from the other end.
    let mut back = pages.pop().expect("a page").items;
    while back.len() < whole.len() {
        let mut before = ask(PageRequest { start: Start::Before(key(&back[0])), ..page(100) });
        assert!(before.has_next && !before.items.is_empty() && before.items.len() <= ITEMS_MAX);
        assert_eq!(before.has_previous, back.len() + before.items.len() < whole.len());
        before.items.append(&mut back);
        back = before.items;
    }
    assert_eq!(back, whole);
}

fn views() -> (LedgerView, LedgerView) {
    let (store, name) = ledger();
    let whole = store.snapshot().ledger(&name).expect("the ledger exists");
    let cut = store.snapshot().with_page_bytes(PAGE_BYTES).ledger(&name).expect("the ledger exists");
    (whole, cut)
}

#[test]
fn transactions_continue_after_a_page_of_bytes() {
    let (whole, cut) = views();
    for order in [TransactionOrder::Id, TransactionOrder::Timestamp, TransactionOrder::UpdatedAt] {
        let query = |page| TransactionQuery {
            filter: FilterOf::all(),
            at: None,
            effective_volumes: false,
            order,
            page,
        };
        let ask = |view: &LedgerView, page| view.transactions(&query(page)).expect("an answer");
        let key = |view: &ledger_store::TransactionView| TransactionKey {
            timestamp: order.date_of(view),
            id: TransactionId::new(view.id.get()),
        };
        walk(&ask(&whole, page(100)).items, |page| ask(&cut, page), key);
    }
}

#[test]
fn accounts_and_logs_continue_after_a_page_of_bytes() {
    let (whole, cut) = views();
    for order in [AccountOrder::Address, AccountOrder::UpdatedAt] {
        let query =
            |page| AccountQuery { filter: FilterOf::all(), at: None, expand: Expand::default(), order, page };
        let ask = |view: &LedgerView, page| view.accounts(&query(page)).expect("an answer");
        let key = |account: &ledger_store::Account| ledger_store::AccountKey {
            date: order.date_of(account),
            address: account.address.clone(),
        };
        walk(&ask(&whole, page(100)).items, |page| ask(&cut, page), key);
    }
    let query = |page| LogQuery { filter: FilterOf::all(), hashes: LogHashes::Wire, page };
    let ask = |view: &LedgerView, page| view.logs(&query(page)).expect("an answer");
    walk(&ask(&whole, page(100)).items, |page| ask(&cut, page), |log| log.entry.id);
}

#[test]
fn page_has_one_item_of_any_size() {
    let (store, name) = ledger();
    let cut = store.snapshot().with_page_bytes(1).ledger(&name).expect("the ledger exists");
    let query = AccountQuery {
        filter: FilterOf::all(),
        at: None,
        expand: Expand::default(),
        order: AccountOrder::Address,
        page: page(100),
    };
    let first = cut.accounts(&query).expect("an answer");
    assert_eq!((first.items.len(), first.has_next), (1, true));
    assert_eq!(first.items[0].address, AccountAddress::parse("users:0").expect("an address"));
}
