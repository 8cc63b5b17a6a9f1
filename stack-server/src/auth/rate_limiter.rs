//! Limits of wrong secrets.
//!
//! The server counts wrong secrets by address and by client. Only the count of an address leads to refusals without a
//! check, so that an attacker cannot lock out a client. The count of a client only changes the error for a wrong
//! secret. A restart resets all counts.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::limits::RATES_MAX;

/// The decision about an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allowed,
    /// There were too many attempts for the client, possibly from other addresses.
    ClientExceeded,
    /// There were too many attempts from the address. The attempt is refused and not counted.
    Refused,
}

/// A token bucket: the number of attempts that were left at a time.
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
    /// Clients and addresses with a right secret, and the time of the last one.
    right: HashMap<(String, IpAddr), Instant>,
}

/// Returns the part of an address that is counted. The user of one IPv6 address usually controls its whole /64 network.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// The counts of a server.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    per_minute: f64,
    counts: Mutex<Counts>,
}

impl RateLimiter {
    /// Creates counts that allow this number of wrong secrets per minute, for each address and for each client.
    pub(crate) fn new(per_minute: u32) -> Self {
        Self { per_minute: f64::from(per_minute), counts: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        // Ignore poisoning: after a panic the counts are still valid.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left<K: Eq + Hash>(&self, buckets: &Buckets<K>, key: &K, now: Instant) -> f64 {
        let Some(bucket) = buckets.get(key) else { return self.per_minute };
        let refilled = now.saturating_duration_since(bucket.at).as_secs_f64() / 60.0 * self.per_minute;
        (bucket.left + refilled).min(self.per_minute)
    }

    /// Takes an attempt from a bucket. Returns whether there was one left.
    fn take<K: Eq + Hash + Clone>(&self, buckets: &mut Buckets<K>, key: &K, now: Instant) -> bool {
        let left = self.left(buckets, key, now);
        if left < 1.0 {
            return false;
        }
        if buckets.len() >= RATES_MAX && !buckets.contains_key(key) {
            // A full bucket is equivalent to none.
            let refill = |bucket: &Bucket| now.saturating_duration_since(bucket.at).as_secs_f64() < 60.0;
            buckets.retain(|_, bucket| refill(bucket));
            if buckets.len() >= RATES_MAX {
                buckets.clear();
            }
        }
        buckets.insert(key.clone(), Bucket { left: left - 1.0, at: now });
        true
    }

    /// Counts an attempt before its secret is checked, so that concurrent attempts count, too. If the secret is right,
    /// the caller gives the attempt back with [`RateLimiter::give_back`].
    pub(crate) fn try_once(&self, client: &str, address: IpAddr, now: Instant) -> Verdict {
        let mut counts = self.lock();
        let counts = &mut *counts;
        if !self.take(&mut counts.addresses, &network(address), now) {
            return Verdict::Refused;
        }
        if self.take(&mut counts.clients, &client.to_owned(), now) {
            Verdict::Allowed
        } else {
            Verdict::ClientExceeded
        }
    }

    /// Returns whether an address has attempts left, or a client has already sent a right secret from there.
    pub(crate) fn may_try(&self, client: &str, address: IpAddr, now: Instant) -> bool {
        let counts = self.lock();
        let address = network(address);
        self.left(&counts.addresses, &address, now) >= 1.0
            || counts.right.contains_key(&(client.to_owned(), address))
    }

    /// Gives back a counted attempt.
    pub(crate) fn give_back(&self, client: &str, address: IpAddr) {
        let mut counts = self.lock();
        let counts = &mut *counts;
        let buckets = [counts.addresses.get_mut(&network(address)), counts.clients.get_mut(client)];
        for bucket in buckets.into_iter().flatten() {
            bucket.left = (bucket.left + 1.0).min(self.per_minute);
        }
    }

    /// Remembers that a client has sent a right secret from an address.
    pub(crate) fn record_success(&self, client: &str, address: IpAddr, now: Instant) {
        let mut counts = self.lock();
        let key = (client.to_owned(), network(address));
        if counts.right.len() >= RATES_MAX && !counts.right.contains_key(&key) {
            // Forget the older half.
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
    fn an_address_has_so_many_tries_a_minute() {
        let rates = RateLimiter::new(10);
        let now = Instant::now();
        rates.record_success("a", THERE, now);
        for _ in 0..10 {
            assert!(rates.may_try("a", HERE, now));
            assert_eq!(rates.try_once("a", HERE, now), Verdict::Allowed);
        }
        assert_eq!(rates.try_once("a", HERE, now), Verdict::Refused);
        assert_eq!(rates.try_once("b", HERE, now), Verdict::Refused, "the address has had its tries");
        assert!(!rates.may_try("a", HERE, now) && rates.may_try("a", THERE, now));
        assert_eq!(rates.try_once("b", THERE, now), Verdict::Allowed);
        assert_eq!(rates.try_once("a", THERE, now), Verdict::ClientExceeded, "others were wrong about it");
        // Refused attempts do not delay the next one.
        for second in 1..6 {
            assert_eq!(rates.try_once("a", HERE, now + Duration::from_secs(second)), Verdict::Refused);
        }
        let later = now + Duration::from_secs(6);
        assert_eq!(rates.try_once("c", HERE, later), Verdict::Allowed, "a tenth of a minute is one try");
        assert_eq!(rates.try_once("c", HERE, later), Verdict::Refused);
    }

    #[test]
    fn a_right_try_is_given_back() {
        let rates = RateLimiter::new(1);
        let now = Instant::now();
        for _ in 0..3 {
            assert_eq!(rates.try_once("a", HERE, now), Verdict::Allowed);
            rates.give_back("a", HERE);
        }
        rates.give_back("a", HERE);
        assert_eq!(rates.try_once("a", HERE, now), Verdict::Allowed);
        assert_eq!(
            rates.try_once("a", HERE, now),
            Verdict::Refused,
            "no more than a minute's tries are kept"
        );
    }

    #[test]
    fn a_network_counts_as_one_address() {
        let rates = RateLimiter::new(1);
        let now = Instant::now();
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        rates.try_once("a", address("2001:db8::1"), now);
        assert_eq!(rates.try_once("b", address("2001:db8::ffff:2"), now), Verdict::Refused);
        assert_eq!(rates.try_once("b", address("2001:db8:0:1::1"), now), Verdict::Allowed);
        rates.try_once("c", address("::ffff:192.0.2.1"), now);
        assert_eq!(rates.try_once("d", HERE, now), Verdict::Refused);
    }

    #[test]
    fn counts_no_more_than_there_is_room_for() {
        let rates = RateLimiter::new(1);
        let now = Instant::now();
        for number in 0..=RATES_MAX {
            let client = number.to_string();
            let address = std::net::Ipv4Addr::from_bits(number as u32).into();
            rates.try_once(&client, address, now);
            rates.record_success(&client, HERE, now + Duration::from_nanos(number as u64));
        }
        let counts = rates.lock();
        assert!(counts.clients.len() <= RATES_MAX && counts.right.len() <= RATES_MAX);
        assert!(counts.right.contains_key(&(RATES_MAX.to_string(), HERE)));
    }
}
