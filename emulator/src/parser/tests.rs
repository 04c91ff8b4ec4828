//! The parser against `vte`'s, which implements the same state machine, and the places where it has to differ.

use alacritty_terminal::vte;
use proptest::prelude::*;

use super::{DCS_LIMIT, OSC_LIMIT, Parser, Sequence, Sink, StringEnd, decode};

/// What a parser found, in a form that both can produce.
#[derive(Debug, PartialEq)]
enum Found {
    Print(char),
    Control(u8),
    Escape(Vec<u8>, u8),
    Csi(Vec<Vec<u16>>, Vec<u8>, u8),
    Osc(Vec<u8>),
    Dcs(Vec<Vec<u16>>, Vec<u8>, u8),
    Title(Vec<u8>),
}

#[derive(Default)]
struct Ours(Vec<Found>);

fn groups(sequence: &Sequence) -> Vec<Vec<u16>> {
    sequence.groups().map(<[u16]>::to_vec).collect()
}

impl Sink for Ours {
    fn ascii(&mut self, run: &[u8]) {
        assert!(!run.is_empty());
        self.0.extend(run.iter().map(|&byte| Found::Print(char::from(byte))));
    }

    fn text(&mut self, text: &[char]) {
        assert!(!text.is_empty());
        let printed = text.iter().copied().filter(|c| !c.is_control());
        self.0.extend(printed.map(Found::Print));
    }

    fn control(&mut self, byte: u8) {
        self.0.push(Found::Control(byte));
    }

    fn escape(&mut self, intermediates: &[u8], last: u8) {
        self.0.push(Found::Escape(intermediates.to_vec(), last));
    }

    fn csi(&mut self, sequence: &Sequence, _length: usize) {
        self.0.push(Found::Csi(groups(sequence), sequence.intermediates().to_vec(), sequence.last()));
    }

    fn osc(&mut self, payload: &[u8], _end: StringEnd, _length: usize) {
        self.0.push(Found::Osc(payload.to_vec()));
    }

    fn dcs(&mut self, header: &Sequence, payload: &[u8], _length: usize) {
        assert!(payload.len() <= DCS_LIMIT);
        self.0.push(Found::Dcs(groups(header), header.intermediates().to_vec(), header.last()));
    }

    fn screen_title(&mut self, title: &[u8]) {
        self.0.push(Found::Title(title.to_vec()));
    }

    fn wants_pause(&self) -> bool {
        false
    }
}

#[derive(Default)]
struct Theirs {
    found: Vec<Found>,
    dcs: Option<Found>,
}

impl vte::Perform for Theirs {
    fn print(&mut self, c: char) {
        if !c.is_control() {
            self.found.push(Found::Print(c));
        }
    }

    fn execute(&mut self, byte: u8) {
        if byte < 0x80 {
            self.found.push(Found::Control(byte));
        }
    }

    fn hook(&mut self, params: &vte::Params, intermediates: &[u8], ignore: bool, action: char) {
        let params = params.iter().map(<[u16]>::to_vec).collect();
        self.dcs = (!ignore).then(|| Found::Dcs(params, intermediates.to_vec(), action as u8));
    }

    fn unhook(&mut self) {
        self.found.extend(self.dcs.take());
    }

    fn osc_dispatch(&mut self, params: &[&[u8]], _bell: bool) {
        self.found.push(Found::Osc(params.join(&b';')));
    }

    fn csi_dispatch(&mut self, params: &vte::Params, intermediates: &[u8], ignore: bool, action: char) {
        if !ignore {
            let params = params.iter().map(<[u16]>::to_vec).collect();
            self.found.push(Found::Csi(params, intermediates.to_vec(), action as u8));
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], ignore: bool, byte: u8) {
        if !ignore {
            self.found.push(Found::Escape(intermediates.to_vec(), byte));
        }
    }
}

fn ours(chunks: &[&[u8]]) -> Vec<Found> {
    let mut sink = Ours::default();
    let mut parser = Parser::default();
    for chunk in chunks {
        assert_eq!(parser.advance(&mut sink, chunk), chunk.len());
    }
    sink.0
}

fn theirs(chunks: &[&[u8]]) -> Vec<Found> {
    let mut performer = Theirs::default();
    let mut parser = vte::Parser::new();
    for chunk in chunks {
        parser.advance(&mut performer, chunk);
    }
    performer.found
}

