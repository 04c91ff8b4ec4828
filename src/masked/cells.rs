//! The screen and the history as cells, secrets masked: what pages, attached terminals and pictures draw from.
//!
//! A secret is looked for in whole logical lines, as for every read, so one that is wrapped over two rows is found too;
//! only then are cells changed. Every other cell keeps its place: the mask takes exactly the cells of the secret, cut
//! or filled up. What cannot be matched cell by cell is masked whole.

use std::ops::{Deref, Range};
use std::time::Duration;

use kpty_emulator::{Buffer, Cell, Cursor, Emulator, Mode, Modes, Request, Row, Screen, Settings, Size, Which, Width};
use kpty_guard::{Masked, Redactor};

use super::page::{self, Page};

/// Fills a mask that is shorter than what it hides.
const FILLER: char = '•';
/// How every mask begins and ends.
const MASK_OPENS: &str = "[REDACTED";
const MASK_CLOSES: char = ']';

/// A screen that may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskedScreen {
    screen: Screen,
    title: Option<Masked>,
    lines: Vec<u64>,
    oldest_line: u64,
}

/// Rows of whole lines that may be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaskedRows(Vec<(u64, Row)>);

/// A row that may be shown.
#[derive(Clone, Copy, Debug)]
pub struct MaskedRow<'a>(&'a Row);

impl MaskedScreen {
    /// A screen that shows a page.
    pub fn of_page(page: &Page) -> Self {
        let mut emulator = typeset(page);
        let (screen, lines) = (emulator.screen(), emulator.screen_lines());
        Self { screen, title: None, lines, oldest_line: 0 }
    }

    /// The cells. Their title is not: it is [`MaskedScreen::title`].
    pub fn cells(&self) -> &Screen {
        &self.screen
    }

    /// The same, taken out.
    pub fn into_cells(self) -> Screen {
        self.screen
    }

    /// Top to bottom.
    pub fn rows(&self) -> impl Iterator<Item = MaskedRow<'_>> {
        self.screen.rows.iter().map(MaskedRow)
    }

    /// Width and height.
    pub fn size(&self) -> Size {
        self.screen.size
    }

    /// Where the next character goes.
    pub fn cursor(&self) -> Cursor {
        self.screen.cursor
    }

    /// What the program asked of keyboard, mouse and paste.
    pub fn modes(&self) -> Modes {
        self.screen.modes
    }

    /// Which of the two screens it is.
    pub fn buffer(&self) -> Buffer {
        self.screen.buffer
    }

    /// The window title.
    pub fn title(&self) -> Option<&Masked> {
        self.title.as_ref()
    }

    /// The number of the line that each row belongs to.
    pub fn lines(&self) -> &[u64] {
        &self.lines
    }

    /// The oldest line that is kept.
    pub fn oldest_line(&self) -> u64 {
        self.oldest_line
    }
}

/// A blank terminal that shows a page.
fn typeset(page: &Page) -> Emulator {
    let text: String = page.text.chars().filter(|c| *c == '\n' || !c.is_control()).collect();
    let mut emulator = Emulator::new(Settings { size: page.size, ..Settings::default() });
    let _ = emulator.feed(Duration::ZERO, text.replace('\n', "\r\n").as_bytes());
    emulator
}

impl MaskedRows {
    /// What a page says, in cells. Lines are counted from 0.
    pub fn of_page(page: &Page) -> Self {
        Self(typeset(page).rows(0..page.line_numbers.len() as u64, Which::Active))
    }

    /// Each with the number of its line.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, MaskedRow<'_>)> {
        self.0.iter().map(|(number, row)| (*number, MaskedRow(row)))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps the first rows.
    pub fn truncate(&mut self, rows: usize) {
        self.0.truncate(rows);
    }

    /// The cells.
    pub fn into_cells(self) -> Vec<Row> {
        self.0.into_iter().map(|(_, row)| row).collect()
    }
}

