//! Browser login by link: works for the browser of the user that requested it and for no other user.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::json;

use crate::access::other_user::{can_be_had, get};
use crate::server::Server;
use crate::support::{Folder, finished};

const ROUNDS: usize = 50;

/// Creates a link and returns its path with the code.
fn link(server: &Server) -> String {
    let run = server.kpty(&["open", "--print"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.stdout.trim().strip_prefix(&server.url()).expect("a link to this server").to_owned()
}

/// A stand-in for the browser opener: it records its arguments and environment.
fn opener(folder: &Folder) -> std::path::PathBuf {
    let program = folder.file(
        "xdg-open",
        "#!/bin/bash\nprintf '%s\\n' \"$@\" > \"$SEEN/arguments\"\nenv > \"$SEEN/environment\"\n\
         if [[ -f $1 ]]; then stat -c '%a' \"$1\" \"${1%/*}\" > \"$SEEN/modes\"; cp \"$1\" \"$SEEN/page\"; fi\n\
         if [[ -n $VISIT ]]; then eval \"$VISIT\"; fi\n",
    );
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("our file");
    program
}

/// Runs `kpty open` on a machine with windows.
fn open(server: &Server, folder: &Folder, visit: &str) -> Command {
    let mut command = server.command(&["open"]);
    let path = format!("{}:/usr/bin:/bin", opener(folder).parent().expect("a folder").display());
    command.env("PATH", path).env("DISPLAY", ":0").env("SEEN", folder.path()).env("VISIT", visit);
    command.env("XDG_RUNTIME_DIR", folder.path()).env("RUST_LOG", "trace");
    command
}

#[test]
fn no_program_is_told_a_code_and_the_own_browser_gets_in() {
    let server = Server::start();
    let folder = Folder::new();
    assert_eq!(server.get("/ui/open").status, 401, "nobody was announced");
    for _ in 0..3 {
        let run = finished(open(&server, &folder, "").output().expect("kpty starts"));
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
        let target = folder.read("arguments").trim().to_owned();
        for text in [&target, &folder.read("environment"), &run.stderr] {
            assert!(!text.contains("code="), "{text}");
        }
        assert_eq!(target, format!("{}/ui/open", server.url()));
        if can_be_had() {
            for _ in 0..ROUNDS {
                let answer = get(&server, "/ui/open");
                assert!(answer.starts_with("HTTP/1.1 401") && !answer.contains("set-cookie"), "{answer}");
            }
        }
        let opened = server.get("/ui/open");
        assert_eq!((opened.status, opened.header("location")), (303, Some("/ui")));
        let cookie = opened.header("set-cookie").expect("a cookie").split(';').next().expect("a pair").to_owned();
        assert_eq!(server.http("GET", "/ui", &[("Cookie", &cookie)], b"").status, 200);
        assert_eq!(server.get("/ui/open").status, 401, "once");
    }
}

/// The kernel reports the connection's user, so another user that learns a code cannot use it.
#[test]
fn a_thief_of_a_code_wins_nothing() {
    if !can_be_had() {
        return;
    }
    let server = Server::start();
    for round in 0..ROUNDS {
        let link = link(&server);
        let answer = get(&server, &link);
        assert!(answer.starts_with("HTTP/1.1 401") && !answer.contains("set-cookie"), "{round}: {answer}");
        assert_eq!(server.get(&link).status, 303, "{round}: it is still good for its owner");
    }
}

/// Another user cannot use a login either: browsers send cookies to every port of a host.
#[test]
fn a_thief_of_a_cookie_wins_nothing() {
    if !can_be_had() {
        return;
    }
    let server = Server::start();
    let opened = server.get(&link(&server));
    let cookie = opened.header("set-cookie").expect("a cookie").split(';').next().expect("a pair").to_owned();
    let answer = crate::access::other_user::get_with(&server, "/ui", &format!("Cookie: {cookie}\r\n"));
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert_eq!(server.http("GET", "/ui", &[("Cookie", &cookie)], b"").status, 200);
}

/// For a browser, a link from a file is cross-site: a page redirects it, so that it sends its cookie.
#[test]
fn a_browser_that_comes_from_a_file_gets_in() {
    let server = Server::start();
    let from_file = [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate"), ("Sec-Fetch-Dest", "document")];
    let opened = server.http("GET", &link(&server), &from_file, b"");
    assert_eq!(opened.status, 200);
    assert!(opened.header("set-cookie").is_some() && opened.body.contains("0;url=/ui\""), "{}", opened.body);
    assert_eq!(server.http("GET", "/ui", &from_file, b"").status, 403);
}

/// Where the server cannot identify the browser's user, the code is in a private file, which is removed after use.
#[test]
fn elsewhere_the_code_is_in_a_file_that_goes() {
    if !can_be_had() {
        return;
    }
    let folder = Folder::new();
    let server = crate::access::other_user::with_token(&folder);
    let theirs = Folder::new();
    let visit = "link=$(grep -o '/ui?code=[0-9a-f]*' \"$1\"); exec 3<>/dev/tcp/127.0.0.1/$PORT; \
                 printf 'GET %s HTTP/1.1\\r\\nHost: 127.0.0.1:%s\\r\\nConnection: close\\r\\n\\r\\n' \"$link\" $PORT >&3; \
                 cat <&3 > \"$SEEN/answer\"";
    let mut command = open(&server, &theirs, visit);
    command.env("PORT", server.port.to_string());
    let run = crate::access::other_user::run_with_token(&folder, &theirs, command);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    let target = theirs.read("arguments").trim().to_owned();
    let page = theirs.read("page");
    let code = page.split("code=").nth(1).and_then(|rest| rest.split('"').next()).expect("a code");
    assert_eq!(code.len(), 32, "{page}");
    for text in [&target, &theirs.read("environment"), &run.stderr] {
        assert!(!text.contains(code), "{text}");
    }
    assert_eq!(theirs.read("modes"), "600\n700\n");
    assert!(theirs.read("answer").starts_with("HTTP/1.1 303"), "{}", theirs.read("answer"));
    assert!(!std::path::Path::new(&target).exists(), "{target} is gone");
}

#[test]
fn the_first_link_is_for_a_terminal_and_never_for_a_log() {
    let mut log = Server::start();
    log.signal("TERM");
    log.end();
    assert!(!log.said_in_all().contains("code="), "{}", log.said_in_all());
    assert!(log.said_in_all().contains(&format!("kpty open --url {}", log.url())), "{}", log.said_in_all());
    let server = Server::start();
    let state = server.state.path().join("inner");
    let arguments = ["serve", "--port", "0", "--state-dir", state.to_str().expect("UTF-8")];
    let created = server.done("create", json!({ "shell": env!("CARGO_BIN_EXE_kpty"), "args": arguments, "cols": 200 }));
    server.done(
        "wait",
        json!({ "session_id": created["session_id"], "regex": "http://127.0.0.1:\\d+/ui\\?code=[0-9a-f]{32}" }),
    );
    // A server ignores the hang-up that ends other sessions.
    server.done("kill", json!({ "session_id": created["session_id"] }));
}

#[test]
fn a_server_logs_no_code() {
    let mut server = Server::start_with(&[("RUST_LOG", "trace")], &[]);
    let link = link(&server);
    let code = link.rsplit('=').next().expect("a code").to_owned();
    assert_eq!(server.get(&format!("/ui?code={}", "0".repeat(32))).status, 401);
    assert_eq!(server.get(&link).status, 303);
    server.signal("TERM");
    server.end();
    assert!(!server.said_in_all().contains(&code));
}
