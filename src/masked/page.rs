//! Rendered text without secrets.

use kpty_emulator::{Answer, Emulator, LineFilter, Request, Sheet};
use kpty_guard::{Masked, MaskedStr, PageRedactor, Redactor};

/// What a read found, secrets masked.
pub type Page = Answer<Masked>;

/// Masks the lines of a read.
struct Filter(PageRedactor);

impl LineFilter for Filter {
    fn begin(&mut self, page: &str) {
        self.0.begin(page);
    }

    fn filter(&mut self, line: &str) -> Option<String> {
        self.0.redact(line)
    }
}

/// Reads rendered text, secrets masked before anything is cut.
pub fn read(emulator: &mut Emulator, request: &Request, redactor: &Redactor) -> Page {
    let mut filter = Filter(redactor.page());
    emulator.read(request, Some(&mut filter)).map_text(Masked::vouched)
}

/// Answers a read with lines that another terminal has rendered. `sheet` has everything but the lines.
pub fn of_sheet(sheet: Sheet, lines: Vec<(u64, Masked)>, request: &Request) -> Page {
    let lines = lines.into_iter().map(|(number, line)| (number, line.into_string())).collect();
    Sheet { lines, ..sheet }.into_answer(request).map_text(Masked::vouched)
}

/// The lines of a page.
pub fn lines_of(page: &Page) -> impl Iterator<Item = MaskedStr<'_>> {
    page.line_ranges().map(|range| page.text.part(range))
}
