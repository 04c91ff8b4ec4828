//! Which processes in the foreground of a terminal wait for its input, from the kernel's record of the system calls that
//! their threads are in.
//!
//! A thread blocked in `read` names its descriptor. One in `poll` or `select` names a table in its own memory, and one
//! in `epoll` a descriptor whose table the system shows; both are read, so that a program which waits for a network is
//! told from one which waits for a key. Linux only, and only for processes that this user may trace.

use crate::terminal::attention::{Editing, Process};

/// Who reads a terminal without belonging to its foreground: a program whose name begins like this, started by a server in
/// the background. All processes are looked at.
#[cfg(target_os = "linux")]
pub use linux::reader_from_outside;

#[cfg(not(target_os = "linux"))]
pub fn reader_from_outside(_leader: u32, _name: &str) -> Option<Process> {
    None
}

/// What is in the foreground of a terminal.
#[derive(Clone, Debug, Default)]
pub struct Front {
    /// Its processes, and those they have started elsewhere that read this terminal.
    pub processes: Vec<Process>,
    /// One of them passes what is typed on to another terminal, with a program there.
    pub relay: Option<Relay>,
}

/// The foreground behind a relay (`script`, `sudo`, `rlwrap`).
#[derive(Clone, Debug)]
pub struct Relay {
    /// The processes there.
    pub processes: Vec<Process>,
    /// How input is treated there, where this user may look.
    pub editing: Option<Editing>,
}

#[cfg(not(target_os = "linux"))]
pub fn front(_leader: u32, _group: u32) -> Option<Front> {
    None
}

