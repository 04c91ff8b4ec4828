//! The second opinion: the `vt100` crate behind the same trait.
//!
//! The only module that names it. No replies, no reflow, no synchronized updates (it ignores them, which is harmless).
//! Its history is the crate's own scrollback of rows, so what falls out is counted in rows instead of lines.

use std::num::NonZeroU16;
use std::time::Duration;

use ::vt100::capture::RowContents;
use ::vt100::{Callbacks, Parser};

use crate::engine::{Engine, Limits};
use crate::history::History;
use crate::reply::Replies;
use crate::screen::{Attributes, Buffer, Cell, Color, Cursor, CursorShape, Modes, Mouse, Row, Screen, Style, Width};
use crate::size::Size;
use crate::title::Titles;

/// The engine.
pub(crate) struct Vt100 {
    parser: Parser<Fallen>,
    size: Size,
    epoch: u64,
    /// Text and wrap flag of every live row, as of the last [`Engine::prepare`].
    rows: Vec<(String, bool)>,
}

/// Told by the crate what leaves its own scrollback.
struct Fallen {
    /// Holds no lines: only their number, counted in rows.
    history: History,
    rows: u64,
    titles: Titles,
    bells: u64,
}

impl Callbacks for Fallen {
    fn audible_bell(&mut self, _: &mut ::vt100::Screen) {
        self.bells += 1;
    }

    fn set_window_title(&mut self, _: &mut ::vt100::Screen, title: &[u8]) {
        self.titles.set(title);
    }

    fn on_scroll(&mut self, _: RowContents<'_>, alternate_screen: bool) {
        if !alternate_screen {
            self.rows += 1;
            self.history.clear(self.history.next() + 1);
        }
    }
}

impl Vt100 {
    pub(crate) fn new(size: Size, limits: Limits) -> Self {
        let fallen = Fallen {
            history: History::new(limits.history_lines, limits.history_bytes),
            rows: 0,
            titles: Titles::default(),
            bells: 0,
        };
        let (rows, cols) = dimensions(size);
        let parser = Parser::new_with_callbacks(rows, cols, limits.history_lines, fallen);
        Self { parser, size, epoch: 0, rows: Vec::new() }
    }

    fn window(&self) -> impl Iterator<Item = (String, bool)> + '_ {
        let screen = self.parser.screen();
        let rows = screen.rows(0, self.size.cols()).enumerate();
        rows.map(|(row, text)| (text, screen.row_wrapped(row as u16)))
    }
}

/// Rows first, as the crate wants them; a [`Size`] is never zero.
fn dimensions(size: Size) -> (NonZeroU16, NonZeroU16) {
    (NonZeroU16::new(size.rows()).unwrap_or(NonZeroU16::MIN), NonZeroU16::new(size.cols()).unwrap_or(NonZeroU16::MIN))
}

impl Engine for Vt100 {
    fn feed(&mut self, _now: Duration, bytes: &[u8]) -> Replies {
        self.parser.process(bytes);
        Replies::default()
    }

    fn tick(&mut self, _now: Duration) -> Replies {
        Replies::default()
    }

    fn flush(&mut self) -> Replies {
        Replies::default()
    }

    fn sync_deadline(&self) -> Option<Duration> {
        None
    }

    fn size(&self) -> Size {
        self.size
    }

    fn resize(&mut self, size: Size) {
        let (rows, cols) = dimensions(size);
        self.parser.set_size(rows, cols);
        self.size = size;
        self.epoch += 1;
        self.parser.callbacks_mut().rows = 0;
    }

    fn buffer(&self) -> Buffer {
        if self.parser.screen().alternate_screen() { Buffer::Alternate } else { Buffer::Main }
    }

    fn screen(&self) -> Screen {
        let screen = self.parser.screen();
        let row = |row: u16| Row {
            cells: (0..self.size.cols()).filter_map(|col| screen.cell(row, col)).map(plain_cell).collect(),
            wrapped: screen.row_wrapped(row),
        };
        Screen {
            size: self.size,
            rows: (0..self.size.rows()).map(row).collect(),
            cursor: self.cursor(),
            modes: modes(screen),
            title: self.parser.callbacks().titles.current().map(str::to_owned),
            buffer: self.buffer(),
        }
    }

