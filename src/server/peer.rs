//! Identifies the user at the other end of a connection, once, when it is accepted.
//!
//! On Linux the kernel reports the owner of the other end of a loopback connection. It counts as own if it is the
//! server's user or root, which can do everything anyway, and only while a process holds the socket: the kernel reports
//! user 0 for a closed socket, whoever owned it. An undetermined owner counts as another user. Not detected: a
//! forwarder that relays other users under the server's user (`ssh -L`) or as root (a container's port forwarder).

use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

/// Whether this system reports the other end's user.
pub(super) const IS_KNOWN_HERE: bool = cfg!(target_os = "linux");

/// User at the other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// The server's user, or root.
    Own,
    /// Another local user, by uid.
    User(u32),
    /// A local socket that no process holds any more, so its owner is not reported.
    Orphaned,
    /// Undetermined: another machine, or a system without the lookup.
    Unknown,
}

impl Peer {
    /// Returns whether this user may use a secret issued to `holder`. Where the kernel reports the user, a stolen
    /// secret is useless to another user; the server's own user may use any.
    pub(super) fn may_act_for(self, holder: Self) -> bool {
        match self {
            Self::Own | Self::Unknown => true,
            Self::User(_) => self == holder,
            Self::Orphaned => false,
        }
    }
}

/// File descriptors held in reserve, so the own user can connect when all others are in use.
const RESERVED_FILES: usize = 8;
/// Delay before a failed accept is retried.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A listener that identifies its clients.
pub(super) struct PeerListener {
    listener: TcpListener,
    /// Released one by one for connections of the own user while no other descriptors are free.
    reserve: Vec<File>,
}

impl PeerListener {
    /// Wraps a listener.
    pub(super) fn new(listener: TcpListener) -> Self {
        let mut listener = Self { listener, reserve: Vec::with_capacity(RESERVED_FILES) };
        listener.refill();
        listener
    }

    /// Accepts a connection; returns it with its user and remote address.
    pub(super) async fn accept(&mut self) -> (TcpStream, Peer, IpAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // Responses are small and latency-sensitive. Failure makes the connection slower, not incorrect.
                    let _ = stream.set_nodelay(true);
                    let ask = || stream.local_addr().map_or(Peer::Orphaned, |local| look_up(address, local));
                    let mut peer = ask();
                    // The lookup needs a descriptor too.
                    if peer == Peer::Orphaned && self.reserve.pop().is_some() {
                        peer = ask();
                    }
                    if self.refill() || peer == Peer::Own {
                        return (stream, peer, address.ip().to_canonical());
                    }
                    // The reserved descriptors are not for other users.
                }
                Err(error) if is_of_connection(&error) => {}
                Err(error) if self.reserve.pop().is_some() => tracing::debug!("using a reserved descriptor: {error}"),
                Err(error) => {
                    tracing::debug!("cannot accept connections: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    self.refill();
                }
            }
        }
    }

    /// Refills the reserve. Returns whether it is complete.
    fn refill(&mut self) -> bool {
        while cfg!(unix) && self.reserve.len() < RESERVED_FILES {
            match File::open("/dev/null") {
                Ok(file) => self.reserve.push(file),
                Err(_) => return false,
            }
        }
        true
    }
}

/// Returns whether the error concerns the connection and not the listener.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Looks up the owner of the socket connected from `peer` to `local`. Through a non-loopback address, a local program
/// can only be identified as another user's.
fn look_up(peer: SocketAddr, local: SocketAddr) -> Peer {
    let (peer, local) = (plain(peer), plain(local));
    let is_loopback = peer.ip().is_loopback() && local.ip().is_loopback();
    match owner(peer, local) {
        found if is_loopback => found,
        Peer::User(uid) => Peer::User(uid),
        Peer::Own | Peer::Orphaned | Peer::Unknown => Peer::Unknown,
    }
}

/// Converts an IPv4-mapped IPv6 address to IPv4.
fn plain(address: SocketAddr) -> SocketAddr {
    let ip: IpAddr = address.ip().to_canonical();
    SocketAddr::new(ip, address.port())
}

#[cfg(target_os = "linux")]
fn owner(peer: SocketAddr, local: SocketAddr) -> Peer {
    let own = rustix::process::geteuid().as_raw();
    match super::sock_diag::owner(peer, local) {
        Ok(owner) => judge(owner, own),
        Err(error) => {
            tracing::debug!("the other end has no owner any more: {error}");
            Peer::Orphaned
        }
    }
}

