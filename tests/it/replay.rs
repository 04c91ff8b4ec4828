//! `kpty replay`: what it prints, what it refuses, and what `--check` makes of a folder.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Folder, command, finished, kpty, refused, replay, shown};

/// Three lines at half past each second; the first is longer than 20 columns.
const V2: &str = r#"{"version": 2, "width": 20, "height": 5}
[0.5, "o", "a line of thirty characters ..\r\n"]
[1.0, "i", "typed, not shown"]
[1.5, "o", "second\r\n"]
[2.0, "m", "marker"]
[2.5, "o", "\u001b[1mthird\u001b[0m"]
"#;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("--json prints JSON")
}

#[test]
fn raw_bytes_are_shown_at_the_size_that_is_given() {
    let folder = Folder::new();
    let raw = folder.file("raw", "abcdefgh\r\n\x1b[31mred\x1b[0m   \r\n\r\n\x1b[2Hx");
    for (options, expected) in [
        ("", "abcdefgh\nxed\n"),
        ("--cols 4 --no-merge", "abcd\nxfgh\nred\n"),
        ("--cols 4", "abcdxfgh\nred\n"),
        ("--cols 8 --rows 2", "\nx\n"),
        ("--cols 8 --rows 2 --mode full", "abcdefgh\nred\n\nx\n"),
        ("--rows 1 --mode full", "abcdefgh\nred\n\nx\n"),
        ("--cols 2000 --rows 1000", "abcdefgh\nxed\n"),
    ] {
        assert_eq!(shown(replay(&raw, options)), expected, "{options}");
    }
}

#[test]
fn bytes_that_are_not_text_do_no_harm() {
    let folder = Folder::new();
    let noise: Vec<u8> = (0..20_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (noise, empty) = (folder.file("noise", noise), folder.file("empty", ""));
    for engine in ["alacritty", "vt100"] {
        for mode in ["viewport", "tail", "full", "delta"] {
            let options = format!("--mode {mode} --engine {engine} --cols 13 --rows 7");
            shown(replay(&noise, &options));
            assert_eq!(shown(replay(&empty, &options)), "", "{options}");
        }
    }
}

#[test]
fn every_cast_version_plays_the_same() {
    let v1 = r#"{"version": 1, "width": 20, "height": 5, "stdout": [
        [0.5, "a line of thirty characters ..\r\n"], [1.0, "second\r\n"], [1.0, "third"]]}"#;
    let v3 = r#"{"version": 3, "term": {"cols": 20, "rows": 5, "type": "xterm"}}
[0.5, "o", "a line of thirty characters ..\r\n"]
# a comment
[1.0, "o", "second\r\n"]
[1.0, "o", "third"]
[0.0, "x", "0"]
"#;
    let folder = Folder::new();
    for (name, cast) in [("v1.cast", v1), ("v2.cast", V2), ("v3.cast", v3)] {
        let file = folder.file(name, cast);
        for (options, expected) in [
            ("", "a line of thirty characters ..\nsecond\nthird\n"),
            ("--no-merge", "a line of thirty cha\nracters ..\nsecond\nthird\n"),
            ("--cols 12 --no-merge", "a line of th\nirty charact\ners ..\nsecond\nthird\n"),
            ("--rows 2", "second\nthird\n"),
            ("--at 0", ""),
            ("--at 1.4", "a line of thirty characters ..\n"),
            ("--at 1.5", "a line of thirty characters ..\nsecond\n"),
            ("--at 1e6 --rows 1", "third\n"),
            ("--at 1.5 --mode delta", "third\n"),
            ("--at 9 --mode delta", ""),
            ("--mode delta --max-lines 1", "third\n"),
        ] {
            assert_eq!(shown(replay(&file, options)), expected, "{name} {options}");
        }
    }
}

