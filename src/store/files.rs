//! File access for state that only its owner may read, write or replace. All persistent files go through this module.
//!
//! Writes are atomic: a new temporary file is renamed over the old one. Symbolic links are not followed, and only
//! regular files of the current user are read. Windows has no owners and modes here; the user's profile folder protects
//! the files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Name prefix of temporary files. A killed server leaves some behind.
const TEMP_PREFIX: &str = ".kpty-unfinished-";
/// Number of quarantined files per name; a further one replaces the oldest.
const MAX_QUARANTINED: usize = 3;

/// What a written file must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// The end of this process, but not a power failure: for files that are useless after one.
    ProcessExit,
    /// A power failure.
    PowerLoss,
}

/// Creates a folder with access for its owner only, or restricts an existing one.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match fs::symlink_metadata(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => builder.create(path)?,
        Err(error) => return Err(error),
    }
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() {
        let problem = "it is not a folder; a symbolic link to one will not do";
        return Err(io::Error::new(io::ErrorKind::NotADirectory, problem));
    }
    restrict_to_owner(path, &found)
}

/// Restricts a folder to its owner, which must be the current user.
#[cfg(unix)]
fn restrict_to_owner(path: &Path, found: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    check_owner(found)?;
    match found.permissions().mode() & 0o077 {
        0 => Ok(()),
        _ => fs::set_permissions(path, fs::Permissions::from_mode(0o700)),
    }
}

#[cfg(not(unix))]
fn restrict_to_owner(_path: &Path, _found: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// Rejects a file of another user.
#[cfg(unix)]
fn check_owner(found: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    match found.uid() == rustix::process::geteuid().as_raw() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::Unsupported, "another user owns it")),
    }
}

/// Returns whether only the owner may read or write the file.
#[cfg(unix)]
pub(super) fn is_private(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    found.permissions().mode() & 0o077 == 0
}

#[cfg(not(unix))]
pub(super) fn is_private(_found: &fs::Metadata) -> bool {
    true
}

/// Opens a regular file of the current user. `NONBLOCK` keeps a named pipe from blocking the open.
pub(super) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    }
    let file = options.open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "it is not a plain file"));
    }
    #[cfg(unix)]
    check_owner(&found)?;
    Ok(file)
}

/// Reads a file of at most `max_bytes`.
pub(super) fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open(path, OpenOptions::new().read(true))?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > max_bytes {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {max_bytes} bytes"))),
        false => Ok(bytes),
    }
}

/// Writes a file atomically: a reader sees the old content or the new, never a part.
pub(super) fn write(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    // Created exclusively, with an unpredictable name and access for the owner only; deleted on failure.
    let mut file = tempfile::Builder::new().prefix(TEMP_PREFIX).tempfile_in(folder)?;
    file.write_all(bytes)?;
    if durability == Durability::PowerLoss {
        file.as_file().sync_all()?;
    }
    file.persist(path).map_err(|error| error.error)?;
    match durability {
        Durability::PowerLoss => sync_folder(folder),
        Durability::ProcessExit => Ok(()),
    }
}

/// Flushes a folder's entries, so that a new name survives a power failure.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Quarantines a file, folder or link: renames it, and returns the new name.
pub(super) fn quarantine(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let candidates: Vec<_> = (1..=MAX_QUARANTINED).map(|n| path.with_file_name(format!("{name}.bad-{n}"))).collect();
    let age = |path: &PathBuf| fs::symlink_metadata(path).and_then(|found| found.modified()).ok();
    let target = candidates.iter().min_by_key(|path| age(path)).ok_or(io::ErrorKind::InvalidInput)?;
    fs::rename(path, target)?;
    // The modification time identifies the newest quarantined file; without it the wrong one is replaced first, which
    // does no harm. Only a regular file is opened: a pipe would block, and a link leads elsewhere.
    let _ = open(target, OpenOptions::new().read(true)).and_then(|file| file.set_modified(SystemTime::now()));
    Ok(target.clone())
}

/// Removes temporary files of a killed server.
pub(super) fn remove_temp_files(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(TEMP_PREFIX)) {
        // A leftover file does no harm.
        let _ = fs::remove_file(entry.path());
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn folders_and_files_are_for_their_owner_alone() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let folder = parent.path().join("a/b");
        make_folder(&folder).expect("a new folder");
        assert_eq!((mode(&folder), mode(&parent.path().join("a"))), (0o700, 0o700));
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("our folder");
        make_folder(&folder).expect("the same folder");
        assert_eq!(mode(&folder), 0o700);
        let file = folder.join("file");
        write(&file, b"one", Durability::PowerLoss).expect("a file");
        write(&file, b"two", Durability::ProcessExit).expect("a file");
        assert_eq!((mode(&file), read(&file, 3).expect("the file")), (0o600, b"two".to_vec()));
        assert_eq!(read(&file, 2).expect_err("too large").kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(fs::read_dir(&folder).expect("the folder").count(), 1);
    }

    #[test]
    fn links_are_not_followed_but_replaced() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [target, link] = ["target", "link"].map(|name| folder.path().join(name));
        fs::write(&target, "precious").expect("a file");
        symlink(&target, &link).expect("a link");
        assert!(read(&link, 100).is_err());
        assert!(open(&link, OpenOptions::new().append(true).create(true)).is_err());
        assert!(make_folder(&link).is_err());
        write(&link, b"new", Durability::ProcessExit).expect("the link gives way");
        assert_eq!(fs::read_to_string(&target).expect("the target"), "precious");
        assert_eq!(read(&link, 100).expect("a file"), b"new");
        let to_folder = folder.path().join("elsewhere");
        symlink(folder.path(), &to_folder).expect("a link");
        assert!(make_folder(&to_folder).is_err());
    }

    #[test]
    fn a_link_is_set_aside_without_a_touch_of_what_it_leads_to() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [target, link] = ["target", "link"].map(|name| folder.path().join(name));
        fs::write(&target, "precious").expect("a file");
        let long_ago = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1);
        File::options().write(true).open(&target).expect("our file").set_modified(long_ago).expect("its time");
        symlink(&target, &link).expect("a link");
        let aside = quarantine(&link).expect("out of the way");
        assert!(fs::symlink_metadata(aside).expect("kept").is_symlink());
        assert_eq!(fs::metadata(&target).expect("the target").modified().expect("its time"), long_ago);
    }

    #[test]
    fn only_a_few_files_are_kept_aside_and_the_newest_is_among_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        for n in 0..7 {
            fs::write(&path, n.to_string()).expect("a file");
            let aside = quarantine(&path).expect("out of the way");
            assert_eq!(fs::read_to_string(aside).expect("kept"), n.to_string());
        }
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), MAX_QUARANTINED);
    }
}
