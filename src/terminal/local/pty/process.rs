//! Facts about processes, from the system's process table.
//!
//! Linux only; elsewhere nothing is known, and the callers are careful then.

use std::path::PathBuf;

/// Processes below another that are looked at, at most.
const MOST_DESCENDANTS: usize = 4_096;

/// A running program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its process id.
    pub pid: u32,
    /// The file name it was started as, without folder and without the dash of a login shell.
    pub name: String,
    /// Its arguments, the name first.
    pub args: Vec<String>,
    /// It is a copy of its parent that has not started a program of its own.
    pub is_fork: bool,
}

/// Where a process belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nothing is known there"))]
pub(super) struct Membership {
    pub(super) pid: u32,
    pub(super) parent: u32,
    pub(super) group: u32,
    pub(super) session: u32,
    /// Its terminal, as the system counts them; 0 for none.
    pub(super) terminal: i64,
    /// The process group in the foreground of that terminal.
    pub(super) foreground: i64,
    /// When it started, in the system's own count.
    pub(super) started: u64,
    pub(super) is_zombie: bool,
    pub(super) is_stopped: bool,
    /// It runs, or waits for a disk.
    pub(super) is_working: bool,
}

/// A process, not only its number: that may be another's later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// Its number.
    pub pid: u32,
    /// When it started, in the system's own count.
    pub started: u64,
}

/// The program of a process; one that has ended and is not yet waited for has none.
#[cfg(target_os = "linux")]
pub(super) fn program(pid: u32) -> Option<Program> {
    let args = arguments(pid)?;
    let name = match args.first() {
        Some(first) if !first.is_empty() => base_name(first).to_owned(),
        _ => std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned(),
    };
    let process = membership(pid).filter(|process| !process.is_zombie)?;
    // A program of its own has a stack in another place, also where it is the same program again.
    let has_same_stack = || stack_start(pid).is_none_or(|start| Some(start) == stack_start(process.parent));
    let is_fork = arguments(process.parent).is_some_and(|parents| parents == args) && has_same_stack();
    // A copy of this very process has not yet become what it was started for.
    if is_fork && process.parent == std::process::id() {
        return None;
    }
    Some(Program { pid, name, args, is_fork })
}

/// The program of a process, where that is known.
pub fn program_of(pid: u32) -> Option<Program> {
    program(pid)
}

/// The arguments of a process, its name first.
#[cfg(target_os = "linux")]
pub fn arguments(pid: u32) -> Option<Vec<String>> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    // One that is just ending has lost its memory before it is called dead.
    if bytes.is_empty() {
        return None;
    }
    // Every argument is ended by a NUL.
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    Some(bytes.split(|&byte| byte == 0).map(|arg| String::from_utf8_lossy(arg).into_owned()).collect())
}

/// Where the stack of a process began; 0 of one that this user may not trace.
#[cfg(target_os = "linux")]
pub(super) fn stack_start(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The first field after the name is the third of all, and this is the twenty-eighth.
    stat.get(stat.rfind(')')? + 2..)?.split(' ').nth(25)?.parse().ok()
}

/// The process has a regular file open for reading only, at this descriptor or above.
#[cfg(target_os = "linux")]
pub fn reads_file(pid: u32, least: u32) -> bool {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter(|&fd| fd >= least).any(|fd| is_read_only(pid, fd) && is_regular(pid, fd))
}

/// Nothing is known here.
#[cfg(not(target_os = "linux"))]
pub fn reads_file(_pid: u32, _least: u32) -> bool {
    false
}

/// Which outputs of a process go through a pipe: whoever reads that passes them on later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piped {
    /// Standard output.
    pub output: bool,
    /// Standard error, to which many shells print their prompts and what is typed.
    pub errors: bool,
}

/// Tells which outputs of a process go through a pipe.
#[cfg(target_os = "linux")]
pub fn piped(pid: u32) -> Piped {
    use std::os::unix::fs::FileTypeExt;
    let is_pipe = |fd| {
        std::fs::metadata(format!("/proc/{pid}/fd/{fd}")).is_ok_and(|file| {
            let kind = file.file_type();
            kind.is_fifo() || kind.is_socket()
        })
    };
    Piped { output: is_pipe(1), errors: is_pipe(2) }
}

/// Nothing is known here.
#[cfg(not(target_os = "linux"))]
pub fn piped(_pid: u32) -> Piped {
    Piped::default()
}

#[cfg(target_os = "linux")]
fn is_regular(pid: u32, fd: u32) -> bool {
    let path = format!("/proc/{pid}/fd/{fd}");
    // zsh keeps its compiled functions open for as long as it runs.
    let is_compiled = || std::fs::read_link(&path).is_ok_and(|file| file.extension().is_some_and(|end| end == "zwc"));
    std::fs::metadata(&path).is_ok_and(|file| file.is_file()) && !is_compiled()
}

#[cfg(target_os = "linux")]
fn is_read_only(pid: u32, fd: u32) -> bool {
    let Ok(info) = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")) else { return false };
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    // The access mode is in the last two bits; nothing set there is for reading only.
    flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).is_some_and(|flags| flags & 0o3 == 0)
}

