//! The laws on what real programs sent: the project's own recordings, event by event and byte by byte.

use std::fs;
use std::path::Path;

use kpty_emulator::{Emulator, Settings};

use crate::support::{CastEvent, Reader, cast_events, feed, full, play_event, size};

/// Name, size and events of every recording.
fn recordings() -> Vec<(String, u16, u16, Vec<CastEvent>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/recordings");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let casts = paths.filter(|path| path.extension().is_some_and(|extension| extension == "cast"));
    let recordings: Vec<_> = casts
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let header: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
            let side = |name: &str| u16::try_from(header[name].as_u64().unwrap()).unwrap();
            (path.display().to_string(), side("width"), side("height"), cast_events(&text))
        })
        .collect();
    assert!(recordings.len() >= 20, "the recordings are missing");
    recordings
}

fn terminal(cols: u16, rows: u16) -> Emulator {
    Emulator::new(Settings { size: size(cols, rows), ..Settings::default() })
}

#[test]
fn a_recording_gives_the_same_screen_byte_by_byte() {
    for (name, cols, rows, events) in recordings() {
        let mut whole = terminal(cols, rows);
        let mut bytes = terminal(cols, rows);
        for event in &events {
            play_event(&mut whole, event);
            match event {
                CastEvent::Output(output) => output.iter().for_each(|byte| drop(feed(&mut bytes, [*byte]))),
                CastEvent::Resize(size) => bytes.resize(*size),
            }
        }
        assert_eq!(bytes.screen(), whole.screen(), "{name}");
        assert_eq!(full(&mut bytes), full(&mut whole), "{name}");
    }
}

#[test]
fn a_reader_of_deltas_follows_every_recording() {
    for (_, cols, rows, events) in recordings() {
        let mut emulator = terminal(cols, rows);
        let mut every_event = Reader::default();
        let mut now_and_then = Reader::default();
        for (index, event) in events.iter().enumerate() {
            play_event(&mut emulator, event);
            every_event.read(&mut emulator);
            if index % 7 == 0 {
                now_and_then.read(&mut emulator);
            }
        }
        now_and_then.read(&mut emulator);
    }
}
