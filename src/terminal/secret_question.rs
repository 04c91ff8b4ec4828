//! Whether a line on a screen asks for something secret.

/// Words in the question for something that is not to be seen.
const SECRET_WORDS: [&str; 8] = ["password", "passwd", "passphrase", "passcode", "secret", "token", "api key", "pin:"];
/// What programs show for each character of a secret.
const DOTS: [char; 4] = ['*', '•', '●', '∙'];

/// A line that ends with a question for a password or the like.
pub(super) fn is_secret_question(line: &str) -> bool {
    let line = line.trim_end().trim_end_matches(DOTS).trim_end().to_lowercase();
    line.ends_with([':', '?', '>', ']', ')']) && SECRET_WORDS.iter().any(|word| line.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_for_secrets_are_known_by_their_words() {
        for (line, expected) in [
            ("Enter password: ", true),
            ("[sudo] password for me: ***", true),
            ("Passphrase for key ●●●:", true),
            ("API key?", true),
            ("PIN: ", true),
            ("$ ", false),
            ("Name: ", false),
            ("password", false),
            ("mysql> ", false),
            ("spinning: ", false),
            ("", false),
        ] {
            assert_eq!(is_secret_question(line), expected, "{line:?}");
        }
    }
}