    fn cursor(&self) -> Cursor {
        let screen = self.parser.screen();
        let (row, col) = screen.cursor_position();
        Cursor {
            col: col.min(self.size.cols() - 1),
            row,
            visible: !screen.hide_cursor(),
            shape: CursorShape::Block,
            blinking: false,
        }
    }

    fn modes(&self) -> Modes {
        modes(self.parser.screen())
    }

    fn bells(&self) -> u64 {
        self.parser.callbacks().bells
    }

    fn history(&self) -> &History {
        &self.parser.callbacks().history
    }

    fn history_mut(&mut self) -> &mut History {
        &mut self.parser.callbacks_mut().history
    }

    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn drained_rows(&self) -> u64 {
        self.parser.callbacks().rows
    }

    fn prepare(&mut self) {
        let mut rows = Vec::new();
        let height = usize::from(self.size.rows());
        let mut above = self.parser.screen().scrollback_len();
        // The crate shows its scrollback through a window of the screen's height.
        while above > 0 {
            self.parser.screen_mut().set_scrollback(above);
            let take = above.min(height);
            rows.extend(self.window().take(take));
            above -= take;
        }
        self.parser.screen_mut().set_scrollback(0);
        rows.extend(self.window());
        self.rows = rows;
    }

    fn live_rows(&self) -> usize {
        self.rows.len()
    }

    fn row_is_wrapped(&self, row: usize) -> bool {
        self.rows[row].1
    }

    fn row_has_text(&self, row: usize) -> bool {
        self.rows[row].0.bytes().any(|byte| byte != b' ')
    }

    fn push_row(&self, row: usize, out: &mut String) {
        let (text, wrapped) = &self.rows[row];
        out.push_str(if *wrapped { text } else { text.trim_end_matches(' ') });
    }

    /// The text alone: the crate shows cells of the screen only.
    fn row_cells(&self, row: usize) -> Row {
        let (text, wrapped) = &self.rows[row];
        let cols = usize::from(self.size.cols());
        let mut rows = crate::layout::rows_of(text, &[], cols).into_iter();
        rows.next().map_or(Row { cells: Vec::new(), wrapped: *wrapped }, |row| Row { wrapped: *wrapped, ..row })
    }

    fn look_at_main(&mut self) {}

    fn back_to_active(&mut self) {}

    fn shrink(&mut self) {}

    fn heap_bytes(&self) -> usize {
        self.parser.callbacks().history.heap_bytes()
    }
}

fn plain_cell(cell: &::vt100::Cell) -> Cell {
    let mut chars = cell.contents().chars();
    let mut attributes = Attributes::default();
    for (set, attribute) in [
        (cell.bold(), Attributes::BOLD),
        (cell.dim(), Attributes::DIM),
        (cell.italic(), Attributes::ITALIC),
        (cell.underline(), Attributes::UNDERLINE),
        (cell.inverse(), Attributes::INVERSE),
    ] {
        if set {
            attributes |= attribute;
        }
    }
    Cell {
        c: chars.next().unwrap_or(' '),
        marks: chars.collect(),
        width: if cell.is_wide() {
            Width::Double
        } else if cell.is_wide_continuation() {
            Width::Spacer
        } else {
            Width::Single
        },
        style: Style { fg: color(cell.fgcolor()), bg: color(cell.bgcolor()), underline_color: None, attributes },
        link: None,
    }
}

fn color(color: ::vt100::Color) -> Color {
    match color {
        ::vt100::Color::Default => Color::Default,
        ::vt100::Color::Idx(index) => Color::Indexed(index),
        ::vt100::Color::Rgb(r, g, b) => Color::Rgb(r, g, b),
    }
}

fn modes(screen: &::vt100::Screen) -> Modes {
    use ::vt100::{MouseProtocolEncoding as Encoding, MouseProtocolMode as Protocol};
    Modes {
        application_cursor: screen.application_cursor(),
        application_keypad: screen.application_keypad(),
        bracketed_paste: screen.bracketed_paste(),
        mouse: match screen.mouse_protocol_mode() {
            Protocol::None => Mouse::Off,
            Protocol::Press | Protocol::PressRelease => Mouse::Click,
            Protocol::ButtonMotion => Mouse::Drag,
            Protocol::AnyMotion => Mouse::Motion,
        },
        sgr_mouse: screen.mouse_protocol_encoding() == Encoding::Sgr,
        wrap: true,
        ..Modes::default()
    }
}
