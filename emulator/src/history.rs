//! The compact store of logical lines that have left the live grid.
//!
//! Owns numbers, text and style runs of finished lines, and counts exactly what it let go. A line is final
//! once it is here. Refuses to know cells, rows or widths: soft-wrapped rows were joined before.
//!
//! Lines live in blocks of about 64 KiB of text: one allocation for the text of hundreds of lines, four
//! bytes for a line's end, eight for a change of style. A build log takes about 80 bytes a line here and
//! 2,900 in a grid of 120 columns.

use std::collections::VecDeque;

use crate::evicted::Evicted;
use crate::screen::{Attributes, Color, Style};

/// A block is closed when it has this much text or [`BLOCK_LINES`] lines.
const BLOCK_BYTES: usize = 64 << 10;
const BLOCK_LINES: usize = 2_048;
/// How many looks are compared before a look is written down again.
const RECENT_LOOKS: usize = 16;
/// Marks a line that was cut because it was too long: the next line goes on where it ends.
const CONTINUED: u32 = 1 << 31;

/// Why lines are no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The history limit pushed them out.
    Limit,
    /// The program cleared the scrollback (ED 3) or reset the terminal (RIS).
    Cleared,
}

/// A link on a stretch of text, as a number of the link table; 0 is none.
pub(crate) type LinkNumber = u32;

/// Style and link of a stretch of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) style: Style,
    pub(crate) link: LinkNumber,
}

/// A look in sixteen bytes that compare at once: three colours, the attributes, the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PackedLook(u128);

impl PackedLook {
    const COLOR_BITS: u32 = 26;
    const ATTRIBUTE_BITS: u32 = 11;

    fn new(Look { style, link }: Look) -> Self {
        let mut packed = u128::from(link);
        packed = packed << Self::ATTRIBUTE_BITS | u128::from(style.attributes.bits());
        packed = packed << 1 | u128::from(style.underline_color.is_some());
        for color in [style.underline_color.unwrap_or_default(), style.bg, style.fg] {
            packed = packed << Self::COLOR_BITS | u128::from(pack_color(color));
        }
        Self(packed)
    }

    fn unpack(&self) -> Look {
        let mut rest = self.0;
        let mut take = |bits: u32| {
            let value = (rest & ((1 << bits) - 1)) as u32;
            rest >>= bits;
            value
        };
        let [fg, bg, underline] = [(); 3].map(|()| unpack_color(take(Self::COLOR_BITS)));
        let underline_color = (take(1) == 1).then_some(underline);
        let attributes = Attributes::from_bits(take(Self::ATTRIBUTE_BITS) as u16);
        Look { style: Style { fg, bg, underline_color, attributes }, link: take(LinkNumber::BITS) }
    }
}

fn pack_color(color: Color) -> u32 {
    match color {
        Color::Default => 0,
        Color::Indexed(index) => 1 << 24 | u32::from(index),
        Color::Rgb(r, g, b) => 2 << 24 | u32::from_be_bytes([0, r, g, b]),
    }
}

fn unpack_color(packed: u32) -> Color {
    let [kind, r, g, b] = packed.to_be_bytes();
    match kind {
        0 => Color::Default,
        1 => Color::Indexed(b),
        _ => Color::Rgb(r, g, b),
    }
}

/// A change of look at a byte of a block's text.
#[derive(Clone, Copy, Debug)]
struct Run {
    at: u32,
    look: u32,
}

#[derive(Debug, Default)]
struct Block {
    /// UTF-8, looked at again only when it is read.
    text: Vec<u8>,
    /// Where each line ends in `text`, with the [`CONTINUED`] bit.
    ends: Vec<u32>,
    runs: Vec<Run>,
    /// What `Run::look` points to; entry 0 is the default look.
    looks: Vec<PackedLook>,
}

impl Block {
    fn line_range(&self, index: usize) -> std::ops::Range<usize> {
        let end = |index: usize| (self.ends[index] & !CONTINUED) as usize;
        let start = if index == 0 { 0 } else { end(index - 1) };
        start..end(index)
    }

    fn is_full(&self) -> bool {
        self.used_bytes() >= BLOCK_BYTES || self.ends.len() >= BLOCK_LINES
    }

    /// Bytes of text, line ends and looks.
    fn used_bytes(&self) -> usize {
        self.text.len() + size_of_val(&self.ends[..]) + size_of_val(&self.runs[..]) + size_of_val(&self.looks[..])
    }

    fn heap_bytes(&self) -> usize {
        self.text.capacity()
            + self.ends.capacity() * size_of::<u32>()
            + self.runs.capacity() * size_of::<Run>()
            + self.looks.capacity() * size_of::<PackedLook>()
    }

    fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.runs.shrink_to_fit();
        self.looks.shrink_to_fit();
    }

    fn reset(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.runs.clear();
        self.looks.clear();
    }

    fn current_look(&self) -> u32 {
        self.runs.last().map_or(0, |run| run.look)
    }

    fn set_look(&mut self, look: Look) {
        let index = self.look_index(look);
        if index == self.current_look() {
            return;
        }
        let at = self.text.len() as u32;
        match self.runs.last_mut() {
            // Nothing was written in the look before: replace it.
            Some(run) if run.at == at => run.look = index,
            _ => self.runs.push(Run { at, look: index }),
        }
    }

    fn look_index(&mut self, look: Look) -> u32 {
        if look == Look::default() {
            return 0;
        }
        if self.looks.is_empty() {
            self.looks.push(PackedLook::new(Look::default()));
        }
        let look = PackedLook::new(look);
        // Only the newest are searched: in a stream of ever new colours a full search would be quadratic,
        // and a look that stands twice costs a few bytes.
        let recent = self.looks.len().saturating_sub(RECENT_LOOKS);
        let known = self.looks[recent..].iter().rposition(|known| *known == look);
        let index = known.map_or(self.looks.len(), |position| recent + position);
        if index == self.looks.len() {
            self.looks.push(look);
        }
        index as u32
    }
}

/// Finished lines by number.
#[derive(Debug)]
pub(crate) struct History {
    blocks: VecDeque<Block>,
    /// Lines at the front of the first block that are already gone.
    skip: usize,
    /// Number of the oldest line kept.
    oldest: u64,
    /// Number the next finished line gets.
    next: u64,
    /// Every line below this number went by a clear, not by the limit.
    cleared_below: u64,
    max_lines: usize,
    max_bytes: usize,
    /// Bytes of text, line ends and looks in all blocks.
    used_bytes: usize,
    /// Buffers of a block that was let go, used again for the next one.
    spare: Option<Block>,
    /// What goes of the stretch that somebody will ask for.
    evicted: Option<Box<Evicted>>,
}

impl History {
    pub(crate) fn new(max_lines: usize, max_bytes: usize) -> Self {
        Self {
            blocks: VecDeque::new(),
            skip: 0,
            oldest: 0,
            next: 0,
            cleared_below: 0,
            max_lines,
            max_bytes,
            used_bytes: 0,
            spare: None,
            evicted: None,
        }
    }

    /// Notes from now on what goes of the stretch that begins with a line.
    pub(crate) fn keep_evicted(&mut self, first: u64, max_chars: usize) {
        self.evicted = Some(Box::new(Evicted::new(first, max_chars)));
    }

    /// That stretch ends before a line.
    pub(crate) fn end_evicted(&mut self, line: u64) {
        if let Some(evicted) = &mut self.evicted {
            evicted.end_at(line);
        }
    }

    pub(crate) fn evicted(&self) -> Option<&Evicted> {
        self.evicted.as_deref()
    }

    /// Number of the oldest line kept; equals [`History::next`] when none is.
    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Number the next finished line gets, which is the number of the first live line.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Why the line of this number is gone, if it is.
    pub(crate) fn loss_of(&self, number: u64) -> Option<Loss> {
        let loss = if number < self.cleared_below { Loss::Cleared } else { Loss::Limit };
        (number < self.oldest).then_some(loss)
    }

