//! Unix: the master's descriptor, non-blocking, and the end of the child as an event.
//!
//! portable-pty opens the terminal and starts the child. Its own handles are then closed: they would type newline
//! and end-of-file when dropped, and each costs a descriptor. What is left is one descriptor for the terminal and one
//! for the child.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Resource, Rlimit, Signal as OsSignal, getrlimit, setrlimit};
use rustix::termios::{InputModes, LocalModes, SpecialCodeIndex, Termios, Winsize, tcgetattr, tcgetpgrp, tcsetwinsize};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

use super::process;
use super::{Foreground, Incarnation, LineModes, ProcessTable, Signal, SpawnSpec};
use crate::model::ExitInfo;

/// A started child that no driver has taken yet.
pub struct Started {
    master: OwnedFd,
    child: Box<dyn portable_pty::Child + Send + Sync>,
    pid: u32,
}

/// Starts a program on a new terminal. Takes a millisecond or more: not for a thread that serves others.
pub fn start(spec: &SpawnSpec) -> Result<Started, String> {
    check_program(spec)?;
    let size = PtySize { rows: spec.size.rows(), cols: spec.size.cols(), pixel_width: 0, pixel_height: 0 };
    let pair = native_pty_system().openpty(size).map_err(|error| format!("no terminal could be had: {error}"))?;
    let mut command = CommandBuilder::new(&spec.program);
    command.args(&spec.args);
    command.cwd(&spec.cwd);
    command.env_clear();
    for (name, value) in &spec.env {
        command.env(name, value);
    }
    let child = pair.slave.spawn_command(command).map_err(|error| format!("{}: {error}", spec.program))?;
    let pid = child.process_id().ok_or("the child has no process id")?;
    let master = duplicate(pair.master.as_raw_fd()).map_err(|error| format!("the terminal is unusable: {error}"))?;
    Ok(Started { master, child, pid })
}

/// A non-blocking copy of a descriptor that portable-pty owns.
#[expect(unsafe_code, reason = "portable-pty only tells the number of its descriptor")]
fn duplicate(raw: Option<i32>) -> io::Result<OwnedFd> {
    let raw = raw.ok_or(io::ErrorKind::Unsupported)?;
    // SAFETY: the caller holds the master, so that the descriptor is open during this call.
    let borrowed = unsafe { BorrowedFd::borrow_raw(raw) };
    let copy = rustix::io::fcntl_dupfd_cloexec(borrowed, 3)?;
    fcntl_setfl(&copy, fcntl_getfl(&copy)? | OFlags::NONBLOCK)?;
    Ok(copy)
}

/// Says no to what would start and die at once: portable-pty cannot tell that from a start.
fn check_program(spec: &SpawnSpec) -> Result<(), String> {
    if !spec.cwd.is_dir() {
        return Err(format!("Working directory does not exist: {}", spec.cwd.display()));
    }
    let path = find_program(spec).ok_or_else(|| format!("No such program: {}", spec.program))?;
    let describe = |problem: &str| format!("{} cannot be started: {problem}", spec.program);
    let meta = path.metadata().map_err(|error| describe(&error.to_string()))?;
    if !meta.is_file() {
        return Err(describe("it is not a file"));
    }
    if meta.permissions().mode() & 0o111 == 0 {
        return Err(describe("it is not executable"));
    }
    let mut head = [0; 256];
    let length = std::fs::File::open(&path).and_then(|mut file| io::Read::read(&mut file, &mut head));
    // A program that may be run but not read is left to the system.
    let Ok(length) = length else { return Ok(()) };
    let head = &head[..length];
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = String::from_utf8_lossy(line.split(|&byte| byte == b'\n').next().unwrap_or_default()).into_owned();
        let interpreter = line.split_whitespace().next().unwrap_or_default().to_owned();
        return if Path::new(&interpreter).is_file() {
            Ok(())
        } else {
            Err(describe(&format!("its interpreter {interpreter} does not exist")))
        };
    }
    if cfg!(target_os = "linux") && !head.starts_with(b"\x7fELF") {
        return Err(describe("it is neither a program nor a script that names its interpreter"));
    }
    Ok(())
}

