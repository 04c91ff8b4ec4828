//! The window title and its stack, within bounds.

/// Longest title kept, in bytes.
pub(crate) const TITLE_LIMIT: usize = 4096;
/// Titles that can be pushed (`CSI 22 t`); the oldest goes first.
pub(crate) const STACK_LIMIT: usize = 16;

/// Title and stack of pushed titles.
#[derive(Debug, Default)]
pub(crate) struct Titles {
    current: Option<String>,
    stack: Vec<Option<String>>,
}

impl Titles {
    pub(crate) fn current(&self) -> Option<&str> {
        self.current.as_deref()
    }

    /// Takes a title as the program sent it: cut to the bound, without controls and outer blanks.
    pub(crate) fn set(&mut self, raw: &[u8]) {
        let head = &raw[..raw.len().min(TITLE_LIMIT)];
        let text: String = String::from_utf8_lossy(head).chars().filter(|c| !c.is_control()).collect();
        let mut text = text.trim().to_owned();
        // A replacement character is longer than the byte it stands for.
        text.truncate(text.floor_char_boundary(TITLE_LIMIT));
        self.current = Some(text);
    }

    pub(crate) fn push(&mut self) {
        if self.stack.len() == STACK_LIMIT {
            self.stack.remove(0);
        }
        self.stack.push(self.current.clone());
    }

    pub(crate) fn pop(&mut self) {
        if let Some(title) = self.stack.pop() {
            self.current = title;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_cut_to_its_bound_and_cleaned() {
        let mut titles = Titles::default();
        titles.set(b"  a\x01b \xff ");
        assert_eq!(titles.current(), Some("ab \u{fffd}"));
        titles.set(&[b'x'; 3 * TITLE_LIMIT]);
        assert_eq!(titles.current().map(str::len), Some(TITLE_LIMIT));
        titles.set(&[0xff; 3 * TITLE_LIMIT]);
        assert!(titles.current().is_some_and(|title| title.len() <= TITLE_LIMIT));
    }

    #[test]
    fn the_stack_keeps_the_newest_sixteen() {
        let mut titles = Titles::default();
        for index in 0..STACK_LIMIT + 5 {
            titles.set(index.to_string().as_bytes());
            titles.push();
        }
        assert_eq!(titles.stack.len(), STACK_LIMIT);
        for index in (5..STACK_LIMIT + 5).rev() {
            titles.pop();
            assert_eq!(titles.current(), Some(index.to_string().as_str()));
        }
        titles.pop();
        assert_eq!(titles.current(), Some("5"));
    }
}