#[cfg(target_os = "linux")]
fn judge(owner: super::sock_diag::SocketOwner, own: u32) -> Peer {
    match owner {
        super::sock_diag::SocketOwner { inode: 0, .. } => Peer::Orphaned,
        owner if owner.uid == own || owner.uid == 0 => Peer::Own,
        owner => Peer::User(owner.uid),
    }
}

#[cfg(not(target_os = "linux"))]
fn owner(_peer: SocketAddr, _local: SocketAddr) -> Peer {
    Peer::Unknown
}

/// User that listens at a local address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerOwner {
    /// The own user, or root.
    Own,
    /// Another user, by uid.
    User(u32),
    /// No process listens.
    NotListening,
    /// Undetermined.
    Unknown,
}

/// Returns the user that would accept a connection to a loopback address.
#[cfg(target_os = "linux")]
pub fn listening(address: SocketAddr) -> ListenerOwner {
    let own = rustix::process::geteuid().as_raw();
    match super::sock_diag::listener(plain(address)) {
        Ok(owner) if owner.uid == own || owner.uid == 0 => ListenerOwner::Own,
        Ok(owner) => ListenerOwner::User(owner.uid),
        Err(rustix::io::Errno::NOENT) => ListenerOwner::NotListening,
        Err(error) => {
            tracing::debug!("cannot determine the listener's user: {error}");
            ListenerOwner::Unknown
        }
    }
}

/// Returns the user that would accept a connection to a loopback address.
#[cfg(not(target_os = "linux"))]
pub fn listening(_address: SocketAddr) -> ListenerOwner {
    ListenerOwner::Unknown
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::server::sock_diag::SocketOwner;

    #[test]
    fn only_a_live_socket_of_ours_or_of_root_counts() {
        for (uid, inode, expected) in [
            (1000, 7, Peer::Own),
            (0, 7, Peer::Own),
            (0, 0, Peer::Orphaned),
            (1000, 0, Peer::Orphaned),
            (1001, 7, Peer::User(1001)),
        ] {
            assert_eq!(judge(SocketOwner { uid, inode }, 1000), expected, "{uid} {inode}");
        }
    }

    /// A dual-stack listener reports an IPv4 client with a mapped address.
    #[tokio::test]
    async fn we_know_ourselves_by_every_kind_of_address() {
        for (listen, connect) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "[::1]"), ("[::]:0", "127.0.0.1")] {
            let listener = TcpListener::bind(listen).await.expect("a free port");
            let port = listener.local_addr().expect("its address").port();
            let mut listener = PeerListener::new(listener);
            let client = TcpStream::connect(format!("{connect}:{port}")).await.expect("it listens");
            assert_eq!(listener.accept().await.1, Peer::Own, "{listen}");
            drop(client);
        }
    }

    #[tokio::test]
    async fn a_closed_socket_has_no_owner() {
        let mut listener = PeerListener::new(TcpListener::bind("127.0.0.1:0").await.expect("a free port"));
        let address = listener.listener.local_addr().expect("its address");
        drop(TcpStream::connect(address).await.expect("it listens"));
        // The listener sees the end of the connection before the closing call returns, because both are local.
        assert_eq!(listener.accept().await.1, Peer::Orphaned);
    }

    #[test]
    fn who_comes_from_the_network_is_never_known() {
        let [peer, local] = ["192.0.2.1:5", "192.0.2.2:8100"].map(|text| text.parse().expect("an address"));
        assert_eq!(look_up(peer, local), Peer::Unknown);
    }

    #[test]
    fn a_secret_is_of_no_use_to_another_user() {
        for (user, holder, expected) in [
            (Peer::Own, Peer::Own, true),
            (Peer::Own, Peer::User(7), true),
            (Peer::User(7), Peer::User(7), true),
            (Peer::User(7), Peer::User(8), false),
            (Peer::User(7), Peer::Own, false),
            (Peer::User(7), Peer::Unknown, false),
            (Peer::Orphaned, Peer::Orphaned, false),
            (Peer::Unknown, Peer::Own, true),
        ] {
            assert_eq!(user.may_act_for(holder), expected, "{user:?} {holder:?}");
        }
    }
}
