//! Who is at the other end of a connection: found out once, when it is accepted, and remembered with it.
//!
//! On Linux the kernel tells which user owns the other end of a loopback connection. It counts when that is the user of
//! this server, or root, who can do everything anyhow, and only while a process has the socket: of one that was closed
//! the kernel tells user 0, whoever it was. Whatever cannot be found out counts as another user. Not told by this:
//! a forwarder that speaks for others under our own user (`ssh -L`), or as root (a container's port forwarder).

use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

/// Whether this system tells who is at the other end.
pub(super) const IS_KNOWN_HERE: bool = cfg!(target_os = "linux");

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// The user of this server, or root.
    Own,
    /// Another user of this machine, by its number.
    User(u32),
    /// A socket of this machine that no process has any more: whose it was is not told.
    Nobody,
    /// The system cannot tell: another machine, or a system without the look-up.
    Untold,
}

impl Peer {
    /// May use a secret that was made for `holder`. Where the kernel tells who connects, a secret that somebody else
    /// got hold of is of no use; our own user may do everything.
    pub(super) fn may_act_for(self, holder: Self) -> bool {
        match self {
            Self::Own | Self::Untold => true,
            Self::User(_) => self == holder,
            Self::Nobody => false,
        }
    }
}

/// Descriptors that are kept back, so that our own user is heard when all others are in use.
const RESERVED_FILES: usize = 8;
/// When a listener that cannot accept tries again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A listener that looks at who connects.
pub(super) struct PeerListener {
    listener: TcpListener,
    /// Given up one by one for connections of our own user while there are no other descriptors.
    reserve: Vec<File>,
}

impl PeerListener {
    /// A listener as it is.
    pub(super) fn new(listener: TcpListener) -> Self {
        let mut listener = Self { listener, reserve: Vec::with_capacity(RESERVED_FILES) };
        listener.refill();
        listener
    }

    /// The next connection, who is at its other end, and where that is.
    pub(super) async fn accept(&mut self) -> (TcpStream, Peer, IpAddr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    // Answers are small and waited for. A connection without it is slower, not wrong.
                    let _ = stream.set_nodelay(true);
                    let ask = || stream.local_addr().map_or(Peer::Nobody, |local| look_up(address, local));
                    let mut peer = ask();
                    // The look-up needs a descriptor too.
                    if peer == Peer::Nobody && self.reserve.pop().is_some() {
                        peer = ask();
                    }
                    if self.refill() || peer == Peer::Own {
                        return (stream, peer, address.ip().to_canonical());
                    }
                    // The last descriptors are not for others.
                }
                Err(error) if is_of_connection(&error) => {}
                Err(error) if self.reserve.pop().is_some() => tracing::debug!("a kept descriptor is used: {error}"),
                Err(error) => {
                    tracing::debug!("no connection can be accepted: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    self.refill();
                }
            }
        }
    }

    /// Keeps descriptors back again. True when that went well.
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

/// It is the connection that failed, and not the listener.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Who has the socket that is connected from `peer` to our `local` address. By another address than loopback, a program
/// of this machine is at most found to be another user's.
fn look_up(peer: SocketAddr, local: SocketAddr) -> Peer {
    let (peer, local) = (plain(peer), plain(local));
    let is_loopback = peer.ip().is_loopback() && local.ip().is_loopback();
    match owner(peer, local) {
        found if is_loopback => found,
        Peer::User(uid) => Peer::User(uid),
        Peer::Own | Peer::Nobody | Peer::Untold => Peer::Untold,
    }
}

/// An IPv4 address that is written as one of IPv6 is still one of IPv4.
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
            tracing::debug!("nobody has the other end any more: {error}");
            Peer::Nobody
        }
    }
}

#[cfg(target_os = "linux")]
fn judge(owner: super::sock_diag::SocketOwner, own: u32) -> Peer {
    match owner {
        super::sock_diag::SocketOwner { inode: 0, .. } => Peer::Nobody,
        owner if owner.uid == own || owner.uid == 0 => Peer::Own,
        owner => Peer::User(owner.uid),
    }
}

#[cfg(not(target_os = "linux"))]
fn owner(_peer: SocketAddr, _local: SocketAddr) -> Peer {
    Peer::Untold
}

/// Who listens at an address of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listening {
    /// Our own user, or root.
    Ours,
    /// Another user, by its number.
    User(u32),
    /// Nobody does.
    Nobody,
    /// The system does not tell.
    Untold,
}

/// Who would take a connection to this address of loopback.
#[cfg(target_os = "linux")]
pub fn listening(address: SocketAddr) -> Listening {
    let own = rustix::process::geteuid().as_raw();
    match super::sock_diag::listener(plain(address)) {
        Ok(owner) if owner.uid == own || owner.uid == 0 => Listening::Ours,
        Ok(owner) => Listening::User(owner.uid),
        Err(rustix::io::Errno::NOENT) => Listening::Nobody,
        Err(error) => {
            tracing::debug!("who listens is not told: {error}");
            Listening::Untold
        }
    }
}

/// Who would take a connection to this address of loopback.
#[cfg(not(target_os = "linux"))]
pub fn listening(_address: SocketAddr) -> Listening {
    Listening::Untold
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
            (0, 0, Peer::Nobody),
            (1000, 0, Peer::Nobody),
            (1001, 7, Peer::User(1001)),
        ] {
            assert_eq!(judge(SocketOwner { uid, inode }, 1000), expected, "{uid} {inode}");
        }
    }

    /// A client of IPv4 on a listener of both kinds is seen with a mapped address.
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
    async fn who_has_closed_already_is_nobody() {
        let mut listener = PeerListener::new(TcpListener::bind("127.0.0.1:0").await.expect("a free port"));
        let address = listener.listener.local_addr().expect("its address");
        drop(TcpStream::connect(address).await.expect("it listens"));
        // The end of the connection is at the listener before the call that closes it returns: both are here.
        assert_eq!(listener.accept().await.1, Peer::Nobody);
    }

    #[test]
    fn who_comes_from_the_network_is_never_known() {
        let [peer, local] = ["192.0.2.1:5", "192.0.2.2:8100"].map(|text| text.parse().expect("an address"));
        assert_eq!(look_up(peer, local), Peer::Untold);
    }

    #[test]
    fn a_secret_is_of_no_use_to_another_user() {
        for (user, holder, expected) in [
            (Peer::Own, Peer::Own, true),
            (Peer::Own, Peer::User(7), true),
            (Peer::User(7), Peer::User(7), true),
            (Peer::User(7), Peer::User(8), false),
            (Peer::User(7), Peer::Own, false),
            (Peer::User(7), Peer::Untold, false),
            (Peer::Nobody, Peer::Nobody, false),
            (Peer::Untold, Peer::Own, true),
        ] {
            assert_eq!(user.may_act_for(holder), expected, "{user:?} {holder:?}");
        }
    }
}
