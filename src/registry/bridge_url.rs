//! Validates the URLs of desktop bridges. The server sends requests to every URL that a client registers, so a URL must
//! not reach anything but a bridge.
//!
//! The grammar is stricter than that of URLs: scheme, host and port, nothing else. Forms on which URL parsers disagree
//! are rejected before any parser sees them. The HTTP client that calls the URL must not follow redirects.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Maximum length of a URL, in characters.
const MAX_CHARS: usize = 256;
/// Default port of HTTP.
const HTTP_PORT: u16 = 80;

/// Validates a URL and returns it in canonical form, without a trailing slash; an error is the reason for the
/// rejection. `allowed` lists hosts that are permitted besides loopback.
pub fn check(url: &str, allowed: &[String]) -> Result<String, String> {
    if url.len() > MAX_CHARS {
        return Err(format!("it is longer than {MAX_CHARS} characters"));
    }
    if !url.bytes().all(|byte| byte.is_ascii_graphic()) || url.contains(['\\', '%']) {
        return Err("it has characters that a bridge's URL does not have".to_owned());
    }
    let rest = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
        _ => return Err("it must begin with http://".to_owned()),
    };
    if rest.contains('@') {
        return Err("it must not have a user name or password".to_owned());
    }
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', '?', '#']) {
        return Err("it must end after the port: http://127.0.0.1:8201".to_owned());
    }
    let (host, port) = split(authority)?;
    let host = permitted(host, allowed).ok_or_else(|| {
        "its host must be localhost, 127.0.0.1 or [::1]; other hosts only with --allow-bridge HOST".to_owned()
    })?;
    Ok(format!("http://{host}:{port}"))
}

/// Returns whether the text is valid as the host of a URL.
pub fn is_host(host: &str) -> bool {
    plain_host(host).is_some()
}

/// Splits an authority into host, brackets included, and port.
fn split(authority: &str) -> Result<(&str, u16), String> {
    let host_end = match authority.strip_prefix('[') {
        Some(inner) => inner.find(']').map(|end| end + 2).ok_or("its brackets do not match")?,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(host_end);
    if port.is_empty() {
        return Ok((host, HTTP_PORT));
    }
    let digits = port.strip_prefix(':').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let port = digits.and_then(|digits| digits.parse().ok()).filter(|&port| port > 0);
    port.map(|port| (host, port)).ok_or_else(|| "its port must be a number from 1 to 65535".to_owned())
}

/// Canonicalizes the host; `None` when it is neither loopback nor allowed.
fn permitted(host: &str, allowed: &[String]) -> Option<String> {
    let plain = plain_host(host)?;
    let is_allowed = || allowed.iter().any(|other| plain_host(other).as_ref() == Some(&plain));
    let is_loopback = match plain.strip_prefix('[') {
        Some(inner) => inner.trim_end_matches(']').parse().is_ok_and(|address: Ipv6Addr| address.is_loopback()),
        None => plain == "localhost" || plain.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback()),
    };
    (is_loopback || is_allowed()).then_some(plain)
}

/// Canonicalizes a host for comparison. The last label of a name must contain a letter, so that no resolver reads the
/// name as an address in an obsolete notation (`0x7f.1`, `2130706433`).
fn plain_host(host: &str) -> Option<String> {
    if let Some(inner) = host.strip_prefix('[') {
        let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
        return Some(format!("[{address}]"));
    }
    if let Ok(address) = host.parse::<Ipv6Addr>() {
        return Some(format!("[{address}]"));
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return Some(address.to_string());
    }
    let is_name = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with(|c: char| c.is_ascii_digit()) || last.is_empty();
    (is_name && !is_number).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bridges_on_this_machine_are_taken_in_their_plain_form() {
        for (url, plain) in [
            ("http://127.0.0.1:8201", "http://127.0.0.1:8201"),
            ("http://127.0.0.1:8201/", "http://127.0.0.1:8201"),
            ("HTTP://LocalHost:8201", "http://localhost:8201"),
            ("http://localhost", "http://localhost:80"),
            ("http://127.9.8.7:65535", "http://127.9.8.7:65535"),
            ("http://[::1]:8201", "http://[::1]:8201"),
            ("http://[0:0:0:0:0:0:0:1]:8201", "http://[::1]:8201"),
        ] {
            assert_eq!(check(url, &[]).as_deref(), Ok(plain), "{url}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for url in [
            "",
            "http://",
            "http:///",
            "http://:8201",
            "127.0.0.1:8201",
            "//127.0.0.1:8201",
            "https://127.0.0.1:8201",
            "file:///etc/passwd",
            "gopher://127.0.0.1:8201",
            "ws://127.0.0.1:8201",
            "javascript:alert(1)",
            "http:127.0.0.1",
            "http://169.254.169.254/latest/meta-data",
            "http://169.254.169.254:80",
            "http://metadata.internal:80",
            "http://10.0.0.1:8201",
            "http://0.0.0.0:8201",
            "http://0:8201",
            "http://2130706433:8201",
            "http://0x7f.1:8201",
            "http://0x7f000001:8201",
            "http://0177.0.0.1:8201",
            "http://127.1:8201",
            "http://127.0.0.1.:8201",
            "http://127.0.0.1.evil.example:8201",
            "http://localhost.evil.example:8201",
            "http://user@127.0.0.1:8201",
            "http://user:pass@127.0.0.1:8201",
            "http://127.0.0.1:8201@evil.example",
            "http://evil.example#@127.0.0.1:8201",
            "http://evil.example\\@127.0.0.1:8201",
            "http://127.0.0.1:8201/pty",
            "http://127.0.0.1:8201//",
            "http://127.0.0.1:8201?x=1",
            "http://127.0.0.1:8201#x",
            "http://127.0.0.1:",
            "http://127.0.0.1:0",
            "http://127.0.0.1:65536",
            "http://127.0.0.1:+80",
            "http://127.0.0.1:80:80",
            "http://127.0.0.1 :80",
            "http://127.0.0.1:80\r\nX: y",
            "http://%31%32%37.0.0.1:80",
            "http://１２７.0.0.1:80",
            "http://[::1",
            "http://[::1]8201",
            "http://[::1%25lo]:8201",
            "http://[::]:8201",
            "http://::1:8201",
            "http://[::ffff:127.0.0.1]:8201",
            "http://[::ffff:169.254.169.254]:80",
            "http://[fd00:ec2::254]:80",
            "http://[fe80::1]:8201",
            "http://[127.0.0.1]:8201",
        ] {
            assert!(check(url, &[]).is_err(), "{url:?} gave {:?}", check(url, &[]));
        }
        assert!(check(&format!("http://127.0.0.1:80/{}", "a".repeat(300)), &[]).is_err());
    }

    #[test]
    fn other_hosts_need_to_be_named() {
        let allowed = ["Desk.example", "192.168.7.2", "fd00::7"].map(str::to_owned);
        for (url, plain) in [
            ("http://desk.EXAMPLE:8201", Some("http://desk.example:8201")),
            ("http://192.168.7.2:8201", Some("http://192.168.7.2:8201")),
            ("http://[fd00:0::7]:8201", Some("http://[fd00::7]:8201")),
            ("http://127.0.0.1:8201", Some("http://127.0.0.1:8201")),
            ("http://192.168.7.3:8201", None),
            ("http://a.desk.example:8201", None),
            ("http://user@desk.example:8201", None),
            ("https://desk.example:8201", None),
        ] {
            assert_eq!(check(url, &allowed).ok().as_deref(), plain, "{url}");
        }
    }
}
