//! Hostile output as data: short descriptions from which megabytes are made, the same bytes in every run.
//!
//! A stream is an opening and a unit that is repeated up to a size. In a unit `{n}` is a running number, `{b}` any byte,
//! `{c}` any character of Unicode, `{w}` a letter, and `{s}` a secret-like word; a part may be repeated by itself.

use crate::live::Seeded;

/// What streams of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Strings without end, or of great length.
    Strings,
    /// Sequences with absurd parameters or counts.
    Counts,
    /// Modes, screens, regions, resets, synchronized updates.
    Modes,
    /// Questions, injections, forged marks.
    Questions,
    /// Text that is hard to put into cells.
    Text,
    /// Much of something simple.
    Volume,
    /// Ends within a sequence.
    Open,
}

/// A stream and its description.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) name: &'static str,
    pub(super) group: Group,
    opening: &'static str,
    unit: &'static [(&'static str, usize)],
}

impl Stream {
    /// So many bytes of it at least, in whole units.
    pub(super) fn bytes(&self, size: usize) -> Vec<u8> {
        let seed = self.name.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31) + u64::from(byte));
        let (mut random, mut number) = (Seeded::new(seed), 0);
        let mut bytes = self.opening.as_bytes().to_vec();
        while bytes.len() < size && !self.unit.is_empty() {
            for (part, count) in self.unit {
                (0..*count).for_each(|_| put(part, number, &mut random, &mut bytes));
            }
            number += 1;
        }
        bytes
    }
}

