//! Setting, resetting and reporting modes.

use alacritty_terminal::term::TermMode;
use alacritty_terminal::vte::ansi::{Handler, NamedMode, NamedPrivateMode};

use super::machine::Machine;
use crate::screen::Buffer;

/// The private modes that `Term` handles rightly, with the flag that tells their state.
const PRIVATE_MODES: [(u16, NamedPrivateMode, TermMode); 13] = [
    (1, NamedPrivateMode::CursorKeys, TermMode::APP_CURSOR),
    (6, NamedPrivateMode::Origin, TermMode::ORIGIN),
    (7, NamedPrivateMode::LineWrap, TermMode::LINE_WRAP),
    (25, NamedPrivateMode::ShowCursor, TermMode::SHOW_CURSOR),
    (1000, NamedPrivateMode::ReportMouseClicks, TermMode::MOUSE_REPORT_CLICK),
    (1002, NamedPrivateMode::ReportCellMouseMotion, TermMode::MOUSE_DRAG),
    (1003, NamedPrivateMode::ReportAllMouseMotion, TermMode::MOUSE_MOTION),
    (1004, NamedPrivateMode::ReportFocusInOut, TermMode::FOCUS_IN_OUT),
    (1005, NamedPrivateMode::Utf8Mouse, TermMode::UTF8_MOUSE),
    (1006, NamedPrivateMode::SgrMouse, TermMode::SGR_MOUSE),
    (1007, NamedPrivateMode::AlternateScroll, TermMode::ALTERNATE_SCROLL),
    (1042, NamedPrivateMode::UrgencyHints, TermMode::URGENCY_HINTS),
    (2004, NamedPrivateMode::BracketedPaste, TermMode::BRACKETED_PASTE),
];

/// The answer to DECRQM.
const UNKNOWN: u8 = 0;
const SET: u8 = 1;
const RESET: u8 = 2;
const ALWAYS_RESET: u8 = 4;

impl Machine {
    pub(super) fn set_mode(&mut self, mode: u16) {
        if let Some(named) = named_mode(mode) {
            self.term.set_mode(named.into());
        }
    }

    pub(super) fn unset_mode(&mut self, mode: u16) {
        if let Some(named) = named_mode(mode) {
            self.term.unset_mode(named.into());
        }
    }

    pub(super) fn set_private_mode(&mut self, mode: u16) {
        match mode {
            3 => self.change_column_mode(),
            12 => self.term.set_private_mode(NamedPrivateMode::BlinkingCursor.into()),
            41 => self.tab_wraps = true,
            45 => self.reverse_wrap = true,
            47 | 1047 => self.enter_alternate(),
            66 => self.term.set_keypad_application_mode(),
            69 => self.set_margin_mode(true),
            1045 => self.reverse_wrap_always = true,
            1048 => self.save_cursor(),
            1049 if self.buffer() == Buffer::Main => {
                self.save_cursor();
                self.kept_alternate = None;
                self.enter_alternate();
            }
            2026 => self.sync_begun = !self.showing_sync,
            2027 => self.clusters = true,
            _ => {
                if let Some((_, named, _)) = private_mode(mode) {
                    self.term.set_private_mode(named.into());
                }
            }
        }
        if mode == 6 {
            self.go_to(0, 0);
        }
    }

    pub(super) fn unset_private_mode(&mut self, mode: u16) {
        match mode {
            3 => self.change_column_mode(),
            12 => self.term.unset_private_mode(NamedPrivateMode::BlinkingCursor.into()),
            41 => self.tab_wraps = false,
            45 => self.reverse_wrap = false,
            47 => self.leave_alternate(true),
            1047 => self.leave_alternate(false),
            66 => self.term.unset_keypad_application_mode(),
            69 => self.set_margin_mode(false),
            1045 => self.reverse_wrap_always = false,
            1048 => self.restore_cursor(),
            2027 => self.clusters = false,
            1049 if self.buffer() == Buffer::Alternate => {
                self.leave_alternate(false);
                self.restore_cursor_with_wrap();
            }
            _ => {
                if let Some((_, named, _)) = private_mode(mode) {
                    self.term.unset_private_mode(named.into());
                }
            }
        }
        if mode == 6 {
            // Leaving origin mode goes home as entering it does; `Term` leaves the cursor where it is.
            self.go_to(0, 0);
        }
    }

    /// DECCOLM: the width stays, but the screen is cleared and the margins are reset.
    fn change_column_mode(&mut self) {
        self.term.set_private_mode(NamedPrivateMode::ColumnMode.into());
        self.region = 0..self.rows();
        self.set_margin_mode(false);
        self.note_erased_rows(0..self.rows());
    }

    /// XTSAVE: remembers the state of a private mode, one for each mode.
    pub(super) fn save_private_mode(&mut self, mode: u16) {
        let is_set = match self.private_mode_state(mode) {
            SET => true,
            RESET => false,
            _ => return,
        };
        self.saved_modes.retain(|(saved, _)| *saved != mode);
        self.saved_modes.push((mode, is_set));
    }

    /// XTRESTORE: a mode that is as it was saved is not set again, for some have effects.
    pub(super) fn restore_private_mode(&mut self, mode: u16) {
        let saved = self.saved_modes.iter().find(|(saved, _)| *saved == mode);
        let Some(&(_, is_set)) = saved.filter(|(_, is_set)| self.private_mode_state(mode) != state(*is_set)) else {
            return;
        };
        if is_set { self.set_private_mode(mode) } else { self.unset_private_mode(mode) }
    }

    /// DECRQM.
    pub(super) fn mode_state(&self, mode: u16) -> u8 {
        match mode {
            4 => state(self.has_mode(TermMode::INSERT)),
            // Guarded transfer, editing extent and the like: block-mode functions that no terminal of this kind has.
            1 | 5 | 7 | 10 | 11 | 13..=19 => ALWAYS_RESET,
            20 => state(self.has_mode(TermMode::LINE_FEED_NEW_LINE)),
            _ => UNKNOWN,
        }
    }

    /// DECRQM for private modes.
    pub(super) fn private_mode_state(&self, mode: u16) -> u8 {
        match mode {
            12 => state(self.term.cursor_style().blinking),
            41 => state(self.tab_wraps),
            45 => state(self.reverse_wrap),
            69 => state(self.margin_mode),
            1045 => state(self.reverse_wrap_always),
            47 | 1047 | 1049 => state(self.buffer() == Buffer::Alternate),
            66 => state(self.has_mode(TermMode::APP_KEYPAD)),
            // What is asked inside an update is answered when its bytes are shown.
            2026 => state(self.showing_sync),
            2027 => state(self.clusters),
            _ => private_mode(mode).map_or(UNKNOWN, |(_, _, flag)| state(self.has_mode(flag))),
        }
    }
}

fn named_mode(mode: u16) -> Option<NamedMode> {
    match mode {
        4 => Some(NamedMode::Insert),
        20 => Some(NamedMode::LineFeedNewLine),
        _ => None,
    }
}

fn private_mode(mode: u16) -> Option<(u16, NamedPrivateMode, TermMode)> {
    PRIVATE_MODES.iter().find(|(number, ..)| *number == mode).copied()
}

fn state(is_set: bool) -> u8 {
    if is_set { SET } else { RESET }
}
