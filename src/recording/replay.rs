//! Replays a recording through the emulator.
//!
//! Owns the event order and the clock of a replay; independent of files and arguments.

use std::time::Duration;

use kpty_emulator::{Emulator, EngineKind, Settings, Size};

use crate::recording::{Action, Event, Recording};

/// A terminal that a recording is replayed on.
pub struct Player<'a> {
    emulator: Emulator,
    rest: &'a [Event],
}

impl<'a> Player<'a> {
    /// Creates a terminal in its initial state. An explicit size overrides the recording's.
    pub fn new(recording: &'a Recording, engine: EngineKind, size: Option<Size>) -> Self {
        let size = size.or(recording.size).unwrap_or_default();
        let emulator = Emulator::new(Settings { size, engine, ..Settings::default() });
        Self { emulator, rest: &recording.events }
    }

    /// Replays events up to and including a time.
    pub fn play_until(&mut self, moment: Duration) {
        let due = self.rest.partition_point(|event| event.at <= moment);
        let (now, later) = self.rest.split_at(due);
        for event in now {
            self.play(event);
        }
        self.emulator.tick(moment);
        self.rest = later;
    }

    /// Replays the remaining events and flushes pending output.
    pub fn play_to_end(&mut self) {
        for event in std::mem::take(&mut self.rest) {
            self.play(event);
        }
        self.emulator.flush();
    }

    /// Returns the terminal in its current state.
    pub fn emulator(&mut self) -> &mut Emulator {
        &mut self.emulator
    }

    /// Applies one event. Terminal replies are discarded, since no program reads them.
    fn play(&mut self, event: &Event) {
        match &event.action {
            Action::Output(bytes) => {
                self.emulator.feed(event.at, bytes);
            }
            Action::Resize(size) => self.emulator.resize(*size),
        }
    }
}
