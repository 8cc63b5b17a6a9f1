//! Turns entries into rows: memtables, and the pages of accounts and holdings in the index.

mod document_table;
mod memtable;
mod pages;
mod values;

pub(crate) use document_table::DocumentHash;
pub(crate) use memtable::{
    Memtable, MemtableBuilder, MemtableSizes, NewAccount, NewHolding, accounts_of, holdings_of, order_of,
};
pub(crate) use pages::{
    ACCOUNT_PLACES, AccountPage, BEFORE_ALL, CurrentHolding, FoundHolding, HOLDING_PLACES, HoldingPage,
    StoredAccount, StoredHolding, UsagePage,
};
pub(crate) use values::{holding_key, holding_of_key, shown, value_of};
