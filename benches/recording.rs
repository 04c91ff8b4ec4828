//! Cost of recording for a `talk`: two sets of tools, one with the traffic log, session logs and state folder, one
//! without; called alternately in the same run.

#![allow(clippy::print_stdout, reason = "a benchmark's result is what it prints")]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use kpty::config::Config;
use kpty::store::{Saver, Store};
use kpty::tools::{Caller, Tools};
use kpty::traffic::{Journal, Retention, TrafficOptions};
use serde_json::{Map, Value, json};

use crate::support::{COLS, Home, ROWS, median, percentile, rounds, runtime, verdict};

/// Calls of each kind per round.
const TALKS: usize = 400;
/// Permitted cost of recording.
const GOAL: f64 = 1.03;

fn main() {
    let runtime = runtime();
    let home = Home::new();
    runtime.block_on(async {
        tokio::spawn(async move { compare(&home).await }).await.expect("the benchmark");
    });
}

/// Tools with one session, and whether they record.
struct Side {
    tools: Tools,
    session: String,
    _saver: Saver,
}

impl Side {
    async fn new(home: &Home, name: &str, records: bool) -> Self {
        let config =
            Config { project_root: home.path().to_owned(), inherited: home.environment(), ..Config::default() };
        let tools = Tools::new(config);
        let folder = home.path().join(name);
        let (store, restored) = Store::open(&folder).expect("a state folder");
        let saver = Saver::start(store, Arc::new(tools.registry().clone()), restored.orphans);
        if records {
            tools.traffic().start(TrafficOptions {
                folder: Some(folder),
                retention: Retention { age: Duration::from_secs(24 * 3_600), rows: 10_000 },
                journal: Some(Box::new(saver.journal()) as Journal),
                gateway: None,
                own_address: None,
            });
        }
        let mut side = Self { tools, session: String::new(), _saver: saver };
        let created = side.call(json!({ "action": "create", "shell": "/bin/bash", "cols": COLS, "rows": ROWS })).await;
        side.session = created["session_id"].as_str().expect("a session").to_owned();
        side.talk(0).await;
        side
    }

    async fn call(&self, arguments: Value) -> Map<String, Value> {
        let Value::Object(arguments) = arguments else { unreachable!("an object") };
        self.tools.call(&arguments, Caller::named("bench")).await.body
    }

    async fn talk(&self, round: usize) -> Duration {
        let began = Instant::now();
        let command = format!("echo X{round}");
        let answer = self.call(json!({ "action": "talk", "session_id": self.session, "command": command })).await;
        let took = began.elapsed();
        assert_eq!(answer["output"], json!(format!("X{round}")));
        took
    }
}

async fn compare(home: &Home) {
    let off = Side::new(home, "off", false).await;
    let on = Side::new(home, "on", true).await;
    println!("{:<28} {:>9} {:>9} {:>7}", "talk `echo X`, µs, p50", "off", "recorded", "ratio");
    let mut ratios = Vec::new();
    for _ in 0..rounds(9) {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for round in 0..TALKS {
            // The order alternates, so that neither kind always follows the other.
            if round % 2 == 0 {
                without.push(off.talk(round).await);
                with.push(on.talk(round).await);
            } else {
                with.push(on.talk(round).await);
                without.push(off.talk(round).await);
            }
        }
        let (without, with) = (percentile(&mut without, 0.5), percentile(&mut with, 0.5));
        println!("{:<28} {without:>9.0} {with:>9.0} {:>7.3}", "", with / without);
        ratios.push(with / without);
    }
    let (ratio, spread) = median(&ratios);
    let counts = on.tools.traffic().counts();
    println!("recorded {}, dropped {}, failed {}", counts.recorded, counts.dropped, counts.failed);
    println!("recording, to none: {ratio:.3} (spread {spread:.0} %)   goal {GOAL}: {}", verdict(ratio <= GOAL));
    for side in [&off, &on] {
        assert_eq!(side.tools.shutdown().await, []);
    }
    let traffic = on.tools.traffic().clone();
    tokio::task::spawn_blocking(move || traffic.finish()).await.expect("the record ends");
}
