//! Pictures of real sessions: over the actions, over MCP, and by the command line.

use kpty::config::{Config, ScreenAccess};
use kpty::error::ErrorCode;
use serde_json::{Value, json};

use crate::server::Server;
use crate::support::{Folder, kpty, replay, repository, shown};
use crate::tools::Rig;

/// The text of an SVG, element by element.
fn texts(svg: &str) -> Vec<&str> {
    let ends = svg.match_indices("</text>").map(|(end, _)| end);
    ends.map(|end| &svg[svg[..end].rfind('>').map_or(0, |at| at + 1)..end]).collect()
}

fn svg_of(answer: &Value) -> &str {
    assert_eq!(answer["image"]["mime_type"], "image/svg+xml", "{answer}");
    answer["image"]["text"].as_str().expect("an SVG")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_screen_is_drawn_as_it_is() {
    let rig = Rig::new();
    let program = ["-c", "echo hello; echo there; exec cat"];
    let shell = rig.create(json!({ "shell": "/bin/sh", "args": program, "cols": 40, "rows": 5 })).await;
    assert_eq!(shell.call("wait", json!({ "text": "there", "timeout_ms": 45_000 })).await["ended_by"], "text");
    let answer = shell.call("screenshot", json!({ "format": "svg" })).await;
    assert_eq!(texts(svg_of(&answer)), ["hello", "there"]);
    assert_eq!((&answer["cols"], &answer["rows"], &answer["width"]), (&json!(40), &json!(5), &json!(416)));
    let answer = shell.call("screenshot", json!({ "scale": "2", "theme": "light", "cursor": false })).await;
    assert_eq!((&answer["format"], &answer["width"], &answer["height"]), (&json!("png"), &json!(832), &json!(232)));
    let data = answer["image"]["data"].as_str().expect("base64");
    assert!(data.starts_with("iVBORw0KGgo"), "a PNG in base64");
    let clamped = shell.call("screenshot", json!({ "scale": 9 })).await;
    assert_eq!(clamped["clamped"]["scale"]["used"], 4);
    for wrong in [json!({ "format": "gif" }), json!({ "theme": "pink" }), json!({ "from_line": 1_000 })] {
        shell.fails("screenshot", wrong, ErrorCode::InvalidParam).await;
    }
    shell.fails("screenshot", json!({ "until_line": 3 }), ErrorCode::MissingParam).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_drawn_by_its_lines() {
    let rig = Rig::new();
    let shell = rig.create(json!({ "cols": 40, "rows": 5 })).await;
    let command = "for n in $(seq 2000); do printf '\\033[31mline %d\\033[0m\\n' $n; done";
    shell.call("talk", json!({ "command": command })).await;
    let found = shell.call("search", json!({ "pattern": "^line 7$" })).await;
    let line = found["matches"][0]["line"].as_u64().unwrap_or_else(|| panic!("no number in {found}"));
    // Finished long ago, and live above the screen.
    for (first, number) in [(line, 7), (line + 1_980, 1_987)] {
        let range = json!({ "format": "svg", "from_line": first, "until_line": first + 2 });
        let answer = shell.call("screenshot", range).await;
        let svg = svg_of(&answer);
        assert_eq!(texts(svg), [format!("line {number}"), format!("line {}", number + 1)]);
        assert_eq!(svg.matches("fill=\"#cd0000\"").count(), 2, "{svg}");
        assert_eq!((&answer["first_line"], &answer["next_line"]), (&json!(first), &json!(first + 2)));
    }
    rig.end().await;
}

/// The mask is as exact as in texts, also where the secret is broken by the edge of the window.
#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_masked_in_pictures() {
    let rig = Rig::new();
    let token = ["ghp", "_", &"a1B2".repeat(9)].concat();
    let shell = rig.create(json!({ "shell": "/bin/cat", "cols": 30, "rows": 8, "args": [] })).await;
    shell.call("send_line", json!({ "data": format!("12345678901234 {token} end") })).await;
    shell.call("wait", json!({ "text": "end", "timeout_ms": 45_000 })).await;
    for range in [json!({}), json!({ "from_line": 0 })] {
        let mut arguments = json!({ "format": "svg" });
        arguments.as_object_mut().expect("an object").extend(range.as_object().expect("an object").clone());
        let answer = shell.call("screenshot", arguments).await;
        let drawn = texts(svg_of(&answer)).concat();
        assert!(drawn.contains("[REDACTED_GITHU") && drawn.contains("end"), "{drawn}");
        assert!(!drawn.contains("a1B2"), "{drawn}");
    }
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_screens_may_not_be_read_they_are_not_drawn() {
    let rig = Rig::with(Config { screen_access: ScreenAccess::Off, ..Config::default() });
    let shell = rig.create(json!({ "shell": "/bin/cat" })).await;
    shell.fails("screenshot", json!({}), ErrorCode::TermReadDisabled).await;
    rig.end().await;
}

#[test]
fn clients_get_a_block_that_models_can_see() {
    let server = Server::start();
    let (id, _) = server.create();
    let ask = |tool: &str, format: &str| {
        let arguments = json!({ "action": "screenshot", "session_id": id, "format": format });
        server.rpc("tools/call", json!({ "name": tool, "arguments": arguments }))["result"]["content"].clone()
    };
    for tool in ["k_pty", "k_pty_view"] {
        let content = ask(tool, "png");
        let [image, text] = content.as_array().expect("blocks").as_slice() else { panic!("{content}") };
        assert_eq!((&image["type"], &image["mimeType"]), (&json!("image"), &json!("image/png")));
        assert!(image["data"].as_str().is_some_and(|data| data.starts_with("iVBORw0KGgo")));
        let answer: Value = serde_json::from_str(text["text"].as_str().expect("a text")).expect("JSON");
        assert_eq!((&answer["ok"], &answer["image"]), (&json!(true), &json!({ "mime_type": "image/png" })));
    }
    let content = ask("k_pty", "svg");
    assert_eq!(content[0]["type"], "resource");
    assert_eq!(content[0]["resource"]["mimeType"], "image/svg+xml");
    assert!(content[0]["resource"]["text"].as_str().is_some_and(|text| text.starts_with("<svg ")));
}

#[test]
fn the_command_line_writes_files() {
    let server = Server::start();
    let (id, _) = server.create();
    let folder = Folder::new();
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    for (name, begins) in [("a.png", &b"\x89PNG\r\n\x1a\n"[..]), ("b.svg", b"<svg ")] {
        let run = server.kpty(&["screenshot", &id, "-o", &path(name)]);
        assert_eq!((run.code, run.stdout.trim_end()), (0, path(name).as_str()), "{}", run.stderr);
        assert!(std::fs::read(path(name)).expect("a file").starts_with(begins), "{name}");
    }
    let run = server.kpty(&["screenshot", &id, "-o", "-", "--format", "svg"]);
    assert!(run.code == 0 && run.stdout.starts_with("<svg ") && run.stdout.ends_with("</svg>\n"), "{}", run.stdout);
    assert_eq!(server.kpty(&["screenshot", "pty_00000000", "-o", &path("c.png")]).code, 3);
    assert!(!folder.path().join("c.png").exists());
}

#[test]
fn a_recording_is_drawn_at_any_moment() {
    let folder = Folder::new();
    let cast = "{\"version\":2,\"width\":20,\"height\":3}\n[0.5,\"o\",\"first\"]\n[2,\"o\",\"\\r\\nlast\"]\n";
    let file = folder.file("x.cast", cast);
    let drawn = |rest: &str| {
        let target = folder.path().join("x.svg");
        let rest = format!("{rest} --svg {}", target.display());
        assert_eq!(shown(replay(&file, &rest)), "");
        folder.read("x.svg")
    };
    assert_eq!(texts(&drawn("--at 1")), ["first"]);
    assert_eq!(texts(&drawn("")), ["first", "last"]);
    assert!(drawn("--theme light").contains("fill=\"#fff\""));
    // Every capture of a real program can be drawn.
    for name in ["vim-edit", "htop", "mc", "unicode-text", "tmux-split"] {
        let cast = repository().join(format!("fixtures/recordings/{name}.cast"));
        let png = folder.path().join("x.png");
        let run = kpty(replay(&cast, &format!("--png {}", png.display())));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{name}");
        assert!(std::fs::read(&png).expect("a file").starts_with(b"\x89PNG"), "{name}");
    }
}
