//! Comparing secrets. Keeping them is done elsewhere.

use std::hint::black_box;

/// Compares all bytes, whatever the first ones are, so that the time taken does not tell how many of them are right.
/// The running time may reveal the length. `black_box` keeps the compiler from ending the loop early; that is all a crate for
/// this would add.
pub fn is_same(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |differences, (a, b)| black_box(differences | (a ^ b)));
    a.len() == b.len() && black_box(differences) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_secret_is_the_same() {
        for (a, b, same) in [("", "", true), ("abc", "abc", true), ("abc", "abd", false), ("abc", "ab", false)] {
            assert_eq!(is_same(a.as_bytes(), b.as_bytes()), same, "{a} {b}");
        }
    }
}
