//! From entries to rows.

mod pages;
mod piece;

pub(crate) use pages::{
    AccountPage, HoldingPage, PAGE_PLACES, StoredAccount, StoredHolding, UsagePage, page_key,
};
pub(crate) use piece::{NewAccount, NewHolding, Piece, PieceBuilder, PieceMark, StoredDocument};