/// Finds a program as the child would.
fn find_program(spec: &SpawnSpec) -> Option<PathBuf> {
    if spec.program.contains('/') {
        return Some(spec.cwd.join(&spec.program)).filter(|path| path.exists());
    }
    let (_, search) = spec.env.iter().find(|(name, _)| name == "PATH")?;
    std::env::split_paths(search).map(|folder| folder.join(&spec.program)).find(|path| path.is_file())
}

/// The descriptor of a terminal and who was started on it.
struct Master {
    fd: OwnedFd,
    pid: u32,
}

impl AsRawFd for Master {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// A child on its terminal. One driver owns it; when it goes, the terminal is closed.
pub struct Pty {
    master: Arc<Master>,
    /// Tells when there is something to read; nobody is needed for that while there is more than can be taken.
    watch: Option<AsyncFd<Arc<Master>>>,
}

/// The started process, as something that ends.
pub struct Child(End);

/// How the end of the child is learnt.
enum End {
    #[cfg(target_os = "linux")]
    Event(AsyncFd<OwnedFd>),
    /// Where the system has no such event, a thread waits.
    Thread(oneshot::Receiver<ExitInfo>),
}

impl Pty {
    /// Takes over a started child. Needs a runtime.
    pub fn new(started: Started) -> io::Result<(Self, Child)> {
        let Started { master, child, pid } = started;
        let end = End::new(pid, child)?;
        let master = Arc::new(Master { fd: master, pid });
        let watch = Some(watch(Arc::clone(&master), Interest::READABLE)?);
        Ok((Self { master, watch }, Child(end)))
    }

    /// A handle for questions and signals; it does not keep the terminal open.
    pub fn control(&self) -> Control {
        Control { master: Arc::downgrade(&self.master), pid: self.master.pid }
    }

    /// Waits until there may be something to read.
    pub async fn readable(&self) -> io::Result<()> {
        match &self.watch {
            Some(watch) => watch.readable().await.map(|mut guard| guard.retain_ready()),
            None => Ok(()),
        }
    }

    /// There is more than one turn could take. Until a read finds nothing left, no wake-up is needed for more
    /// output: the system would wake a thread for every piece of a flood that another thread reads already.
    pub fn look_away(&mut self) {
        self.watch = None;
    }

    /// Waits until there may be room to write. Watched on a descriptor of its own, and only while somebody waits: a
    /// line editor reads one byte at a time, and each of them would wake the driver.
    pub async fn writable(&self) -> io::Result<()> {
        let room = watch(self.master.fd.try_clone()?, Interest::WRITABLE)?;
        room.writable().await.map(|mut guard| guard.retain_ready())
    }

    /// Reads what is there. Zero bytes: nobody has the other side open any more.
    ///
    /// That nothing is there is the system's own answer, which counts what is still on its way from the program. The
    /// runtime's knowledge lags behind it on a busy machine, and the end of a command would be decided without its
    /// last output.
    pub fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut read = || Ok(rustix::io::read(&self.master.fd, &mut *buffer)?);
        let mut was_asked = self.watch.is_none();
        let mut result = match &self.watch {
            Some(watch) => watch.try_io(Interest::READABLE, |_| {
                was_asked = true;
                read()
            }),
            None => read(),
        };
        if !was_asked {
            result = read();
        }
        match result {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => Ok(0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.watch.is_none() => {
                // The new registration reports output that came since.
                self.watch = Some(watch(Arc::clone(&self.master), Interest::READABLE)?);
                Err(error)
            }
            other => other,
        }
    }

    /// Writes as much as there is room for.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.master.try_write(bytes)
    }
}

impl Master {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(&self.fd, bytes)?)
    }
}

/// Has the runtime watch a descriptor.
#[expect(unsafe_code, reason = "the runtime cannot see that the descriptor stays the same")]
fn watch<T: AsRawFd>(fd: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    // SAFETY: both kinds that are watched, an `OwnedFd` and a shared `Master` around one, are one descriptor for as long
    // as they live, and they live in the `AsyncFd`.
    unsafe { AsyncFd::register_with_interest(fd, interest) }.map_err(io::Error::from)
}

impl Child {
    /// Waits for its end and reaps it.
    pub async fn exited(&mut self) -> ExitInfo {
        match &mut self.0 {
            #[cfg(target_os = "linux")]
            End::Event(fd) => {
                // An error here means that nobody can tell any more how the child ended.
                let _ = fd.readable().await;
                reap(fd.get_ref().as_fd())
            }
            End::Thread(receiver) => receiver.await.unwrap_or(ExitInfo::Unknown),
        }
    }
}

