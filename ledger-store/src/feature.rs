//! The features of ledgers by the names and values that API v2 gives them.

use ledger_core::{Features, HashLogs, Switch};

/// A feature with a name in API v2. [`Features::legacy_hashes`] has none.
///
/// ```
/// use ledger_core::Features;
/// use ledger_store::Feature;
/// let mut features = Features::default();
/// let hashes = Feature::parse("HASH_LOGS").expect("a feature");
/// assert!(hashes.set(&mut features, "DISABLED"));
/// assert_eq!((hashes.name(), hashes.value(&features)), ("HASH_LOGS", "DISABLED"));
/// assert_eq!(Feature::ALL.len(), 5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// [`Features::account_metadata_history`].
    AccountMetadataHistory,
    /// [`Features::hash_logs`].
    HashLogs,
    /// [`Features::moves_history`].
    MovesHistory,
    /// [`Features::effective_volumes`].
    EffectiveVolumes,
    /// [`Features::transaction_metadata_history`].
    TransactionMetadataHistory,
}

impl Feature {
    /// All features, in the order of their names.
    pub const ALL: [Self; 5] = [
        Self::AccountMetadataHistory,
        Self::HashLogs,
        Self::MovesHistory,
        Self::EffectiveVolumes,
        Self::TransactionMetadataHistory,
    ];

    /// Finds a feature by its name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|feature| feature.name() == name)
    }

    /// Returns the name of the feature.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AccountMetadataHistory => "ACCOUNT_METADATA_HISTORY",
            Self::HashLogs => "HASH_LOGS",
            Self::MovesHistory => "MOVES_HISTORY",
            Self::EffectiveVolumes => "MOVES_HISTORY_POST_COMMIT_EFFECTIVE_VOLUMES",
            Self::TransactionMetadataHistory => "TRANSACTION_METADATA_HISTORY",
        }
    }

    /// Returns the value that the feature has in a ledger with these features.
    pub const fn value(self, features: &Features) -> &'static str {
        match self {
            Self::AccountMetadataHistory => sync_or_disabled(features.account_metadata_history),
            Self::HashLogs => match features.hash_logs {
                HashLogs::Sync => "SYNC",
                HashLogs::Async => "ASYNC",
                HashLogs::Disabled => "DISABLED",
            },
            Self::MovesHistory => match features.moves_history {
                Switch::On => "ON",
                Switch::Off => "OFF",
            },
            Self::EffectiveVolumes => sync_or_disabled(features.effective_volumes),
            Self::TransactionMetadataHistory => sync_or_disabled(features.transaction_metadata_history),
        }
    }

    /// Sets the feature to a value. Returns `false` if it has no such value.
    #[must_use]
    pub fn set(self, features: &mut Features, value: &str) -> bool {
        let states =
            [(Switch::On, HashLogs::Sync), (Switch::Off, HashLogs::Async), (Switch::Off, HashLogs::Disabled)];
        // Look for the state that shows this value.
        for (switch, hash_logs) in states {
            let mut changed = *features;
            match self {
                Self::AccountMetadataHistory => changed.account_metadata_history = switch,
                Self::HashLogs => changed.hash_logs = hash_logs,
                Self::MovesHistory => changed.moves_history = switch,
                Self::EffectiveVolumes => changed.effective_volumes = switch,
                Self::TransactionMetadataHistory => changed.transaction_metadata_history = switch,
            }
            if self.value(&changed) == value {
                *features = changed;
                return true;
            }
        }
        false
    }
}

const fn sync_or_disabled(switch: Switch) -> &'static str {
    match switch {
        Switch::On => "SYNC",
        Switch::Off => "DISABLED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_the_values_that_it_shows() {
        let values = |feature| match feature {
            Feature::HashLogs => &["SYNC", "ASYNC", "DISABLED"][..],
            Feature::MovesHistory => &["ON", "OFF"],
            _ => &["SYNC", "DISABLED"],
        };
        for feature in Feature::ALL {
            assert_eq!(Feature::parse(feature.name()), Some(feature));
            for value in ["ON", "OFF", "SYNC", "ASYNC", "DISABLED", "", "sync"] {
                let mut features = Features::default();
                assert_eq!(
                    feature.set(&mut features, value),
                    values(feature).contains(&value),
                    "{feature:?}"
                );
                for other in Feature::ALL.into_iter().filter(|other| *other != feature) {
                    assert_eq!(other.value(&features), other.value(&Features::default()));
                }
                if values(feature).contains(&value) {
                    assert_eq!(feature.value(&features), value);
                }
            }
        }
        assert_eq!(Feature::parse("LEGACY_HASHES"), None);
        assert!(Feature::ALL.is_sorted_by_key(|feature| feature.name()));
    }
}
