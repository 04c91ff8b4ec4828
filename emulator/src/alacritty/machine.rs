//! The terminal itself: the engine's `Term` plus the state around it that the engine keeps to itself or
//! lacks, and the meaning of controls and escape sequences.
//!
//! Each sequence is handed to `Term` where `Term` is right, and to `correct` or `edit` where it is not.

use std::ops::Range;

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::{Cursor, Dimensions, Grid};
use alacritty_terminal::index::{Column, Line, Point};
use alacritty_terminal::term::cell::Cell;
use alacritty_terminal::term::{Config, Term, TermMode};
use alacritty_terminal::vte::ansi::{CharsetIndex, Handler, StandardCharset};

use super::cells::PROTECTED;
use super::edit::Protection;
use super::occupancy::Occupancy;
use super::saved::SavedCursor;
use super::work::Work;
use crate::engine::Limits;
use crate::history::History;
use crate::keyboard::KeyboardStack;
use crate::link::Links;
use crate::parser::{Sequence, Sink, StringEnd};
use crate::reply::{self, Answers};
use crate::screen::Buffer;
use crate::size::Size;
use crate::title::Titles;

/// More rows than the live grid ever holds between two drains: the engine itself drops none.
pub(super) const ENGINE_ROWS: usize = 1 << 24;

pub(super) struct Machine {
    pub(super) term: Term<VoidListener>,
    pub(super) history: History,
    pub(super) limits: Limits,
    pub(super) answers: Answers,
    pub(super) titles: Titles,
    pub(super) links: Links,
    /// Keyboard flags of the main and of the alternate screen.
    pub(super) keyboards: [KeyboardStack; 2],
    /// What DECSC saved on the main and on the alternate screen.
    pub(super) saved: [Option<SavedCursor>; 2],
    /// Copy of the scroll region, which `Term` does not show.
    pub(super) region: Range<usize>,
    /// Columns between the left and the right margin: all of them without margins.
    pub(super) columns: Range<usize>,
    /// The margins leave columns out.
    pub(super) narrowed: bool,
    /// Mode 69: left and right margins can be set.
    pub(super) margin_mode: bool,
    /// Mode 2027: grapheme clusters have one cell.
    pub(super) clusters: bool,
    /// DECSACE: attributes are changed in rectangles, not in streams of text.
    pub(super) area_is_rectangle: bool,
    /// Copy of the active character set, which `Term` does not show.
    pub(super) charset: CharsetIndex,
    /// The character that REP repeats, and where the cursor was when it had been printed.
    pub(super) repeatable: Option<(char, Point)>,
    /// DECSCA, SPA: what is printed now is protected.
    pub(super) protecting: bool,
    /// Which erases spare what is protected.
    pub(super) protection: Protection,
    /// Cells may be protected: something was printed while they were to be.
    pub(super) has_protected: bool,
    /// Mode 45: moving left from the left edge goes back over a soft wrap.
    pub(super) reverse_wrap: bool,
    /// Mode 1045: moving left from the left edge goes to the row before, whatever it holds.
    pub(super) reverse_wrap_always: bool,
    /// Mode 41: a tab with a wrap pending wraps first.
    pub(super) tab_wraps: bool,
    /// Private modes that XTSAVE saved, with their state.
    pub(super) saved_modes: Vec<(u16, bool)>,
    /// A synchronized update began: the parser is to stop here.
    pub(super) sync_begun: bool,
    /// The bytes of a synchronized update are being shown: a nested begin does not stop them.
    pub(super) showing_sync: bool,
    /// Counts events after which rows above the screen may have changed.
    pub(super) epoch: u64,
    /// Rows that left the live grid in this epoch.
    pub(super) drained_rows: u64,
    /// What the output may still cost.
    pub(super) work: Work,
    /// How far the live rows of the main screen are written.
    pub(super) occupancy: Occupancy,
    /// Combining marks that cells got since rows with marks were given up last.
    pub(super) marks: usize,
    /// Bells rung so far.
    pub(super) bells: u64,
    /// The alternate screen as mode 47 left it.
    pub(super) kept_alternate: Option<Grid<Cell>>,
    /// A grid for the engine while the alternate screen is kept.
    pub(super) spare_alternate: Option<Grid<Cell>>,
    /// The alternate screen while the main one is looked at behind it.
    pub(super) set_aside: Option<Grid<Cell>>,
}

/// The dimensions that `Term` asks for.
pub(super) struct TermSize(pub(super) Size);

impl Dimensions for TermSize {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        usize::from(self.0.rows())
    }

    fn columns(&self) -> usize {
        usize::from(self.0.cols())
    }
}

