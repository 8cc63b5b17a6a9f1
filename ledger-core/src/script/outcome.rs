//! What a run produces.

use std::collections::BTreeMap;

use compact_str::CompactString;

use super::trace::Trace;
use crate::metadata::Metadata;
use crate::names::{AccountAddress, Asset};
use crate::transaction::{Posting, Postings};

/// A posting of a script. Colours divide the funds of one asset in one account; uncoloured funds have none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptPosting {
    /// The movement, in the asset without its colour.
    pub posting: Posting,
    /// The colour of the funds: capital letters, or empty.
    pub color: CompactString,
}

/// What a script says to do. Nothing has happened yet.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The movements, in order. May be empty: what that means is the ledger's affair.
    pub postings: Vec<ScriptPosting>,
    /// Metadata of the transaction, each value in its text form.
    pub metadata: Metadata,
    /// Metadata to set on accounts.
    pub account_metadata: BTreeMap<AccountAddress, Metadata>,
    /// How the postings came about, if that was asked for.
    pub trace: Option<Trace>,
}

impl Outcome {
    /// The movements as a ledger records them: the colour is a part of the asset's name, `USD/2` in `RED` is
    /// `USD_RED/2`. `None` if such a name is too long for an asset.
    pub fn ledger_postings(&self) -> Option<Postings> {
        let folded = |posting: &ScriptPosting| {
            let asset = colored_asset(posting.posting.asset.as_str(), &posting.color)?;
            Some(Posting { asset, ..posting.posting.clone() })
        };
        self.postings.iter().map(folded).collect()
    }
}

/// The asset under which a ledger holds `color` funds of `asset`; `None` if no ledger can.
pub fn colored_asset(asset: &str, color: &str) -> Option<Asset> {
    if color.is_empty() {
        return Asset::parse(asset).ok();
    }
    let (code, scale) = asset.split_once('/').map_or((asset, None), |(code, scale)| (code, Some(scale)));
    let scale = scale.map(|scale| format!("/{scale}")).unwrap_or_default();
    Asset::parse(&format!("{code}_{color}{scale}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_color_becomes_a_part_of_the_assets_name() {
        for (asset, color, folded) in [
            ("USD/2", "", Some("USD/2")),
            ("USD/2", "RED", Some("USD_RED/2")),
            ("COIN", "RED", Some("COIN_RED")),
            ("COIN", "ABCDEFGHIJKLMNOPQ", None),
            ("ABCDEFGHIJKLMNOPQR", "", None),
        ] {
            assert_eq!(colored_asset(asset, color).as_ref().map(Asset::as_str), folded, "{asset} {color}");
        }
    }
}
