//! A server with the fixtures of the official conformance suite, on a free port that it prints. The argument is a
//! folder for its files. It ends when its standard input does.

mod fixtures;
mod rounds;

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::exit;

use kpty::server::hosting::Host;

use fixtures::Fixtures;

fn main() {
    let state = std::env::args().nth(1).map(PathBuf::from).expect("a folder");
    std::thread::spawn(|| {
        let mut rest = Vec::new();
        // However it ends, whoever started this is gone.
        let _ = std::io::stdin().read_to_end(&mut rest);
        exit(0);
    });
    let runtime = kpty::runtime::runtime().expect("threads");
    runtime.block_on(async {
        let server = Host::bind(Fixtures).await.expect("a free port");
        writeln!(std::io::stdout(), "{}", server.address()).expect("somebody who reads");
        server.run(&state).await.expect("a server");
    });
}
