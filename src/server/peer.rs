//! Who is at the other end of a connection: found out once, when it is accepted, and remembered with it.
//!
//! On Linux the kernel tells which user owns the other end of a loopback connection. It counts when that is the user of
//! this server, or root, who can do everything anyhow, and only while a process has the socket: of one that was closed
//! the kernel tells user 0, whoever it was. Whatever cannot be found out counts as another user. Not told by this:
//! a forwarder that speaks for others under our own user (`ssh -L`), or as root (a container's port forwarder).

use std::io;
use std::net::{IpAddr, SocketAddr};

use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};

/// Whether this system tells who is at the other end.
pub(super) const IS_KNOWN_HERE: bool = cfg!(target_os = "linux");

/// Who is at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// The user of this server, or root.
    Own,
    /// Somebody else, or nobody knows.
    Other,
}

/// A listener that looks at who connects.
pub(super) struct PeerListener(pub(super) TcpListener);

impl Listener for PeerListener {
    type Io = TcpStream;
    type Addr = Peer;

    async fn accept(&mut self) -> (TcpStream, Peer) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        // Answers are small and waited for. A connection without it is slower, not wrong.
        let _ = stream.set_nodelay(true);
        let peer = stream.local_addr().map_or(Peer::Other, |local| look_up(address, local));
        (stream, peer)
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Ok(Peer::Own)
    }
}

/// Who has the socket that is connected from `peer` to our `local` address.
fn look_up(peer: SocketAddr, local: SocketAddr) -> Peer {
    let (peer, local) = (plain(peer), plain(local));
    match peer.ip().is_loopback() && local.ip().is_loopback() {
        true => owner(peer, local),
        false => Peer::Other,
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
            Peer::Other
        }
    }
}

#[cfg(target_os = "linux")]
fn judge(owner: super::sock_diag::SocketOwner, own: u32) -> Peer {
    match owner.inode != 0 && (owner.uid == own || owner.uid == 0) {
        true => Peer::Own,
        false => Peer::Other,
    }
}

#[cfg(not(target_os = "linux"))]
fn owner(_peer: SocketAddr, _local: SocketAddr) -> Peer {
    Peer::Other
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
            (0, 0, Peer::Other),
            (1000, 0, Peer::Other),
            (1001, 7, Peer::Other),
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
            let mut listener = PeerListener(listener);
            let client = TcpStream::connect(format!("{connect}:{port}")).await.expect("it listens");
            assert_eq!(listener.accept().await.1, Peer::Own, "{listen}");
            drop(client);
        }
    }

    #[tokio::test]
    async fn who_has_closed_already_is_nobody() {
        let mut listener = PeerListener(TcpListener::bind("127.0.0.1:0").await.expect("a free port"));
        let address = listener.0.local_addr().expect("its address");
        drop(TcpStream::connect(address).await.expect("it listens"));
        // The end of the connection is at the listener before the call that closes it returns: both are here.
        assert_eq!(listener.accept().await.1, Peer::Other);
    }

    #[test]
    fn who_comes_from_the_network_is_never_known() {
        let [peer, local] = ["192.0.2.1:5", "192.0.2.2:8100"].map(|text| text.parse().expect("an address"));
        assert_eq!(look_up(peer, local), Peer::Other);
    }
}