impl Machine {
    pub(super) fn new(size: Size, limits: Limits) -> Self {
        let config = Config { scrolling_history: ENGINE_ROWS, ..Config::default() };
        Self {
            term: Term::new(config, &TermSize(size), VoidListener),
            history: History::new(limits.history_lines, limits.history_bytes),
            limits,
            answers: Answers::default(),
            titles: Titles::default(),
            links: Links::default(),
            keyboards: Default::default(),
            saved: Default::default(),
            region: 0..usize::from(size.rows()),
            columns: 0..usize::from(size.cols()),
            narrowed: false,
            margin_mode: false,
            clusters: false,
            area_is_rectangle: false,
            charset: CharsetIndex::G0,
            repeatable: None,
            protecting: false,
            protection: Protection::default(),
            has_protected: false,
            reverse_wrap: false,
            reverse_wrap_always: false,
            tab_wraps: false,
            saved_modes: Vec::new(),
            kept_alternate: None,
            spare_alternate: None,
            sync_begun: false,
            showing_sync: false,
            epoch: 0,
            drained_rows: 0,
            work: Work::default(),
            occupancy: Occupancy::unknown(size.rows().into(), size.rows().into(), size.cols().into()),
            marks: 0,
            bells: 0,
            set_aside: None,
        }
    }

    pub(super) fn cols(&self) -> usize {
        self.term.grid().columns()
    }

    pub(super) fn rows(&self) -> usize {
        self.term.grid().screen_lines()
    }

    pub(super) fn cursor(&mut self) -> &mut Cursor<Cell> {
        &mut self.term.grid_mut().cursor
    }

    /// Row of the cursor on the screen.
    pub(super) fn row(&self) -> usize {
        self.term.grid().cursor.point.line.0 as usize
    }

    /// Column of the cursor.
    pub(super) fn col(&self) -> usize {
        self.term.grid().cursor.point.column.0
    }

    pub(super) fn has_mode(&self, mode: TermMode) -> bool {
        self.term.mode().contains(mode)
    }

    pub(super) fn buffer(&self) -> Buffer {
        if self.has_mode(TermMode::ALT_SCREEN) { Buffer::Alternate } else { Buffer::Main }
    }

    /// Puts the cursor on the screen, margins and origin mode aside; no wrap is pending then.
    pub(super) fn place_cursor(&mut self, row: usize, col: usize) {
        let (last_row, last_col) = (self.rows() - 1, self.cols() - 1);
        let cursor = self.cursor();
        cursor.point.line = Line(row.min(last_row) as i32);
        cursor.point.column = Column(col.min(last_col));
        cursor.input_needs_wrap = false;
    }

    pub(super) fn keyboard(&mut self) -> &mut KeyboardStack {
        let buffer = self.buffer() as usize;
        &mut self.keyboards[buffer]
    }

    fn select_charset(&mut self, index: CharsetIndex) {
        self.charset = index;
        self.term.set_active_charset(index);
    }

    fn designate_charset(&mut self, slot: u8, charset: u8) {
        let index = match slot {
            b'(' => CharsetIndex::G0,
            b')' => CharsetIndex::G1,
            b'*' => CharsetIndex::G2,
            b'+' => CharsetIndex::G3,
            _ => return,
        };
        match charset {
            b'0' => self.term.configure_charset(index, StandardCharset::SpecialCharacterAndLineDrawing),
            b'B' => self.term.configure_charset(index, StandardCharset::Ascii),
            _ => (),
        }
    }

    /// DECALN: the screen full of `E`, no margins, the cursor home; `Term` leaves margins and cursor.
    fn align(&mut self) {
        if self.work.take(self.rows() * self.cols()) {
            self.term.decaln();
            self.forget_occupancy(0..self.rows());
        }
        self.set_region(0, self.rows());
        self.reset_columns();
        self.place_cursor(0, 0);
    }

    /// RIS: as new, except for the numbers of lines, which go on.
    fn reset(&mut self) {
        if self.buffer() == Buffer::Alternate {
            // It goes as well, and its cursor and modes are those of a new terminal in a moment.
            self.term.swap_alt();
        }
        self.forget_lines();
        self.term.reset_state();
        self.occupancy.reset(self.rows());
        self.region = 0..self.rows();
        self.set_margin_mode(false);
        self.clusters = false;
        self.area_is_rectangle = false;
        self.charset = CharsetIndex::G0;
        self.repeatable = None;
        self.saved = Default::default();
        self.keyboards = Default::default();
        self.titles = Titles::default();
        self.protecting = false;
        self.protection = Protection::default();
        self.has_protected = false;
        self.reverse_wrap = false;
        self.reverse_wrap_always = false;
        self.tab_wraps = false;
        self.saved_modes.clear();
        self.kept_alternate = None;
    }

    /// DECSTR: modes, margins and attributes as new; the text stays.
    pub(super) fn soft_reset(&mut self) {
        use alacritty_terminal::vte::ansi::{Attr, NamedMode, NamedPrivateMode};
        self.term.set_private_mode(NamedPrivateMode::ShowCursor.into());
        self.term.unset_private_mode(NamedPrivateMode::Origin.into());
        self.term.unset_private_mode(NamedPrivateMode::CursorKeys.into());
        self.term.set_private_mode(NamedPrivateMode::LineWrap.into());
        self.term.unset_mode(NamedMode::Insert.into());
        self.term.unset_keypad_application_mode();
        self.term.terminal_attribute(Attr::Reset);
        for index in [CharsetIndex::G0, CharsetIndex::G1, CharsetIndex::G2, CharsetIndex::G3] {
            self.term.configure_charset(index, StandardCharset::Ascii);
        }
        self.select_charset(CharsetIndex::G0);
        self.protect(false, Protection::default());
        self.reverse_wrap = false;
        self.reverse_wrap_always = false;
        self.set_region(0, self.rows());
        self.set_margin_mode(false);
        self.clusters = false;
        self.area_is_rectangle = false;
        let buffer = self.buffer() as usize;
        self.saved[buffer] = None;
    }

