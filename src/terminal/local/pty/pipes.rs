//! Whether what a process printed through pipes has been passed on, from what the kernel tells of their readers.
//!
//! A pipe has been drained when it is empty and somebody waits in a read of it: whoever works on what it has read, or
//! sleeps over it, does not. What its readers print through further pipes counts, too. Linux only.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::os::linux::fs::MetadataExt as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use super::process::{all, arguments, membership};

/// What is known of the pipes that a process prints to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// Everything has been passed on.
    Done,
    /// Something is on its way. The number changes when it gets on.
    Going(u64),
    /// Nobody can tell.
    Unknown,
}

/// Pipes that are followed, from one reader to the next.
const MOST_PIPES: usize = 16;
/// System calls that wait for the input of a descriptor, or of some that the kernel does not tell.
#[cfg(target_arch = "x86_64")]
const READS: &[u64] = &[0, 19, 275, 276];
#[cfg(target_arch = "x86_64")]
const POLLS: &[u64] = &[7, 23, 270, 271, 232, 281];
#[cfg(target_arch = "aarch64")]
const READS: &[u64] = &[63, 65, 76, 77];
#[cfg(target_arch = "aarch64")]
const POLLS: &[u64] = &[72, 73, 22];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const READS: &[u64] = &[];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const POLLS: &[u64] = &[];

/// A pipe, by the number that it has in the system.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Pipe(u64);

/// Follows the pipes that a process has as its outputs.
pub fn passing(shell: u32) -> Passing {
    let Some(session) = membership(shell).map(|process| process.session) else { return Passing::Unknown };
    let members: Vec<u32> =
        all().filter(|process| process.session == session && !process.is_zombie).map(|process| process.pid).collect();
    let mut pipes: Vec<(Pipe, PathBuf)> = outputs(shell).collect();
    pipes.sort_unstable_by_key(|(pipe, _)| pipe.0);
    pipes.dedup_by_key(|(pipe, _)| pipe.0);
    let (mut at, mut is_known, mut is_done, mut progress) = (0, false, true, DefaultHasher::new());
    while let Some((pipe, path)) = pipes.get(at).cloned() {
        at += 1;
        let holders: Vec<u32> =
            members.iter().copied().filter(|&pid| pid != shell && holds(pid, pipe).next().is_some()).collect();
        // One that was there before has nothing to do with the terminal.
        if holders.is_empty() {
            continue;
        }
        let Some(bytes) = unread(&path) else { return Passing::Unknown };
        is_known = true;
        is_done &= bytes == 0 && holders.iter().any(|&pid| reads(pid, pipe));
        bytes.hash(&mut progress);
        for pid in holders {
            pid.hash(&mut progress);
            calls(pid).for_each(|call| call.hash(&mut progress));
            let further: Vec<_> = outputs(pid).filter(|(new, _)| pipes.iter().all(|(known, _)| known != new)).collect();
            pipes.extend(further);
        }
        pipes.truncate(MOST_PIPES);
    }
    match (is_known, is_done) {
        (false, _) => Passing::Unknown,
        (true, true) => Passing::Done,
        (true, false) => Passing::Going(progress.finish()),
    }
}

/// The child of a process that runs with these arguments.
pub fn child_with(parent: u32, args: &[&str]) -> Option<u32> {
    let is_child = |process: &super::process::Membership| process.parent == parent && !process.is_zombie;
    all().filter(is_child).map(|process| process.pid).find(|&pid| arguments(pid).is_some_and(|all| all == args))
}

/// Ends a process.
pub fn terminate(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        // One that has ended meanwhile needs no end.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// The pipes that a process can write to. A shell that has redirected its outputs for a moment keeps them under other
/// numbers.
fn outputs(pid: u32) -> impl Iterator<Item = (Pipe, PathBuf)> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let path = entry.path();
        let file = std::fs::metadata(&path).ok()?;
        let kind = file.file_type();
        let is_writable = || std::fs::symlink_metadata(&path).is_ok_and(|link| link.st_mode() & 0o200 != 0);
        ((kind.is_fifo() || kind.is_socket()) && is_writable()).then(|| (Pipe(file.st_ino()), path.clone()))
    })
}

/// Bytes that wait in a pipe; unknown of a socket.
fn unread(path: &PathBuf) -> Option<u64> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let pipe = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    rustix::io::ioctl_fionread(&pipe).ok()
}

/// The descriptors by which a process can read from a pipe.
fn holds(pid: u32, pipe: Pipe) -> impl Iterator<Item = u64> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let link = std::fs::read_link(entry.path()).ok()?;
        let is_it = link.to_str().is_some_and(|link| link == format!("pipe:[{}]", pipe.0));
        let is_readable = || std::fs::symlink_metadata(entry.path()).is_ok_and(|link| link.st_mode() & 0o400 != 0);
        (is_it && is_readable()).then(|| entry.file_name().to_str()?.parse().ok()).flatten()
    })
}

/// One of the threads of a process waits for what comes through a pipe.
fn reads(pid: u32, pipe: Pipe) -> bool {
    calls(pid).any(|call| {
        let mut fields = call.split_ascii_whitespace();
        let Some(number) = fields.next().and_then(|field| field.parse::<u64>().ok()) else { return false };
        let first = fields.next().and_then(|field| u64::from_str_radix(field.trim_start_matches("0x"), 16).ok());
        READS.contains(&number) && holds(pid, pipe).any(|fd| Some(fd) == first) || POLLS.contains(&number)
    })
}

/// The system calls that the threads of a process are in.
fn calls(pid: u32) -> impl Iterator<Item = String> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("syscall")).ok())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    fn until(is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_so() {
            assert!(Instant::now() < deadline);
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_pipe_is_drained_when_its_reader_waits_for_more() {
        let mut printer = Command::new("sh")
            .args(["-c", "read -r x; echo line; read -r x"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh");
        let output = printer.stdout.take().expect("a pipe");
        let mut reader = Command::new("sh")
            .args(["-c", "while read -r line; do sleep 300; done"])
            .stdin(output)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh");
        let mut input = printer.stdin.take().expect("a pipe");
        until(|| passing(printer.id()) == Passing::Done);
        input.write_all(b"\n").expect("it reads");
        // It has read the line, and has not come back for more.
        until(|| child_with(reader.id(), &["sleep", "300"]).is_some());
        assert!(matches!(passing(printer.id()), Passing::Going(_)));
        terminate(child_with(reader.id(), &["sleep", "300"]).expect("seen above"));
        until(|| passing(printer.id()) == Passing::Done);
        drop(input);
        printer.wait().expect("its end");
        reader.wait().expect("its end");
    }
}
