//! Every rule against its examples, and what must hold for any text.

use proptest::prelude::*;

use super::rules::RULES;
use super::scan::Carry;
use super::*;

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    /// Characters of an alphabet; the first six have small letters, capitals and digits, where it has them.
    fn letters(&mut self, kind: char, length: usize) -> String {
        const ALL: &[u8] = b"abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789";
        let alphabet: Vec<u8> = match kind {
            'h' => b"0123456789abcdef".to_vec(),
            'd' => b"0123456789".to_vec(),
            'u' => b"ABCDEFGHJKLMNPQRSTUVWXYZ234567".to_vec(),
            'l' => b"abcdefghijkmnpqrstuvwxyz0123456789".to_vec(),
            _ => ALL.to_vec(),
        };
        let fixed = match kind {
            'h' => "7c1e9a4f",
            'd' => "48213057",
            'u' => "K7QX2MZ4",
            'l' => "k7q2mz4t",
            _ => "kT7q2Zm4",
        };
        let rolled = (fixed.len()..length).map(|at| match (kind, at % 11) {
            ('b', 10) if at + 1 < length => '/',
            ('w', 10) if at + 1 < length => '-',
            _ => char::from(alphabet[self.roll(alphabet.len())]),
        });
        fixed.chars().take(length).chain(rolled).collect()
    }

    /// Fills in the braces of an example.
    fn fill(&mut self, example: &str) -> String {
        let mut filled = String::new();
        let mut rest = example;
        while let Some(open) = rest.find('{') {
            let (before, after) = rest.split_at(open);
            filled.push_str(before);
            let inside = after[1..].split('}').next().unwrap_or_default();
            let (kind, digits) = match inside.strip_prefix(|c: char| c.is_ascii_lowercase()) {
                Some(digits) => (inside.chars().next().unwrap_or('a'), digits),
                None => ('a', inside),
            };
            match digits.parse() {
                Ok(length) => {
                    filled.push_str(&self.letters(kind, length));
                    rest = &after[inside.len() + 2..];
                }
                Err(_) => {
                    filled.push('{');
                    rest = &after[1..];
                }
            }
        }
        filled + rest
    }
}

