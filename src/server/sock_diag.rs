//! Looks up the owner of the other end of a loopback connection with one `NETLINK_SOCK_DIAG` request.
//!
//! The request has 72 bytes and the reply is read at three offsets, so both are encoded here over rustix's netlink
//! sockets; the crates for this protocol bring a message framework for every socket family. The constants are those of
//! `linux/netlink.h`, `linux/sock_diag.h` and `linux/inet_diag.h`, which are part of the kernel's stable interface.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::{self, Errno};
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

const NLM_F_REQUEST: u16 = 1;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const IPPROTO_TCP: u8 = 6;
const TCP_LISTEN: u8 = 10;
const ALL_STATES: u32 = u32::MAX;
/// Matches any socket of these addresses.
const NO_COOKIE: [u8; 8] = [0xff; 8];

/// Header of every netlink message.
const HEADER_BYTES: usize = 16;
/// Header, `inet_diag_req_v2` up to the states, `inet_diag_sockid`.
const REQUEST_BYTES: usize = HEADER_BYTES + 8 + SOCKET_ID_BYTES;
const SOCKET_ID_BYTES: usize = 48;
/// Ports and addresses: the start of a socket id, without interface and cookie.
const TUPLE_BYTES: usize = 36;
/// Offset of the socket id in the reply: after the header, family, state, timer and retransmissions.
const ANSWER_ID_AT: usize = HEADER_BYTES + 4;
/// Offset of the uid: after the socket id and three counters of 4 bytes. The inode follows.
const ANSWER_UID_AT: usize = ANSWER_ID_AT + SOCKET_ID_BYTES + 12;
const ANSWER_BYTES: usize = ANSWER_UID_AT + 8;

/// Owner of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SocketOwner {
    pub(super) uid: u32,
    /// 0 when no process holds the socket; then the kernel reports uid 0 as well, whoever owned it.
    pub(super) inode: u32,
}

/// Returns the owner of the socket bound to `local` and connected to `remote`. The kernel replies immediately, so this
/// is safe on an async worker thread.
pub(super) fn owner(local: SocketAddr, remote: SocketAddr) -> io::Result<SocketOwner> {
    let request = request(local, remote);
    let (answer, length) = ask(&request)?;
    read(&answer[..length], &request).ok_or(Errno::NOENT)
}

/// Returns the owner of the socket that listens on `local`; `NOENT` if there is none.
pub(super) fn listener(local: SocketAddr) -> io::Result<SocketOwner> {
    let nowhere = match local.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let request = request(local, SocketAddr::new(nowhere, 0));
    let (answer, length) = ask(&request)?;
    read_listener(&answer[..length], &request)
}

fn ask(request: &[u8; REQUEST_BYTES]) -> io::Result<([u8; 1_024], usize)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(SOCK_DIAG))?;
    // A socket connected to the kernel receives from no other sender.
    rustix::net::connect(&socket, &SocketAddrNetlink::new(0, 0))?;
    rustix::net::send(&socket, request, SendFlags::empty())?;
    let mut answer = [0; 1_024];
    let (length, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    Ok((answer, length))
}

fn request(local: SocketAddr, remote: SocketAddr) -> [u8; REQUEST_BYTES] {
    let mut bytes = Vec::with_capacity(REQUEST_BYTES);
    bytes.extend((REQUEST_BYTES as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST.to_ne_bytes());
    // Sequence number and port id; this socket sends one request.
    bytes.extend([0; 8]);
    let (family, local_ip) = address(local.ip());
    bytes.extend([family, IPPROTO_TCP, 0, 0]);
    bytes.extend(ALL_STATES.to_ne_bytes());
    bytes.extend(local.port().to_be_bytes());
    bytes.extend(remote.port().to_be_bytes());
    bytes.extend(local_ip);
    bytes.extend(address(remote.ip()).1);
    bytes.extend([0; 4]);
    bytes.extend(NO_COOKIE);
    let mut request = [0; REQUEST_BYTES];
    request.copy_from_slice(&bytes);
    request
}

fn address(ip: IpAddr) -> (u8, [u8; 16]) {
    match ip {
        IpAddr::V4(ip) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&ip.octets());
            (AddressFamily::INET.as_raw() as u8, bytes)
        }
        IpAddr::V6(ip) => (AddressFamily::INET6.as_raw() as u8, ip.octets()),
    }
}