/// Bytes that make sequences often. Left out is where we differ on purpose: `k` (screen titles), and CAN and SUB, which
/// abort a string here and end it in `vte`.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let likely = b"\x1b\x1b\x1b[[]]P\\;;:?>!$ ()#0123456789mHJ\r\n\x07qXa_^\x9c\x9b\xc3\xa9\xe6\x97\xa5\xf0\x9f";
    let byte = prop_oneof![
        6 => prop::sample::select(likely.to_vec()),
        1 => any::<u8>().prop_filter("differs on purpose", |byte| !matches!(byte, b'k' | 0x18 | 0x1a)),
    ];
    prop::collection::vec(byte, 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn finds_what_vte_finds(bytes in bytes()) {
        prop_assert_eq!(ours(&[&bytes]), theirs(&[&bytes]));
    }

    #[test]
    fn finds_the_same_in_every_chunking(bytes in prop::collection::vec(any::<u8>(), 0..80), cut in any::<prop::sample::Index>()) {
        let (head, tail) = bytes.split_at(cut.index(bytes.len() + 1));
        prop_assert_eq!(ours(&[head, tail]), ours(&[&bytes]));
    }
}

#[test]
fn every_character_and_nothing_else_is_decoded() {
    for c in '\u{80}'..=char::MAX {
        let mut bytes = [0; 4];
        let bytes = c.encode_utf8(&mut bytes).as_bytes();
        assert_eq!(decode(bytes), Some((c, &[][..])));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), None, "{c:?} cut");
    }
    let malformed: [&[u8]; 9] = [
        b"\xc0\x80",
        b"\xc1\xbf",
        b"\xe0\x9f\xbf",
        b"\xed\xa0\x80",
        b"\xf0\x8f\xbf\xbf",
        b"\xf4\x90\x80\x80",
        b"\xf5\x80\x80\x80",
        b"\xc3A",
        b"\x80",
    ];
    for bytes in malformed {
        assert_eq!(decode(bytes), None, "{bytes:?}");
    }
}

#[test]
fn vte_still_drops_a_character_at_a_chunk_border() {
    let chunks: [&[u8]; 2] = [b"\xc3", b"\xa9A\xe6\x97\xa5"];
    assert_eq!(ours(&chunks), ['é', 'A', '日'].map(Found::Print));
    assert_eq!(theirs(&chunks), ['é', '日'].map(Found::Print), "mended upstream? then the reason in parser.rs is void");
}

#[test]
fn a_screen_title_is_one_only_when_it_ends_as_one() {
    let title = |bytes: &[u8]| ours(&[bytes]);
    assert_eq!(title(b"\x1bkab\x1b\\c"), [Found::Title(b"ab".to_vec()), Found::Print('c')]);
    assert_eq!(title(b"\x1bkab\rc"), [Found::Print('a'), Found::Print('b'), Found::Control(b'\r'), Found::Print('c')]);
    assert_eq!(title(b"\x1bka\x1bMc"), [Found::Print('a'), Found::Escape(vec![], b'M'), Found::Print('c')]);
    assert_eq!(title(b"\x1bka\xc3\rc").len(), 4, "half a character is not carried over");
}

#[test]
fn can_aborts_a_string() {
    for begin in ["\x1b]0;t", "\x1bP1q", "\x1b_x", "\x1b[12", "\x1b", "\x1b(", "\x1bkt"] {
        let stream = [begin.as_bytes(), b"\x18a"].concat();
        let found = ours(&[&stream]);
        let end = &found[found.len() - 2..];
        assert_eq!(end, [Found::Control(0x18), Found::Print('a')], "{begin:?}");
        assert!(found.len() == 2 || begin.contains('k'), "{begin:?}: {found:?}");
    }
}

#[test]
fn a_string_over_its_bound_is_swallowed_whole() {
    let payload = vec![b'x'; OSC_LIMIT + 1];
    assert_eq!(ours(&[b"\x1b]", &payload, b"\x07a"]), [Found::Print('a')]);
    let found = ours(&[b"\x1b]", &payload[1..], b"\x07a"]);
    assert!(matches!(&found[0], Found::Osc(kept) if kept.len() == OSC_LIMIT));
}