    /// Opens the writer of the next line. The line exists once [`LineWriter::finish`] was called; what is over the
    /// limits goes with [`History::trim`].
    pub(crate) fn begin_line(&mut self) -> LineWriter<'_> {
        if self.blocks.back().is_none_or(Block::is_full) {
            self.open_block();
        }
        let Self { blocks, next, used_bytes, .. } = self;
        let last = blocks.len() - 1;
        let block = &mut blocks[last];
        LineWriter { before: block.used_bytes(), block, next, used_bytes }
    }

    /// Lets go of the oldest lines that are over the limits.
    pub(crate) fn trim(&mut self) {
        let surplus = (self.next - self.oldest).saturating_sub(self.max_lines as u64);
        self.drop_oldest(surplus as usize);
        // Whole blocks: the looks of a line cannot be told from those of its neighbours.
        while self.used_bytes > self.max_bytes
            && self.blocks.len() > 1
            && let Some(front) = self.blocks.front()
        {
            self.drop_oldest(front.ends.len() - self.skip);
        }
    }

    /// Forgets every line; numbering goes on at `next`.
    pub(crate) fn clear(&mut self, next: u64) {
        self.blocks.clear();
        self.skip = 0;
        self.used_bytes = 0;
        self.next = next;
        self.oldest = next;
        self.cleared_below = next;
        self.spare = None;
        if let Some(evicted) = &mut self.evicted {
            evicted.clear(next);
        }
    }

    /// The text of a line, with trailing blanks that carry a style.
    pub(crate) fn text(&self, number: u64) -> Option<&str> {
        let (block, index) = self.locate(number)?;
        Some(std::str::from_utf8(&block.text[block.line_range(index)]).unwrap_or_default())
    }

    /// The line was cut for its length and goes on in the next one.
    pub(crate) fn is_continued(&self, number: u64) -> bool {
        self.locate(number).is_some_and(|(block, index)| block.ends[index] & CONTINUED != 0)
    }

    /// The stretches of a line that differ in look, as byte ranges of its text.
    pub(crate) fn looks(&self, number: u64) -> Vec<(std::ops::Range<usize>, Look)> {
        let Some((block, index)) = self.locate(number) else { return Vec::new() };
        let line = block.line_range(index);
        let mut stretches = Vec::new();
        let first = block.runs.partition_point(|run| run.at as usize <= line.start);
        let mut look = if first == 0 { 0 } else { block.runs[first - 1].look };
        let mut start = line.start;
        for run in &block.runs[first..] {
            let at = run.at as usize;
            if at >= line.end {
                break;
            }
            stretches.push((start..at, look));
            (start, look) = (at, run.look);
        }
        stretches.push((start..line.end, look));
        stretches
            .into_iter()
            .filter(|(range, _)| !range.is_empty())
            .map(|(range, look)| {
                let look = block.looks.get(look as usize).map_or_else(Look::default, PackedLook::unpack);
                (range.start - line.start..range.end - line.start, look)
            })
            .collect()
    }

    /// Gives spare capacity back to the allocator.
    pub(crate) fn shrink(&mut self) {
        self.spare = None;
        self.blocks.iter_mut().for_each(Block::shrink);
        self.blocks.shrink_to_fit();
    }

    /// Lets go of the oldest lines, block by block, until the rest takes no more than this; the newest block stays.
    pub(crate) fn shorten(&mut self, max_bytes: usize) {
        let kept = std::mem::replace(&mut self.max_bytes, max_bytes);
        self.trim();
        self.max_bytes = kept;
        self.spare = None;
        self.blocks.shrink_to_fit();
    }

    /// Bytes of text, line ends and looks: about what [`History::shorten`] can give back.
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes
    }

    /// Bytes of memory held.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.blocks.iter().chain(&self.spare).map(Block::heap_bytes).sum::<usize>()
            + self.blocks.capacity() * size_of::<Block>()
            + self.evicted.as_ref().map_or(0, |evicted| evicted.heap_bytes())
    }

    fn locate(&self, number: u64) -> Option<(&Block, usize)> {
        if !(self.oldest..self.next).contains(&number) {
            return None;
        }
        // Lines that a block holds, counted from the newest block: reads are mostly of the tail.
        let mut end = self.next;
        for (position, block) in self.blocks.iter().enumerate().rev() {
            let gone = if position == 0 { self.skip } else { 0 };
            let first = end - (block.ends.len() - gone) as u64;
            if number >= first {
                return Some((block, gone + (number - first) as usize));
            }
            end = first;
        }
        None
    }

    fn open_block(&mut self) {
        if let Some(full) = self.blocks.back_mut() {
            full.shrink();
        }
        let block = self.spare.take().unwrap_or_default();
        self.blocks.push_back(block);
    }

    fn drop_oldest(&mut self, mut count: usize) {
        while count > 0
            && let Some(front) = self.blocks.front()
        {
            let here = count.min(front.ends.len() - self.skip);
            if let Some(evicted) = &mut self.evicted {
                let numbers = self.oldest..self.oldest + here as u64;
                for (index, number) in (self.skip..).zip(numbers) {
                    if evicted.wants(number) {
                        let continued = front.ends[index] & CONTINUED != 0;
                        evicted.push(number, &front.text[front.line_range(index)], continued);
                    }
                }
            }
            self.skip += here;
            self.oldest += here as u64;
            count -= here;
            if self.skip == front.ends.len()
                && let Some(mut block) = self.blocks.pop_front()
            {
                self.skip = 0;
                self.used_bytes -= block.used_bytes();
                block.reset();
                self.spare = Some(block);
            }
        }
    }
}

/// Writes one line into the store.
pub(crate) struct LineWriter<'a> {
    block: &'a mut Block,
    next: &'a mut u64,
    used_bytes: &'a mut usize,
    /// Bytes of the block before the line.
    before: usize,
}

impl LineWriter<'_> {
    /// The text of the block, to append UTF-8 to.
    pub(crate) fn text(&mut self) -> &mut Vec<u8> {
        &mut self.block.text
    }

    /// What is written next looks like this.
    #[inline]
    pub(crate) fn set_look(&mut self, look: Look) {
        if look != Look::default() || self.block.current_look() != 0 {
            self.block.set_look(look);
        }
    }

    /// Ends the line. The default look must be set again: the next line begins in it.
    #[inline]
    pub(crate) fn finish(self, continued: bool) {
        debug_assert_eq!(self.block.current_look(), 0);
        let end = self.block.text.len();
        self.block.ends.push(end as u32 | if continued { CONTINUED } else { 0 });
        *self.used_bytes += self.block.used_bytes() - self.before;
        *self.next += 1;
    }
}
