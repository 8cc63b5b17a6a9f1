//! The outcome of a run: postings and metadata.

use std::collections::BTreeMap;

use smol_str::SmolStr;

use super::trace::Trace;
use ledger_values::{AccountAddress, Asset, Metadata, Posting, Postings};

/// A posting of a script. A colour separates part of the funds of one asset in one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptPosting {
    /// The movement. Its asset is without the colour.
    pub posting: Posting,
    /// The colour of the funds in capital letters, or empty.
    pub color: SmolStr,
}

/// The postings and metadata that a script asks for. The ledger has not executed them yet.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The movements in order. May be empty; the ledger decides what that means.
    pub postings: Vec<ScriptPosting>,
    /// Metadata of the transaction. Each value is in its text form.
    pub metadata: Metadata,
    /// Metadata to set on accounts.
    pub account_metadata: BTreeMap<AccountAddress, Metadata>,
    /// The trace of the postings, if the caller requested one.
    pub trace: Option<Trace>,
}

impl Outcome {
    /// Returns the movements as a ledger records them, with the colour as part of the asset: `USD/2` in `RED`
    /// becomes `USD_RED/2`. Returns `None` if such a name is too long for an asset.
    pub fn ledger_postings(&self) -> Option<Postings> {
        let folded = |posting: &ScriptPosting| {
            let asset = colored_asset(posting.posting.asset.as_str(), &posting.color)?;
            Some(Posting { asset, ..posting.posting.clone() })
        };
        self.postings.iter().map(folded).collect()
    }
}

/// Returns the asset under which a ledger holds `color` funds of `asset`, or `None` if no ledger can.
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
    fn color_becomes_part_of_the_asset() {
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
