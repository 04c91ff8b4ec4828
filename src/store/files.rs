//! Files that nobody else may read, write or swap: the one door to the disk for everything that is kept.
//!
//! A file is written whole or not at all: into a new file beside it, which then takes its name. Nothing follows a
//! symbolic link, and nothing is read that another user owns or that is no plain file. Where there are no owners and
//! modes (Windows), the user's own folder has to protect.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How files begin that have not got their name yet. A server that is killed leaves some.
const UNFINISHED: &str = ".kpty-unfinished-";
/// How many files of one name are set aside before the oldest of them goes.
const KEPT_ASIDE: usize = 3;

/// What a file that was written survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// The end of this process, but perhaps not a power cut: for what is of no use after one.
    Process,
    /// A power cut too.
    Power,
}

/// Makes a folder for its owner alone, or makes sure that the one there is such a folder.
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
    claim(path, &found)
}

/// Takes a folder from everybody but its owner, who has to be us.
#[cfg(unix)]
fn claim(path: &Path, found: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    check_owner(found)?;
    match found.permissions().mode() & 0o077 {
        0 => Ok(()),
        _ => fs::set_permissions(path, fs::Permissions::from_mode(0o700)),
    }
}

#[cfg(not(unix))]
fn claim(_path: &Path, _found: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// Refuses what another user owns.
#[cfg(unix)]
fn check_owner(found: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    match found.uid() == rustix::process::geteuid().as_raw() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::Unsupported, "another user owns it")),
    }
}

/// Nobody but its owner may read or write a file of these bits.
#[cfg(unix)]
pub(super) fn is_private(found: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    found.permissions().mode() & 0o077 == 0
}

#[cfg(not(unix))]
pub(super) fn is_private(_found: &fs::Metadata) -> bool {
    true
}

/// Opens a plain file of ours. A named pipe must not make us wait for its other end.
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

/// Reads a file of ours that is not larger than this.
pub(super) fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let file = open(path, OpenOptions::new().read(true))?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > max_bytes {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {max_bytes} bytes"))),
        false => Ok(bytes),
    }
}

/// Writes a whole file; whoever reads sees the old one or the new one, never half of one.
pub(super) fn write(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    // Made exclusively, under a name that cannot be guessed, for its owner alone; taken away when anything fails.
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
    file.write_all(bytes)?;
    if durability == Durability::Power {
        file.as_file().sync_all()?;
    }
    file.persist(path).map_err(|error| error.error)?;
    match durability {
        Durability::Power => sync_folder(folder),
        Durability::Process => Ok(()),
    }
}

/// Makes new names in a folder survive a power cut.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Takes a file, folder or link out of the way; it is kept under another name. Returns that name.
pub(super) fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let candidates: Vec<_> = (1..=KEPT_ASIDE).map(|n| path.with_file_name(format!("{name}.bad-{n}"))).collect();
    let age = |path: &PathBuf| fs::symlink_metadata(path).and_then(|found| found.modified()).ok();
    let target = candidates.iter().min_by_key(|path| age(path)).ok_or(io::ErrorKind::InvalidInput)?;
    fs::rename(path, target)?;
    // The newest of them is known by its time; without it the wrong one goes first, which is no harm. Only a real file is
    // opened: a pipe would wait for its other end, and a link leads elsewhere.
    let _ = open(target, OpenOptions::new().read(true)).and_then(|file| file.set_modified(SystemTime::now()));
    Ok(target.clone())
}

/// Removes what a killed server did not finish.
pub(super) fn remove_unfinished(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(UNFINISHED)) {
        // It is only litter.
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
        write(&file, b"one", Durability::Power).expect("a file");
        write(&file, b"two", Durability::Process).expect("a file");
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
        write(&link, b"new", Durability::Process).expect("the link gives way");
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
        let aside = set_aside(&link).expect("out of the way");
        assert!(fs::symlink_metadata(aside).expect("kept").is_symlink());
        assert_eq!(fs::metadata(&target).expect("the target").modified().expect("its time"), long_ago);
    }

    #[test]
    fn only_a_few_files_are_kept_aside_and_the_newest_is_among_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        for n in 0..7 {
            fs::write(&path, n.to_string()).expect("a file");
            let aside = set_aside(&path).expect("out of the way");
            assert_eq!(fs::read_to_string(aside).expect("kept"), n.to_string());
        }
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), KEPT_ASIDE);
    }
}
