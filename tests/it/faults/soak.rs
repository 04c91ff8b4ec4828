//! A mixed load for a while: memory is flat and nothing fails.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::live::queries::resident_kib;
use crate::live::{Seeded, amount};
use crate::server::Server;

const SESSIONS: usize = 20;
/// What the server may be larger by in the last third of the time than in the one before.
const GROWTH_KIB: u64 = 8 << 10;

/// Does one of many things to a session; it may be replaced.
fn act(server: &Server, id: &mut String, random: &mut Seeded) {
    match random.below(12) {
        0 => {
            server.done("kill", json!({ "session_id": id }));
            *id = server.create().0;
        }
        1 => {
            let (cols, rows) = (40 + random.below(200), 10 + random.below(60));
            server.done("resize", json!({ "session_id": id, "cols": cols, "rows": rows }));
        }
        2 => drop(server.done("term_read", json!({ "session_id": id, "mode": "tail", "max_lines": 100 }))),
        3 => drop(server.done("search", json!({ "session_id": id, "text": "7" }))),
        4..8 => {
            let command = format!("cat stream-{}; printf '\\030\\033\\\\\\033[!p\\033c'", random.below(8));
            server.call("talk", json!({ "session_id": id, "command": command, "timeout_ms": 45_000 }));
        }
        _ => {
            let number = random.below(3_000);
            let command = format!("seq {number} {}; echo last-{number}", number + 2_000);
            let told = server.done("talk", json!({ "session_id": id, "command": command, "timeout_ms": 45_000 }));
            assert!(told["output"].as_str().is_some_and(|text| text.ends_with(&format!("last-{number}"))), "{told}");
        }
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures of a long run")]
#[expect(clippy::disallowed_methods, reason = "a size now and then is enough")]
fn a_mixed_load_leaves_memory_flat() {
    let server = Server::start();
    for (number, bytes) in crate::hostile::hungry(64 << 10).iter().enumerate() {
        std::fs::write(server.state.path().join(format!("stream-{number}")), bytes).expect("a writable folder");
    }
    let whole = Duration::from_secs(amount(18, 600) as u64);
    let mut ids: Vec<String> = (0..SESSIONS).map(|_| server.create().0).collect();
    let began = Instant::now();
    let sizes = std::thread::scope(|scope| {
        for (part, ids) in ids.chunks_mut(SESSIONS / 4).enumerate() {
            let server = &server;
            scope.spawn(move || {
                let mut random = Seeded::new(part as u64);
                while began.elapsed() < whole {
                    let index = random.below(ids.len() as u64) as usize;
                    act(server, &mut ids[index], &mut random);
                }
            });
        }
        let mut sizes = Vec::new();
        while began.elapsed() < whole {
            sizes.push((began.elapsed(), resident_kib(server.pid())));
            assert_eq!(server.get("/health").status, 200);
            std::thread::sleep(Duration::from_millis(200));
        }
        sizes
    });
    let most = |from: u32, until: u32| {
        let within = |(at, _): &&(Duration, u64)| *at >= whole * from / 3 && *at < whole * until / 3;
        sizes.iter().filter(within).map(|(_, kib)| *kib).max().unwrap_or(0)
    };
    let thirds = [most(0, 1), most(1, 2), most(2, 3)];
    println!("{} s of mixed load: at most {thirds:?} KiB in each third", whole.as_secs());
    assert!(thirds[2] < thirds[1] + GROWTH_KIB, "{thirds:?}");
}
