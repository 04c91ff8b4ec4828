//! Throughput of redaction, for ordinary text and for text that is slow to redact.
//!
//! Every input is redacted as one text; an input of twice the size must take about twice the time. Every reply of the
//! server is redacted, so the cost of a short one is reported as well.

#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use kpty_guard::Redactor;

/// Size of each input, in bytes.
const SIZE: usize = 8 << 20;
/// Number of short texts redacted per round.
const CALLS: u32 = 1_000;
/// Required throughput.
const LEAST_MB_PER_S: f64 = 50.0;
/// Permitted slowdown for twice the text.
const MOST_GROWTH: f64 = 3.0;

/// Names of inputs and their repeated content.
fn inputs() -> Vec<(&'static str, String)> {
    let token = ["gh", "p_", &"a1B2c3D4e5F6".repeat(3)].concat();
    let log =
        "2026-01-02T03:04:05Z INFO  worker{id=7}: compiled src/terminal/local/terminal.rs in 1.27s (17 units)\r\n";
    let code = "    let token = parser.next_token(&self.key)?; // the key of the map, not a secret\n";
    let block = format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{}-----END RSA PRIVATE KEY-----\n",
        format!("{}\n", "Ab1/".repeat(16)).repeat(20)
    );
    vec![
        ("a build log", log.to_owned()),
        ("source code", code.to_owned()),
        ("a log in colours", format!("\x1b[32m{}\x1b[0m\r\n", log.trim_end())),
        ("hexadecimal digests", format!("{}  file.bin\n", "0f1e2d3c".repeat(8))),
        ("base64 in one line", "iVBORw0KGgoAAAANSUhEUgAA/+9k".to_owned()),
        ("no newline, no keyword", "abcdefghij klmnop qrstuvwx ".to_owned()),
        ("near misses in one line", format!("{} ", &token[..39])),
        ("prefixes only", "ghp_sk-xoxb-AKIAnpm_glpat-".to_owned()),
        ("names without values", "password token secret key auth ".to_owned()),
        ("names and signs", "password=token=secret=key=".to_owned()),
        ("names and paths", "token=/key=/secret=/".to_owned()),
        ("names and quotes", "password=\"token='secret=\"".to_owned()),
        ("one name without an end", "tokenkeysecret".to_owned()),
        ("parts of JWTs", "eyJabcdefgh-eyJabcdefgh.".to_owned()),
        ("URLs", "https://user:@host:80/@a ".to_owned()),
        ("frames without keys", "-----END RSA PRIVATE KEY-----\n".to_owned()),
        ("beginnings without ends", "-----BEGIN RSA PRIVATE KEY-----\n".to_owned()),
        ("cookies", "Cookie: a=b; c=d; e=f; ".to_owned()),
        ("headers", "Authorization: Bearer realm=".to_owned()),
        ("headers in one word", "authorization:".to_owned()),
        ("cookies in one word", "cookie:a=".to_owned()),
        ("names in one word", "key=/token=/".to_owned()),
        ("encoded beginnings", "LS0tLS1CRUdJTi".to_owned()),
        ("dashes before tokens", "eyJabcdefgh--".to_owned()),
        ("ids without secrets", "AKIA1234567890ABCDEF:".to_owned()),
        ("kinds of web keys", "\"kty\"\"d\":".to_owned()),
        ("private keys", block),
        ("secrets", format!("{token} ")),
    ]
}

fn time(redactor: &Redactor, text: &str) -> Duration {
    let began = Instant::now();
    black_box(redactor.redact(black_box(text)));
    began.elapsed()
}

/// Returns the nanoseconds of one call, the fastest of several rounds.
fn per_call(redactor: &Redactor, text: &str) -> u128 {
    let round = |_| {
        let began = Instant::now();
        (0..CALLS).for_each(|_| drop(black_box(redactor.redact(black_box(text)))));
        began.elapsed()
    };
    let fastest = (0..20).map(round).min().unwrap_or_default();
    fastest.as_nanos() / u128::from(CALLS)
}

fn main() {
    let redactor = Redactor::new(["a-known-secret-of-some-length".to_owned()]);
    let line = "2026-01-02T03:04:05Z INFO  worker{id=7}: compiled src/main.rs in 1.27s";
    let screen = format!("{line}\n").repeat(30);
    for (name, text) in [
        ("a screen of 30 lines", screen.as_str()),
        ("the same as it came", &screen.replace('\n', "\r\n")),
        ("a short answer (20 bytes)", "total 12 files, ok\r\n"),
    ] {
        println!("{name:26} {:8} ns per call", per_call(&redactor, text));
    }
    for (name, piece) in inputs() {
        let text: String = piece.chars().cycle().take(SIZE).collect();
        let half = &text[..text.floor_char_boundary(SIZE / 2)];
        // The first call initializes lazy state.
        let _ = time(&redactor, half);
        let (half, whole) = (time(&redactor, half), time(&redactor, &text).min(time(&redactor, &text)));
        let speed = text.len() as f64 / 1e6 / whole.as_secs_f64();
        let growth = whole.as_secs_f64() / half.as_secs_f64();
        let is_met = speed >= LEAST_MB_PER_S && growth <= MOST_GROWTH;
        let verdict = if is_met { "met" } else { "MISSED" };
        println!("{name:26} {speed:8.1} MB/s, twice the text takes {growth:.2} times as long: {verdict}");
    }
}