impl MaskedRow<'_> {
    /// The text of some of its cells.
    pub fn text(self, cells: Range<usize>) -> Masked {
        let mut text = String::with_capacity(cells.len());
        for Cell { c, marks, .. } in &self.0.cells[cells] {
            text.push(*c);
            text.extend(marks);
        }
        Masked::vouched(text)
    }
}

impl Deref for MaskedRow<'_> {
    type Target = Row;

    fn deref(&self) -> &Row {
        self.0
    }
}

/// The visible cells, secrets masked. `lead` lines above them say what they are.
pub fn screen(emulator: &mut Emulator, redactor: &Redactor, lead: u64) -> MaskedScreen {
    let lines = emulator.screen_lines();
    let mut screen = emulator.screen();
    let (first, end) = (lines.first().copied().unwrap_or(0), lines.last().map_or(0, |last| last + 1));
    let (secrets, oldest_line) = masked_lines(emulator, redactor, lead, first..end, Which::Active);
    for masked in secrets {
        let at = lines.partition_point(|&line| line < masked.number);
        let until = lines.partition_point(|&line| line <= masked.number);
        // Of the first line, rows may be above the screen.
        let mut whole: Vec<Row> = match masked.number == first {
            true => emulator.rows(first..first + 1, Which::Active).into_iter().map(|(_, row)| row).collect(),
            false => screen.rows[at..until].to_vec(),
        };
        mask(&mut whole, &masked.raw, &masked.shown);
        let above = whole.len().saturating_sub(until - at);
        for (row, masked) in screen.rows[at..until].iter_mut().zip(whole.drain(above..)) {
            *row = masked;
        }
    }
    let title = screen.title.take().map(|title| redactor.mask(title));
    MaskedScreen { screen, title, lines, oldest_line }
}

/// The cells of whole lines, row by row, secrets masked. Lines that left the screen long ago are laid out at the present
/// width.
pub fn rows(emulator: &mut Emulator, redactor: &Redactor, lead: u64, wanted: Range<u64>, which: Which) -> MaskedRows {
    let mut rows = emulator.rows(wanted.clone(), which);
    for masked in masked_lines(emulator, redactor, lead, wanted, which).0 {
        let at = rows.partition_point(|(line, _)| *line < masked.number);
        let until = rows.partition_point(|(line, _)| *line <= masked.number);
        let mut whole: Vec<Row> = rows[at..until].iter().map(|(_, row)| row.clone()).collect();
        mask(&mut whole, &masked.raw, &masked.shown);
        for ((_, row), masked) in rows[at..until].iter_mut().zip(whole) {
            *row = masked;
        }
    }
    MaskedRows(rows)
}

/// The lines that have secrets, and the oldest line that there is.
fn masked_lines(
    emulator: &mut Emulator,
    redactor: &Redactor,
    lead: u64,
    lines: Range<u64>,
    which: Which,
) -> (Vec<MaskedLine>, u64) {
    let range = Mode::Range { from: lines.start, until: Some(lines.end) };
    let request = Request { which, filter_lead: lead, ..Request::new(range) };
    let raw = emulator.read(&request, None);
    let shown = page::read(emulator, &request, redactor);
    let pairs = raw.line_numbers.iter().zip(raw.lines().zip(shown.lines()));
    let changed = pairs.filter(|(_, (raw, shown))| raw != shown).map(|(&number, (raw, shown))| MaskedLine {
        number,
        raw: raw.to_owned(),
        shown: shown.to_owned(),
    });
    (changed.collect(), raw.oldest_line)
}

/// A line with a secret, and what is shown of it.
struct MaskedLine {
    number: u64,
    raw: String,
    shown: String,
}

