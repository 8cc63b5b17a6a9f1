//! Turns entries into rows: memtables, and the pages of accounts and holdings in the index.

mod pages;
mod piece;
mod values;

pub(crate) use pages::{
    ACCOUNT_PLACES, AccountPage, BEFORE_ALL, FoundHolding, HOLDING_PLACES, HoldingPage, StoredAccount,
    StoredHolding, UsagePage,
};
pub(crate) use piece::{NewAccount, NewHolding, Piece, PieceBuilder, PieceMark, StoredDocument};
pub(crate) use values::{holding_key, shown, value_of};