/// Nothing is known here.
#[cfg(not(target_os = "linux"))]
pub fn arguments(_pid: u32) -> Option<Vec<String>> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(super) fn program(_pid: u32) -> Option<Program> {
    None
}

/// Where a process belongs.
#[cfg(target_os = "linux")]
pub(super) fn membership(pid: u32) -> Option<Membership> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in brackets and may hold anything, brackets too.
    let rest = stat.get(stat.rfind(')')? + 2..)?;
    let fields: Vec<&str> = rest.split(' ').collect();
    Some(Membership {
        pid,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
        is_stopped: matches!(*fields.first()?, "T" | "t"),
        is_working: matches!(*fields.first()?, "R" | "D"),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        terminal: fields.get(4)?.parse().ok()?,
        foreground: fields.get(5)?.parse().ok()?,
        // The first field after the name is the third of all, and this is the twenty-second.
        started: fields.get(19)?.parse().ok()?,
    })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn membership(_pid: u32) -> Option<Membership> {
    None
}

/// When a process started, in the system's own count; none of one that has ended. With its number it names a process
/// for as long as the system runs.
#[cfg(target_os = "linux")]
pub fn started(pid: u32) -> Option<u64> {
    membership(pid).filter(|process| !process.is_zombie).map(|process| process.started)
}

/// When a process started; nothing is known here.
#[cfg(not(target_os = "linux"))]
pub fn started(_pid: u32) -> Option<u64> {
    None
}

/// All processes at one moment: read once, asked by many.
#[derive(Clone, Debug, Default)]
pub struct ProcessTable(Vec<Membership>);

impl ProcessTable {
    /// Looks now.
    pub fn read() -> Self {
        Self(all().collect())
    }

    /// The living processes of the session that this process leads, or led, each as itself.
    pub fn session(&self, leader: u32) -> Vec<Incarnation> {
        self.of_session(leader).map(|process| Incarnation { pid: process.pid, started: process.started }).collect()
    }

    /// The living processes that came from this one and have left its session, as far as that is known: those that
    /// descend from it, and those that read from its terminal or write to it.
    pub fn strayed(&self, leader: u32) -> Vec<Incarnation> {
        let terminal = (0..=2).find_map(|fd| open_terminal(leader, fd));
        let holds_terminal = |pid| terminal.is_some() && (0..=2).any(|fd| open_terminal(pid, fd) == terminal);
        let has_strayed = |process: &&Membership| {
            let is_elsewhere = process.session != leader && !process.is_zombie;
            is_elsewhere && (descends(process, leader, &self.0) || holds_terminal(process.pid))
        };
        let strayed = self.0.iter().filter(has_strayed);
        strayed.map(|process| Incarnation { pid: process.pid, started: process.started }).collect()
    }

    /// It lives.
    pub fn has(&self, one: &Incarnation) -> bool {
        let is_it = |process: &Membership| process.pid == one.pid && process.started == one.started;
        self.0.iter().any(|process| is_it(process) && !process.is_zombie)
    }

    /// The living processes of the session that this process leads, or led.
    pub(super) fn of_session(&self, leader: u32) -> impl Iterator<Item = &Membership> {
        self.0.iter().filter(move |process| process.session == leader && !process.is_zombie)
    }
}

/// The living processes of the session that this process leads, or led.
pub fn session_members(leader: u32) -> Vec<u32> {
    ProcessTable::read().of_session(leader).map(|process| process.pid).collect()
}

/// A process of this group, other than its leader, that waits for input from the terminal.
pub fn reader_beside(leader: u32) -> Option<Program> {
    let is_member = |process: &Membership| process.group == leader && process.pid != leader && !process.is_zombie;
    let reads = |pid| matches!(super::waits_for(pid), Some(super::Waiting::Read { .. } | super::Waiting::SelectInput));
    all().filter(is_member).find(|process| reads(process.pid)).and_then(|process| program(process.pid))
}

/// The program in the foreground of the terminal that a relay (`script`, `sudo`, `rlwrap`) opened for its own child;
/// through several relays, the last one's.
pub fn behind_relay(pid: u32) -> Option<Program> {
    let table = subtree(pid);
    let mut front = None;
    let mut relay = *table.iter().find(|process| process.pid == pid)?;
    while let Some(inner) = table.iter().find(|process| is_in_front_behind(process, &relay, &table)) {
        front = Some(inner.pid);
        relay = *inner;
    }
    program(front?)
}

/// A process and all that descend from it.
pub(super) fn subtree(root: u32) -> Vec<Membership> {
    let threads = |pid| std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut found = Vec::new();
    let mut to_see = vec![root];
    while let Some(pid) = to_see.pop().filter(|_| found.len() < MOST_DESCENDANTS) {
        let Some(process) = membership(pid) else { continue };
        found.push(process);
        for thread in threads(pid) {
            match std::fs::read_to_string(thread.path().join("children")) {
                Ok(children) => {
                    to_see.extend(children.split_ascii_whitespace().filter_map(|pid| pid.parse::<u32>().ok()))
                }
                // A kernel without these lists: all there are, of which those that descend are picked later.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound && thread.path().exists() => {
                    return all().collect();
                }
                Err(_) => {}
            }
        }
    }
    found
}

