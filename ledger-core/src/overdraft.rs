//! The permission for accounts to go below zero.

use ledger_values::{AccountAddress, Amount, Asset, Posting};

/// Permission for accounts to go below zero.
///
/// ```
/// use ledger_core::{AccountAddress, Asset, Overdraft, OverdraftLimit};
/// let (account, asset) = (AccountAddress::parse("users:001")?, Asset::parse("USD/2")?);
/// let up_to = |limit: u64| OverdraftLimit { account: account.clone(), asset: asset.clone(), limit: limit.into() };
/// let mut overdraft = Overdraft::Refuse;
/// overdraft.add(up_to(100));
/// overdraft.add(up_to(250));
/// assert_eq!(overdraft, Overdraft::UpTo(vec![up_to(250)]));
/// # Ok::<(), ledger_core::NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Overdraft {
    /// Only `world` may go below zero.
    #[default]
    Refuse,
    /// Every account may go below zero, on the caller's responsibility.
    Allow,
    /// These accounts, and `world`, may go below zero. The rules of API v1 ignore the limits and refuse.
    UpTo(Vec<OverdraftLimit>),
}

/// The overdraft that one account may have in one asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverdraftLimit {
    /// The account that may go below zero.
    pub account: AccountAddress,
    /// The asset of which it may send more than it has.
    pub asset: Asset,
    /// The largest amount below zero.
    pub limit: Amount,
}

impl Overdraft {
    /// Adds a limit, instead of one for the same account and asset. If every account is allowed already, it stays so.
    pub fn add(&mut self, limit: OverdraftLimit) {
        match self {
            Self::Allow => {}
            Self::Refuse => *self = Self::UpTo(vec![limit]),
            Self::UpTo(limits) => {
                limits.retain(|known| (&known.account, &known.asset) != (&limit.account, &limit.asset));
                limits.push(limit);
            }
        }
    }

    /// Returns how far the source of a posting may go below zero, or `None` if there is no bound.
    pub(crate) fn limit_of(&self, posting: &Posting) -> Option<Amount> {
        match self {
            Self::Allow => None,
            _ if posting.source.is_world() => None,
            Self::Refuse => Some(Amount::ZERO),
            Self::UpTo(limits) => {
                let of_source =
                    |known: &&OverdraftLimit| known.account == posting.source && known.asset == posting.asset;
                Some(limits.iter().find(of_source).map_or(Amount::ZERO, |known| known.limit.clone()))
            }
        }
    }
}
