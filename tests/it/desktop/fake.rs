//! A bridge of nothing but bad manners: it answers each call as a test has told it to.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

/// How a call is answered.
#[derive(Clone, Debug)]
pub(super) enum Manner {
    /// With this.
    Answer(Value),
    /// With a status and a text.
    Status(u16, &'static str),
    /// Never.
    Hang,
    /// With JSON that never ends, and says nothing of its length.
    Endless,
    /// With a length that is not true, and then as if that were true.
    Lie(usize),
    /// By hanging up in the middle.
    Cut,
    /// By hanging up at once.
    HangUp,
    /// With this if no more than so many lines are asked for, else without end.
    OnlyShort(u64, Value),
    /// By sending the caller elsewhere.
    Redirect(String),
}

#[derive(Default)]
struct Shared {
    /// By path and session.
    manners: Mutex<HashMap<(String, String), Manner>>,
    /// Calls by path.
    calls: Mutex<HashMap<String, usize>>,
    /// Bytes of endless answers that somebody took.
    taken: AtomicUsize,
    connections: AtomicUsize,
    is_over: AtomicBool,
    over: (Mutex<bool>, Condvar),
}

/// A running bridge; it ends when dropped.
pub(super) struct Fake {
    shared: Arc<Shared>,
    port: u16,
}

impl Fake {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if accepting.is_over.load(Ordering::SeqCst) {
                    return;
                }
                accepting.connections.fetch_add(1, Ordering::SeqCst);
                let shared = Arc::clone(&accepting);
                std::thread::spawn(move || serve(&shared, stream));
            }
        });
        Self { shared, port }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// From now on a path is answered like this for a session; one without a name is for calls that name none.
    pub(super) fn answers(&self, path: &str, session: &str, manner: Manner) {
        self.shared.manners.lock().expect("a lock").insert((path.to_owned(), session.to_owned()), manner);
    }

    pub(super) fn calls(&self, path: &str) -> usize {
        self.shared.calls.lock().expect("a lock").get(path).copied().unwrap_or_default()
    }

    pub(super) fn taken(&self) -> usize {
        self.shared.taken.load(Ordering::SeqCst)
    }

    pub(super) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        *self.shared.over.0.lock().expect("a lock") = true;
        self.shared.over.1.notify_all();
        // Wakes the listener.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

/// What a terminal shows unless told.
pub(super) fn screen(lines: &[&str]) -> Value {
    json!({
        "ok": true, "lines": lines, "text": lines.join("\n"), "cursorLine": lines.len().saturating_sub(1),
        "rows": 24, "cols": 80, "bufferType": "normal",
    })
}

fn serve(shared: &Shared, stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let mut stream = stream;
    // The end of a connection is an error here or there, and no news.
    while let Some((path, body)) = request(&mut reader) {
        *shared.calls.lock().expect("a lock").entry(path.clone()).or_default() += 1;
        let session = body["session_id"].as_str().unwrap_or_default().to_owned();
        let told = shared.manners.lock().expect("a lock").get(&(path.clone(), session)).cloned();
        let manner = told.unwrap_or_else(|| Manner::Answer(usual(&path, &body)));
        let manner = match manner {
            Manner::OnlyShort(most, _) if body["max_lines"].as_u64() > Some(most) => Manner::Endless,
            Manner::OnlyShort(_, value) => Manner::Answer(value),
            other => other,
        };
        if !answer(shared, &mut stream, &manner) {
            return;
        }
    }
}

fn usual(path: &str, body: &Value) -> Value {
    match path {
        "/pty/buffer" if body["mode"] == "viewport" => {
            json!({ "ok": true, "lines": ["$"], "viewportY": 0, "rows": 24, "cols": 80, "bufferType": "normal" })
        }
        "/pty/buffer" => screen(&["$"]),
        "/pty/list" => json!({ "ok": true, "sessions": [], "count": 0 }),
        _ => json!({ "ok": true, "output": "out" }),
    }
}

fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|&length| length > 0)?;
    let target = line.split(' ').nth(1)?;
    let path = target.split('?').next()?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|&length| length > 0)?;
        if header == "\r\n" {
            break;
        }
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, serde_json::from_slice(&body).unwrap_or_default()))
}

/// Answers; false when the connection is over.
fn answer(shared: &Shared, stream: &mut TcpStream, manner: &Manner) -> bool {
    let whole = |status: u16, more: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{more}Content-Length: {length}\r\n\r\n{body}")
    };
    match manner {
        Manner::Answer(value) => stream.write_all(whole(200, "", &value.to_string()).as_bytes()).is_ok(),
        Manner::Status(status, text) => stream.write_all(whole(*status, "", text).as_bytes()).is_ok(),
        Manner::Redirect(url) => stream.write_all(whole(307, &format!("Location: {url}\r\n"), "{}").as_bytes()).is_ok(),
        Manner::Hang => {
            let mut over = shared.over.0.lock().expect("a lock");
            while !*over {
                over = shared.over.1.wait(over).expect("a lock");
            }
            false
        }
        Manner::HangUp | Manner::OnlyShort(..) => false,
        Manner::Cut => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"ok\": true, \"lines\": [");
            false
        }
        Manner::Lie(length) => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{{\"ok\":true,\"text\":\"");
            let _ = stream.write_all(head.as_bytes());
            pour(shared, stream, false);
            false
        }
        Manner::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            pour(shared, stream, true);
            false
        }
    }
}

/// Sends 100 MB, or as much as is taken.
fn pour(shared: &Shared, stream: &mut TcpStream, chunked: bool) {
    let text = "x".repeat(1 << 16);
    let piece = if chunked { format!("{:x}\r\n{text}\r\n", text.len()) } else { text };
    for _ in 0..(100 << 20) / piece.len() {
        if stream.write_all(piece.as_bytes()).is_err() {
            return;
        }
        shared.taken.fetch_add(piece.len(), Ordering::SeqCst);
    }
}