/// Hides in the rows of a line what its masked text does not show.
fn mask(rows: &mut [Row], raw: &str, shown: &str) {
    let mut text = String::new();
    // Where each character of the text is: row, cell.
    let mut places: Vec<(usize, usize, usize)> = Vec::new();
    for (number, row) in rows.iter().enumerate() {
        for (col, cell) in row.cells.iter().enumerate().filter(|(_, cell)| cell.width != Width::Spacer) {
            places.push((text.len(), number, col));
            text.push(cell.c);
            text.extend(&cell.marks);
        }
    }
    let is_same = text.trim_end_matches(' ') == raw.trim_end_matches(' ');
    let hidden = if is_same { hidden_ranges(raw, shown) } else { vec![(0..text.len(), shown.to_owned())] };
    for (range, mask) in hidden {
        let mut letters = mask.chars().filter(|c| !c.is_control());
        for &(_, row, col) in places.iter().filter(|(at, ..)| range.contains(at)) {
            let cells = &mut rows[row].cells;
            let wide = if cells[col].width == Width::Double { 2 } else { 1 };
            for cell in cells.iter_mut().skip(col).take(wide) {
                cell.c = letters.next().unwrap_or(FILLER);
                cell.marks.clear();
                cell.width = Width::Single;
                cell.link = None;
            }
        }
    }
}

/// What of a line is not shown, and the mask in its place.
///
/// The parts between masks are looked for from the left and from the right; where both find the same place, it is the
/// place. Where they do not, all that lies between is hidden: rather too much than a piece of a secret.
fn hidden_ranges(raw: &str, shown: &str) -> Vec<(Range<usize>, String)> {
    let (parts, masks) = split_at_masks(shown);
    aligned(raw, &parts, &masks).unwrap_or_else(|| vec![difference(raw, shown)])
}

/// The texts between masks, one more than there are masks.
fn split_at_masks(shown: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut parts, mut masks, mut rest) = (Vec::new(), Vec::new(), shown);
    let mut from = 0;
    while let Some(at) = rest[from..].find(MASK_OPENS).map(|at| from + at) {
        let Some(length) = rest[at..].find(MASK_CLOSES).map(|length| length + 1) else { break };
        let is_mask = rest[at + 1..at + length - 1].bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        if !is_mask {
            from = at + MASK_OPENS.len();
            continue;
        }
        parts.push(&rest[..at]);
        masks.push(&rest[at..at + length]);
        (rest, from) = (&rest[at + length..], 0);
    }
    parts.push(rest);
    (parts, masks)
}

fn aligned(raw: &str, parts: &[&str], masks: &[&str]) -> Option<Vec<(Range<usize>, String)>> {
    let (first, rest) = parts.split_first()?;
    let (last, middle) = rest.split_last()?;
    let inner_end = raw.len().checked_sub(last.len())?;
    if !raw.starts_with(first) || !raw.ends_with(last) || first.len() > inner_end {
        return None;
    }
    let (mut left, mut at) = (Vec::new(), first.len());
    for part in middle {
        // A mask hides something, so the next part begins later.
        let step = raw.get(at..inner_end)?.chars().next()?.len_utf8();
        let found = at + step + raw.get(at + step..inner_end)?.find(part)?;
        left.push(found);
        at = found + part.len();
    }
    let (mut right, mut end) = (Vec::new(), inner_end);
    for part in middle.iter().rev() {
        let step = raw.get(first.len()..end)?.chars().next_back()?.len_utf8();
        let found = first.len() + raw.get(first.len()..end - step)?.rfind(part)?;
        right.push(found);
        end = found;
    }
    right.reverse();
    let mut hidden: Vec<(Range<usize>, String)> = Vec::new();
    let mut from = first.len();
    let ends = left.iter().zip(&right).zip(middle).map(|((&left, &right), part)| (left, right, part.len()));
    let mut pending: Option<&str> = None;
    for ((left, right, length), mask) in ends.chain([(inner_end, inner_end, 0)]).zip(masks) {
        let mask = pending.take().unwrap_or(mask);
        if left == right {
            hidden.push((from..left, mask.to_owned()));
            from = left + length;
        } else {
            pending = Some(mask);
        }
    }
    Some(hidden)
}

