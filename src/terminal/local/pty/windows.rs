//! Windows: ConPTY through portable-pty, with a reader and a writer thread behind the calls of the Unix file.
//!
//! Written without a Windows machine at hand and never run: kept small, so that whoever has one can check it.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};

use kpty_emulator::Size;
use portable_pty::{ChildKiller, CommandBuilder, MasterPty, PtySize, native_pty_system};
use tokio::sync::{Notify, oneshot};

use super::{Foreground, Incarnation, LineModes, ProcessTable, Signal, SpawnSpec};
use crate::model::ExitInfo;

/// Bytes that the reader thread may be ahead of the driver.
const READ_AHEAD: usize = 64 << 10;
/// Pieces that may wait for the writer thread.
const WRITE_PIECES: usize = 16;

/// A started child that no driver has taken yet.
pub struct Started {
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn portable_pty::Child + Send + Sync>,
}

/// Starts a program on a new terminal.
pub fn start(spec: &SpawnSpec) -> Result<Started, String> {
    if !spec.cwd.is_dir() {
        return Err(format!("Working directory does not exist: {}", spec.cwd.display()));
    }
    let pair = native_pty_system().openpty(pty_size(spec.size)).map_err(|error| error.to_string())?;
    let mut command = CommandBuilder::new(&spec.program);
    command.args(&spec.args);
    command.cwd(&spec.cwd);
    command.env_clear();
    for (name, value) in &spec.env {
        command.env(name, value);
    }
    let child = pair.slave.spawn_command(command).map_err(|error| format!("{}: {error}", spec.program))?;
    Ok(Started { master: pair.master, child })
}

fn pty_size(size: Size) -> PtySize {
    PtySize { rows: size.rows(), cols: size.cols(), pixel_width: 0, pixel_height: 0 }
}

#[derive(Default)]
struct Incoming {
    bytes: Mutex<(Vec<u8>, bool)>,
    changed: Notify,
    taken: std::sync::Condvar,
}

struct Shared {
    master: Mutex<Box<dyn MasterPty + Send>>,
    killer: Mutex<Box<dyn ChildKiller + Send + Sync>>,
}

/// A child on its terminal.
pub struct Pty {
    shared: Arc<Shared>,
    incoming: Arc<Incoming>,
    outgoing: mpsc::SyncSender<Vec<u8>>,
    room: Arc<Notify>,
    pid: u32,
}

/// The started process, as something that ends.
pub struct Child(oneshot::Receiver<ExitInfo>);

impl Pty {
    /// Takes over a started child.
    pub fn new(started: Started) -> io::Result<(Self, Child)> {
        let Started { master, mut child } = started;
        let mut reader = master.try_clone_reader().map_err(|error| io::Error::other(error.to_string()))?;
        let mut writer = master.take_writer().map_err(|error| io::Error::other(error.to_string()))?;
        let incoming = Arc::new(Incoming::default());
        let filled = Arc::clone(&incoming);
        thread("kpty-read", move || {
            let mut buffer = vec![0; 16 << 10];
            loop {
                let count = reader.read(&mut buffer).unwrap_or(0);
                let mut bytes = filled.bytes.lock().unwrap_or_else(PoisonError::into_inner);
                while bytes.0.len() >= READ_AHEAD {
                    bytes = filled.taken.wait(bytes).unwrap_or_else(PoisonError::into_inner);
                }
                bytes.0.extend_from_slice(&buffer[..count]);
                bytes.1 |= count == 0;
                drop(bytes);
                filled.changed.notify_one();
                if count == 0 {
                    return;
                }
            }
        })?;
        let (outgoing, pieces) = mpsc::sync_channel::<Vec<u8>>(WRITE_PIECES);
        let room = Arc::new(Notify::new());
        let freed = Arc::clone(&room);
        thread("kpty-write", move || {
            for piece in pieces {
                if writer.write_all(&piece).and_then(|()| writer.flush()).is_err() {
                    return;
                }
                freed.notify_one();
            }
        })?;
        let pid = child.process_id().unwrap_or(0);
        let killer = child.clone_killer();
        let (sender, end) = oneshot::channel();
        thread("kpty-wait", move || {
            let exit = child.wait().map_or(ExitInfo::Unknown, |status| ExitInfo::Code(status.exit_code() as i32));
            let _ = sender.send(exit);
        })?;
        let shared = Arc::new(Shared { master: Mutex::new(master), killer: Mutex::new(killer) });
        Ok((Self { shared, incoming, outgoing, room, pid }, Child(end)))
    }

