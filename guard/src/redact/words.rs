//! Lists of words that names and values are compared with, in capitals or not.
//!
//! Most of what is looked up is in no list. A list therefore knows which lengths its words have for each first letter,
//! and only what fits is compared.

/// A list of words.
pub(super) struct Words {
    words: &'static [&'static str],
    /// A bit for each length, by the low bits of the first letter, which are the same for capitals.
    lengths: [u32; 32],
}

impl Words {
    /// A list; no word may be longer than 31 bytes.
    pub(super) const fn new(words: &'static [&'static str]) -> Self {
        let mut lengths = [0; 32];
        let mut at = 0;
        while at < words.len() {
            let word = words[at].as_bytes();
            assert!(!word.is_empty() && word.len() < 32, "a word of a list has 1 to 31 bytes");
            lengths[(word[0] & 31) as usize] |= 1 << word.len();
            at += 1;
        }
        Self { words, lengths }
    }

    /// The word is in the list.
    pub(super) fn has(&self, word: &[u8]) -> bool {
        let Some(&first) = word.first() else { return false };
        word.len() < 32
            && self.lengths[usize::from(first & 31)] >> word.len() & 1 == 1
            && self.words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
    }
}

/// The text ends with the word, in capitals or not.
pub(super) fn ends_with(text: &[u8], word: &str) -> bool {
    text.len() >= word.len() && text[text.len() - word.len()..].eq_ignore_ascii_case(word.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_known_in_any_case_and_whole() {
        static WORDS: Words = Words::new(&["none", "nil", "[x]"]);
        assert!(["none", "NIL", "None", "[X]"].iter().all(|word| WORDS.has(word.as_bytes())));
        let long = "n".repeat(36);
        assert!(["", "no", "nones", "nope", "{x}", &long].iter().all(|word| !WORDS.has(word.as_bytes())));
    }
}