#[test]
fn a_resize_in_the_recording_reflows_what_is_there() {
    let folder = Folder::new();
    let v2 = format!("{V2}[3.0, \"r\", \"40x10\"]\n");
    let v3 = "{\"version\":3,\"term\":{\"cols\":20,\"rows\":5}}\n[0,\"o\",\"a line of thirty characters ..\"]\n[3,\"r\",\"40x10\"]";
    for (name, cast) in [("v2.cast", v2.as_str()), ("v3.cast", v3)] {
        let file = folder.file(name, cast);
        for (options, cols, rows, first) in [
            ("--at 2.9", 20, 5, "a line of thirty cha"),
            ("--at 2.9 --cols 30", 30, 5, "a line of thirty characters .."),
            ("", 40, 10, "a line of thirty characters .."),
            ("--cols 10 --rows 3", 40, 10, "a line of thirty characters .."),
        ] {
            let answer = parsed(&shown(replay(&file, &format!("{options} --json --no-merge --mode full"))));
            let found = (&answer["cols"], &answer["rows"], &answer["lines"][0]);
            assert_eq!(found, (&json!(cols), &json!(rows), &json!(first)), "{name} {options}");
        }
    }
}

#[test]
fn each_mode_shows_its_part_of_the_history() {
    let folder = Folder::new();
    let lines: String = (1..=50).map(|n| format!("{n}\r\n")).collect();
    let raw = folder.file("raw", lines);
    let numbers = |range: std::ops::RangeInclusive<u32>| range.map(|n| format!("{n}\n")).collect::<String>();
    for engine in ["alacritty", "vt100"] {
        for (options, expected) in [
            ("", numbers(42..=50)),
            ("--mode viewport --max-lines 2", numbers(42..=50)),
            ("--mode tail", numbers(11..=50)),
            ("--mode tail --max-lines 3", numbers(48..=50)),
            ("--mode full", numbers(1..=50)),
            ("--mode full --max-lines 4", numbers(47..=50)),
            ("--mode full --max-lines 0", String::new()),
            ("--mode delta", numbers(1..=50)),
        ] {
            let options = format!("{options} --rows 10 --engine {engine}");
            assert_eq!(shown(replay(&raw, &options)), expected, "{options}");
        }
    }
}

#[test]
fn the_engine_that_is_named_is_used() {
    let folder = Folder::new();
    let raw = folder.file("raw", "\x1b(0lqk\x1b(B");
    assert_eq!(shown(replay(&raw, "")), "┌─┐\n");
    assert_eq!(shown(replay(&raw, "--engine alacritty")), "┌─┐\n");
    assert_eq!(shown(replay(&raw, "--engine vt100")), "lqk\n");
}

#[test]
fn blanks_and_empty_rows_at_the_end_are_not_printed() {
    let folder = Folder::new();
    let raw = folder.file("raw", "\r\n  a  \r\n\r\nb\x1b[41m    \x1b[0m\r\n   \r\n\r\n");
    for mode in ["viewport", "tail", "full", "delta"] {
        assert_eq!(shown(replay(&raw, &format!("--mode {mode}"))), "\n  a\n\nb\n", "{mode}");
    }
}

#[test]
fn json_gives_every_field() {
    let folder = Folder::new();
    let cast = folder.file("v2.cast", V2);
    let answer = parsed(&shown(replay(&cast, "--json")));
    let expected = json!({
        "text": "a line of thirty characters ..\nsecond\nthird\n",
        "lines": ["a line of thirty characters ..", "second", "third", ""],
        "line_numbers": [0, 1, 2, 3],
        "truncated": false,
        "dropped_chars": 0,
        "dropped_lines": 0,
        "first_line": 0,
        "next_line": 3,
        "oldest_line": 0,
        "cursor_line": 2,
        "cursor_col": 5,
        "cursor_row": 3,
        "cols": 20,
        "rows": 5,
        "buffer_type": "normal",
    });
    assert_eq!(answer, expected);
    for (options, changes) in [
        (
            "--no-merge --rows 3",
            json!({
                "text": "racters ..\nsecond\nthird", "lines": ["racters ..", "second", "third"],
                "line_numbers": [0, 1, 2], "cursor_row": 2, "rows": 3,
            }),
        ),
        (
            "--mode full --max-lines 1",
            json!({
                "text": "third", "lines": ["third"], "line_numbers": [2], "first_line": 2,
                "truncated": true, "dropped_lines": 2,
            }),
        ),
        (
            "--mode tail --max-lines 1",
            json!({"text": "third", "lines": ["third"], "line_numbers": [2], "first_line": 2}),
        ),
        (
            "--mode delta --at 1.5",
            json!({
                "text": "third", "lines": ["third"], "line_numbers": [2], "first_line": 2,
                "marker_disposed": false, "missed_lines": 0,
            }),
        ),
        (
            "--mode delta --at 9",
            json!({
                "text": "", "lines": [], "line_numbers": [], "first_line": 3,
                "marker_disposed": false, "missed_lines": 0,
            }),
        ),
    ] {
        let mut expected = expected.clone();
        for (field, value) in changes.as_object().expect("an object") {
            expected[field] = value.clone();
        }
        assert_eq!(parsed(&shown(replay(&cast, &format!("--json {options}")))), expected, "{options}");
    }
}