    /// A handle for questions and signals.
    pub fn control(&self) -> Control {
        Control { shared: Arc::downgrade(&self.shared), pid: self.pid }
    }

    /// Waits until there may be something to read.
    pub async fn readable(&self) -> io::Result<()> {
        let has_nothing = {
            let bytes = self.incoming.bytes.lock().unwrap_or_else(PoisonError::into_inner);
            bytes.0.is_empty() && !bytes.1
        };
        if has_nothing {
            self.incoming.changed.notified().await;
        }
        Ok(())
    }

    /// There is more than one turn could take. Nobody is woken meanwhile.
    pub fn look_away(&mut self) {}

    /// Waits until there may be room to write.
    pub async fn writable(&self) -> io::Result<()> {
        self.room.notified().await;
        Ok(())
    }

    /// Reads what is there.
    pub fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut bytes = self.incoming.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes.0.is_empty() {
            return if bytes.1 { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let count = bytes.0.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes.0[..count]);
        bytes.0.drain(..count);
        drop(bytes);
        self.incoming.taken.notify_one();
        Ok(count)
    }

    /// Writes as much as there is room for.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.outgoing.try_send(bytes.to_vec()) {
            Ok(()) => Ok(bytes.len()),
            Err(mpsc::TrySendError::Full(_)) => Err(io::ErrorKind::WouldBlock.into()),
            Err(mpsc::TrySendError::Disconnected(_)) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Child {
    /// Waits for its end.
    pub async fn exited(&mut self) -> ExitInfo {
        (&mut self.0).await.unwrap_or(ExitInfo::Unknown)
    }
}

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).stack_size(128 << 10).spawn(run).map(drop)
}

/// Questions and signals for a terminal that a driver owns. Windows has no foreground group.
#[derive(Clone)]
pub struct Control {
    shared: Weak<Shared>,
    pid: u32,
}

impl Control {
    /// Nothing is known here.
    pub fn has_output(&self) -> bool {
        false
    }

    /// Nothing is known here.
    pub fn unread(&self) -> Option<u64> {
        None
    }

    /// The child's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Only the driver can write here.
    pub fn try_write(&self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Not known here.
    pub fn foreground_group(&self) -> Option<u32> {
        None
    }

    /// Not known here.
    pub fn is_canonical(&self) -> bool {
        true
    }

    /// Not known here.
    pub fn line_modes(&self) -> Option<LineModes> {
        None
    }

    /// Not known here.
    pub fn foreground(&self) -> Option<Foreground> {
        None
    }

    /// Changes the window.
    pub fn resize(&self, size: Size) -> io::Result<()> {
        let shared = self.shared.upgrade().ok_or(io::ErrorKind::NotFound)?;
        let master = shared.master.lock().unwrap_or_else(PoisonError::into_inner);
        master.resize(pty_size(size)).map_err(|error| io::Error::other(error.to_string()))
    }

    /// Ends the child; there is only one way here.
    pub fn signal_groups(&self, _signal: Signal) {
        if let Some(shared) = self.shared.upgrade() {
            let _ = shared.killer.lock().unwrap_or_else(PoisonError::into_inner).kill();
        }
    }

    /// Nothing to wait for.
    pub async fn process_ended(_pid: u32) {}

    /// Nothing to do: the console ends its processes.
    pub fn signal_process(_pid: u32, _signal: Signal) {}

    /// Not known here.
    pub fn members(&self, _table: &ProcessTable, _left: Option<&[Incarnation]>) -> Vec<u32> {
        Vec::new()
    }

    /// Not known here.
    pub fn directory(&self) -> Option<PathBuf> {
        None
    }
}

/// There is no such limit here.
pub fn open_files_limit() -> Option<u64> {
    None
}

/// Nothing to raise here.
pub fn raise_open_files_limit() {}