#[cfg(target_os = "linux")]
pub use linux::front;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::fs;
    use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};

    use rustix::termios::{LocalModes, tcgetattr};

    use super::{Front, Relay};
    use crate::terminal::attention::{Activity, Editing, Input, Process};
    use crate::terminal::local::pty::process::{Membership, all, arguments, base_name, membership, subtree};

    /// Processes of a session that are looked at, at most.
    const MOST_PROCESSES: usize = 512;
    /// Threads of a process that are looked at, at most.
    const MOST_THREADS: usize = 64;
    /// Descriptors of one call that are looked at, at most.
    const MOST_DESCRIPTORS: usize = 256;
    /// Tables of descriptors within tables.
    const DEEPEST_TABLE: usize = 3;
    /// Relays behind relays.
    const MOST_RELAYS: usize = 4;
    /// The device of `/dev/tty`: whatever terminal the process has.
    const OWN_TERMINAL: (u32, u32) = (5, 0);
    /// Programs that open a terminal for their child and belong to another user.
    const CLOSED_RELAYS: [&str; 3] = ["sudo", "su", "doas"];

    /// System calls of this architecture.
    #[cfg(target_arch = "x86_64")]
    mod numbers {
        pub(super) const READ: &[u64] = &[0, 19];
        pub(super) const POLL: &[u64] = &[7, 271];
        pub(super) const SELECT: &[u64] = &[23, 270];
        pub(super) const EPOLL: &[u64] = &[232, 281, 441];
        /// Those whose time limit is a number of milliseconds instead of a pointer.
        pub(super) const IN_MILLIS: &[u64] = &[7, 232, 281];
    }
    #[cfg(target_arch = "aarch64")]
    mod numbers {
        pub(super) const READ: &[u64] = &[63, 65];
        pub(super) const POLL: &[u64] = &[73];
        pub(super) const SELECT: &[u64] = &[72];
        pub(super) const EPOLL: &[u64] = &[22, 441];
        pub(super) const IN_MILLIS: &[u64] = &[22];
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    mod numbers {
        pub(super) const READ: &[u64] = &[];
        pub(super) const POLL: &[u64] = &[];
        pub(super) const SELECT: &[u64] = &[];
        pub(super) const EPOLL: &[u64] = &[];
        pub(super) const IN_MILLIS: &[u64] = &[];
    }

    /// The processes of a group, which has the terminal of the session that `leader` leads.
    pub fn front(leader: u32, group: u32) -> Option<Front> {
        let terminal = membership(leader)?.terminal;
        let members = members(leader, group);
        let processes: Vec<Process> = members.iter().filter_map(|member| inspect(member, terminal)).collect();
        let relay = relay(&processes, terminal).and_then(|pid| behind(pid, MOST_RELAYS));
        Some(Front { processes, relay })
    }

    /// Who reads the terminal of a session from outside of it.
    pub fn reader_from_outside(leader: u32, name: &str) -> Option<Process> {
        let terminal = membership(leader)?.terminal;
        let is_called_so = |process: &Membership| {
            let called = fs::read_to_string(format!("/proc/{}/comm", process.pid));
            process.session != leader && !process.is_zombie && called.is_ok_and(|called| called.starts_with(name))
        };
        let named = all().filter(is_called_so);
        let mut found = named.filter_map(|process| inspect(&process, terminal));
        found.find(|process| matches!(process.input, Input::Reads | Input::Watches { .. }))
    }

    /// The living processes of the group, and those that came from them and left the session.
    fn members(leader: u32, group: u32) -> Vec<Membership> {
        let mut found = Vec::new();
        let mut to_see = vec![(leader, false)];
        let mut seen = 0;
        while let Some((pid, is_of_front)) = to_see.pop() {
            seen += 1;
            let Some(process) = membership(pid).filter(|_| seen <= MOST_PROCESSES) else { continue };
            let is_member = process.group == group || (is_of_front && process.session != leader);
            to_see.extend(children(pid).map(|child| (child, is_of_front || process.group == group)));
            if is_member && !process.is_zombie {
                found.push(process);
            }
        }
        // Its leader was handed over to another parent.
        if !found.iter().any(|process| process.group == group) {
            found.extend(all().filter(|process| process.group == group && !process.is_zombie));
        }
        // The first is the one that is named.
        found.sort_by_key(|process| (process.pid != group, process.pid));
        found
    }

    fn children(pid: u32) -> impl Iterator<Item = u32> {
        let lists = threads(pid)
            .into_iter()
            .filter_map(move |thread| fs::read_to_string(format!("/proc/{pid}/task/{thread}/children")).ok());
        lists.flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
    }

    fn threads(pid: u32) -> Vec<u32> {
        let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).take(MOST_THREADS).collect()
    }

    fn inspect(member: &Membership, terminal: i64) -> Option<Process> {
        let pid = member.pid;
        let name = name(pid)?;
        if member.is_stopped {
            return Some(Process { pid, name, activity: Activity::Stopped, input: Input::Nothing });
        }
        let looker =
            Looker { pid, terminal: (terminal == member.terminal).then_some(terminal), device: device(terminal) };
        let (mut input, mut is_working, mut is_seen) = (Input::Nothing, member.is_working, false);
        for thread in threads(pid) {
            match fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall")) {
                Ok(call) if call.starts_with("running") => is_working = true,
                Ok(call) => {
                    is_seen = true;
                    input = surer(input, looker.input(&call).unwrap_or(Input::Nothing));
                }
                Err(_) => {}
            }
        }
        if !is_seen && !is_working {
            input = Input::Unknown;
        }
        let activity = if is_working { Activity::Working } else { Activity::Asleep };
        Some(Process { pid, name, activity, input })
    }

    /// The name as it was started; that of an interpreter's script is the interpreter's.
    fn name(pid: u32) -> Option<String> {
        let args = arguments(pid)?;
        let name = base_name(args.first()?).to_owned();
        let applet = args.get(1).filter(|_| name == "busybox");
        Some(applet.map_or(name, |applet| base_name(applet).to_owned()))
    }

    fn surer(one: Input, other: Input) -> Input {
        let rank = |input| match input {
            Input::Reads => 4,
            Input::Watches { alone: true, timed: false } => 3,
            Input::Watches { .. } => 2,
            Input::Unknown => 1,
            Input::Nothing => 0,
        };
        if rank(other) > rank(one) { other } else { one }
    }

    /// The system counts terminals with the low bits of the number apart.
    fn device(terminal: i64) -> (u32, u32) {
        let number = terminal as u32;
        ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00))
    }

    /// Looks into one process.
    struct Looker {
        pid: u32,
        /// The terminal is the process's own, so that it may call it `/dev/tty`.
        terminal: Option<i64>,
        device: (u32, u32),
    }

    /// What a process waits for besides the terminal.
    #[derive(Default)]
    struct Watched {
        terminal: bool,
        outside: bool,
    }

    impl Looker {
        fn input(&self, call: &str) -> Option<Input> {
            let mut fields = call.split_ascii_whitespace();
            let number: u64 = fields.next()?.parse().ok()?;
            let hex = |field: &str| u64::from_str_radix(field.trim_start_matches("0x"), 16).ok();
            let args: Vec<u64> = fields.map(hex).collect::<Option<_>>()?;
            let &[first, second, third, fourth, fifth, ..] = args.as_slice() else { return None };
            if numbers::READ.contains(&number) {
                return self.is_terminal(first).then_some(Input::Reads);
            }
            let (descriptors, limit) = if numbers::POLL.contains(&number) {
                (self.polled(first, second), third)
            } else if numbers::SELECT.contains(&number) {
                (self.selected(first, second), fifth)
            } else if numbers::EPOLL.contains(&number) {
                (self.registered(first, DEEPEST_TABLE), fourth)
            } else {
                return None;
            };
            let is_timed = match numbers::IN_MILLIS.contains(&number) {
                true => limit as i32 >= 0,
                false => limit != 0,
            };
            let watched = descriptors.into_iter().fold(Watched::default(), |watched, fd| self.add(watched, fd));
            watched.terminal.then_some(Input::Watches { alone: !watched.outside, timed: is_timed })
        }

        fn add(&self, mut watched: Watched, fd: u64) -> Watched {
            match self.is_terminal(fd) {
                true => watched.terminal = true,
                false => watched.outside |= self.is_outside(fd),
            }
            watched
        }

        fn is_terminal(&self, fd: u64) -> bool {
            let Ok(file) = fs::metadata(format!("/proc/{}/fd/{fd}", self.pid)) else { return false };
            let found = (rustix::fs::major(file.rdev()), rustix::fs::minor(file.rdev()));
            found == self.device || (found == OWN_TERMINAL && self.terminal.is_some())
        }

        /// It leads out of the process: a socket, another terminal, a pipe of which another has the other end.
        fn is_outside(&self, fd: u64) -> bool {
            let Some(target) = self.target(fd) else { return false };
            match target.starts_with("pipe:") {
                true => self.descriptors().filter(|&other| self.target(other).as_ref() == Some(&target)).count() < 2,
                false => target.starts_with("socket:") || target.starts_with("/dev/pts") || target == "/dev/ptmx",
            }
        }

        fn target(&self, fd: u64) -> Option<String> {
            let path = fs::read_link(format!("/proc/{}/fd/{fd}", self.pid)).ok()?;
            path.to_str().map(str::to_owned)
        }

        fn descriptors(&self) -> impl Iterator<Item = u64> + use<> {
            let entries = fs::read_dir(format!("/proc/{}/fd", self.pid)).into_iter().flatten().flatten();
            entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).take(4 * MOST_DESCRIPTORS)
        }

        fn memory(&self, at: u64, bytes: usize) -> Option<Vec<u8>> {
            let mut found = vec![0; bytes];
            let memory = fs::File::open(format!("/proc/{}/mem", self.pid)).ok()?;
            memory.read_exact_at(&mut found, at).ok()?;
            Some(found)
        }

        /// Those that `poll` is to tell about when there is something to read.
        fn polled(&self, table: u64, count: u64) -> Vec<u64> {
            let count = usize::try_from(count).unwrap_or(usize::MAX).min(MOST_DESCRIPTORS);
            // A descriptor of four bytes, the events that are wanted, and room for those that came.
            let entries = self.memory(table, count * 8).unwrap_or_default();
            let readable = entries.chunks_exact(8).filter(|entry| entry[4] & 1 != 0);
            let numbers = readable.map(|entry| i32::from_ne_bytes([entry[0], entry[1], entry[2], entry[3]]));
            numbers.filter_map(|fd| u64::try_from(fd).ok()).collect()
        }

        /// The same for `select`: the system writes into its table only when the call ends.
        fn selected(&self, count: u64, table: u64) -> Vec<u64> {
            let count = usize::try_from(count).unwrap_or(usize::MAX).min(4 * MOST_DESCRIPTORS);
            if table == 0 {
                return Vec::new();
            }
            let bits = self.memory(table, count.div_ceil(8)).unwrap_or_default();
            (0..count)
                .filter(|fd| bits.get(fd / 8).is_some_and(|byte| byte >> (fd % 8) & 1 != 0))
                .map(|fd| fd as u64)
                .collect()
        }

        fn registered(&self, table: u64, depth: usize) -> Vec<u64> {
            let path = format!("/proc/{}/fdinfo/{table}", self.pid);
            let entries = fs::read_to_string(path).unwrap_or_default();
            let mut found = Vec::new();
            for entry in entries.lines().filter_map(|line| line.strip_prefix("tfd:")).take(MOST_DESCRIPTORS) {
                let mut words = entry.split_ascii_whitespace();
                let fd: Option<u64> = words.next().and_then(|fd| fd.parse().ok());
                let events = words.nth(1).and_then(|events| u64::from_str_radix(events, 16).ok());
                let Some(fd) = fd.filter(|_| events.is_some_and(|events| events & 1 != 0)) else { continue };
                let is_table = || self.target(fd).is_some_and(|target| target == "anon_inode:[eventpoll]");
                match depth > 0 && is_table() {
                    true => found.extend(self.registered(fd, depth - 1)),
                    false => found.push(fd),
                }
            }
            found
        }

        /// It has the other side of a terminal open.
        fn holds_master(&self) -> bool {
            let is_master =
                |fd| self.target(fd).is_some_and(|target| target == "/dev/ptmx" || target == "/dev/pts/ptmx");
            self.descriptors().any(is_master)
        }
    }

    /// Who passes input on: it waits for the terminal, or may, and has another one open from the outside.
    fn relay(processes: &[Process], terminal: i64) -> Option<u32> {
        let passes_on = |process: &&Process| {
            let looker = Looker { pid: process.pid, terminal: None, device: device(terminal) };
            match process.input {
                Input::Watches { .. } | Input::Reads => looker.holds_master(),
                Input::Unknown => CLOSED_RELAYS.contains(&process.name.as_str()),
                Input::Nothing => false,
            }
        };
        processes.iter().find(passes_on).map(|process| process.pid)
    }

    /// The foreground of the terminal that a relay opened for its child; through several relays, the last one's.
    fn behind(relay: u32, depth: usize) -> Option<Relay> {
        let outer = membership(relay)?;
        let table: HashMap<u32, Membership> =
            subtree(relay).into_iter().map(|process| (process.pid, process)).collect();
        let descends = |process: &Membership| {
            let parents = std::iter::successors(Some(process), |process| table.get(&process.parent));
            parents.take(table.len()).skip(1).any(|parent| parent.pid == relay)
        };
        let leads = |process: &&Membership| {
            process.group == process.pid && process.foreground == i64::from(process.pid) && !process.is_zombie
        };
        let mut fronts = table.values().filter(leads);
        let inner = fronts.find(|process| {
            !matches!(process.terminal, 0) && process.terminal != outer.terminal && descends(process)
        })?;
        let is_member = |process: &&Membership| process.group == inner.group && process.terminal == inner.terminal;
        let mut members: Vec<Membership> = table.values().filter(is_member).copied().collect();
        members.sort_by_key(|process| (process.pid != inner.pid, process.pid));
        let processes: Vec<Process> = members.iter().filter_map(|member| inspect(member, inner.terminal)).collect();
        let next = super::linux::relay(&processes, inner.terminal).filter(|_| depth > 0);
        match next.and_then(|pid| behind(pid, depth - 1)) {
            Some(deeper) => Some(deeper),
            None => Some(Relay { processes, editing: editing(inner) }),
        }
    }

    /// How the terminal of a process treats what is typed.
    fn editing(process: &Membership) -> Option<Editing> {
        let looker = Looker { pid: process.pid, terminal: Some(process.terminal), device: device(process.terminal) };
        let fd = (0..3).find(|&fd| looker.is_terminal(fd))?;
        let flags = rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::NONBLOCK;
        let mut options = fs::OpenOptions::new();
        let path = format!("/proc/{}/fd/{fd}", process.pid);
        let terminal = options.read(true).custom_flags(flags.bits() as i32).open(path).ok()?;
        let modes = tcgetattr(&terminal).ok()?.local_modes;
        Some(Editing { canonical: modes.contains(LocalModes::ICANON), echo: modes.contains(LocalModes::ECHO) })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_number_of_a_terminal_is_its_device() {
            assert_eq!(device(0x8803), (136, 3));
            assert_eq!(device(0x10_8803), (136, 0x103));
        }

        #[test]
        fn this_process_reads_nothing() {
            let own = membership(std::process::id()).expect("this process");
            let found = inspect(&own, own.terminal).expect("its state");
            assert!(found.name.starts_with("kpty") && found.input != Input::Reads, "{found:?}");
        }
    }
}
