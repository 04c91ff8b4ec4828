//! One session as one client sees it: the source of its screen, what was sent, and what to send next.
//!
//! Only a hash per sent row is kept. Intermediate states are skipped: a frame is always made from the current screen.

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher as _;
use std::sync::{Arc, Mutex, PoisonError};

use kpty_guard::Masked;

use super::wire::{self, Exit, Frame, Run, ShownFrame, ShownRun, WireCursor};
use crate::masked::MaskedScreen;
use crate::model::ExitInfo;
use crate::terminal::local::Session;

/// Size at which a client shows a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    Small,
    Large,
}

/// Source of a session's screen.
#[derive(Clone)]
pub(super) enum Origin {
    /// Cells of the local emulator.
    Local(Session),
    /// Text read from a desktop, the latest.
    Desktop(Arc<Mutex<DesktopScreen>>),
}

/// Screen of a desktop session when it was last polled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DesktopScreen {
    pub(super) cols: u16,
    pub(super) rows: u16,
    pub(super) lines: Vec<Masked>,
    pub(super) cursor: WireCursor,
    pub(super) problem: Option<Masked>,
}

/// What was sent of a screen.
#[derive(Debug, Default)]
pub(super) struct Sent {
    size: (u16, u16),
    rows: Vec<u64>,
    rest: u64,
}

impl Origin {
    /// Returns the frame that updates the client to the current screen; `None` if it is up to date.
    pub(super) fn frame(&self, id: &str, scale: Scale, sent: &mut Sent) -> Option<ShownFrame> {
        let (mut frame, rows) = match self {
            Self::Local(session) => {
                let exit = session.exit();
                local(id, &session.masked_screen(), exit, scale)
            }
            Self::Desktop(screen) => desktop(id, &screen.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        frame.full = sent.size != (frame.cols, frame.rows) || sent.rows.len() != rows.len();
        let hashes: Vec<u64> = rows.iter().map(hash).collect();
        for (index, runs) in rows.into_iter().enumerate() {
            if frame.full || sent.rows[index] != hashes[index] {
                frame.changed.push((index as u16, runs));
            }
        }
        let rest = hash(&(
            &frame.cursor,
            frame.alt,
            &frame.title,
            &frame.lines,
            frame.oldest,
            frame.mouse,
            &frame.problem,
            frame.exit.map(|exit| (exit.code, exit.signal)),
        ));
        let is_news = !frame.changed.is_empty() || frame.full || rest != sent.rest;
        *sent = Sent { size: (frame.cols, frame.rows), rows: hashes, rest };
        is_news.then_some(frame)
    }
}

fn hash(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn local(id: &str, screen: &MaskedScreen, exit: Option<ExitInfo>, scale: Scale) -> (ShownFrame, Vec<Vec<ShownRun>>) {
    let (size, cursor) = (screen.size(), screen.cursor());
    let exit = exit.map(|exit| match exit {
        ExitInfo::Code(code) => Exit { code: Some(code), signal: None },
        ExitInfo::Signal(signal) => Exit { code: None, signal: Some(signal) },
        ExitInfo::Unknown => Exit { code: None, signal: None },
    });
    let frame = Frame {
        id: id.to_owned(),
        cols: size.cols(),
        rows: size.rows(),
        full: false,
        cursor: cursor.into(),
        alt: screen.buffer() == kpty_emulator::Buffer::Alternate,
        title: screen.title().cloned().filter(|_| scale == Scale::Large),
        lines: if scale == Scale::Large { screen.lines().to_vec() } else { Vec::new() },
        oldest: if scale == Scale::Large { screen.oldest_line() } else { 0 },
        mouse: wire::mouse(&screen.modes()),
        paste: screen.modes().bracketed_paste,
        changed: Vec::new(),
        exit,
        problem: None,
    };
    (frame, screen.rows().map(wire::runs).collect())
}

fn desktop(id: &str, screen: &DesktopScreen) -> (ShownFrame, Vec<Vec<ShownRun>>) {
    let plain = |line: &Masked| match line.is_empty() {
        true => Vec::new(),
        false => vec![Run(line.clone(), wire::DEFAULT_COLOR, wire::DEFAULT_COLOR, 0)],
    };
    let mut rows: Vec<Vec<ShownRun>> = screen.lines.iter().map(plain).collect();
    rows.resize(usize::from(screen.rows), Vec::new());
    let frame = Frame {
        id: id.to_owned(),
        cols: screen.cols,
        rows: screen.rows,
        full: false,
        cursor: screen.cursor,
        alt: false,
        title: None,
        lines: Vec::new(),
        oldest: 0,
        mouse: 0,
        paste: false,
        changed: Vec::new(),
        exit: None,
        problem: screen.problem.clone(),
    };
    (frame, rows)
}
