//! Playing a recording through the emulator.
//!
//! Owns the order of events and the clock of a replay; knows neither files nor arguments.

use std::time::Duration;

use kpty_emulator::{Emulator, EngineKind, Settings, Size};

use crate::recording::{Action, Event, Recording};

/// A terminal that a recording is played to.
pub struct Player<'a> {
    emulator: Emulator,
    rest: &'a [Event],
}

impl<'a> Player<'a> {
    /// Nothing played yet. A size given here goes before the recording's own.
    pub fn new(recording: &'a Recording, engine: EngineKind, size: Option<Size>) -> Self {
        let size = size.or(recording.size).unwrap_or_default();
        let emulator = Emulator::new(Settings { size, engine, ..Settings::default() });
        Self { emulator, rest: &recording.events }
    }

    /// Plays what happened up to a moment, that moment included.
    pub fn play_until(&mut self, moment: Duration) {
        let due = self.rest.partition_point(|event| event.at <= moment);
        let (now, later) = self.rest.split_at(due);
        for event in now {
            self.play(event);
        }
        self.emulator.tick(moment);
        self.rest = later;
    }

    /// Plays the rest and shows what is still held back.
    pub fn play_to_end(&mut self) {
        for event in std::mem::take(&mut self.rest) {
            self.play(event);
        }
        self.emulator.flush();
    }

    /// The terminal as it is now.
    pub fn emulator(&mut self) -> &mut Emulator {
        &mut self.emulator
    }

    /// Replies are for a living program: here they go nowhere.
    fn play(&mut self, event: &Event) {
        match &event.action {
            Action::Output(bytes) => {
                self.emulator.feed(event.at, bytes);
            }
            Action::Resize(size) => self.emulator.resize(*size),
        }
    }
}