/// What differs between the two beginnings and the two ends that are the same.
fn difference(raw: &str, shown: &str) -> (Range<usize>, String) {
    let start: usize = raw.chars().zip(shown.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
    let (raw_rest, shown_rest) = (&raw[start..], &shown[start..]);
    let same_end = raw_rest.chars().rev().zip(shown_rest.chars().rev()).take_while(|(a, b)| a == b);
    let end: usize = same_end.map(|(a, _)| a.len_utf8()).sum();
    (start..raw.len() - end, shown_rest[..shown_rest.len() - end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(raw: &str, shown: &str) -> String {
        let mut text = raw.to_owned();
        for (range, _) in hidden_ranges(raw, shown).into_iter().rev() {
            let dots = "#".repeat(raw[range.clone()].chars().count());
            text.replace_range(range, &dots);
        }
        text
    }

    #[test]
    fn what_a_mask_stands_for_is_found() {
        for (raw, shown, expected) in [
            ("key=abcdef!", "key=[REDACTED_API_KEY]!", "key=######!"),
            ("abcdef", "[REDACTED]", "######"),
            ("a SECRET b OTHER c", "a [REDACTED] b [REDACTED_X] c", "a ###### b ##### c"),
            // The text between two secrets may be in a secret too: then it is hidden with them.
            ("xx-yy-zz", "[REDACTED]-[REDACTED]", "########"),
            ("export MY_TOKEN=x", "export TOKEN=[REDACTED]", "export ##########"),
            ("ä SECRET ö", "ä [REDACTED] ö", "ä ###### ö"),
            ("[REDACTED] SECRET", "[REDACTED] [REDACTED]", "########## ######"),
            ("[REDACTED is no mask] SECRET", "[REDACTED is no mask] [REDACTED]", "[REDACTED is no mask] ######"),
        ] {
            assert_eq!(hidden(raw, shown), expected, "{raw:?} as {shown:?}");
        }
    }

    fn terminal(output: &str) -> Emulator {
        let size = Size::new(20, 3).expect("a size");
        let mut emulator = Emulator::new(Settings { size, ..Settings::default() });
        let _ = emulator.feed(Duration::ZERO, output.as_bytes());
        emulator
    }

    fn shown(emulator: &mut Emulator) -> MaskedScreen {
        screen(emulator, &Redactor::new(["a-known-secret-of-some-length".to_owned()]), 2)
    }

    fn text(row: MaskedRow<'_>) -> String {
        let cells = row.cells.iter().filter(|cell| cell.width != Width::Spacer);
        cells.map(|cell| cell.c).collect::<String>().trim_end().to_owned()
    }

    #[test]
    fn a_wrapped_secret_is_masked_in_all_of_its_rows() {
        let mut terminal = terminal("one\r\nkey: a-known-secret-of-some-length.\r\n");
        let texts = |screen: MaskedScreen| screen.rows().map(text).collect::<Vec<_>>();
        assert_eq!(shown(&mut terminal).lines(), [1, 1, 2]);
        assert_eq!(texts(shown(&mut terminal)), ["key: [REDACTED]•••••", "••••••••••••••.", ""]);
        // Half of it above the screen, and all of it above.
        let _ = terminal.feed(Duration::ZERO, b"two\r\n");
        assert_eq!(texts(shown(&mut terminal)), ["••••••••••••••.", "two", ""]);
        let _ = terminal.feed(Duration::ZERO, b"three\r\n");
        let redactor = Redactor::new(["a-known-secret-of-some-length".to_owned()]);
        let rows = rows(&mut terminal, &redactor, 2, 0..3, Which::Active);
        let rows: Vec<_> = rows.iter().map(|(line, row)| (line, text(row))).collect();
        let expected = [(0, "one"), (1, "key: [REDACTED]•••••"), (1, "••••••••••••••."), (2, "two")];
        assert_eq!(rows, expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn cells_without_secrets_are_the_screen() {
        let mut terminal = terminal("\x1b[31mred\x1b[0m 日本\r\n");
        assert_eq!(*shown(&mut terminal).cells(), terminal.screen());
    }
}
