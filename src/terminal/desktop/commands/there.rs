//! Commands that another kpty runs for us: it knows their ends, and is asked for them. Each has a number there and one
//! here; callers only ever see the one here.

use std::time::Instant;

use super::{Commands, PROMPT_STANDS, Printed, looks_like_prompt};
use crate::ids::CommandId;
use crate::terminal::commands::Way;
use crate::terminal::desktop::text::Text;
use crate::terminal::desktop::told::Ran;
use crate::terminal::{Evidence, Output};

/// Commands whose end is still to be told; of more the oldest are given up.
const MAX_THERE: usize = 64;

/// A command that runs there, as far as we know.
pub(super) struct There {
    pub(super) id: CommandId,
    /// Its number there, once that was told.
    number: Option<CommandId>,
    /// The sentinel that it was run with, by which it is found until then.
    token: String,
    /// What it had printed when it was last told of.
    pub(super) printed: Printed,
    /// Nobody can be asked for it any more: only a prompt can tell its end.
    is_lost: bool,
}

impl Commands {
    /// Notes a command that is about to be run there.
    pub(in crate::terminal::desktop) fn begin_there(&mut self, command: &str, token: &str) -> CommandId {
        self.note_there(command, None, token)
    }

    /// The number here of a command there, which may be one that somebody else began.
    pub(in crate::terminal::desktop) fn known_there(&mut self, number: CommandId, command: &str) -> CommandId {
        let known = self.there.iter().find(|there| there.number == Some(number)).map(|there| there.id);
        known.unwrap_or_else(|| self.note_there(command, Some(number), ""))
    }

    fn note_there(&mut self, command: &str, number: Option<CommandId>, token: &str) -> CommandId {
        while self.there.len() >= MAX_THERE {
            let oldest = self.there.front().map(|there| there.id);
            oldest.into_iter().for_each(|id| self.end_there(id, Evidence::Prompt));
        }
        let id = self.log.begin(command, None, Way::Integration);
        self.there.push_back(There {
            id,
            number,
            token: token.to_owned(),
            printed: Printed::default(),
            is_lost: false,
        });
        id
    }

    /// How to ask for a command that has not ended: its number there, and its sentinel.
    pub(in crate::terminal::desktop) fn asked_by(&self, id: CommandId) -> Option<(Option<CommandId>, String)> {
        let there = self.there.iter().find(|there| there.id == id && !there.is_lost)?;
        Some((there.number, there.token.clone()))
    }

    /// All that have not ended and can be asked for.
    pub(in crate::terminal::desktop) fn open_there(&self) -> Vec<CommandId> {
        self.there.iter().filter(|there| !there.is_lost).map(|there| there.id).collect()
    }

    /// Takes in what was told of a command; its end too, where that was told.
    pub(in crate::terminal::desktop) fn told(&mut self, id: CommandId, ran: Ran) {
        let Some(there) = self.there.iter_mut().find(|there| there.id == id) else { return };
        there.number = ran.number.or(there.number);
        there.printed = printed(ran.output);
        (there.printed.status, there.printed.took) = (ran.status, ran.took);
        ran.by.into_iter().for_each(|by| self.end_there(id, by));
    }

    /// Ends a command with what it is known to have printed.
    pub(in crate::terminal::desktop) fn end_there(&mut self, id: CommandId, by: Evidence) {
        let Some(index) = self.there.iter().position(|there| there.id == id) else { return };
        let Some(there) = self.there.remove(index) else { return };
        self.end(id, by, there.printed);
    }

    /// Takes a command back that was certainly not typed; where others followed it, it has ended.
    pub(in crate::terminal::desktop) fn forget_there(&mut self, id: CommandId) {
        self.there.retain(|there| there.id != id);
        self.log.forget_last(id);
        if self.log.get(id).is_some() {
            self.end(id, Evidence::Prompt, Printed::default());
        }
    }

    /// Nobody can be asked for this one any more.
    pub(in crate::terminal::desktop) fn lose_there(&mut self, id: CommandId) {
        let lost = self.there.iter_mut().filter(|there| there.id == id);
        lost.for_each(|there| (there.is_lost, there.printed.is_doubtful) = (true, true));
    }

    /// Of what nobody can be asked for, the end is a prompt that stands.
    pub(super) fn settle_lost(&mut self, text: &Text, last_change: Instant) {
        if last_change.elapsed() < PROMPT_STANDS || !looks_like_prompt(text.cursor_text()) {
            return;
        }
        let lost: Vec<_> = self.there.iter().filter(|there| there.is_lost).map(|there| there.id).collect();
        lost.into_iter().for_each(|id| self.end_there(id, Evidence::Prompt));
    }
}

fn printed(output: Output) -> Printed {
    let Output { text, omitted_chars, omitted_lines, evicted_lines, lines, .. } = output;
    // Of those that are gone there, the first may be in the text.
    let evicted = evicted_lines.min(omitted_lines as u64);
    Printed {
        lines: text.split('\n').map(str::to_owned).collect(),
        evicted,
        numbers: lines,
        omitted: (omitted_chars, omitted_lines - evicted as usize),
        ..Printed::default()
    }
}
