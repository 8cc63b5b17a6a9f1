//! How often somebody may be wrong about a secret.
//!
//! Wrong secrets are counted by address and by client. An address that exceeds the rate waits, but for clients that were
//! right from there before. A client whose rate is exceeded is checked where that is quick, from any address, so that
//! nobody locks somebody else out. The counts need not outlive a restart.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::limits::RATES_MAX;

/// The decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its secret is checked.
    Check,
    /// Its secret is checked as far as that is quick: others exceeded the rate of the client, or the address exceeded its
    /// own, but the client was right from there before.
    CheckQuickly,
    /// It is refused.
    Refuse,
}

/// Tries that are left, and when that was so.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

/// Buckets by a key.
type Buckets<K> = HashMap<K, Bucket>;

#[derive(Debug, Default)]
struct Counts {
    addresses: Buckets<IpAddr>,
    clients: Buckets<String>,
    /// From where clients were right.
    right: HashMap<(String, IpAddr), Instant>,
}

/// The part of an address that is counted as one: whoever has an address of IPv6 has all of its network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// The counts of a server.
#[derive(Debug)]
pub(crate) struct Rates {
    per_minute: f64,
    counts: Mutex<Counts>,
}

impl Rates {
    /// Allows so many wrong secrets a minute, of each address and of each client.
    pub(crate) fn new(per_minute: u32) -> Self {
        Self { per_minute: f64::from(per_minute), counts: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        // Whatever a thread that panicked left is a count all the same.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left<K: Eq + Hash>(&self, buckets: &Buckets<K>, key: &K, now: Instant) -> f64 {
        let Some(bucket) = buckets.get(key) else { return self.per_minute };
        let refilled = now.saturating_duration_since(bucket.at).as_secs_f64() / 60.0 * self.per_minute;
        (bucket.left + refilled).min(self.per_minute)
    }

    fn take<K: Eq + Hash + Clone>(&self, buckets: &mut Buckets<K>, key: &K, now: Instant) {
        let left = self.left(buckets, key, now) - 1.0;
        if buckets.len() >= RATES_MAX && !buckets.contains_key(key) {
            // Full buckets are as good as none.
            let refill = |bucket: &Bucket| now.saturating_duration_since(bucket.at).as_secs_f64() < 60.0;
            buckets.retain(|_, bucket| refill(bucket));
            if buckets.len() >= RATES_MAX {
                buckets.clear();
            }
        }
        buckets.insert(key.clone(), Bucket { left: left.max(0.0), at: now });
    }

    /// Decides about a request of a client from an address.
    pub(crate) fn verdict(&self, client: &str, address: IpAddr, now: Instant) -> Verdict {
        let counts = self.lock();
        let (client, address) = (client.to_owned(), network(address));
        let may_address = self.left(&counts.addresses, &address, now) >= 1.0;
        let may_client = self.left(&counts.clients, &client, now) >= 1.0;
        match (may_address, may_client) {
            (true, true) => Verdict::Check,
            // Others exceeded the rate of the client.
            (true, false) => Verdict::CheckQuickly,
            _ if counts.right.contains_key(&(client, address)) => Verdict::CheckQuickly,
            _ => Verdict::Refuse,
        }
    }

    /// Counts a wrong secret.
    pub(crate) fn wrong(&self, client: &str, address: IpAddr, now: Instant) {
        let mut counts = self.lock();
        let counts = &mut *counts;
        self.take(&mut counts.addresses, &network(address), now);
        self.take(&mut counts.clients, &client.to_owned(), now);
    }

    /// Remembers a right secret.
    pub(crate) fn right(&self, client: &str, address: IpAddr, now: Instant) {
        let mut counts = self.lock();
        let key = (client.to_owned(), network(address));
        if counts.right.len() >= RATES_MAX && !counts.right.contains_key(&key) {
            // The older half goes.
            let mut dates: Vec<Instant> = counts.right.values().copied().collect();
            let middle = dates.len() / 2;
            let (_, median, _) = dates.select_nth_unstable(middle);
            let median = *median;
            counts.right.retain(|_, at| *at > median);
        }
        counts.right.insert(key, now);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const THERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    #[test]
    fn wrong_secrets_are_slowed_and_right_ones_are_not() {
        let rates = Rates::new(10);
        let now = Instant::now();
        rates.right("a", THERE, now);
        for _ in 0..10 {
            assert_eq!(rates.verdict("a", HERE, now), Verdict::Check);
            rates.wrong("a", HERE, now);
        }
        assert_eq!(rates.verdict("a", HERE, now), Verdict::Refuse);
        assert_eq!(rates.verdict("b", HERE, now), Verdict::Refuse, "the address has had its tries");
        assert_eq!(rates.verdict("b", THERE, now), Verdict::Check);
        assert_eq!(rates.verdict("a", THERE, now), Verdict::CheckQuickly, "it was right from there before");
        let elsewhere = Rates::new(1);
        elsewhere.wrong("a", HERE, now);
        assert_eq!(elsewhere.verdict("a", THERE, now), Verdict::CheckQuickly, "others were wrong about it");
        let later = now + Duration::from_secs(6);
        assert_eq!(rates.verdict("a", HERE, later), Verdict::Check, "a tenth of a minute is one try");
        rates.wrong("a", HERE, later);
        assert_eq!(rates.verdict("a", HERE, later), Verdict::Refuse);
    }

    #[test]
    fn a_network_counts_as_one_address() {
        let rates = Rates::new(1);
        let now = Instant::now();
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        rates.wrong("a", address("2001:db8::1"), now);
        assert_eq!(rates.verdict("b", address("2001:db8::ffff:2"), now), Verdict::Refuse);
        assert_eq!(rates.verdict("b", address("2001:db8:0:1::1"), now), Verdict::Check);
        rates.wrong("c", address("::ffff:192.0.2.1"), now);
        assert_eq!(rates.verdict("b", HERE, now), Verdict::Refuse);
    }

    #[test]
    fn counts_no_more_than_there_is_room_for() {
        let rates = Rates::new(1);
        let now = Instant::now();
        for number in 0..=RATES_MAX {
            let client = number.to_string();
            rates.wrong(&client, HERE, now);
            rates.right(&client, HERE, now + Duration::from_nanos(number as u64));
        }
        let counts = rates.lock();
        assert!(counts.clients.len() <= RATES_MAX && counts.right.len() <= RATES_MAX);
        assert!(counts.right.contains_key(&(RATES_MAX.to_string(), HERE)));
    }
}
