//! What the marks and lines of typed sentinels mean: where a command began, and that it ended.
//!
//! A mark counts with the nonce of a sentinel that is waited for, an end only behind a beginning. The line on the screen
//! decides; `talk` believes the mark alone when the line stays away.

use std::time::Instant;

use kpty_emulator::{Buffer, Mode, Place, Request};

use super::enter::is_plain;
use super::state::{Ingested, TerminalState};
use crate::ids::CommandId;
use crate::terminal::commands::{Command, Edge, Evidence, Point, Way};
use crate::terminal::sentinel::Pipeline;

/// Lines that the trace of our own commands takes at most.
const TRACE_LINES: u64 = 60;

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
        let cut = self.commands.get(id).and_then(|command| command.cut.clone());
        let edge = cut.map_or_else(|| self.before_trace(id, edge.clone()), |cut| Edge { at: edge.at, ..cut });
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

    /// The command is over. What a trap for every command (`DEBUG`) prints for two of ours in turn is the same, and what it
    /// printed for the first stands behind the command's own output.
    pub(super) fn on_sentinel_note(&mut self, nonce: &str, is_before: bool) {
        let Some(id) = self.open_sentinel(nonce) else { return };
        let _ = self.emulator.flush();
        let edge = self.edge();
        let noted = self.commands.get(id).and_then(|command| command.noted.clone());
        let cut = match &noted {
            None => None,
            Some((first, _)) if first.point.place == edge.point.place => None,
            Some((first, false)) => Some(first.clone()),
            Some((first, true)) => self.before_same(first, &edge),
        };
        let Some(command) = self.commands.get_mut(id) else { return };
        command.cut = command.cut.take().or(cut);
        command.noted.get_or_insert((edge, is_before));
    }

    /// Where the text begins that ends at one edge and is the same as that between this and another.
    fn before_same(&mut self, first: &Edge, second: &Edge) -> Option<Edge> {
        let (from, until) = (first.point.place, second.point.place);
        if (from.buffer, until.buffer) != (Buffer::Main, Buffer::Main) || (from.chars, until.chars) != (0, 0) {
            return None;
        }
        let count = until.line.checked_sub(from.line).filter(|&count| count <= TRACE_LINES)?;
        let start = from.line.checked_sub(count)?;
        let [mut before, mut between] =
            [start, from.line].map(|line| (line..line + count).map(|line| self.line(line)).collect::<Vec<_>>());
        let (own, same) = (before.remove(0), between.remove(0));
        let text = own.strip_suffix(same.as_str()).filter(|_| before == between)?.to_owned();
        let place = Place { line: start, chars: text.chars().count(), ..from };
        Some(Edge { point: Point { place, ..first.point }, line: text, ..first.clone() })
    }

    /// The end of the output before what a shell shows of our own commands behind it (`set -x`). What stands before each of
    /// their traces may stand behind text without a line end.
    fn before_trace(&mut self, id: CommandId, edge: Edge) -> Edge {
        let Some(Command { way: Way::Sentinel { sentinel, typed_to, .. }, start: Some(start), .. }) =
            self.commands.get(id)
        else {
            return edge;
        };
        let Place { line: last, buffer, .. } = edge.point.place;
        if !is_plain(typed_to.as_ref()) || (start.place.buffer, buffer) != (Buffer::Main, Buffer::Main) {
            return edge;
        }
        let (trace, first) = (sentinel.trace(), start.place.line.max(last.saturating_sub(TRACE_LINES)));
        let range = Mode::Range { from: first, until: Some(last + 1) };
        let answer = self.emulator.read(&Request::new(range), None);
        let mut found = answer
            .line_numbers
            .iter()
            .zip(answer.lines())
            .filter_map(|(&number, line)| line.find(&trace).map(|at| (number, line[..at].to_owned())));
        let Some((line, before)) = found.next() else { return edge };
        let prefix = found.next().map(|(_, prefix)| prefix).unwrap_or_default();
        let text = before.strip_suffix(prefix.as_str()).unwrap_or_default().to_owned();
        let place = Place { line, chars: text.chars().count(), buffer };
        Edge { point: Point { place, ..edge.point }, line: text, ..edge }
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
