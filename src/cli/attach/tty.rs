//! The terminal of the person who attaches: raw while it lasts, and as it was before on every way out.
//!
//! The terminal itself is opened, so it does not matter where standard input and output go. What has to be undone is
//! noted once for the whole program: the end of this value undoes it, and so does a panic, before its message.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::sync::{Mutex, PoisonError};

use rustix::termios::{self, OptionalActions, Termios};
use tokio::sync::mpsc;

use super::paint::{ENTER, LEAVE};

/// Pieces of input that wait to be read.
const MAX_PIECES: usize = 64;

/// What has to be undone.
static BEFORE: Mutex<Option<(File, Termios)>> = Mutex::new(None);

/// A terminal in raw mode.
pub(super) struct Tty {
    file: File,
}

impl Tty {
    /// Takes the terminal of this process.
    pub(super) fn take() -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
        let before = termios::tcgetattr(&file)?;
        let mut raw = before.clone();
        raw.make_raw();
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some((file.try_clone()?, before));
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            usual(panic);
        }));
        let mut tty = Self { file };
        termios::tcsetattr(&tty.file, OptionalActions::Flush, &raw)?;
        tty.write(ENTER)?;
        Ok(tty)
    }

    /// Columns and rows.
    pub(super) fn size(&self) -> (u16, u16) {
        let size = termios::tcgetwinsize(&self.file).map(|size| (size.ws_col, size.ws_row));
        size.ok().filter(|(cols, rows)| *cols > 0 && *rows > 0).unwrap_or((80, 24))
    }

    pub(super) fn write(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())
    }

    /// What the person types, as it comes. A thread reads: a terminal has no other way that works everywhere.
    pub(super) fn input(&self) -> io::Result<mpsc::Receiver<Vec<u8>>> {
        let mut file = self.file.try_clone()?;
        let (pieces, input) = mpsc::channel(MAX_PIECES);
        std::thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
            let mut buffer = [0; 4_096];
            while let Ok(length @ 1..) = file.read(&mut buffer) {
                if pieces.blocking_send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        })?;
        Ok(input)
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        give_back();
    }
}

/// Makes the terminal what it was; once.
fn give_back() {
    let taken = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some((mut file, before)) = taken {
        // A terminal that is gone has nothing to be undone.
        let _ = file.write_all(LEAVE.as_bytes());
        let _ = termios::tcsetattr(&file, OptionalActions::Flush, &before);
    }
}
