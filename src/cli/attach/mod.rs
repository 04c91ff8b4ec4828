//! `kpty attach`: a session full-screen in a person's own terminal.
//!
//! The screen comes from the server's engine as cells, so it is true at once, whatever was printed before. Keys go
//! back by their names through the same tools as everything else. Several may be attached; each sees what all type.

mod answer;
mod input;
mod paint;
mod tty;

use std::time::Duration;

use clap::Args;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::client::Connection;
use super::remote::{EXIT_CODES, Remote};
use super::{EXIT_DONE, EXIT_EXITED, Failure, Outcome, print};
use crate::error::Error;
use crate::server::live::{PATH, wire};
pub(super) use answer::{AnswerArguments, answer};
use input::Reader;
use paint::Painter;
use tty::Tty;

/// How long a notice stands in the last row.
const NOTICE: Duration = Duration::from_secs(4);
/// How long the rest of a key's sequence may take after Escape.
const ESCAPE_TIMEOUT: Duration = Duration::from_millis(40);

#[derive(Args)]
#[command(after_help = format!("\
The screen is the session's own, in the upper left corner; what does not fit is cut. Every key goes to the session
except the one that detaches: Ctrl-\\, or that of --detach. Secrets are masked, and what you type passes the command
policy. The session keeps its size unless --resize is given. Several terminals may be attached.

{EXIT_CODES} When the program ends while you look: its own code, 128 and its number for a signal.

Examples:
  kpty attach build
  kpty attach editor --resize              the session follows the size of this terminal
  kpty attach build --detach ctrl-]        for programs that want Ctrl-\\ themselves"))]
pub(super) struct AttachArguments {
    /// Id, beginning of the id, or label
    session: String,

    /// Resize the session to this terminal, and follow its size
    #[arg(long)]
    resize: bool,

    /// Key that detaches: ctrl- and a letter or one of \ ] ^ _
    #[arg(long, value_name = "KEY", default_value = "ctrl-\\", value_parser = control_key)]
    detach: u8,

    #[command(flatten)]
    connection: Connection,
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Why the attachment ended.
enum End {
    Detached,
    /// The session's program ended; how, if that is known.
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
    Signal(u8),
    Lost(String),
}

/// The control character of a key such as `ctrl-]`.
fn control_key(text: &str) -> Result<u8, String> {
    let key = text.get(..5).filter(|held| held.eq_ignore_ascii_case("ctrl-")).map(|_| &text.as_bytes()[5..]);
    match key {
        Some([c @ (b'a'..=b'z' | b'A'..=b'Z' | b'\\' | b']' | b'^' | b'_')]) => Ok(c.to_ascii_uppercase() & 0x1f),
        _ => Err("give ctrl- and a letter or one of \\ ] ^ _, such as ctrl-]".to_owned()),
    }
}

fn key_name(control: u8) -> String {
    format!("Ctrl-{}", char::from(control + 0x40))
}

pub(super) async fn attach(arguments: AttachArguments) -> Result<Outcome, Failure> {
    let remote = Remote::new(&arguments.connection)?;
    let id = remote.resolve(&arguments.session).await?;
    // Whether it can be looked at at all is answered in words before the terminal is taken.
    let look = json!({ "session_id": id, "mode": "viewport", "max_chars": 1 });
    let looked = remote.client.call("term_read", look).await?;
    if !looked.is_ok() {
        return remote.finish(&looked, |_| EXIT_DONE, |_| Ok(()));
    }
    let mut socket = connect(&remote).await?;
    let no_terminal = |cause: std::io::Error| Error::Usage(format!("attach needs a terminal: {cause}"));
    let tty = Tty::take().map_err(no_terminal)?;
    let mut client = Client {
        id,
        painter: Painter::new(tty.size().0, tty.size().1),
        reader: Reader::new(arguments.detach),
        tty,
        calls: 0,
        notice_ends: None,
        follows_size: arguments.resize,
        has_seen: false,
    };
    let end = client.run(&mut socket, arguments.detach).await;
    let Client { tty, id, has_seen, .. } = client;
    drop(tty);
    match end.map_err(no_terminal)? {
        End::Detached => {
            print::problem(&format!("detached from {id}; it continues"));
            Ok(Outcome::Done)
        }
        End::Exited { code, signal } => {
            let (how, own) = match (code, signal) {
                (_, Some(signal)) => (format!("was ended by signal {signal}"), 128 + signal),
                (Some(code), None) => (format!("ended with code {code}"), code),
                (None, None) => ("ended".to_owned(), i32::from(EXIT_EXITED)),
            };
            print::problem(&format!("the program of {id} {how}"));
            let code = if has_seen { u8::try_from(own & 0xff).unwrap_or(EXIT_EXITED) } else { EXIT_EXITED };
            Ok(Outcome::Code(code))
        }
        End::Signal(number) => Ok(Outcome::Code(128 + number)),
        End::Lost(why) => Err(Error::Server(format!("the connection to the server was lost: {why}")).into()),
    }
}

async fn connect(remote: &Remote) -> Result<Socket, Failure> {
    let url = remote.client.url();
    let Some(place) = url.strip_prefix("http://") else {
        return Err(Error::Usage(format!("attach speaks plain http:// only, not {url}")).into());
    };
    let refused = |error: SocketError| Error::Server(format!("no live screens at {url}: {error}"));
    let mut request = format!("ws://{place}{PATH}?as=attach").into_client_request().map_err(refused)?;
    if let Some(token) = remote.client.token().await? {
        let value = format!("Bearer {token}").parse();
        let value = value.map_err(|_| Error::Usage("the token is invalid".to_owned()))?;
        request.headers_mut().insert("authorization", value);
    }
    let (socket, _) = connect_async(request).await.map_err(refused)?;
    Ok(socket)
}

/// A person's terminal and what it shows.
struct Client {
    id: String,
    tty: Tty,
    painter: Painter,
    reader: Reader,
    calls: u64,
    notice_ends: Option<Instant>,
    follows_size: bool,
    /// The program was seen alive.
    has_seen: bool,
}

impl Client {
    async fn run(&mut self, socket: &mut Socket, detach: u8) -> std::io::Result<End> {
        let mut input = self.tty.input()?;
        let mut sizes = signal(SignalKind::window_change())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let mut quit = signal(SignalKind::quit())?;
        self.follow_size(socket).await;
        say(socket, json!({ "t": "watch", "large": self.id })).await;
        self.notice(format!(" {} · {} detaches ", self.id, key_name(detach)))?;
        let mut escape = None;
        loop {
            tokio::select! {
                message = socket.next() => match message {
                    Some(Ok(Message::Text(text))) => {
                        if let Some(end) = self.hear(socket, &text).await? {
                            return Ok(end);
                        }
                    }
                    Some(Ok(Message::Close(_))) | None => return Ok(End::Lost("it closed the connection".to_owned())),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Ok(End::Lost(error.to_string())),
                },
                piece = input.recv() => {
                    // A terminal that is gone is a person who went away.
                    let Some(piece) = piece else { return Ok(End::Detached) };
                    let typed = self.reader.read(&piece);
                    escape = self.reader.is_waiting().then(|| Instant::now() + ESCAPE_TIMEOUT);
                    self.send(socket, typed.keys).await;
                    if typed.detach {
                        return Ok(End::Detached);
                    }
                }
                () = until(escape) => {
                    escape = None;
                    let keys = self.reader.flush().keys;
                    self.send(socket, keys).await;
                }
                () = until(self.notice_ends) => {
                    self.notice_ends = None;
                    let out = self.painter.notice(None);
                    self.tty.write(&out)?;
                }
                _ = sizes.recv() => {
                    let (cols, rows) = self.tty.size();
                    let out = self.painter.resize(cols, rows);
                    self.tty.write(&out)?;
                    self.follow_size(socket).await;
                }
                _ = interrupt.recv() => return Ok(End::Signal(2)),
                _ = terminate.recv() => return Ok(End::Signal(15)),
                _ = hang_up.recv() => return Ok(End::Signal(1)),
                _ = quit.recv() => return Ok(End::Signal(3)),
            }
        }
    }

