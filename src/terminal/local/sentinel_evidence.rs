//! What the marks and lines of typed sentinels mean: where a command began, and that it ended.
//!
//! A mark counts with the nonce of a sentinel that is waited for, an end only behind a beginning. The line on the screen
//! decides; `talk` believes the mark alone when the line stays away.

use std::time::Instant;

use kpty_emulator::{Buffer, Mode, Place, Request};

use super::state::{Ingested, TerminalState};
use crate::ids::CommandId;
use crate::terminal::commands::{Command, Edge, Evidence, Point, Way};
use crate::terminal::sentinel::Pipeline;

impl TerminalState {
    pub(super) fn on_sentinel_start(&mut self, nonce: &str, ingested: &mut Ingested) {
        let Some(id) = self.open_sentinel(nonce) else { return };
        let _ = self.emulator.flush();
        self.hide_typed_form(id, ingested);
        let point = self.point();
        self.begin_output(id, point);
    }

    pub(super) fn on_sentinel_end(&mut self, nonce: &str, status: Option<i32>) {
        let Some(id) = self.open_sentinel(nonce) else { return };
        let _ = self.emulator.flush();
        if let Some(command) = self.commands.get_mut(id).filter(|command| command.start.is_none()) {
            command.was_refused = true;
            return;
        }
        let edge = self.edge();
        self.propose_end(id, status, edge);
        self.emulator.settle();
    }

    /// Notes an end that has to be confirmed. The output is complete here, and is taken before more is drawn.
    fn propose_end(&mut self, id: CommandId, status: Option<i32>, edge: Edge) {
        let Some(command) = self.commands.get_mut(id).filter(|command| command.candidate.is_none()) else { return };
        command.start.get_or_insert(edge.point);
        command.candidate = Some((status, edge.clone()));
        self.take_output(id, &edge);
    }

    fn open_sentinel(&self, nonce: &str) -> Option<CommandId> {
        let is_it =
            |command: &&Command| matches!(&command.way, Way::Sentinel { sentinel, .. } if sentinel.nonce() == nonce);
        self.commands.open().find(is_it).map(|command| command.id)
    }

    /// Looks for printed sentinels on the rendered lines. They decide.
    pub(super) fn look_for_sentinels(&mut self, ingested: &mut Ingested) {
        let open: Vec<_> = self
            .commands
            .open()
            .rev()
            .filter_map(|command| match &command.way {
                Way::Sentinel { sentinel, .. } if !command.was_refused => {
                    Some((command.id, sentinel.clone(), command.candidate.clone()))
                }
                _ => None,
            })
            .collect();
        for (id, sentinel, candidate) in open {
            let mode = match &candidate {
                // Lines of the alternate screen change their numbers when it scrolls.
                Some((_, Edge { point, .. })) if point.place.buffer == Buffer::Main => {
                    Mode::Range { from: point.place.line, until: None }
                }
                _ => Mode::Viewport,
            };
            let answer = self.emulator.read(&Request::new(mode), None);
            let Some(found) = sentinel.find(answer.lines()) else { continue };
            let end = match candidate {
                Some((_, edge)) => edge,
                // Some terminals between us and the shell keep the invisible mark to themselves.
                None => {
                    let line = answer.line_numbers.get(found.index).copied().unwrap_or(answer.next_line);
                    let echo = found.start.and_then(|index| answer.line_numbers.get(index)).copied();
                    let offset = self.ring.end();
                    let at = |line| Point { offset, place: Place { line, chars: 0, buffer: answer.buffer } };
                    if let Some(command) = self.commands.get_mut(id) {
                        command.start.get_or_insert(at(echo.unwrap_or(answer.first_line)));
                    }
                    Edge { point: at(line), line: String::new(), at: Instant::now() }
                }
            };
            ingested.news = true;
            let shown = answer.line_numbers.get(found.index).copied();
            let from = end.point.place;
            self.close(id, Some(found.status), Evidence::Sentinel, end);
            if let Some(line) = shown.filter(|_| answer.buffer == Buffer::Main && from.buffer == Buffer::Main) {
                self.hide_sentinel(from, line, ingested);
            }
        }
    }

    /// The statuses of the pipeline that a command ended with.
    pub(super) fn on_pipeline(&mut self, nonce: &str, statuses: &str) {
        if let Some(command) = self.open_sentinel(nonce).and_then(|id| self.commands.get_mut(id)) {
            command.pipeline = Pipeline::parse(statuses);
        }
    }
}
