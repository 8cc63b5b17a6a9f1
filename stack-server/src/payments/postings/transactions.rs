//! Finds the transactions of payments in their ledger by reference.

use ledger_core::{Condition, FilterNode, FilterOf, TextField, TextTest};
use ledger_store::{
    Direction, LedgerView, PageRequest, ReadError, Start, TransactionOrder, TransactionQuery, TransactionView,
};

/// Returns the transaction with this reference.
pub(super) fn with_reference(
    ledger: &LedgerView,
    reference: &str,
) -> Result<Option<TransactionView>, ReadError> {
    let test = TextTest::Equal(reference.into());
    let root = FilterNode::Is(Condition::Text { field: TextField::Reference, test });
    let filter = FilterOf::new(root).expect("`Resource::Transactions` has the property `reference`");
    let query = TransactionQuery {
        filter,
        at: None,
        effective_volumes: false,
        order: TransactionOrder::Id,
        page: PageRequest { size: 1, direction: Direction::Ascending, start: Start::First },
    };
    Ok(ledger.transactions(&query)?.items.pop())
}
