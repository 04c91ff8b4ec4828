//! How many connections there may be, and whose: a user that we do not know cannot use up what our own user needs.
//!
//! Bounds: [`Limits::per_user`] connections of one unknown user, [`Limits::unknown`] of all of them together, and
//! [`Limits::all`] connections altogether. The last two are shares of the descriptors that this process may have, so that
//! sessions and our own user's connections always find some. Who shows the token or a login is not unknown any more.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::peer::Peer;

/// How long connections may take and how many there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How long the head of a request may take, from the connection or from its first byte.
    pub(super) head: Duration,
    /// How long a connection of somebody known may be idle. Clients that keep connections drop them sooner themselves.
    pub(super) idle: Duration,
    /// Connections of one unknown user.
    pub(super) per_user: usize,
    /// Connections of all unknown users.
    pub(super) unknown: usize,
    /// Connections altogether.
    pub(super) all: usize,
}

impl Limits {
    /// As this process has descriptors.
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

/// The connections of a server.
#[derive(Debug)]
pub(super) struct Crowd {
    pub(super) limits: Limits,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    unknown: usize,
    /// Those of each unknown user; never more entries than connections.
    users: HashMap<Stranger, usize>,
}

/// Somebody unknown, as far as they can be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stranger {
    User(u32),
    Nobody,
    At(IpAddr),
}

impl Crowd {
    /// Nobody is here yet.
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, counts: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection, if there is one.
    pub(super) fn enter(self: &Arc<Self>, peer: Peer, address: IpAddr) -> Option<Place> {
        let stranger = match peer {
            Peer::Own => None,
            Peer::User(uid) => Some(Stranger::User(uid)),
            Peer::Nobody => Some(Stranger::Nobody),
            Peer::Untold => Some(Stranger::At(address)),
        };
        let mut counts = self.lock();
        if counts.all >= self.limits.all {
            return None;
        }
        if let Some(stranger) = stranger {
            let own = counts.users.get(&stranger).copied().unwrap_or(0);
            if own >= self.limits.per_user || counts.unknown >= self.limits.unknown {
                return None;
            }
            counts.users.insert(stranger, own + 1);
            counts.unknown += 1;
        }
        counts.all += 1;
        drop(counts);
        Some(Place { crowd: Arc::clone(self), stranger, is_unknown: AtomicBool::new(stranger.is_some()) })
    }
}

impl Counts {
    fn forget(&mut self, stranger: Stranger) {
        self.unknown = self.unknown.saturating_sub(1);
        if let Some(count) = self.users.get_mut(&stranger) {
            *count -= 1;
            if *count == 0 {
                self.users.remove(&stranger);
            }
        }
    }
}

/// The place of one connection; free again when dropped.
#[derive(Debug)]
pub(super) struct Place {
    crowd: Arc<Crowd>,
    stranger: Option<Stranger>,
    is_unknown: AtomicBool,
}

impl Place {
    /// Nobody has shown yet that they may ask.
    pub(super) fn is_unknown(&self) -> bool {
        self.is_unknown.load(Ordering::Relaxed)
    }

    /// Whoever has it showed that they may ask: it counts for the unknown no more.
    pub(super) fn make_known(&self) {
        if let Some(stranger) = self.stranger
            && self.is_unknown.swap(false, Ordering::Relaxed)
        {
            self.crowd.lock().forget(stranger);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.make_known();
        let mut counts = self.crowd.lock();
        counts.all = counts.all.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn no_stranger_takes_the_place_of_others() {
        let crowd = Crowd::new(Limits { per_user: 2, unknown: 3, all: 6, ..Limits::new() });
        let enter = |peer| crowd.enter(peer, HERE);
        let mut places: Vec<_> = [7, 7, 8].map(|uid| enter(Peer::User(uid)).expect("a place")).into();
        assert!(enter(Peer::User(7)).is_none(), "too many of one");
        assert!(enter(Peer::User(9)).is_none(), "too many of all");
        places[0].make_known();
        places[0].make_known();
        assert!(places[1].is_unknown() && !places[0].is_unknown());
        places.push(enter(Peer::User(7)).expect("one of them is known now"));
        places.extend((0..2).map(|_| enter(Peer::Own).expect("our own user")));
        assert!(enter(Peer::Own).is_none(), "too many altogether");
        places.clear();
        let counts = crowd.lock();
        assert_eq!((counts.all, counts.unknown, counts.users.len()), (0, 0, 0));
    }
}
