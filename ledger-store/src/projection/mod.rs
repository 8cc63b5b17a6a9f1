//! Turns entries into rows: memtables, and the pages of accounts and holdings in the index.

mod pages;
mod piece;

pub(crate) use pages::{
    ACCOUNT_PLACES, AccountPage, FoundHolding, HOLDING_PLACES, HoldingPage, StoredAccount, StoredHolding,
    UsagePage,
};
pub(crate) use piece::{NewAccount, NewHolding, Piece, PieceBuilder, PieceMark, StoredDocument};