impl End {
    #[cfg(target_os = "linux")]
    fn new(pid: u32, child: Box<dyn portable_pty::Child + Send + Sync>) -> io::Result<Self> {
        use rustix::process::{PidfdFlags, pidfd_open};
        let event = Pid::from_raw(pid as i32)
            .ok_or(rustix::io::Errno::SRCH)
            .and_then(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK));
        match event {
            Ok(fd) => Ok(Self::Event(watch(fd, Interest::READABLE)?)),
            Err(_) => Self::thread(child),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn new(_pid: u32, child: Box<dyn portable_pty::Child + Send + Sync>) -> io::Result<Self> {
        Self::thread(child)
    }

    fn thread(mut child: Box<dyn portable_pty::Child + Send + Sync>) -> io::Result<Self> {
        let (sender, receiver) = oneshot::channel();
        std::thread::Builder::new().name("kpty-wait".into()).stack_size(64 << 10).spawn(move || {
            let exit = child.wait().map_or(ExitInfo::Unknown, |status| ExitInfo::Code(status.exit_code() as i32));
            let _ = sender.send(exit);
        })?;
        Ok(Self::Thread(receiver))
    }
}

#[cfg(target_os = "linux")]
fn reap(fd: BorrowedFd<'_>) -> ExitInfo {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    match waitid(WaitId::PidFd(fd), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
        Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => ExitInfo::Code(code),
            (None, Some(signal)) => ExitInfo::Signal(signal),
            (None, None) => ExitInfo::Unknown,
        },
        _ => ExitInfo::Unknown,
    }
}

/// Questions and signals for a terminal that a driver owns. After the driver is gone there is nothing to ask.
#[derive(Clone)]
pub struct Control {
    master: Weak<Master>,
    pid: u32,
}