/// The process leads the foreground of another terminal than the relay's, and descends from the relay.
fn is_in_front_behind(process: &Membership, relay: &Membership, table: &[Membership]) -> bool {
    let leads = process.group == process.pid && process.foreground == i64::from(process.pid);
    leads && !matches!(process.terminal, 0) && process.terminal != relay.terminal && descends(process, relay.pid, table)
}

fn descends(process: &Membership, from: u32, table: &[Membership]) -> bool {
    let mut parent = process.parent;
    // A chain longer than the table would be a circle, made of numbers that changed hands while it was read.
    for _ in 0..table.len() {
        if parent == from {
            return true;
        }
        let Some(next) = table.iter().find(|process| process.pid == parent) else { return false };
        parent = next.parent;
    }
    false
}

/// The directory that a process is in, as the system knows it: no symbolic link is part of it.
pub fn directory(pid: u32) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    // The system says so of a directory that was removed; one may also be called that.
    let kept = path.to_str().and_then(|text| text.strip_suffix(" (deleted)")).filter(|_| !path.exists());
    Some(kept.map_or_else(|| path.clone(), PathBuf::from))
}

/// All processes.
pub(super) fn all() -> impl Iterator<Item = Membership> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(membership)
}

/// The living processes of a group.
pub fn group_members(group: u32) -> Vec<u32> {
    all().filter(|process| process.group == group && !process.is_zombie).map(|process| process.pid).collect()
}

/// Something can be read here now.
#[cfg(unix)]
pub(super) fn has_input(fd: &impl std::os::fd::AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(fd, PollFlags::IN)], Some(&now)).is_ok_and(|count| count > 0)
}

/// Bytes that wait in the terminal that a process has as its input.
#[cfg(target_os = "linux")]
pub(super) fn unread_input(pid: u32) -> Option<u64> {
    use std::io::IsTerminal as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::NONBLOCK;
    let mut options = std::fs::OpenOptions::new();
    let terminal = options.read(true).custom_flags(flags.bits() as i32).open(format!("/proc/{pid}/fd/0")).ok()?;
    if !terminal.is_terminal() {
        return None;
    }
    // The system hands over what was typed in its own time, and does so at once when somebody asks for input.
    has_input(&terminal);
    rustix::io::ioctl_fionread(&terminal).ok()
}

#[cfg(all(unix, not(target_os = "linux")))]
pub(super) fn unread_input(_pid: u32) -> Option<u64> {
    None
}

/// The pseudo-terminal that a process has open at a descriptor.
fn open_terminal(pid: u32, fd: u32) -> Option<PathBuf> {
    let path = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
    path.starts_with("/dev/pts").then_some(path)
}

/// The file that a process runs has the same bytes as this one.
pub fn is_copy_of(pid: u32, path: &str) -> bool {
    let running = format!("/proc/{pid}/exe");
    let length = |path: &str| std::fs::metadata(path).ok().map(|file| file.len());
    // Few files have the same length: the bytes are hardly ever read.
    length(&running).is_some_and(|bytes| length(path) == Some(bytes))
        && std::fs::read(&running).ok().is_some_and(|bytes| std::fs::read(path).ok() == Some(bytes))
}

/// A file name without its folder and without the dash that marks a login shell.
pub(super) fn base_name(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_prefix('-').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_no_folder_and_no_dash() {
        for (path, name) in [("/bin/bash", "bash"), ("-zsh", "zsh"), ("sh", "sh"), ("/usr/bin/-x", "x")] {
            assert_eq!(base_name(path), name);
        }
    }

    /// Of a child, because the group of this process is 0 when a namespace was put around it from outside.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_process_is_known_by_group_and_program() {
        use std::io::{Read as _, Write as _};
        use std::os::unix::process::CommandExt;
        use std::process::{Command, Stdio};

        let mut child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn().expect("cat");
        let pid = child.id();
        // One that has just been started has no arguments yet; one that answers has.
        let (mut stdin, mut stdout) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        stdin.write_all(b"x").expect("cat reads");
        stdout.read_exact(&mut [0]).expect("cat writes");
        let found = membership(pid).expect("the child");
        let program = program(pid);
        let is_listed = all().any(|process| process.pid == pid);
        assert!(started(pid) >= started(std::process::id()) && started(pid).is_some());
        drop(stdin);
        child.wait().expect("the end of cat");

        assert!(!found.is_zombie && found.group == pid && found.parent == std::process::id());
        assert!(is_listed);
        let program = program.expect("its program");
        assert!(program.name == "cat" && program.args == ["cat"], "{program:?}");
        assert!(membership(pid).is_none() && started(pid).is_none());
    }
}
