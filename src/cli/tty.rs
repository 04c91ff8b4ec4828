//! The terminal of whoever runs `kpty`: its size, and keys as they are pressed.

use std::io::{self, IsTerminal as _, Read as _};

use kpty_emulator::Size;
use tokio::sync::mpsc;

use super::print;

/// Bytes of input taken at once, and how many pieces may wait.
const PIECE: usize = 4 << 10;
const PIECES: usize = 16;

/// Somebody sits there, and sees what is printed.
pub(super) fn is_watched() -> bool {
    io::stdin().is_terminal() && print::is_terminal()
}

/// What is typed. The thread that reads ends with the program.
pub(super) fn input() -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel(PIECES);
    std::thread::spawn(move || {
        let mut buffer = [0; PIECE];
        while let Ok(count @ 1..) = io::stdin().read(&mut buffer) {
            if sender.blocking_send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Width and height, where there is a terminal.
#[cfg(unix)]
pub(super) fn size() -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(io::stdin()).ok()?;
    Size::new(size.ws_col, size.ws_row).ok()
}

#[cfg(not(unix))]
pub(super) fn size() -> Option<Size> {
    None
}

/// Keys come as they are pressed for as long as this lives.
#[cfg(unix)]
pub(super) struct RawMode(rustix::termios::Termios);

#[cfg(unix)]
impl RawMode {
    pub(super) fn enter() -> io::Result<Self> {
        use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self(before))
    }
}

#[cfg(unix)]
impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that went away has no modes.
        let _ = rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &self.0);
    }
}

#[cfg(not(unix))]
pub(super) struct RawMode;

#[cfg(not(unix))]
impl RawMode {
    pub(super) fn enter() -> io::Result<Self> {
        Ok(Self)
    }
}
