//! What a process waits for, from the kernel's record of the system call it is in.
//!
//! Tells a shell that reads a command from one whose builtin asks a question, which look the same on the screen. Linux
//! only, and only for processes that this user may trace; elsewhere nothing is known and the caller has to do without.

/// What a process does, as far as its input is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// `read` from a terminal.
    Read {
        /// The descriptor.
        fd: u32,
        /// Bytes asked for.
        bytes: u64,
        /// The buffer is a local variable of the caller.
        onto_stack: bool,
    },
    /// `select` on standard input alone, which is a terminal.
    SelectInput,
    /// `poll` or its kin, on descriptors that the kernel does not tell.
    Poll,
    /// It works, or waits for something else.
    Nothing,
}

/// The system calls of this architecture, by their numbers.
#[cfg(target_os = "linux")]
mod numbers {
    #[cfg(target_arch = "x86_64")]
    pub(super) const READ: u64 = 0;
    #[cfg(target_arch = "x86_64")]
    pub(super) const SELECT: &[u64] = &[23, 270];
    #[cfg(target_arch = "x86_64")]
    pub(super) const POLL: &[u64] = &[7, 271, 232, 281];
    #[cfg(target_arch = "aarch64")]
    pub(super) const READ: u64 = 63;
    #[cfg(target_arch = "aarch64")]
    pub(super) const SELECT: &[u64] = &[72];
    #[cfg(target_arch = "aarch64")]
    pub(super) const POLL: &[u64] = &[73, 22];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(super) const READ: u64 = u64::MAX;
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(super) const SELECT: &[u64] = &[];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(super) const POLL: &[u64] = &[];
}

/// Largest distance of a local variable from the stack pointer.
#[cfg(target_os = "linux")]
const STACK_REACH: u64 = 1 << 20;

/// What a process waits for; none where nobody can tell.
#[cfg(target_os = "linux")]
pub fn waits_for(pid: u32) -> Option<Waiting> {
    if numbers::SELECT.is_empty() {
        return None;
    }
    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    Some(parse(&call, |fd| is_terminal(pid, fd)).unwrap_or(Waiting::Nothing))
}

/// How deep the calls of a process are that waits in the system, in bytes of its stack; none where nobody can tell.
///
/// A shell reads its prompt at the same depth every time: the distance is counted from where its stack began, and that
/// stays until another program takes its place. What it reads within a builtin, or for the rest of a command, it reads at
/// another.
#[cfg(target_os = "linux")]
pub fn call_depth(pid: u32) -> Option<u64> {
    let call = std::fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let pointer = call.split_ascii_whitespace().rev().nth(1)?.strip_prefix("0x")?;
    let began = super::process::stack_start(pid)?;
    began.checked_sub(u64::from_str_radix(pointer, 16).ok()?)
}

/// Nothing is known here.
#[cfg(not(target_os = "linux"))]
pub fn call_depth(_pid: u32) -> Option<u64> {
    None
}

/// Nothing is known here.
#[cfg(not(target_os = "linux"))]
pub fn waits_for(_pid: u32) -> Option<Waiting> {
    None
}

#[cfg(target_os = "linux")]
fn is_terminal(pid: u32, fd: u64) -> bool {
    let target = std::fs::read_link(format!("/proc/{pid}/fd/{fd}"));
    target.is_ok_and(|path| path.starts_with("/dev/pts") || path.as_os_str() == "/dev/tty")
}

/// Reads the line of a system call: its number, six arguments, stack pointer and program counter.
#[cfg(target_os = "linux")]
fn parse(call: &str, is_terminal: impl Fn(u64) -> bool) -> Option<Waiting> {
    let mut fields = call.split_ascii_whitespace();
    let number: u64 = fields.next()?.parse().ok()?;
    let values: Vec<u64> =
        fields.map(|field| u64::from_str_radix(field.trim_start_matches("0x"), 16)).collect::<Result<_, _>>().ok()?;
    let &[first, buffer, bytes, _, _, _, stack, _] = values.as_slice() else { return None };
    if number == numbers::READ && is_terminal(first) {
        let onto_stack = (stack..stack.saturating_add(STACK_REACH)).contains(&buffer);
        return Some(Waiting::Read { fd: first.try_into().ok()?, bytes, onto_stack });
    }
    if numbers::SELECT.contains(&number) {
        return Some(if first == 1 && is_terminal(0) { Waiting::SelectInput } else { Waiting::Poll });
    }
    numbers::POLL.contains(&number).then_some(Waiting::Poll)
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn a_system_call_is_understood() {
        for (call, expected) in [
            ("running", None),
            ("-1 0x7ffd 0x7f", None),
            ("61 0xffffffff 0x7ffc 0xa 0x0 0x1 0x8 0x7ffcb158 0x7f63", None),
            (
                "0 0x0 0x5619a3fc9f40 0x1000 0x0 0x7f 0x0 0x7ffca58294e8 0x7fde",
                Some(Waiting::Read { fd: 0, bytes: 4096, onto_stack: false }),
            ),
            (
                "0 0x0 0x7ffe10c5341f 0x1 0x0 0x2 0x1 0x7ffe10c533e8 0x7ff8",
                Some(Waiting::Read { fd: 0, bytes: 1, onto_stack: true }),
            ),
            ("0 0x3 0x7ffe10c5341f 0x1 0x0 0x2 0x1 0x7ffe10c533e8 0x7ff8", None),
            ("270 0x1 0x7ffe 0x0 0x0 0x0 0x7ffe 0x7ffe 0x7f", Some(Waiting::SelectInput)),
            ("270 0x9 0x7ffe 0x0 0x0 0x0 0x7ffe 0x7ffe 0x7f", Some(Waiting::Poll)),
            ("7 0x55f6 0x3 0xffffffff 0xcf 0x0 0x55f6 0x7fff 0x7fae", Some(Waiting::Poll)),
        ] {
            assert_eq!(parse(call, |fd| fd == 0), expected, "{call}");
        }
    }
}
