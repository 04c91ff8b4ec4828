//! `kpty answer`: a person types what a program asks for and does not show.
//!
//! The secret is read from the person's own terminal, never from an argument or a pipe, and goes to the session over the
//! socket that `attach` uses. Nothing prints it, and it is typed only while the session asks for it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};

use clap::Args;
use futures_util::StreamExt as _;
use rustix::termios::{self, OptionalActions, Termios};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{Socket, connect, say};
use crate::cli::client::{Connection, text};
use crate::cli::remote::{EXIT_CODES, Remote};
use crate::cli::{EXIT_DONE, EXIT_NOTHING, Failure, Outcome, print};
use crate::error::Error;

/// Longest answer, in bytes.
const LONGEST: usize = 4_096;
/// The number of the only call.
const CALL: u64 = 1;

#[derive(Args)]
#[command(after_help = format!("\
For sessions that ask for a password, a passphrase or the like. The answer is read from your terminal without being
shown, typed into the session and followed by Enter. It is not recorded or logged. Ctrl-C types nothing.

{EXIT_CODES} 1 also when the session asks for nothing of the kind, or when you type nothing.

Examples:
  kpty answer build"))]
pub(in crate::cli) struct AnswerArguments {
    /// Id, beginning of the id, or label
    session: String,

    #[command(flatten)]
    connection: Connection,
}

pub(in crate::cli) async fn answer(arguments: AnswerArguments) -> Result<Outcome, Failure> {
    let remote = Remote::new(&arguments.connection)?;
    let id = remote.resolve(&arguments.session).await?;
    let Some(state) = state(&remote, &id).await? else {
        let answer = remote.client.call("term_read", json!({ "session_id": id, "max_lines": 1 })).await?;
        return remote.finish(&answer, |_| EXIT_DONE, |_| Ok(()));
    };
    if state != "input_secret" {
        print::problem(&format!("{id} asks for no secret now: its state is {state}"));
        return Ok(Outcome::Code(EXIT_NOTHING));
    }
    let question = question(&remote, &id).await?;
    let mut socket = connect(&remote).await?;
    let no_terminal = |cause: io::Error| Error::Usage(format!("answer needs a terminal: {cause}"));
    let read = tokio::task::spawn_blocking(move || read_hidden(&question)).await;
    let read = read.map_err(|error| Error::Usage(error.to_string()))?.map_err(no_terminal)?;
    let Some(secret) = read else {
        print::problem("nothing was typed");
        return Ok(Outcome::Code(EXIT_NOTHING));
    };
    type_in(&mut socket, &id, &secret).await
}

/// The state of a session; none where there is no such session of the server's own.
async fn state(remote: &Remote, id: &str) -> Result<Option<String>, Failure> {
    let answer = remote.client.call("list", json!({})).await?;
    let sessions = answer.objects("sessions");
    let session = sessions.iter().find(|session| text(session, "session_id") == id);
    let state = session.and_then(|session| session.get("attention")?.get("state")?.as_str());
    Ok(state.map(str::to_owned))
}

/// The line that asks, where screens may be read.
async fn question(remote: &Remote, id: &str) -> Result<String, Failure> {
    let look = json!({ "session_id": id, "mode": "tail", "max_lines": 1 });
    let looked = remote.client.call("term_read", look).await?;
    let line = if looked.is_ok() { looked.text("text").trim().to_owned() } else { String::new() };
    Ok(if line.is_empty() { format!("{id} asks for a secret:") } else { print::tame(&line).to_string() })
}

async fn type_in(socket: &mut Socket, id: &str, secret: &str) -> Result<Outcome, Failure> {
    let keys = json!([{ "text": secret }, "Enter"]);
    let args = json!({ "action": "send_keys", "session_id": id, "keys": keys, "enter_delay_ms": 0 });
    say(socket, json!({ "t": "call", "n": CALL, "args": args })).await;
    while let Some(message) = socket.next().await {
        let text = match message {
            Ok(Message::Text(text)) => text,
            Ok(_) => continue,
            Err(error) => return Err(Error::Server(format!("it is not known whether it was typed: {error}")).into()),
        };
        let Ok(message) = serde_json::from_str::<Value>(&text) else { continue };
        if message["t"] != "reply" || message["n"] != CALL {
            continue;
        }
        return match message["body"]["ok"] == json!(true) {
            true => Ok(Outcome::Done),
            // The message may repeat what was typed.
            false => Err(Error::Server("the session did not take it".to_owned()).into()),
        };
    }
    Err(Error::Server("the connection to the server was lost: it is not known whether it was typed".to_owned()).into())
}

/// A terminal that shows no key, for as long as this lives.
struct Hidden {
    file: File,
    before: Termios,
}

impl Hidden {
    fn enter() -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
        let before = termios::tcgetattr(&file)?;
        let mut raw = before.clone();
        raw.make_raw();
        termios::tcsetattr(&file, OptionalActions::Flush, &raw)?;
        Ok(Self { file, before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // A terminal that is gone has no modes.
        let _ = termios::tcsetattr(&self.file, OptionalActions::Flush, &self.before);
    }
}

/// Reads a line key by key: keys that end the program elsewhere end only the line here. None where it was given up.
fn read_hidden(question: &str) -> io::Result<Option<String>> {
    let mut terminal = Hidden::enter()?;
    terminal.file.write_all(format!("{question} ").as_bytes())?;
    let mut line = Vec::new();
    let mut byte = [0];
    let is_done = loop {
        if terminal.file.read(&mut byte)? == 0 {
            break false;
        }
        if let Some(is_done) = take(&mut line, byte[0]) {
            break is_done;
        }
    };
    terminal.file.write_all(b"\r\n")?;
    let text = String::from_utf8(line).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(Some(text).filter(|text| is_done && !text.is_empty()))
}

/// Adds a key to the line. Tells how the line ended, if it did.
fn take(line: &mut Vec<u8>, byte: u8) -> Option<bool> {
    match byte {
        b'\r' | b'\n' => return Some(true),
        0x03 | 0x04 | 0x1a | 0x1b | 0x1c => return Some(false),
        // Backspace takes a whole character.
        0x08 | 0x7f => while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
        0x15 => line.clear(),
        byte if line.len() < LONGEST => line.push(byte),
        _ => {}
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_as_terminals_do() {
        for (keys, expected) in [
            ("abc\r", Some((true, "abc"))),
            ("ab\x7fc\n", Some((true, "ac"))),
            ("aé\x7f\r", Some((true, "a"))),
            ("abc\x15d\r", Some((true, "d"))),
            ("abc\x03", Some((false, "abc"))),
            ("abc", None),
        ] {
            let mut line = Vec::new();
            let end = keys.bytes().find_map(|byte| take(&mut line, byte));
            assert_eq!(end.map(|end| (end, std::str::from_utf8(&line).expect("text"))), expected, "{keys:?}");
        }
    }
}
