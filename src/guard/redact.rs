//! Masks secrets in text that leaves the terminal.
//!
//! First the values that are known to be secret, wherever they stand; then seven rules for what looks like a
//! secret, each over the result of the one before. Most output has none of it, so one search over everything comes
//! first and ordinary text is returned as it is. Redact before cutting: half a token matches nothing.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{NoExpand, Regex};

/// What stands in place of a known secret.
const MASK: &str = "[REDACTED]";
/// Shorter values are too likely to be ordinary words.
const SHORTEST_LITERAL_CHARS: usize = 8;

/// What looks like a secret, and what is shown in its place; in order, with regard to case.
const RULES: [(&str, &str); 7] = [
    (r"sk-[a-zA-Z0-9]{20,}", "[REDACTED_API_KEY]"),
    (r"ghp_[a-zA-Z0-9]{36,}", "[REDACTED_GITHUB_TOKEN]"),
    (r"Bearer [a-zA-Z0-9_-]+", "Bearer [REDACTED]"),
    (r"export\s+\w*TOKEN\w*=\S+", "export TOKEN=[REDACTED]"),
    (r"export\s+\w*KEY\w*=\S+", "export KEY=[REDACTED]"),
    (r"ANTHROPIC_API_KEY=\S+", "ANTHROPIC_API_KEY=[REDACTED]"),
    (r"OPENAI_API_KEY=\S+", "OPENAI_API_KEY=[REDACTED]"),
];

static COMPILED: LazyLock<[Regex; RULES.len()]> = LazyLock::new(|| RULES.map(|(regex, _)| compile(regex)));

/// Matches where any rule does. One alternation, so that the search looks for the rules' first letters.
static ANY_RULE: LazyLock<Regex> = LazyLock::new(|| compile(&RULES.map(|(regex, _)| format!("(?:{regex})")).join("|")));

fn compile(regex: &str) -> Regex {
    Regex::new(regex).expect("a test compiles every rule")
}

/// Masks what looks like a secret, and the values it was told of.
#[derive(Clone, Default)]
pub struct Redactor {
    literals: Vec<String>,
    /// Matches where any of the literals does; none when there are no literals, or too many for one search.
    any_literal: Option<Regex>,
}

/// Says how many secrets it knows, never which.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("literals", &self.literals.len()).finish()
    }
}

impl Redactor {
    /// A redactor that also masks these values. Values of fewer than 8 characters are left out.
    pub fn new(literals: impl IntoIterator<Item = String>) -> Self {
        let is_long = |literal: &String| literal.chars().count() >= SHORTEST_LITERAL_CHARS;
        let mut literals: Vec<String> = literals.into_iter().filter(is_long).collect();
        literals.sort();
        literals.dedup();
        let any_literal = match literals.is_empty() {
            true => None,
            false => {
                let escaped: Vec<_> = literals.iter().map(|literal| regex::escape(literal)).collect();
                Regex::new(&escaped.join("|")).ok()
            }
        };
        Self { literals, any_literal }
    }

    /// The same with one value more.
    pub fn with_literal(&self, literal: String) -> Self {
        Self::new(self.literals.iter().cloned().chain([literal]))
    }

    /// The text without secrets: one line or many. What has no secret comes back as it is, without a copy.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let masked = self.mask_literals(text);
        if !ANY_RULE.is_match(&masked) {
            return masked;
        }
        let mut masked = masked.into_owned();
        for (regex, (_, shown)) in COMPILED.iter().zip(RULES) {
            if let Cow::Owned(changed) = regex.replace_all(&masked, NoExpand(shown)) {
                masked = changed;
            }
        }
        Cow::Owned(masked)
    }

    fn mask_literals<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.any_literal.as_ref().is_some_and(|any| !any.is_match(text)) {
            return Cow::Borrowed(text);
        }
        let ranges = self.literal_ranges(text);
        if ranges.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut masked = String::with_capacity(text.len());
        let mut done = 0;
        for range in ranges {
            masked.push_str(&text[done..range.start]);
            masked.push_str(MASK);
            done = range.end;
        }
        masked.push_str(&text[done..]);
        Cow::Owned(masked)
    }

    /// Where known values stand, in order. Overlapping ones are one range, so that no end of a value is left over.
    fn literal_ranges(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<_> = self.literals.iter().flat_map(|literal| occurrences(text, literal)).collect();
        found.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(found.len());
        for range in found {
            match merged.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged
    }
}