/// Writes a part with its blanks filled.
fn put(part: &str, number: u64, random: &mut Seeded, bytes: &mut Vec<u8>) {
    let mut rest = part;
    while let Some((before, behind)) = rest.split_once('{') {
        bytes.extend_from_slice(before.as_bytes());
        let (name, after) = behind.split_once('}').expect("a blank ends");
        match name {
            "n" => bytes.extend_from_slice(number.to_string().as_bytes()),
            "b" => bytes.push(random.below(256) as u8),
            "w" => bytes.push(b'a' + random.below(26) as u8),
            "s" => bytes.extend_from_slice(format!("sk-{:013x}-", random.next() >> 12).as_bytes()),
            "c" => {
                let c = char::from_u32(random.below(0x11_0000) as u32).unwrap_or('\u{fffd}');
                bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => panic!("no blank is called {other}"),
        }
        rest = after;
    }
    bytes.extend_from_slice(rest.as_bytes());
}

/// A stream of a plain unit.
const fn of(group: Group, name: &'static str, unit: &'static [(&'static str, usize)]) -> Stream {
    Stream { name, group, opening: "", unit }
}

/// A stream that opens something and goes on in it.
const fn within(
    group: Group,
    name: &'static str,
    opening: &'static str,
    unit: &'static [(&'static str, usize)],
) -> Stream {
    Stream { name, group, opening, unit }
}

/// A stream that is only its opening.
const fn open(name: &'static str, opening: &'static str) -> Stream {
    Stream { name, group: Group::Open, opening, unit: &[] }
}

use Group::{Counts, Modes, Questions, Strings, Text, Volume};

/// All of them: 73 that end properly and six that do not. The four plans of sizes are beside them.
#[rustfmt::skip]
pub(super) const STREAMS: [Stream; 79] = [
    within(Strings, "title without end", "\x1b]0;", &[("title {n} ", 1)]),
    of(Strings, "titles of a megabyte", &[("\x1b]2;", 1), ("T", 1 << 20), ("\x07", 1)]),
    of(Strings, "titles, each another", &[("\x1b]0;title {n} {w}{w}{w}\x07", 1)]),
    of(Strings, "titles pushed", &[("\x1b[22;0t", 1)]),
    of(Strings, "titles pushed, each another", &[("\x1b]2;{n}", 1), ("t", 300), ("\x07\x1b[22t", 1)]),
    of(Strings, "OSC of many parameters", &[("\x1b]4", 1), (";{n};rgb:1/2/3", 500), ("\x1b\\", 1)]),
    within(Strings, "OSC number without end", "\x1b]", &[("7", 1)]),
    of(Strings, "colours of the palette", &[("\x1b]4;{n};#a1b2c3\x07\x1b]10;#{n}\x07\x1b]104\x07", 1)]),
    of(Strings, "links, each another", &[("\x1b]8;id={n};https://l.example/{n}/{w}{w}{w}{w}\x1b\\x\x1b]8;;\x1b\\", 1)]),
    of(Strings, "links of two kilobytes", &[("\x1b]8;;https://l.example/{n}", 1), ("p", 2_000), ("\x07L\x1b]8;;\x07", 1)]),
    within(Strings, "link that stays open", "\x1b]8;;https://l.example/a\x07", &[("linked {n}\r\n", 1)]),
    of(Strings, "clipboard", &[("\x1b]52;c;", 1), ("QUFB", 20_000), ("\x07", 1)]),
    within(Strings, "clipboard without end", "\x1b]52;c;", &[("QUFB", 1)]),
    of(Strings, "folders", &[("\x1b]7;file://h/{n}/{w}{w}\x07\x1b]9;9;/{n}\x07", 1)]),
    of(Strings, "command marks", &[("\x1b]133;A\x07\x1b]133;B\x07x\x1b]133;C\x07\x1b]133;D;{n}\x07\r\n", 1)]),
    of(Strings, "notifications", &[("\x1b]9;note {n}\x07\x1b]777;notify;a;{n}\x07\x1b]99;i={n};b\x1b\\", 1)]),
    within(Strings, "inline file without end", "\x1b]1337;File=inline=1;size=999999999:", &[("AAAA", 1)]),
    within(Strings, "DCS without end", "\x1bP", &[("0;1", 1)]),
    within(Strings, "sixel without end", "\x1bP0;0;8q\"1;1;9999;9999", &[("#1!9999~-", 1)]),
    of(Strings, "DCS, short", &[("\x1bP$qm\x1b", 1), ("\\\x1bPtmux;\x1b\x1b]0;t\x07\x1b\\", 1)]),
    within(Strings, "APC without end", "\x1b_", &[("G", 1)]),
    of(Strings, "pictures, each another", &[("\x1b_Ga=T,f=24,s=1,v=1,i={n};AAAA\x1b\\", 1)]),
    of(Strings, "pictures in pieces", &[("\x1b_Ga=t,i={n},m=1;", 1), ("AAAA", 1_000), ("\x1b\\", 1)]),
    within(Strings, "PM and SOS without end", "\x1b^", &[("private {n}", 1), ("\x1b\\\x1bX", 1), ("s", 65_536)]),

    of(Counts, "CSI of many parameters", &[("\x1b[", 1), ("1;", 2_000), ("m", 1)]),
    within(Counts, "CSI without end", "\x1b[", &[("9", 1)]),
    of(Counts, "CSI of many subparameters", &[("\x1b[4", 1), (":3", 500), (";38:2::1:2:3m", 1)]),
    of(Counts, "CSI of many intermediates", &[("\x1b[1", 1), (" !\"#$", 50), ("p", 1)]),
    of(Counts, "repeated characters", &[("a\x1b[65535b", 1)]),
    of(Counts, "repeated wide characters", &[("\u{65e5}\x1b[2147483647b", 1)]),
    of(Counts, "huge edits", &[("\x1b[65535@\x1b[65535P\x1b[65535X\x1b[65535L\x1b[65535M", 1)]),
    of(Counts, "huge scrolls", &[("\x1b[65535S\x1b[65535T\x1bM", 1)]),
    of(Counts, "huge moves", &[("\x1b[65535A\x1b[65535B\x1b[65535C\x1b[65535D\x1b[99999;99999H\x1b[65535I\x1b[65535Z", 1)]),
    of(Counts, "rectangles", &[("\x1b[65;1;1;9999;9999$x\x1b[1;1;9999;9999;1;2;2;1$v\x1b[1;1;99;99;7$r\x1b[1;1;999;999;7$t\x1b[1;1;9;9$z", 1)]),
    of(Counts, "columns shifted", &[("\x1b[99 @\x1b[99 A\x1b[99'}\x1b[99'~\x1b6\x1b9", 1)]),

    of(Modes, "modes toggled", &[("\x1b[?1;3;5;6;7;25;45;66;69;1000;1004;1006;2004;2027h\x1b[?1;3;5;6;7;25;45;66;69;1000;1004;1006;2004;2027l", 1)]),
    of(Modes, "alternate screen toggled", &[("\x1b[?1049hx\x1b[?1049l\x1b[?47h\x1b[?47l", 1)]),
    of(Modes, "aligned and reset", &[("\x1b#8\x1bc", 1)]),
    of(Modes, "reset", &[("\x1bc", 1)]),
    of(Modes, "erased in two colours", &[("\x1b[41m\x1b[2J\x1b[42m\x1b[2J\x1b[3J", 1)]),
    of(Modes, "regions", &[("\x1b[2;{n}r\x1b[5;20r\x1b[20H\n\n\x1bM\x1b[r", 1)]),
    of(Modes, "margins, lines", &[("\x1b[?69h\x1b[2;60s\x1b[24;9H", 1), ("\n", 16)]),
    within(Modes, "update that stays open", "\x1b[?2026h", &[("row {n}\r\n", 1)]),
    of(Modes, "updates toggled", &[("\x1b[?2026hx\x1b[?2026l", 1)]),
    of(Modes, "keyboard, cursor and modes saved", &[("\x1b[>1u\x1b7\x1b[s\x1b[?2004s\x1b[?{n}s\x1b[>{n}u", 1)]),

    of(Questions, "status asked", &[("\x1b[6n\x1b[5n\x1b[?6n", 1)]),
    of(Questions, "identity asked", &[("\x1b[c\x1b[>c\x1b[=c\x1b[>q\x1bZ", 1)]),
    of(Questions, "window asked", &[("\x1b[14t\x1b[18t\x1b[19t\x1b[21t\x1b[20t", 1)]),
    of(Questions, "modes asked", &[("\x1b[?{n}$p\x1b[4$p\x1b[?u\x1b[?2026$p", 1)]),
    of(Questions, "colours asked", &[("\x1b]4;1;?\x07\x1b]10;?\x07\x1b]11;?\x1b\\\x1b]52;c;?\x07", 1)]),
    of(Questions, "answerback", &[("\x05", 1)]),
    of(Questions, "title as a command", &[("\x1b]2;\r: > INJECTED\r\x07\x1b[21t\x1b[20t", 1)]),
    of(Questions, "setting as a command", &[("\x1bP$q\r: > INJECTED\r\x1b\\\x1bP+q0d3a203e20494e4a45435445440d\x1b\\", 1)]),
    of(Questions, "name as a command", &[("\x1b]50;\r: > INJECTED\r\x07\x1b]50;?\x07\x1b]52;c;DTogPiBJTkpFQ1RFRA0=\x07\x1b]52;c;?\x07\x1b_Gi=1,a=q;\r: > INJECTED\r\x1b\\", 1)]),
    of(Questions, "forged end of a command", &[("\x1b]133;D;0\x07\x1b]133;A\x07$ \x1b]133;B\x07\x1b]633;D;0\x07done {n} exit 0\r\n", 1)]),

    within(Text, "marks on one cell", "a", &[("\u{301}", 1)]),
    of(Text, "marks on every cell", &[("e", 1), ("\u{301}\u{302}\u{323}", 6)]),
    of(Text, "marks on wide cells", &[("\u{65e5}\u{309a}\u{fe0f}", 1)]),
    of(Text, "joined emoji", &[("\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{200d}\u{1f466}", 1)]),
    within(Text, "joined emoji in clusters", "\x1b[?2027h", &[("\u{1f468}\u{200d}\u{1f469}\u{200d}", 40), ("\u{1f1e9}\u{1f1ea}", 9)]),
    of(Text, "wide characters at the edge", &[("\x1b[80G\u{65e5}\x1b[D\u{672c}\x1b[79Gx\x1b[1D\u{8a9e}", 1)]),
    of(Text, "broken UTF-8", &[("{b}{b}{b}{b}\u{e9}", 1)]),
    of(Text, "any character", &[("{c}", 64), ("\r\n", 1)]),
    of(Text, "any byte", &[("{b}", 64)]),
    of(Text, "any sequence", &[("\x1b[{n};{b}{b}\x1b{b}{b}\x1b]{n};{b}\x1b\\{w}", 1)]),
    of(Text, "NUL", &[("\0\0\0\0\x7f", 1)]),
    of(Text, "bells", &[("\x07", 1)]),
    of(Text, "inserted characters", &[("\x1b[4h\r\u{65e5}aaaaaaaaaaaaaaaa", 1)]),

    of(Volume, "short lines", &[("y\r\n", 1)]),
    of(Volume, "one line", &[("one line that goes on and on {n} ", 1)]),
    of(Volume, "line breaks", &[("\n", 1)]),
    of(Volume, "lines of all scripts", &[("caf\u{e9} \u{65e5}\u{672c} \u{43f}\u{440} \u{1f600} \x1b[38;5;{n}mx\x1b[m {n}\r\n", 1)]),
    of(Volume, "near secrets", &[("{s}AKIA{n} ghp_{w}{w} token= {s}{s}-----BEGIN {n} KEY password:\r\n", 1)]),

    open("open title", "\x1b]0;half a title"),
    open("open DCS", "\x1bP1;2q#1~~~"),
    open("open CSI", "\x1b[38;2;1"),
    open("open character", "\u{65e5}\x1b"),
    open("open update", "\x1b[?2026hhidden"),
    open("open picture", "\x1b_Ga=T;AAAA"),
];

/// What every stream ends with: open sequences are aborted, and everything is reset.
pub(super) const END: &str = "\x18\x1b\\\x1b[?2026l\x1b[!p\x1bc";