/// Parses the reply. The kernel falls back to a listening socket when the requested one is gone, so ports and addresses
/// must match exactly.
fn read(answer: &[u8], request: &[u8; REQUEST_BYTES]) -> Option<SocketOwner> {
    let kind = u16::from_ne_bytes(*answer.get(4..)?.first_chunk()?);
    let is_whole = kind == SOCK_DIAG_BY_FAMILY && answer.len() >= ANSWER_BYTES;
    let requested = request.get(HEADER_BYTES + 8..)?.first_chunk::<TUPLE_BYTES>()?;
    let received = answer.get(ANSWER_ID_AT..)?.first_chunk::<TUPLE_BYTES>()?;
    if !is_whole || requested != received {
        return None;
    }
    read_owner(answer)
}

/// Parses the reply about a listener. It may be bound to all addresses, so only the port is compared.
fn read_listener(answer: &[u8], request: &[u8; REQUEST_BYTES]) -> io::Result<SocketOwner> {
    let number =
        |at: usize| answer.get(at..).and_then(|bytes| bytes.first_chunk()).map(|bytes| i32::from_ne_bytes(*bytes));
    let kind = answer.get(4..).and_then(|bytes| bytes.first_chunk()).map(|bytes| u16::from_ne_bytes(*bytes));
    match kind {
        Some(SOCK_DIAG_BY_FAMILY) => {
            let is_listener = answer.get(HEADER_BYTES + 1) == Some(&TCP_LISTEN);
            let is_port =
                answer.get(ANSWER_ID_AT..ANSWER_ID_AT + 2) == request.get(HEADER_BYTES + 8..HEADER_BYTES + 10);
            read_owner(answer).filter(|_| is_listener && is_port).ok_or(Errno::NOENT)
        }
        Some(NLMSG_ERROR) => Err(number(HEADER_BYTES).map_or(Errno::INVAL, |code| Errno::from_raw_os_error(-code))),
        _ => Err(Errno::INVAL),
    }
}

fn read_owner(answer: &[u8]) -> Option<SocketOwner> {
    let number = |at: usize| Some(u32::from_ne_bytes(*answer.get(at..)?.first_chunk()?));
    Some(SocketOwner { uid: number(ANSWER_UID_AT)?, inode: number(ANSWER_UID_AT + 4)? })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::*;

    fn connection(address: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(address).expect("a free port");
        let client = TcpStream::connect(listener.local_addr().expect("its address")).expect("it listens");
        (client, listener.accept().expect("the client").0)
    }

    /// Returns the owner of the socket at the other end.
    fn other_end(stream: &TcpStream) -> io::Result<SocketOwner> {
        owner(stream.peer_addr().expect("a peer"), stream.local_addr().expect("an address"))
    }

    #[test]
    fn the_owner_of_a_live_socket_is_known() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let (client, server) = connection(address);
            let owner = other_end(&server).expect("a live socket");
            assert_eq!(owner.uid, rustix::process::geteuid().as_raw(), "{address}");
            assert_ne!(owner.inode, 0, "{address}");
            client.shutdown(Shutdown::Write).expect("half of it");
            assert_eq!(other_end(&server).expect("half a socket"), owner, "{address}");
        }
    }

    #[test]
    fn a_socket_that_was_closed_has_no_owner() {
        let (client, mut server) = connection("127.0.0.1:0");
        drop(client);
        assert_eq!(server.read(&mut [0]).expect("an end"), 0);
        assert!(other_end(&server).map_or(true, |owner| owner.inode == 0));
    }

    #[test]
    fn a_listener_does_not_answer_for_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let local = listener.local_addr().expect("its address");
        assert!(owner(local, "127.0.0.1:9".parse().expect("an address")).is_err());
    }

    #[test]
    fn who_listens_is_known_however_it_is_bound() {
        for (bound, requested) in
            [("127.0.0.1:0", "127.0.0.1"), ("0.0.0.0:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1")]
        {
            let listener_socket = TcpListener::bind(bound).expect("a free port");
            let port = listener_socket.local_addr().expect("its address").port();
            let requested = SocketAddr::new(requested.parse().expect("an address"), port);
            let found = listener(requested).expect("it listens");
            assert_eq!(found.uid, rustix::process::geteuid().as_raw(), "{bound}");
            drop(listener_socket);
            assert_eq!(listener(requested), Err(Errno::NOENT), "{bound}");
        }
    }

    #[test]
    fn answers_that_are_none_are_refused() {
        let request = request("127.0.0.1:1".parse().expect("one"), "127.0.0.1:2".parse().expect("another"));
        for length in 0..200 {
            assert_eq!(read(&vec![0xff; length], &request), None);
            assert!(read_listener(&vec![0xff; length], &request).is_err());
        }
    }
}