#[test]
fn json_tells_the_alternate_screen() {
    let folder = Folder::new();
    let raw = folder.file("raw", "shell\r\n\x1b[?1049h\x1b[Hfull screen");
    let answer = parsed(&shown(replay(&raw, "--json --mode tail")));
    assert_eq!((&answer["buffer_type"], &answer["lines"]), (&json!("alternate"), &json!(["full screen"])));
}

#[test]
fn a_delta_from_the_shell_into_a_full_screen_program_shows_its_screen() {
    let folder = Folder::new();
    let cast = r#"{"version": 2, "width": 20, "height": 3}
[1, "o", "shell\r\n"]
[2, "o", "\u001b[?1049h\u001b[Hone\r\ntwo"]
[3, "o", "\u001b[HONE"]
[4, "o", "\u001b[?1049lback"]
"#;
    let cast = folder.file("x.cast", cast);
    assert_eq!(shown(replay(&cast, "--mode delta --at 1")), "back\n");
    assert_eq!(shown(replay(&cast, "--mode delta --at 2")), "back\n");
    assert_eq!(shown(replay(&cast, "--at 3")), "ONE\ntwo\n");
}

#[test]
fn a_refusal_says_what_is_wrong() {
    let folder = Folder::new();
    let (raw, cast) = (folder.file("raw", "x"), folder.file("v2.cast", V2));
    for (arguments, expected) in [
        (replay(&folder.path().join("none"), ""), vec!["cannot read", "none", "No such file"]),
        (replay(folder.path(), ""), vec!["cannot read", "directory"]),
        (replay(&raw, "--cols 0"), vec!["0 columns", "1x1 to 2000x1000"]),
        (replay(&raw, "--rows 0"), vec!["0 rows", "1x1 to 2000x1000"]),
        (replay(&raw, "--cols 2001"), vec!["2001 columns", "1x1 to 2000x1000"]),
        (replay(&raw, "--rows 1001"), vec!["1001 rows", "1x1 to 2000x1000"]),
        (replay(&raw, "--cols 70000"), vec!["70000", "--cols"]),
        (replay(&raw, "--cols wide"), vec!["wide", "--cols"]),
        (replay(&raw, "--at 1"), vec!["--at", ".cast"]),
        (replay(&cast, "--at -1"), vec!["--at -1", "seconds from the start"]),
        (replay(&cast, "--at=-0.5"), vec!["--at -0.5", "seconds from the start"]),
        (replay(&cast, "--at NaN"), vec!["--at NaN", "seconds from the start"]),
        (replay(&cast, "--at inf"), vec!["--at inf", "seconds from the start"]),
        (replay(&cast, "--at soon"), vec!["soon", "--at"]),
        (replay(&raw, "--mode half"), vec!["half", "--mode"]),
        (replay(&raw, "--engine xterm"), vec!["xterm", "--engine"]),
        (replay(&raw, "--max-lines -1"), vec!["-1"]),
        (replay(&raw, "--update"), vec!["--update"]),
        (vec!["replay".into(), "--update".into()], vec!["required"]),
        (replay(&raw, "second"), vec!["second"]),
        (vec!["replay".into()], vec!["required"]),
        (vec!["rewind".into()], vec!["rewind"]),
        (vec![], vec![""]),
    ] {
        let message = refused(&arguments);
        for part in expected {
            assert!(message.contains(part), "{arguments:?}: {message:?} does not say {part:?}");
        }
    }
}

