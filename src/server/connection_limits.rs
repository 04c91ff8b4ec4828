//! Connection limits: a user other than the server's own cannot exhaust what the own user needs.
//!
//! ConnectionLimits: [`ConnectionLimits::per_user`] for one unauthorized user, [`ConnectionLimits::unknown`] for all of them
//! together, and [`ConnectionLimits::all`] in total. The last two are shares of this process's file descriptors, so
//! sessions and the own user's connections always find some. A client that presents the token or a login no longer
//! counts as unauthorized.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::peer::Peer;

/// Timeouts and counts of connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionLimits {
    /// Timeout of a request head, from the connection or from its first byte.
    pub(super) head: Duration,
    /// Idle timeout of an authorized client. Clients that keep connections close them earlier themselves.
    pub(super) idle: Duration,
    /// Maximum connections of one unauthorized user.
    pub(super) per_user: usize,
    /// Maximum connections of all unauthorized users.
    pub(super) unknown: usize,
    /// Maximum connections in total.
    pub(super) all: usize,
}

impl ConnectionLimits {
    /// Derives the limits from this process's limit of open files.
    pub(super) fn new() -> Self {
        let files = open_files_limit();
        Self {
            head: Duration::from_secs(10),
            idle: Duration::from_secs(300),
            per_user: 32,
            unknown: (files / 8).clamp(8, 256),
            all: (files / 2).clamp(16, 8_192),
        }
    }
}

#[cfg(unix)]
fn open_files_limit() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

#[cfg(not(unix))]
fn open_files_limit() -> usize {
    usize::MAX
}

/// ConnectionCounts and limits the connections of a server.
#[derive(Debug)]
pub(super) struct ConnectionLimiter {
    pub(super) limits: ConnectionLimits,
    counts: Mutex<ConnectionCounts>,
}

#[derive(Debug, Default)]
struct ConnectionCounts {
    all: usize,
    unknown: usize,
    /// Connections per unauthorized user; at most one entry per connection.
    users: HashMap<UnknownPeer, usize>,
}

/// An unauthorized client, as far as clients can be distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum UnknownPeer {
    User(u32),
    Orphaned,
    At(IpAddr),
}

impl ConnectionLimiter {
    /// Creates a limiter without connections.
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, counts: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, ConnectionCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a permit for a new connection if the limits allow it.
    pub(super) fn acquire(self: &Arc<Self>, peer: Peer, address: IpAddr) -> Option<ConnectionPermit> {
        let unknown_peer = match peer {
            Peer::Own => None,
            Peer::User(uid) => Some(UnknownPeer::User(uid)),
            Peer::Orphaned => Some(UnknownPeer::Orphaned),
            Peer::Unknown => Some(UnknownPeer::At(address)),
        };
        let mut counts = self.lock();
        if counts.all >= self.limits.all {
            return None;
        }
        if let Some(unknown_peer) = unknown_peer {
            let own = counts.users.get(&unknown_peer).copied().unwrap_or(0);
            if own >= self.limits.per_user || counts.unknown >= self.limits.unknown {
                return None;
            }
            counts.users.insert(unknown_peer, own + 1);
            counts.unknown += 1;
        }
        counts.all += 1;
        drop(counts);
        Some(ConnectionPermit {
            limiter: Arc::clone(self),
            unknown_peer,
            is_unknown: AtomicBool::new(unknown_peer.is_some()),
        })
    }
}

impl ConnectionCounts {
    fn release_unknown(&mut self, unknown_peer: UnknownPeer) {
        self.unknown = self.unknown.saturating_sub(1);
        if let Some(count) = self.users.get_mut(&unknown_peer) {
            *count -= 1;
            if *count == 0 {
                self.users.remove(&unknown_peer);
            }
        }
    }
}

/// Permit of one connection, released on drop.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    limiter: Arc<ConnectionLimiter>,
    unknown_peer: Option<UnknownPeer>,
    is_unknown: AtomicBool,
}

impl ConnectionPermit {
    /// Returns whether the client has not been authorized yet.
    pub(super) fn is_unknown(&self) -> bool {
        self.is_unknown.load(Ordering::Relaxed)
    }

    /// Marks the client as authorized, so the connection no longer counts for the unauthorized.
    pub(super) fn mark_known(&self) {
        if let Some(unknown_peer) = self.unknown_peer
            && self.is_unknown.swap(false, Ordering::Relaxed)
        {
            self.limiter.lock().release_unknown(unknown_peer);
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.mark_known();
        let mut counts = self.limiter.lock();
        counts.all = counts.all.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn unknown_clients_leave_room_for_others() {
        let limiter =
            ConnectionLimiter::new(ConnectionLimits { per_user: 2, unknown: 3, all: 6, ..ConnectionLimits::new() });
        let acquire = |peer| limiter.acquire(peer, HERE);
        let mut permits: Vec<_> = [7, 7, 8].map(|uid| acquire(Peer::User(uid)).expect("a permit")).into();
        assert!(acquire(Peer::User(7)).is_none(), "too many of one");
        assert!(acquire(Peer::User(9)).is_none(), "too many of all");
        permits[0].mark_known();
        permits[0].mark_known();
        assert!(permits[1].is_unknown() && !permits[0].is_unknown());
        permits.push(acquire(Peer::User(7)).expect("one of them is known now"));
        permits.extend((0..2).map(|_| acquire(Peer::Own).expect("our own user")));
        assert!(acquire(Peer::Own).is_none(), "too many altogether");
        permits.clear();
        let counts = limiter.lock();
        assert_eq!((counts.all, counts.unknown, counts.users.len()), (0, 0, 0));
    }
}
