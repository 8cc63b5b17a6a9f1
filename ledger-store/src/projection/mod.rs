//! From entries to rows.

mod pages;
mod piece;

pub(crate) use pages::{
    ACCOUNT_PLACES, AccountPage, FoundHolding, HOLDING_PLACES, HoldingPage, StoredAccount, StoredHolding,
    UsagePage,
};
pub(crate) use piece::{NewAccount, NewHolding, Piece, PieceBuilder, PieceMark, StoredDocument};
