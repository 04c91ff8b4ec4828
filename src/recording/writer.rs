//! Writes asciicast version 2: a header, then one line per event. Each line is one write, so a file of a killed writer
//! stays readable.

use std::io::{self, Write};
use std::time::Duration;

use kpty_emulator::Size;
use serde_json::json;

use super::mask::Released;

/// Event kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Output,
    Input,
    Resize,
    Marker,
}

impl Kind {
    fn code(self) -> &'static str {
        match self {
            Self::Output => "o",
            Self::Input => "i",
            Self::Resize => "r",
            Self::Marker => "m",
        }
    }
}

/// An asciicast file being written.
pub(super) struct CastWriter<W> {
    out: W,
    /// Bytes written so far.
    pub(super) bytes: u64,
    /// Incomplete UTF-8 sequence at the end of output and of input.
    open: [Vec<u8>; 2],
}

impl<W: Write> CastWriter<W> {
    /// Writes the header. `began` is in seconds since 1970.
    pub(super) fn new(out: W, size: Size, began: u64, title: Option<&str>) -> io::Result<Self> {
        let mut header = json!({
            "version": 2, "width": size.cols(), "height": size.rows(), "timestamp": began,
            "env": { "TERM": "xterm-256color" },
        });
        if let Some(title) = title {
            header["title"] = json!(title);
        }
        let mut writer = Self { out, bytes: 0, open: Default::default() };
        writer.line(&header.to_string())?;
        Ok(writer)
    }

    /// Writes output or input, which may end inside a character.
    pub(super) fn data(&mut self, at: Duration, kind: Kind, released: &Released) -> io::Result<()> {
        let open = &mut self.open[usize::from(kind == Kind::Input)];
        open.extend_from_slice(released.as_bytes());
        let whole = whole_characters(open);
        let text = String::from_utf8_lossy(&open[..whole]).into_owned();
        open.drain(..whole);
        if text.is_empty() { Ok(()) } else { self.event(at, kind, &text) }
    }

    /// Writes what remains of an incomplete character.
    pub(super) fn finish(&mut self, at: Duration) -> io::Result<()> {
        let rest = std::mem::take(&mut self.open[0]);
        if rest.is_empty() { Ok(()) } else { self.event(at, Kind::Output, &String::from_utf8_lossy(&rest)) }
    }

    pub(super) fn resize(&mut self, at: Duration, size: Size) -> io::Result<()> {
        self.event(at, Kind::Resize, &format!("{}x{}", size.cols(), size.rows()))
    }

    pub(super) fn event(&mut self, at: Duration, kind: Kind, data: &str) -> io::Result<()> {
        // Six decimal places, like asciinema.
        let line = format!("[{:.6}, {}, {}]", at.as_secs_f64(), json!(kind.code()), json!(data));
        self.line(&line)
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        let mut bytes = line.to_owned().into_bytes();
        bytes.push(b'\n');
        self.bytes += bytes.len() as u64;
        self.out.write_all(&bytes)
    }
}

/// Returns the length up to an incomplete character at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        let needed = match bytes[at] {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => return bytes.len(),
        };
        return if needed > back { at } else { bytes.len() };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::super::{Action, Event, cast};
    use super::*;

    fn raw(bytes: &[u8]) -> Released {
        Released::output(bytes.to_vec(), None)
    }

    #[test]
    fn what_is_written_is_read_back() {
        let size = Size::new(20, 5).expect("a size");
        let mut file = Vec::new();
        let mut writer = CastWriter::new(&mut file, size, 1_700_000_000, Some("a \"title\"")).expect("memory");
        let at = Duration::from_millis;
        writer.data(at(500), Kind::Output, &raw(b"a\x1b[31m\"\\\r\n")).expect("memory");
        writer.data(at(600), Kind::Input, &raw(b"x")).expect("memory");
        let umlaut = "ü日".as_bytes();
        for (index, byte) in umlaut.iter().enumerate() {
            writer.data(at(700 + index as u64), Kind::Output, &raw(&[*byte])).expect("memory");
        }
        writer.resize(at(800), Size::new(40, 10).expect("a size")).expect("memory");
        writer.data(at(900), Kind::Output, &raw(b"\xff\xe6")).expect("memory");
        writer.event(at(950), Kind::Marker, "a note").expect("memory");
        writer.finish(at(1_000)).expect("memory");
        let written = writer.bytes;
        assert_eq!(written, file.len() as u64);
        let recording = cast::parse(&file).expect("a good cast");
        let output = |millis: u64, text: &str| Event { at: at(millis), action: Action::Output(text.into()) };
        assert_eq!(recording.size, Some(size));
        assert_eq!(
            recording.events,
            [
                output(500, "a\u{1b}[31m\"\\\r\n"),
                output(701, "ü"),
                output(704, "日"),
                Event { at: at(800), action: Action::Resize(Size::new(40, 10).expect("a size")) },
                output(900, "\u{fffd}"),
                output(1_000, "\u{fffd}"),
            ]
        );
    }

    /// A killed writer leaves complete lines or one truncated line; everything before it is readable.
    #[test]
    fn every_line_goes_out_in_one_piece() {
        struct Pieces(Vec<Vec<u8>>);
        impl Write for Pieces {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.push(bytes.to_vec());
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut pieces = Pieces(Vec::new());
        let mut writer = CastWriter::new(&mut pieces, Size::default(), 0, None).expect("memory");
        for n in 0..3 {
            writer.data(Duration::from_secs(n), Kind::Output, &raw(b"two\r\nlines")).expect("memory");
        }
        assert_eq!(pieces.0.len(), 4);
        assert!(pieces.0.iter().all(|piece| piece.iter().filter(|&&byte| byte == b'\n').count() == 1));
        assert!(pieces.0.iter().all(|piece| piece.ends_with(b"\n")));
    }
}
