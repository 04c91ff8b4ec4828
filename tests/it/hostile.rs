//! Hostile output at full speed: what it costs the server, and that nobody who asks the server waits for it.
//!
//! The suite plays a little of each stream; `scripts/soak` plays megabytes in an optimised build and prints a table.
//! `KPTY_HOSTILE_MIB` sets how much.

mod played;
mod streams;

use std::time::Duration;

use serde_json::json;

use self::played::{Played, Program, p99, play};
use self::streams::{Group, STREAMS, Stream};
use crate::live::amount;
use crate::server::Server;

/// CPU that a megabyte may take in an optimised build.
const CPU_PER_MEGABYTE: f64 = 0.25;
/// CPU that a stream of a few megabytes may take in any case.
const CPU_OF_SHORT: Duration = Duration::from_millis(500);
/// What is short.
const SHORT: usize = 5_000_000;
/// `term_read` of the session itself.
const SLOWEST_READ: Duration = Duration::from_millis(250);
/// An action on another session, and `/health`.
const SLOWEST_OTHER: Duration = Duration::from_millis(100);
/// What a session may keep.
const KEPT_KIB: u64 = 8 << 10;
/// What the server may grow by while a stream runs, beside the session's history.
const PEAK_KIB: u64 = 32 << 10;
/// What the history of a session may take.
const HISTORY_KIB: u64 = 32 << 10;

/// How much of each stream is played.
#[expect(clippy::disallowed_methods, reason = "a setting of the tests, not of the program")]
fn size() -> usize {
    let given = std::env::var("KPTY_HOSTILE_MIB").ok().and_then(|size| size.parse::<usize>().ok());
    given.map_or(amount(192 << 10, 8 << 20), |mib| mib << 20)
}

/// Streams that need the most memory.
const HUNGRY: [&str; 8] = [
    "links, each another",
    "marks on every cell",
    "one line",
    "repeated characters",
    "any character",
    "titles of a megabyte",
    "lines of all scripts",
    "joined emoji in clusters",
];

/// So many bytes of each stream that needs much memory.
pub(crate) fn hungry(size: usize) -> Vec<Vec<u8>> {
    let streams: Vec<_> = STREAMS.iter().filter(|stream| HUNGRY.contains(&stream.name)).collect();
    assert_eq!(streams.len(), HUNGRY.len());
    streams.into_iter().map(|stream| stream.bytes(size)).collect()
}

/// What of a stream was beyond its limit.
fn judge(played: &Played, group: Group) -> Vec<String> {
    let mut beyond = Vec::new();
    let allowed = Duration::from_secs_f64(CPU_PER_MEGABYTE * played.bytes as f64 / 1e6);
    let allowed = if played.bytes < SHORT { allowed.max(CPU_OF_SHORT) } else { allowed };
    if played.cpu > allowed {
        beyond.push(format!("CPU {:?} of {allowed:?}", played.cpu));
    }
    for (what, took, most) in
        [("term_read", p99(&played.reads), SLOWEST_READ), ("others", p99(&played.others), SLOWEST_OTHER)]
    {
        if took > most {
            beyond.push(format!("{what} {took:?}"));
        }
    }
    // Some fill the history.
    let history = if matches!(group, Group::Volume | Group::Text | Group::Counts) { HISTORY_KIB } else { 0 };
    if played.peak_kib > PEAK_KIB + history {
        beyond.push(format!("peak {} KiB", played.peak_kib));
    }
    if played.kept_kib > KEPT_KIB {
        beyond.push(format!("kept {} KiB", played.kept_kib));
    }
    beyond
}

/// Plays a stream; what is beyond its limits must be so three times in a row: the machine does other work, too.
#[expect(clippy::print_stdout, reason = "a table of figures")]
fn check(stream: &Stream, program: Program) -> Result<Played, String> {
    let mut told = Vec::new();
    for _ in 0..3 {
        let played = play(stream, size(), program);
        let beyond = judge(&played, stream.group);
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "{:<34} {:>6.1} MB {:>7.3} s/MB  term_read {:>6.1} ms  others {:>6.1} ms  peak {:>6} KiB  kept {:>6} KiB  {}",
            played.name,
            played.bytes as f64 / 1e6,
            played.cpu_per_megabyte(),
            millis(p99(&played.reads)),
            millis(p99(&played.others)),
            played.peak_kib,
            played.kept_kib,
            beyond.join(", "),
        );
        if beyond.is_empty() {
            return Ok(played);
        }
        told.push(beyond.join(", "));
    }
    Err(format!("{}: {}", stream.name, told.join("; ")))
}