#[test]
fn every_rule_hides_and_leaves_what_its_examples_say() {
    let mut problems = Vec::new();
    for rule in RULES.iter() {
        let mut dice = Dice(rule.id.len() as u64);
        if rule.hides.is_empty() || rule.leaves.is_empty() {
            problems.push(format!("{} lacks examples", rule.id));
        }
        for example in rule.hides {
            let text = dice.fill(example);
            let found = scan::scan(text.as_bytes(), &mut Carry::default());
            if !found.iter().any(|span| span.rule == rule.id) {
                problems.push(format!("{} does not hide {example:?}: {text:?} {found:?}", rule.id));
            }
        }
        for example in rule.leaves {
            let text = dice.fill(example);
            let found = scan::scan(text.as_bytes(), &mut Carry::default());
            if found.iter().any(|span| span.rule == rule.id) {
                problems.push(format!("{} hides {example:?}: {text:?}", rule.id));
            }
        }
        if !(rule.mask.starts_with("[REDACTED") && rule.mask.ends_with(']')) {
            problems.push(format!("{} has no mask", rule.id));
        }
    }
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

/// Not a benchmark: a bound that only something that is not linear would miss on a busy machine. Each piece makes a
/// rule follow the text to its end, from every place where its keyword stands.
#[test]
fn hostile_texts_end_soon() {
    let redactor = Redactor::new(["abab-abab".to_owned(), "a-known-secret".to_owned()]);
    for piece in [
        "authorization:",
        "cookie:a=",
        "cookie=a; ",
        "LS0tLS1CRUdJTi",
        "key=/token=/",
        "eyJabcdefgh--",
        "AKIA1234567890ABCDEF:",
        "bearer bearer:",
        "\"kty\"\"d\":",
        "://a:b/@",
        "mysql -p ",
        "@tcp(",
        " -u a:",
        "Q~",
        "\"auth\":",
        "secret: |\n",
        "token is token for ",
        "abab-",
        "\u{1b}]0;token=",
        "\u{1b}[31m ",
        " \rx",
    ] {
        let text: String = piece.chars().cycle().take(1 << 20).chain(".".chars()).collect();
        let took = crate::tests::cpu_time::of(|| drop(redactor.redact(&text)));
        assert!(took < std::time::Duration::from_secs(10), "{piece:?} took {took:?}");
    }
}

#[test]
fn every_rule_has_a_name_of_its_own() {
    let mut ids: Vec<_> = RULES.iter().map(|rule| rule.id).collect();
    ids.sort_unstable();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

fn check(literals: &[&str], text: &str, expected: &str) {
    let redactor = Redactor::new(literals.iter().map(|literal| literal.to_string()));
    assert_eq!(redactor.redact(text), expected, "{text}");
}

/// Something token-shaped, put together here so that none stands in the repository.
fn token(prefix: &str, length: usize) -> String {
    [prefix, &"a1B2".repeat(length)[..length]].concat()
}

/// The texts that callers have known from the beginning.
#[test]
fn the_first_masks_are_as_they_were() {
    let (api, github, value) = (token("sk-", 20), token("ghp_", 36), token("", 20));
    for (text, expected) in [
        (api.clone(), "[REDACTED_API_KEY]"),
        (format!("key={api}!"), "key=[REDACTED_API_KEY]!"),
        (format!("{api} {api}"), "[REDACTED_API_KEY] [REDACTED_API_KEY]"),
        (github.clone(), "[REDACTED_GITHUB_TOKEN]"),
        (format!("Authorization: Bearer {}", token("x_-", 3)), "Authorization: Bearer [REDACTED]"),
        (format!("Authorization: Bearer {api}"), "Authorization: Bearer [REDACTED_API_KEY]"),
        (format!("export MY_TOKEN_2={value}; ls"), "export TOKEN=[REDACTED]; ls"),
        (format!("export  GITHUB_TOKEN={github}"), "export TOKEN=[REDACTED]"),
        (format!("export AWS_SECRET_KEY='{value}' y"), "export KEY=[REDACTED] y"),
        (format!("export OPENAI_API_KEY={api}"), "export KEY=[REDACTED]"),
        (format!("ANTHROPIC_API_KEY={value} claude"), "ANTHROPIC_API_KEY=[REDACTED] claude"),
        (format!("env OPENAI_API_KEY={value}\nls"), "env OPENAI_API_KEY=[REDACTED]\nls"),
        (format!("https://u:{value}@h.example/"), "https://u:[REDACTED_PASSWORD]@h.example/"),
        (format!("AWS_SECRET_ACCESS_KEY={value}"), "AWS_SECRET_ACCESS_KEY=[REDACTED_AWS_KEY]"),
        (format!("APP_SECRET={value}"), "APP_SECRET=[REDACTED_SECRET]"),
    ] {
        check(&[], &text, expected);
    }
}

#[test]
fn what_has_no_secret_is_returned_without_a_copy() {
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
        "\x1b[1mbold\x1b[0m\r\n",
    ] {
        assert!(matches!(redactor.redact(text), Cow::Borrowed(same) if same == text), "{text}");
    }
}

#[test]
fn a_known_value_is_masked_whatever_it_looks_like() {
    check(&["p.ss(w+rd"], "p.ss(w+rd pass(wrd $0", "[REDACTED] pass(wrd $0");
    check(&["geheimnisvoll-ß"], "ä geheimnisvoll-ß ö", "ä [REDACTED] ö");
    check(&["seven77", "ééééééé"], "seven77 ééééééé", "seven77 ééééééé");
    check(&["eight888", "éééééééé"], "eight888 éééééééé", "[REDACTED] [REDACTED]");
    check(&["abcdefgh", "abcdefgh-longer"], "x abcdefgh-longer y", "x [REDACTED] y");
    check(&["abcdefgh", "efghijkl"], "x abcdefghijkl y", "x [REDACTED] y");
    check(&["ababababab"], "x abababababab y", "x [REDACTED] y");
    check(&["abcdefgh"], "abcdefghabcdefgh", "[REDACTED][REDACTED]");
    check(&["Bearer abc.def.ghi"], "Bearer abc.def.ghi", "[REDACTED]");
}

#[test]
fn a_value_can_be_added_and_is_never_printed() {
    let redactor = Redactor::new(["first-value".to_owned()]).with_literal("second-value".to_owned());
    assert_eq!(redactor.redact("first-value second-value"), "[REDACTED] [REDACTED]");
    assert_eq!(format!("{redactor:?}"), "Redactor { literals: 2 }");
}

#[test]
fn values_of_secret_variables_are_known() {
    let value = token("", 16);
    let variables = [("MY_SECRET", value.as_str()), ("HOME", "/srv/somebody"), ("EDITOR", "vim-with-plugins")];
    let redactor = Redactor::default().with_variables(variables);
    assert_eq!(
        redactor.redact(&format!("<{value}> /srv/somebody vim-with-plugins")),
        "<[REDACTED]> /srv/somebody vim-with-plugins"
    );
}

#[test]
fn switched_off_it_masks_what_it_knows_and_no_more() {
    let redactor = Redactor::off().with_literal("a known secret".to_owned());
    let github = token("ghp_", 36);
    assert_eq!(redactor.redact(&format!("{github} a known secret")), format!("{github} [REDACTED]"));
}

#[test]
fn sequences_inside_a_secret_stay_and_the_secret_goes() {
    let github = token("ghp_", 36);
    let (head, tail) = github.split_at(11);
    for (text, expected) in [
        (
            format!("a \x1b[1m{head}\x1b[31m{tail}\x1b[0m b"),
            "a \x1b[1m[REDACTED_GITHUB_TOKEN]\x1b[31m\x1b[0m b".to_owned(),
        ),
        (format!("{head} \r{tail}"), "[REDACTED_GITHUB_TOKEN] \r".to_owned()),
        (format!("{github}\r\x1b[2Kclean\r\n"), "[REDACTED_GITHUB_TOKEN]\r\x1b[2Kclean\r\n".to_owned()),
        (format!("\x1b]0;{github}\x07x"), "\x1b]0;[REDACTED_GITHUB_TOKEN]\x07x".to_owned()),
        (format!("end\x1b[2;1H{github}"), "end\x1b[2;1H[REDACTED_GITHUB_TOKEN]".to_owned()),
        (format!("x\x1b]0;{github}"), "x\x1b]0;[REDACTED_GITHUB_TOKEN]".to_owned()),
    ] {
        check(&[], &text, &expected);
    }
}

#[test]
fn a_window_that_opens_inside_a_secret_shows_its_mask() {
    let github = token("ghp_", 36);
    let text = format!("before {github} after");
    let redactor = Redactor::default();
    for from in 7..47 {
        assert_eq!(redactor.redact_window(text.as_bytes(), from), "[REDACTED_GITHUB_TOKEN] after".to_owned(), "{from}");
    }
    assert_eq!(redactor.redact_window(text.as_bytes(), 47), " after");
    assert_eq!(redactor.redact_window(text.as_bytes(), 900), "");
}

#[test]
fn bytes_that_are_no_text_stay() {
    let github = token("ghp_", 36);
    let mut bytes = vec![0xff, 0xfe, b' '];
    bytes.extend_from_slice(github.as_bytes());
    bytes.extend_from_slice(b" \x80\r\n\x00");
    let mut expected = b"\xff\xfe [REDACTED_GITHUB_TOKEN]".to_vec();
    expected.extend_from_slice(b" \x80\r\n\x00");
    assert_eq!(Redactor::default().redact_bytes(&bytes), expected);
}

#[test]
fn key_blocks_go_over_lines() {
    let (line, last) = ("Ab1/".repeat(16), "Qw2+".repeat(5));
    let (begin, end) = ("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----");
    let text = [begin, &line, &line, &last, end, "$ ls", &line].join("\n");
    let mask = "[REDACTED_PRIVATE_KEY]";
    let expected = [begin, mask, mask, mask, end, "$ ls", &line].join("\n");
    check(&[], &text, &expected);
    let mut lines = Redactor::default().lines();
    let masked: Vec<_> = text.lines().map(|line| lines.redact(line).unwrap_or_else(|| line.to_owned())).collect();
    assert_eq!(masked.join("\n"), expected);
}

#[test]
fn a_long_line_without_an_end_is_not_held() {
    let mut stream = Redactor::default().stream();
    let github = token("ghp_", 36);
    let text = format!("{} {github} ", "word ".repeat(20_000)).repeat(3);
    let mut shown = Vec::new();
    for piece in text.as_bytes().chunks(1_000) {
        shown.extend(stream.push(piece));
        assert!(stream.held() <= 64 << 10);
    }
    shown.extend(stream.finish());
    assert_eq!(String::from_utf8_lossy(&shown), text.replace(&github, "[REDACTED_GITHUB_TOKEN]"));
    let endless = token("ghp_", 300_000);
    let mut stream = Redactor::default().stream();
    let mut shown = stream.push(format!("{endless} after\n").as_bytes());
    shown.extend(stream.finish());
    assert_eq!(String::from_utf8_lossy(&shown), "[REDACTED_GITHUB_TOKEN] after\n");
}

/// Pieces of text with secrets, half secrets, names, frames and sequences.
fn pieces() -> impl Strategy<Value = String> {
    let mut dice = Dice(7);
    let examples: Vec<String> =
        RULES.iter().flat_map(|rule| rule.hides.iter().chain(rule.leaves)).map(|example| dice.fill(example)).collect();
    let glue = prop::sample::select(vec![
        "",
        " ",
        "\n",
        "\r\n",
        "=",
        ": ",
        "\"",
        "'",
        "\x1b[1m",
        "\x1b[0m",
        "[REDACTED]",
        "[REDACTED_X]",
        "export ",
        "é",
        "-",
        "_",
        "\\n",
        "&",
        ";",
        "\x1b]0;",
        "\x07",
    ]);
    let piece = prop_oneof![
        4 => prop::sample::select(examples.clone()),
        2 => (prop::sample::select(examples), 0usize..200).prop_map(|(text, at)| text.chars().skip(at % 40).take(at).collect()),
        1 => "[ -~]{0,30}",
        1 => "\\PC{0,12}",
    ];
    prop::collection::vec((piece, glue), 0..8)
        .prop_map(|pairs| pairs.into_iter().map(|(piece, glue)| piece + glue).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn redacting_twice_is_redacting_once(text in pieces()) {
        let redactor = Redactor::new(["known-value-1".to_owned()]);
        let once = redactor.redact(&text).into_owned();
        let twice = redactor.redact(&once).into_owned();
        prop_assert_eq!(twice, once);
    }

    #[test]
    fn any_cut_into_pieces_gives_the_same(text in pieces(), sizes in prop::collection::vec(1usize..40, 1..8)) {
        let whole = {
            let mut stream = Redactor::default().stream();
            let mut shown = stream.push(text.as_bytes());
            shown.extend(stream.finish());
            shown
        };
        let mut stream = Redactor::default().stream();
        let mut shown = Vec::new();
        let mut rest = text.as_bytes();
        for size in sizes.iter().cycle() {
            let (piece, later) = rest.split_at((*size).min(rest.len()));
            shown.extend(stream.push(piece));
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        shown.extend(stream.finish());
        prop_assert_eq!(shown, whole);
    }

    #[test]
    fn a_token_is_hidden_wherever_a_sequence_cuts_it(at in 0usize..40, before in "[a-z .:]{0,12}", colour in 0u8..108) {
        let token = token("ghp_", 36);
        let text = format!("{before} {}\x1b[{colour}m{}\x1b[0m", &token[..at], &token[at..]);
        let masked = Redactor::default().redact(&text).into_owned();
        prop_assert!(masked.contains("[REDACTED_GITHUB_TOKEN]"));
        prop_assert!(!masked.contains("a1B2"));
    }

    #[test]
    fn any_bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Redactor::default().redact_bytes(&bytes);
        let _ = Redactor::default().redact_window(&bytes, bytes.len() / 2);
        let mut watch = KeyWatch::default();
        let _ = watch.feed(&bytes);
    }
}
