//! One server per state folder: an advisory lock on a file in it, which the system releases when the process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use super::files;

const NAME: &str = "_lock";

/// Holds the folder while it lives.
#[derive(Debug)]
pub(super) struct FolderLock {
    file: File,
}

/// Outcome of an attempt to lock the folder.
pub(super) enum LockOutcome {
    Acquired(FolderLock),
    /// Another server holds it; with its pid when known.
    HeldBy(Option<u32>),
}

impl FolderLock {
    pub(super) fn acquire(folder: &Path) -> io::Result<LockOutcome> {
        let path = folder.join(NAME);
        let mut file = match open(&path) {
            // A link or another object that no server created.
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied && path.is_symlink() => {
                files::quarantine(&path).map_err(|_| error)?;
                open(&path)?
            }
            opened => opened?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(LockOutcome::HeldBy(pid_in(&mut file))),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The lock holds without the pid, which only improves another server's error message.
        let _ = write_pid(&mut file);
        Ok(LockOutcome::Acquired(Self { file }))
    }

    /// Returns whether the locked file is still the one in the folder, neither removed nor replaced.
    #[cfg(unix)]
    pub(super) fn is_current(&self, folder: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
        let ours = self.file.metadata().map(identity);
        let there = std::fs::symlink_metadata(folder.join(NAME)).map(identity);
        ours.is_ok_and(|ours| there.is_ok_and(|there| ours == there))
    }

    /// Windows does not remove an open file.
    #[cfg(not(unix))]
    pub(super) fn is_current(&self, _folder: &Path) -> bool {
        self.file.metadata().is_ok()
    }
}

fn open(path: &Path) -> io::Result<File> {
    files::open(path, OpenOptions::new().read(true).write(true).create(true).truncate(false))
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn pid_in(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