impl Control {
    /// The child's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Writes as much as there is room for, without the driver.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.master.upgrade().ok_or(io::ErrorKind::NotFound)?.try_write(bytes)
    }

    /// The process group that has the terminal.
    pub fn foreground_group(&self) -> Option<u32> {
        let master = self.master.upgrade()?;
        tcgetpgrp(&master.fd).ok().map(|pid| pid.as_raw_nonzero().get() as u32)
    }

    /// Bytes that were typed and that nobody has read yet; nothing where the child has its input from elsewhere.
    pub fn unread(&self) -> Option<u64> {
        process::unread_input(self.pid)
    }

    /// The terminal has said something that was not read yet.
    pub fn has_output(&self) -> bool {
        self.master.upgrade().is_some_and(|master| process::has_input(&master.fd))
    }

    /// True when the system edits the line: no program has the terminal in raw mode.
    pub fn is_canonical(&self) -> bool {
        self.modes().is_none_or(|modes| modes.local_modes.contains(LocalModes::ICANON))
    }

    /// How a line is treated; nothing where the terminal is gone.
    pub fn line_modes(&self) -> Option<LineModes> {
        let modes = self.modes()?;
        let canonical = modes.local_modes.contains(LocalModes::ICANON);
        let has_quote = canonical && modes.local_modes.contains(LocalModes::IEXTEN);
        Some(LineModes {
            canonical,
            echo: modes.local_modes.contains(LocalModes::ECHO),
            enter: modes.input_modes.contains(InputModes::ICRNL) && !modes.input_modes.contains(InputModes::IGNCR),
            drops_enter: modes.input_modes.contains(InputModes::IGNCR),
            lowers: lowers(&modes),
            active: active_characters(&modes),
            quote: has_quote.then(|| modes.special_codes[SpecialCodeIndex::VLNEXT]).filter(|&code| code != 0),
        })
    }

    fn modes(&self) -> Option<Termios> {
        let master = self.master.upgrade()?;
        tcgetattr(&master.fd).ok()
    }

    /// Who has the terminal.
    pub fn foreground(&self) -> Option<Foreground> {
        let group = self.foreground_group()?;
        let program = process::program(group).or_else(|| {
            let member = process::all().find(|process| process.group == group && !process.is_zombie)?;
            process::program(member.pid)
        });
        Some(Foreground { group, program, canonical: self.is_canonical() })
    }

    /// Changes the window size and notifies the program.
    pub fn resize(&self, size: kpty_emulator::Size) -> io::Result<()> {
        let master = self.master.upgrade().ok_or(io::ErrorKind::NotFound)?;
        let size = Winsize { ws_row: size.rows(), ws_col: size.cols(), ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(&master.fd, size)?)
    }

    /// Signals the child's group and the one in the foreground: usually all there is.
    pub fn signal_groups(&self, signal: Signal) {
        let foreground = self.foreground_group().filter(|&group| group != self.pid);
        for group in foreground.into_iter().chain([self.pid]) {
            if let Some(group) = Pid::from_raw(group as i32) {
                // A group that is gone already is what was wanted.
                let _ = rustix::process::kill_process_group(group, os_signal(signal));
            }
        }
    }

    /// Waits for the end of a process that need not be our child.
    pub async fn process_ended(pid: u32) {
        #[cfg(target_os = "linux")]
        {
            let pid = Pid::from_raw(pid as i32).ok_or(rustix::io::Errno::SRCH);
            match pid.and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::NONBLOCK)) {
                Ok(fd) => {
                    if let Ok(event) = watch(fd, Interest::READABLE)
                        && event.readable().await.is_ok()
                    {
                        return;
                    }
                }
                Err(rustix::io::Errno::SRCH) => return,
                Err(_) => {}
            }
        }
        // Without such an event, whoever asks looks again, but not at once.
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }

    /// Signals one process.
    pub fn signal_process(pid: u32, signal: Signal) {
        if let Some(pid) = Pid::from_raw(pid as i32) {
            let _ = rustix::process::kill_process(pid, os_signal(signal));
        }
    }

    /// The living processes of the terminal's session.
    ///
    /// When the session's leader dies the others lose the terminal, and only the session's number is left to know them
    /// by. The system gives that number to nobody else while the leader is not waited for or one of them lives. So until
    /// the child was found dead the number is proof enough; afterwards only while one of those lives that were `left`
    /// behind then.
    pub fn members(&self, table: &ProcessTable, left: Option<&[Incarnation]>) -> Vec<u32> {
        let is_ours = match left {
            None => true,
            Some(left) => left.iter().any(|one| table.has(one)),
        };
        table.of_session(self.pid).filter(|_| is_ours).map(|process| process.pid).collect()
    }

    /// The directory that the child is in.
    pub fn directory(&self) -> Option<PathBuf> {
        process::directory(self.pid)
    }
}

#[cfg(target_os = "linux")]
fn lowers(modes: &Termios) -> bool {
    modes.input_modes.contains(InputModes::IUCLC)
}

#[cfg(not(target_os = "linux"))]
fn lowers(_modes: &Termios) -> bool {
    false
}

/// The printable characters that do something in these modes.
fn active_characters(modes: &Termios) -> Vec<u8> {
    use SpecialCodeIndex as Code;
    let signals = [Code::VINTR, Code::VQUIT, Code::VSUSP];
    let flow = [Code::VSTART, Code::VSTOP];
    let editing = [Code::VERASE, Code::VKILL, Code::VEOF, Code::VEOL, Code::VEOL2];
    let extended = [Code::VWERASE, Code::VLNEXT, Code::VREPRINT];
    let has = |mode| modes.local_modes.contains(mode);
    let groups: [(bool, &[Code]); 4] = [
        (has(LocalModes::ISIG), &signals),
        (modes.input_modes.contains(InputModes::IXON), &flow),
        (has(LocalModes::ICANON), &editing),
        (has(LocalModes::ICANON | LocalModes::IEXTEN), &extended),
    ];
    let codes = groups.into_iter().filter(|(is_on, _)| *is_on).flat_map(|(_, codes)| codes);
    codes.map(|&code| modes.special_codes[code]).filter(|code| (0x20..0x7f).contains(code)).collect()
}

fn os_signal(signal: Signal) -> OsSignal {
    match signal {
        Signal::HangUp => OsSignal::HUP,
        Signal::Terminate => OsSignal::TERM,
        Signal::Kill => OsSignal::KILL,
    }
}

/// How many files this process may have open.
pub fn open_files_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Allows as many open files as the system lets an ordinary process have: a session takes two.
pub fn raise_open_files_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Nothing is lost when it stays: `create` then says that no terminal could be had.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
