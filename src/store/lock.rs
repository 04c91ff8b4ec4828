//! One server per state folder: a lock on a file in it, which the system lets go when its process ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use super::files;

const NAME: &str = "_lock";

/// The folder is ours while this lives.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

/// Whose the folder is.
pub(super) enum Taken {
    Ours(Lock),
    /// Another server's, with its process where it is known.
    Others(Option<u32>),
}

impl Lock {
    pub(super) fn take(folder: &Path) -> io::Result<Taken> {
        let path = folder.join(NAME);
        let mut file = match open(&path) {
            // A link, or something else that no server made.
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied && path.is_symlink() => {
                files::set_aside(&path).map_err(|_| error)?;
                open(&path)?
            }
            opened => opened?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Taken::Others(pid_in(&mut file))),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The lock holds without its number, which only makes the message to another server better.
        let _ = write_pid(&mut file);
        Ok(Taken::Ours(Self { file }))
    }

    /// The lock is still that of this folder: the file has not been removed or replaced.
    #[cfg(unix)]
    pub(super) fn is_still(&self, folder: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let place = |found: std::fs::Metadata| (found.dev(), found.ino());
        let ours = self.file.metadata().map(place);
        let there = std::fs::symlink_metadata(folder.join(NAME)).map(place);
        ours.is_ok_and(|ours| there.is_ok_and(|there| ours == there))
    }

    /// A file that is open cannot be removed there.
    #[cfg(not(unix))]
    pub(super) fn is_still(&self, _folder: &Path) -> bool {
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
