//! What the limits pushed out of the history, of one stretch of lines: the text it began with, and a count of the rest.
//!
//! A reader who asks for the lines of a stretch only after its end gets its true beginning and exact counts from here,
//! however much of it has gone by then. Bounded by the caller's number of characters and one line.

/// The lines of a stretch that are no longer in the history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evicted {
    /// Number of the first line of the stretch; after a clear, of the first line behind it.
    pub first: u64,
    /// Number after the last line that went.
    pub until: u64,
    /// The first lines that went, each ended by a newline unless it goes on in the next.
    pub head: String,
    /// Characters that went and are not in `head`, newlines included.
    pub omitted_chars: u64,
    /// Newlines among them.
    pub omitted_newlines: u64,
    /// Number after the last line of the stretch, where that is known.
    end: Option<u64>,
    head_chars: usize,
    max_chars: usize,
}

impl Evicted {
    /// A stretch that begins with this line. `max_chars` characters of its beginning are kept, and the rest of the line
    /// they end in.
    pub(crate) fn new(first: u64, max_chars: usize) -> Self {
        Self { first, until: first, max_chars, ..Self::default() }
    }

    /// The stretch ends before this line.
    pub(crate) fn end_at(&mut self, line: u64) {
        self.end = Some(line);
    }

    /// Everything before this line was cleared: that was the program's wish, and nothing of it counts.
    pub(crate) fn clear(&mut self, next: u64) {
        if self.end.is_none() {
            *self = Self::new(next.max(self.first), self.max_chars);
        }
    }

    /// The line is one of the stretch, and has not been counted.
    pub(crate) fn wants(&self, number: u64) -> bool {
        number >= self.until && self.end.is_none_or(|end| number < end)
    }

    /// Takes a line that goes, with the newline that ends it.
    pub(crate) fn push(&mut self, number: u64, text: &[u8], continued: bool) {
        let text = if continued { text } else { without_end_blanks(text) };
        let chars = text.iter().filter(|&&byte| is_first(byte)).count() + usize::from(!continued);
        self.until = number + 1;
        if self.omitted_chars == 0 && self.head_chars < self.max_chars {
            self.head.push_str(std::str::from_utf8(text).unwrap_or_default());
            if !continued {
                self.head.push('\n');
            }
            self.head_chars += chars;
        } else {
            self.omitted_chars += chars as u64;
            self.omitted_newlines += u64::from(!continued);
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.head.capacity()
    }
}

/// The first byte of a character in UTF-8.
fn is_first(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

/// Without the blanks at its end; other white space stays.
fn without_end_blanks(text: &[u8]) -> &[u8] {
    let blanks = text.iter().rev().take_while(|&&byte| byte == b' ').count();
    &text[..text.len() - blanks]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_is_kept_and_the_rest_is_counted() {
        let mut evicted = Evicted::new(5, 4);
        for (number, text, continued) in
            [(5, "ab", false), (6, "é ", false), (7, "long", true), (8, "er  ", false), (9, "x", false)]
        {
            assert!(evicted.wants(number));
            evicted.push(number, text.as_bytes(), continued);
        }
        assert_eq!(evicted.head, "ab\né\n");
        assert_eq!((evicted.omitted_chars, evicted.omitted_newlines, evicted.until), (4 + 3 + 2, 2, 10));
        evicted.end_at(11);
        assert!(evicted.wants(10) && !evicted.wants(11) && !evicted.wants(9));
    }
}
