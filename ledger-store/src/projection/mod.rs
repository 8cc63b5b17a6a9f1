//! Turns entries into rows: memtables, and the pages of accounts and holdings in the index.

mod memtable;
mod pages;
mod values;

pub(crate) use memtable::{Memtable, MemtableBuilder, MemtableSizes, NewAccount, NewHolding, StoredDocument};
pub(crate) use pages::{
    ACCOUNT_PLACES, AccountPage, BEFORE_ALL, FoundHolding, HOLDING_PLACES, HoldingPage, StoredAccount,
    StoredHolding, UsagePage,
};
pub(crate) use values::{holding_key, shown, value_of};
