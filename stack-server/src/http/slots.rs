//! Limits the number of connections, in total and for each peer, so that the store always has file descriptors.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{CONNECTIONS_MAX, DESCRIPTORS_RESERVED, PEER_SHARE};

/// The slots for connections of a server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Slots {
    free: Arc<Semaphore>,
    peers: Peers,
    max: usize,
    /// Maximum number of connections of one peer.
    peer_max: usize,
}

type Peers = Arc<Mutex<HashMap<IpAddr, usize>>>;

/// A slot that is reserved, but not assigned to a peer yet.
pub(crate) struct FreeSlot(OwnedSemaphorePermit);

/// The slot of a connection. Dropping this frees it.
pub(crate) struct Slot {
    _permit: OwnedSemaphorePermit,
    peers: Peers,
    peer: IpAddr,
}

impl Slots {
    /// Creates the slots for a process that may have this many descriptors open. Behind a proxy all connections come from
    /// one peer, so one peer may have all of them.
    pub(crate) fn new(descriptors: Option<u64>, is_behind_proxy: bool) -> Self {
        let limit = usize::try_from(descriptors.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let reserve = DESCRIPTORS_RESERVED.min(limit / 2);
        let max = (limit - reserve).clamp(1, CONNECTIONS_MAX);
        let peer_max = if is_behind_proxy { max } else { (max / PEER_SHARE).max(1) };
        Self { free: Arc::new(Semaphore::new(max)), peers: Arc::default(), max, peer_max }
    }

    /// Returns the maximum number of connections.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Waits for a free slot.
    pub(crate) async fn free(&self) -> FreeSlot {
        FreeSlot(Arc::clone(&self.free).acquire_owned().await.expect("the semaphore is never closed"))
    }

    /// Assigns the slot to a peer. `None` if the peer has the maximum number of connections already.
    pub(crate) fn give(&self, FreeSlot(permit): FreeSlot, peer: IpAddr) -> Option<Slot> {
        let peer = network_of(peer);
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let count = peers.entry(peer).or_default();
        if *count >= self.peer_max {
            return None;
        }
        *count += 1;
        Some(Slot { _permit: permit, peers: Arc::clone(&self.peers), peer })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = peers.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                peers.remove(&self.peer);
            }
        }
    }
}

/// Returns the network that counts as one peer. An IPv6 machine usually has a whole /64.
fn network_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(peer) => IpAddr::V6(Ipv6Addr::from_bits(peer.to_bits() & (u128::MAX << 64))),
        peer @ IpAddr::V4(_) => peer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn leaves_descriptors_to_the_store() {
        for (descriptors, is_behind_proxy, expected) in [
            (None, false, (CONNECTIONS_MAX, CONNECTIONS_MAX / 2)),
            (Some(u64::MAX), true, (CONNECTIONS_MAX, CONNECTIONS_MAX)),
            (Some(1_024), false, (768, 384)),
            (Some(1_024), true, (768, 768)),
            (Some(64), false, (32, 16)),
            (Some(0), false, (1, 1)),
        ] {
            let slots = Slots::new(descriptors, is_behind_proxy);
            assert_eq!((slots.max(), slots.peer_max), expected, "{descriptors:?} {is_behind_proxy}");
        }
    }

    #[tokio::test]
    async fn bounds_each_peer_and_gives_back() {
        let slots = Slots::new(Some(8), false);
        let give = async |text: &str| slots.give(slots.free().await, peer(text));
        let first = [give("192.0.2.1").await, give("::ffff:192.0.2.1").await];
        assert!(first.iter().all(Option::is_some));
        assert!(give("192.0.2.1").await.is_none());
        let second = [give("2001:db8::1").await, give("2001:db8::2").await];
        assert!(second.iter().all(Option::is_some));
        drop(first);
        assert!(give("2001:db8::3").await.is_none(), "all of a /64 is one peer");
        assert!(give("192.0.2.1").await.is_some());
        drop(second);
        assert!(slots.peers.lock().expect("no panic").is_empty());
        assert_eq!(slots.free.available_permits(), 4);
    }
}