    /// DECSCA, SPA and EPA. The last of them decides which erases spare what is protected, as in xterm.
    pub(super) fn protect(&mut self, protecting: bool, protection: Protection) {
        self.protecting = protecting;
        self.protection = protection;
        self.has_protected |= protecting;
        self.cursor().template.flags.set(PROTECTED, protecting);
    }

    /// Puts the alternate screen aside, so that the engine's grid is the main one.
    pub(super) fn look_at_main(&mut self) {
        if self.buffer() == Buffer::Alternate {
            let stand_in = Grid::new(self.rows(), self.cols(), 0);
            self.set_aside = Some(std::mem::replace(self.term.grid_mut(), stand_in));
            self.term.swap_alt();
        }
    }

    /// Ends [`Machine::look_at_main`].
    pub(super) fn back_to_active(&mut self) {
        if let Some(alternate) = self.set_aside.take() {
            self.term.swap_alt();
            *self.term.grid_mut() = alternate;
        }
    }

    pub(super) fn size(&self) -> Size {
        // The grid was made from a `Size`.
        Size::new(self.cols() as u16, self.rows() as u16).unwrap_or_default()
    }

    /// Sets the margins without moving the cursor.
    pub(super) fn set_region(&mut self, top: usize, bottom: usize) {
        let point = self.cursor().point;
        self.term.set_scrolling_region(top + 1, Some(bottom));
        self.cursor().point = point;
        self.region = top..bottom;
    }
}

impl Sink for Machine {
    fn ascii(&mut self, run: &[u8]) {
        self.work.earn(run.len());
        self.print_ascii(run);
    }

    fn text(&mut self, text: &[char]) {
        self.work.earn(text.len());
        self.print_text(text);
    }

    fn control(&mut self, byte: u8) {
        self.work.earn(1);
        self.repeatable = None;
        match byte {
            b'\r' => self.carriage_return(),
            b'\n' => self.line_feed(),
            0x08 => self.cursor_left(1),
            b'\t' => self.tab_forward(1),
            0x0b | 0x0c => self.vertical_tab(),
            0x07 => self.bells += 1,
            0x0e => self.select_charset(CharsetIndex::G1),
            0x0f => self.select_charset(CharsetIndex::G0),
            _ => (),
        }
    }

    fn escape(&mut self, intermediates: &[u8], last: u8) {
        self.work.earn(2 + intermediates.len());
        self.repeatable = None;
        match (intermediates, last) {
            ([], b'6') => self.back_index(),
            ([], b'9') => self.forward_index(),
            ([], b'7') => self.save_cursor(),
            ([], b'8') => self.restore_cursor(),
            ([], b'D') => self.index(),
            ([], b'E') => {
                self.index();
                self.carriage_return();
            }
            ([], b'M') => self.reverse_index(),
            ([], b'H') => self.term.set_horizontal_tabstop(),
            ([], b'V') => self.protect(true, Protection::Guarded),
            ([], b'W') => self.protect(false, Protection::Guarded),
            ([], b'Z') => {
                self.answers.asked(2);
                self.answers.give(reply::IDENTIFY);
            }
            ([], b'c') => self.reset(),
            ([], b'=') => self.term.set_keypad_application_mode(),
            ([], b'>') => self.term.unset_keypad_application_mode(),
            ([], b'n') => self.select_charset(CharsetIndex::G2),
            ([], b'o') => self.select_charset(CharsetIndex::G3),
            ([b'#'], b'8') => self.align(),
            ([slot], charset) => self.designate_charset(*slot, charset),
            _ => (),
        }
    }

    fn csi(&mut self, sequence: &Sequence, length: usize) {
        self.work.earn(length);
        self.dispatch_csi(sequence, length);
    }

    fn osc(&mut self, payload: &[u8], end: StringEnd, length: usize) {
        self.repeatable = None;
        self.dispatch_osc(payload, end, length);
    }

    fn dcs(&mut self, header: &Sequence, payload: &[u8], length: usize) {
        self.repeatable = None;
        self.answers.asked(length);
        match (header.intermediates(), header.last()) {
            (b"$", b'q') => self.report_setting(payload),
            (b"+", b'q') => self.answers.give(reply::CAPABILITY_UNKNOWN),
            _ => (),
        }
    }

    fn screen_title(&mut self, title: &[u8]) {
        self.titles.set(title);
    }

    fn wants_pause(&self) -> bool {
        self.sync_begun
    }
}