fn play_all(group: Group) {
    let streams = STREAMS.iter().filter(|stream| stream.group == group);
    let failed: Vec<_> = streams.filter_map(|stream| check(stream, Program::Deaf).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn strings_without_end_cost_little() {
    play_all(Group::Strings);
}

#[test]
fn absurd_counts_cost_little() {
    play_all(Group::Counts);
}

#[test]
fn modes_and_screens_cost_little() {
    play_all(Group::Modes);
}

#[test]
fn text_that_is_hard_to_show_costs_little() {
    play_all(Group::Text);
}

#[test]
fn much_output_costs_little() {
    play_all(Group::Volume);
}

/// Bytes that the terminal may answer to each byte that it is asked.
const MOST_PER_BYTE: usize = 4;

#[test]
fn questions_cost_little_and_answers_are_not_chosen_by_the_output() {
    let mut failed = Vec::new();
    for stream in STREAMS.iter().filter(|stream| stream.group == Group::Questions) {
        failed.extend(check(stream, Program::Deaf).err());
        match check(stream, Program::Reading) {
            Ok(Played { replies, bytes, .. }) => {
                if replies.len() > MOST_PER_BYTE * bytes || memchr::memmem::find(&replies, b"INJECTED").is_some() {
                    failed.push(format!("{}: {} bytes are answered to {bytes}", stream.name, replies.len()));
                }
            }
            Err(error) => failed.push(error),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// What the terminal answers arrives at a shell as if it were typed.
#[test]
fn no_answer_is_a_command_to_a_shell() {
    let server = Server::start();
    let folder = server.state.path();
    for stream in STREAMS.iter().filter(|stream| stream.group == Group::Questions) {
        std::fs::write(folder.join("stream"), stream.bytes(1_000)).expect("a writable folder");
        for shell in ["/bin/bash", "zsh", "fish"] {
            let made = server.done("create", json!({ "shell": shell, "cwd": folder }));
            let talk = |command: &str| {
                let arguments = json!({ "session_id": made["session_id"], "command": command, "timeout_ms": 30_000 });
                server.done("talk", arguments)
            };
            assert_eq!(talk("cat stream")["exit_code"], 0, "{shell}, {}", stream.name);
            let told = talk("echo fi''ne");
            assert_eq!((&told["output"], &told["exit_code"]), (&json!("fine"), &json!(0)), "{shell}, {}", stream.name);
            assert!(!folder.join("INJECTED").exists(), "{shell}, {}", stream.name);
            server.done("kill", json!({ "session_id": made["session_id"] }));
        }
    }
}

/// A program may end within a sequence: the screen can be read, and the next command is right.
#[test]
fn what_is_left_open_spoils_nothing() {
    let server = Server::start();
    let folder = server.state.path();
    for stream in STREAMS.iter().filter(|stream| stream.group == Group::Open) {
        std::fs::write(folder.join("stream"), stream.bytes(0)).expect("a writable folder");
        let (id, _) = server.create();
        let talk =
            |command: &str| server.done("talk", json!({ "session_id": id, "command": command, "timeout_ms": 30_000 }));
        talk("echo before");
        talk("cat stream");
        let began = std::time::Instant::now();
        played::screen(&server, &id);
        assert!(began.elapsed() < SLOWEST_READ, "{}: {:?}", stream.name, began.elapsed());
        assert_eq!(talk("echo behind")["output"], "behind", "{}", stream.name);
        server.done("kill", json!({ "session_id": id }));
    }
}

/// Sizes that come faster than output, from the smallest to the largest.
const PLANS: [(&str, &[(usize, usize)]); 3] = [
    ("small and large", &[(1, 1), (2_000, 1_000), (2, 1_000), (2_000, 1)]),
    ("a column more each time", &[(79, 24), (80, 24), (81, 25), (82, 26), (83, 24), (84, 23)]),
    ("narrow", &[(1, 24), (2, 24), (3, 24), (1, 1), (80, 1)]),
];
/// A read while the size changes.
const SLOWEST_READ_RESIZED: Duration = Duration::from_millis(500);

#[test]
fn sizes_that_change_all_the_time_spoil_nothing() {
    let server = Server::start();
    let (id, _) = server.create();
    let flood = "while :; do printf '\\033[31m%s 日本 line\\033[m\\r\\n' flood; done";
    server.done("send_line", json!({ "session_id": id, "data": flood, "escapes": false }));
    let resize = |cols: i64, rows: i64| server.call("resize", json!({ "session_id": id, "cols": cols, "rows": rows }));
    for (plan, sizes) in PLANS {
        let mut slow = Vec::new();
        for round in 0..amount(4, 40) {
            for &(cols, rows) in sizes {
                let (answer, is_error) = resize(cols as i64, rows as i64);
                assert!(!is_error, "{plan}: {answer}");
                let began = std::time::Instant::now();
                played::screen(&server, &id);
                slow.push(began.elapsed());
            }
            assert!(p99(&slow) < SLOWEST_READ_RESIZED, "{plan}, {round}: {:?}", p99(&slow));
        }
    }
    for (cols, rows) in [(0, 24), (80, 0), (-1, 24), (i64::MIN, 1)] {
        let (answer, is_error) = resize(cols, rows);
        assert!(is_error && answer["error_code"].is_string(), "{cols}x{rows}: {answer}");
    }
    // What is too large is cut, and the answer says so.
    for (cols, rows) in [(2_001, 1), (1, 1_001), (65_536 + 80, 1), (i64::MAX, 1)] {
        let (answer, is_error) = resize(cols, rows);
        assert!(!is_error && answer["clamped"].is_object(), "{cols}x{rows}: {answer}");
    }
    resize(80, 24);
    server.done("send_keys", json!({ "session_id": id, "keys": "Ctrl-C" }));
    let size = server.done("talk", json!({ "session_id": id, "command": "stty size", "timeout_ms": 30_000 }));
    assert_eq!(size["output"], "24 80");
}