#[test]
fn a_program_without_arguments_explains_itself() {
    let run = kpty([""; 0]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("Usage: kpty") && run.stderr.contains("replay"), "{}", run.stderr);
    assert!(shown(["--help"]).contains("Usage: kpty"));
    assert!(shown(["replay", "--help"]).contains("--check"));
    assert_eq!(shown(["--version"]), concat!("kpty ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn a_bad_recording_is_named_with_its_line() {
    let folder = Folder::new();
    let header = r#"{"version": 2, "width": 20, "height": 5}"#;
    for (name, content, line, expected) in [
        ("empty", String::new(), 1, "the file is empty"),
        ("text", "hello\n".to_owned(), 1, "not an asciicast header"),
        ("array", "[1]".to_owned(), 1, "not an asciicast header"),
        ("future", r#"{"version": 4, "width": 2, "height": 2}"#.to_owned(), 1, "version 4"),
        ("sizeless", r#"{"version": 2}"#.to_owned(), 1, "no width and height"),
        ("zero", r#"{"version": 2, "width": 0, "height": 5}"#.to_owned(), 1, "0 columns"),
        ("huge", r#"{"version": 2, "width": 2001, "height": 5}"#.to_owned(), 1, "2001 columns"),
        ("cut", format!("{header}\n[1, \"o\", \"a\"]\n[2, \"o\", \"b"), 3, "not an event"),
        ("short", format!("{header}\n[1, \"o\"]"), 2, "not an event"),
        ("object", format!("{header}\n\n{{}}"), 3, "not an event"),
        ("back", format!("{header}\n[-1, \"o\", \"a\"]"), 2, "seconds"),
        ("number", format!("{header}\n[1, \"o\", 7]"), 2, "not text"),
        ("resize", format!("{header}\n[1, \"r\", \"80*24\"]"), 2, "80x24"),
        ("resized to nothing", format!("{header}\n[1, \"r\", \"80x0\"]"), 2, "0 rows"),
        (
            "for ever",
            "{\"version\":3,\"term\":{\"cols\":2,\"rows\":2}}\n[1e19,\"o\",\"\"]\n[1e19,\"o\",\"\"]".to_owned(),
            3,
            "seconds",
        ),
    ] {
        let file = folder.file(&format!("{name}.cast"), content);
        let run = kpty(replay(&file, ""));
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{name}: {}", run.stderr);
        let start = format!("kpty: {}, line {line}: ", file.display());
        assert!(run.stderr.starts_with(&start) && run.stderr.contains(expected), "{name}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{name}: {}", run.stderr);
        assert_eq!(run.stderr.matches("line ").count(), 1, "{name} names one line: {}", run.stderr);
    }
    let old = r#"{"version": 1, "width": 2, "height": 2, "stdout": [[0, "a"], [-1, "b"]]}"#;
    assert!(refused(replay(&folder.file("old.cast", old), "")).contains("entry 1"));
    assert!(refused(replay(&folder.file("bytes.cast", [0xff, 0xfe]), "")).contains("UTF-8"));
}

/// `kpty replay --check FOLDER …`.
fn check(folder: &Path, rest: &str) -> Vec<std::path::PathBuf> {
    let mut arguments = vec!["replay".into(), "--check".into(), folder.to_owned()];
    arguments.extend(rest.split_whitespace().map(Into::into));
    arguments
}

#[test]
fn a_check_compares_writes_and_compares_again() {
    let folder = Folder::new();
    folder.file("one.cast", V2);
    folder.file("two.bytes", "wrapped line\r\nend   ");
    folder.file("two.json", r#"{"cols": 8, "rows": 3}"#);
    folder.file("notes.md", "not a recording");

    let nothing_yet = shown(check(folder.path(), ""));
    assert!(nothing_yet.contains("one: nothing to compare with") && nothing_yet.contains("0 expectations"));

    let updated = shown(check(folder.path(), "--update"));
    for name in ["one.viewport.txt", "one.full.txt", "two.viewport.txt", "two.full.txt"] {
        assert!(updated.contains(&format!("updated {name}\n")), "{updated}");
    }
    assert_eq!(folder.read("two.viewport.txt"), "wrapped\nline\nend\n", "a viewport is rows");
    assert_eq!(folder.read("two.full.txt"), "wrapped line\nend\n", "the rest is lines");
    assert!(!folder.path().join("two.tail.txt").exists(), "a tail is only written where there is one");
    let same = "2 recordings, 4 expectations: 4 as expected, 0 different\n";
    assert_eq!(shown(check(folder.path(), "")), same);
    assert_eq!(shown(check(folder.path(), "--update")), same, "nothing to update");

    folder.file("two.full.txt", "wrapped line   \nEND\n\n\n");
    folder.file("two.tail.txt", "");
    let run = kpty(check(folder.path(), ""));
    assert_eq!((run.code, run.stderr.as_str()), (1, ""));
    let expected = "two.tail.txt differs:\n     1 +wrapped line\n     2 +end\n\
                    two.full.txt differs:\n     2 -END\n     2 +end\n\
                    2 recordings, 5 expectations: 3 as expected, 2 different\n";
    assert_eq!(run.stdout, expected);

    let updated = shown(check(folder.path(), "--update"));
    assert!(updated.starts_with("updated two.tail.txt\nupdated two.full.txt\n"), "{updated}");
    assert_eq!(folder.read("two.tail.txt"), folder.read("two.full.txt"));
    assert!(shown(check(folder.path(), "")).contains("5 as expected, 0 different"));
}

#[test]
fn a_check_asks_the_engine_that_is_named() {
    let folder = Folder::new();
    folder.file("x.bytes", "\x1b(0q");
    folder.file("x.json", r#"{"cols": 8, "rows": 3}"#);
    shown(check(folder.path(), "--update"));
    assert_eq!(kpty(check(folder.path(), "--engine vt100")).code, 1);
    assert_eq!(kpty(check(folder.path(), "--engine alacritty")).code, 0);
}

#[test]
fn a_check_that_cannot_be_made_is_refused() {
    let folder = Folder::new();
    assert!(refused(check(folder.path(), "")).contains("holds no NAME.cast and no NAME.bytes"));
    let none = folder.path().join("none");
    assert!(refused(check(&none, "")).contains("cannot list"));
    for rest in ["file", "--cols 80", "--rows 24", "--mode tail", "--max-lines 1", "--no-merge", "--at 1", "--json"] {
        assert!(refused(check(folder.path(), rest)).contains("cannot be used with"), "{rest}");
    }

    let bytes = folder.file("x.bytes", "x");
    let message = refused(check(folder.path(), ""));
    let says = [&bytes.display().to_string(), "size is missing", "x.json", r#"{"cols": 80, "rows": 24}"#];
    assert!(says.iter().all(|part| message.contains(*part)), "{message}");
    for (json, expected) in [
        ("", "a size like"),
        ("{}", "missing field"),
        (r#"{"cols": "8", "rows": 3}"#, "invalid type"),
        (r#"{"cols": 0, "rows": 3}"#, "0 columns"),
    ] {
        folder.file("x.json", json);
        let message = refused(check(folder.path(), ""));
        assert!(message.contains("x.json") && message.contains(expected), "{json}: {message}");
    }

    folder.file("x.json", r#"{"cols": 8, "rows": 3}"#);
    folder.file("bad.cast", "no");
    assert!(refused(check(folder.path(), "")).contains("bad.cast, line 1"), "one bad recording is not passed over");
    fs::remove_file(folder.path().join("bad.cast")).expect("the file is there");
    fs::create_dir(folder.path().join("x.full.txt")).expect("a writable folder");
    assert!(refused(check(folder.path(), "")).contains("cannot read"));
}

#[test]
fn a_reader_that_went_away_ends_the_program_quietly() {
    let folder = Folder::new();
    let raw = folder.file("raw", "line\r\n".repeat(5_000));
    folder.file("x.cast", V2);
    for arguments in [replay(&raw, "--mode full"), replay(&raw, "--json"), check(folder.path(), "")] {
        // The reading end is closed before the program starts: no race about who is first.
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let run = finished(command(&arguments).stdout(writer).output().expect("kpty starts"));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let folder = Folder::new();
    let raw = folder.file("raw", "line");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has a full device");
    let run = finished(command(replay(&raw, "")).stdout(full).output().expect("kpty starts"));
    assert_eq!(run.code, 2);
    assert!(run.stderr.starts_with("kpty: cannot write to standard output: "), "{}", run.stderr);
}