    async fn hear(&mut self, socket: &mut Socket, text: &str) -> std::io::Result<Option<End>> {
        let Ok(message) = serde_json::from_str::<Value>(text) else { return Ok(None) };
        match message.get("t").and_then(Value::as_str) {
            Some("frames") => {}
            Some("reply") if message["body"]["ok"] == json!(false) => {
                let why = message["body"]["message"].as_str().unwrap_or("it was not typed");
                self.notice(format!(" {} ", print::tame(why)))?;
                return Ok(None);
            }
            _ => return Ok(None),
        }
        let Ok(frames) = serde_json::from_value::<wire::Frames>(message) else { return Ok(None) };
        let mut end = None;
        for frame in &frames.frames {
            if frame.id != self.id {
                continue;
            }
            let out = self.painter.take(frame);
            self.tty.write(&out)?;
            self.reader.first_row = self.painter.first_row();
            match frame.exit {
                Some(wire::Exit { code, signal }) => end = Some(End::Exited { code, signal }),
                None => self.has_seen = true,
            }
            if let Some(problem) = &frame.problem {
                self.notice(format!(" {} ", print::tame(problem)))?;
            }
        }
        say(socket, json!({ "t": "ack", "s": frames.s })).await;
        Ok(end)
    }

    async fn send(&mut self, socket: &mut Socket, keys: Vec<Value>) {
        if !keys.is_empty() {
            self.call(socket, json!({ "action": "send_keys", "keys": keys, "enter_delay_ms": 0 })).await;
        }
    }

    async fn follow_size(&mut self, socket: &mut Socket) {
        if self.follows_size {
            let (cols, rows) = self.tty.size();
            self.call(socket, json!({ "action": "resize", "cols": cols, "rows": rows })).await;
        }
    }

    async fn call(&mut self, socket: &mut Socket, mut args: Value) {
        self.calls += 1;
        args["session_id"] = json!(self.id);
        say(socket, json!({ "t": "call", "n": self.calls, "args": args })).await;
    }

    fn notice(&mut self, text: String) -> std::io::Result<()> {
        self.notice_ends = Some(Instant::now() + NOTICE);
        let out = self.painter.notice(Some(text));
        self.tty.write(&out)
    }
}

/// A connection that does not take it is found closed when it is read.
async fn say(socket: &mut Socket, message: Value) {
    let _ = socket.send(Message::text(message.to_string())).await;
}

async fn until(end: Option<Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_to_detach_is_a_control_character() {
        for (text, expected) in
            [("ctrl-\\", Some(0x1c)), ("Ctrl-]", Some(0x1d)), ("ctrl-a", Some(1)), ("CTRL-A", Some(1))]
        {
            assert_eq!(control_key(text).ok(), expected, "{text}");
        }
        for text in ["", "a", "ctrl-", "ctrl-aa", "alt-a", "ctrl-é", "ctrl-["] {
            assert!(control_key(text).is_err(), "{text}");
        }
        assert_eq!(key_name(0x1c), "Ctrl-\\");
    }
}