/// All places of the needle, those that overlap too.
fn occurrences<'a>(text: &'a str, needle: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
    let step = needle.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text.get(from..)?.find(needle)?;
        from = start + step;
        Some(start..start + needle.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(literals: &[&str], text: &str, expected: &str) {
        let redactor = Redactor::new(literals.iter().map(|literal| literal.to_string()));
        assert_eq!(redactor.redact(text), expected, "{text}");
    }

    /// Something token-shaped, put together here so that none stands in the repository.
    fn token(prefix: &str, length: usize) -> String {
        [prefix, &"a1B2".repeat(length)[..length]].concat()
    }

    #[test]
    fn what_looks_like_a_secret_is_masked() {
        let (api, github) = (token("sk-", 20), token("ghp_", 36));
        for (text, expected) in [
            (api.clone(), "[REDACTED_API_KEY]"),
            (format!("key={api}!"), "key=[REDACTED_API_KEY]!"),
            (format!("{api} {api}"), "[REDACTED_API_KEY] [REDACTED_API_KEY]"),
            (github.clone(), "[REDACTED_GITHUB_TOKEN]"),
            (format!("Authorization: Bearer {}", token("x_-", 3)), "Authorization: Bearer [REDACTED]"),
            (format!("Authorization: Bearer {api}"), "Authorization: Bearer [REDACTED_API_KEY]"),
            ("export MY_TOKEN_2=x; ls".into(), "export TOKEN=[REDACTED] ls"),
            (format!("export  GITHUB_TOKEN={github}"), "export TOKEN=[REDACTED]"),
            ("export AWS_SECRET_KEY='x' y".into(), "export KEY=[REDACTED] y"),
            (format!("export OPENAI_API_KEY={api}"), "export KEY=[REDACTED]"),
            ("ANTHROPIC_API_KEY=x claude".into(), "ANTHROPIC_API_KEY=[REDACTED] claude"),
            ("env OPENAI_API_KEY=x\nls".into(), "env OPENAI_API_KEY=[REDACTED]\nls"),
        ] {
            check(&[], &text, expected);
        }
    }

    #[test]
    fn what_does_not_is_returned_without_a_copy() {
        let (short_api, short_github) = (token("sk-", 19), token("ghp_", 35));
        let redactor = Redactor::new(["a known secret".to_owned()]);
        for text in [
            "",
            "ordinary output, with a task-runner and a monkey=1",
            &short_api,
            &short_github,
            "bearer x",
            "Bearer",
            "export PATH=x",
            "export TOKEN",
            "OPENAI_API_KEY= x",
        ] {
            assert!(matches!(redactor.redact(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    /// Keys with hyphens after the prefix are none to the first rule; a caller who knows the value names it.
    #[test]
    fn a_known_value_is_masked_whatever_it_looks_like() {
        let hyphens = token("sk-ant-", 12);
        check(&[], &hyphens, &hyphens);
        check(&[&hyphens], &format!("<{hyphens}>"), "<[REDACTED]>");
        check(&["p.ss(w+rd"], "p.ss(w+rd pass(wrd $0", "[REDACTED] pass(wrd $0");
        check(&["geheimnisvoll-ß"], "ä geheimnisvoll-ß ö", "ä [REDACTED] ö");
    }

    #[test]
    fn short_values_are_not_masked() {
        check(&["", "seven77", "ééééééé"], "seven77 ééééééé", "seven77 ééééééé");
        check(&["eight888", "éééééééé"], "eight888 éééééééé", "[REDACTED] [REDACTED]");
    }

    #[test]
    fn overlapping_values_leave_nothing_over() {
        check(&["abcdefgh", "abcdefgh-longer"], "x abcdefgh-longer y", "x [REDACTED] y");
        check(&["abcdefgh", "efghijkl"], "x abcdefghijkl y", "x [REDACTED] y");
        check(&["ababababab"], "x abababababab y", "x [REDACTED] y");
        check(&["abcdefgh"], "abcdefghabcdefgh", "[REDACTED][REDACTED]");
    }

    /// The rules would cut a value in two and show its end.
    #[test]
    fn known_values_come_before_the_rules() {
        let value = "Bearer abc.def.ghi";
        check(&[], value, "Bearer [REDACTED].def.ghi");
        check(&[value], value, "[REDACTED]");
        check(&["abc.def.ghi"], value, "Bearer [REDACTED]");
    }

    #[test]
    fn a_value_can_be_added_and_is_never_printed() {
        let redactor = Redactor::new(["first-value".to_owned()]).with_literal("second-value".to_owned());
        assert_eq!(redactor.redact("first-value second-value"), "[REDACTED] [REDACTED]");
        assert_eq!(format!("{redactor:?}"), "Redactor { literals: 2 }");
    }
}
