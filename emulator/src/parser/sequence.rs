//! Parameters, intermediates and final byte of a control sequence, collected byte by byte.

/// Parameters of one sequence; a sequence with more is ignored, as `vte` does.
const MAX_PARAMS: usize = 32;
const MAX_INTERMEDIATES: usize = 2;

/// Parameters, intermediates and final byte of a CSI or DCS.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    values: [u16; MAX_PARAMS],
    /// Bit `i` is set when value `i` belongs to the parameter before it (`4:3`).
    sub: u32,
    len: usize,
    intermediates: [u8; MAX_INTERMEDIATES],
    intermediate_len: usize,
    /// No byte of it has come yet: only then may a private marker stand.
    pub(super) fresh: bool,
    /// More parameters or intermediates came than are kept.
    pub(super) overflow: bool,
    pub(super) last: u8,
}

impl Sequence {
    pub(crate) fn last(&self) -> u8 {
        self.last
    }

    /// Private marker and intermediates, in the order they came.
    pub(crate) fn intermediates(&self) -> &[u8] {
        &self.intermediates[..self.intermediate_len]
    }

    /// The first value of each parameter.
    pub(crate) fn params(&self) -> impl Iterator<Item = u16> + '_ {
        self.groups().map(|group| group[0])
    }

    /// Each parameter with its sub-parameters.
    pub(crate) fn groups(&self) -> Groups<'_> {
        Groups { sequence: self, at: 0 }
    }

    /// Parameter `index`, `default` when it is missing or zero.
    pub(crate) fn param_or(&self, index: usize, default: u16) -> u16 {
        if self.sub == 0 {
            return match self.values[..self.len].get(index) {
                Some(&value) if value != 0 => value,
                _ => default,
            };
        }
        self.params().nth(index).filter(|&value| value != 0).unwrap_or(default)
    }

    pub(super) fn clear(&mut self) {
        self.sub = 0;
        self.len = 0;
        self.intermediate_len = 0;
        self.overflow = false;
    }

    pub(super) fn begin_params(&mut self) {
        self.values[0] = 0;
        self.len = 1;
        self.fresh = true;
    }

    pub(super) fn digit(&mut self, byte: u8) {
        self.fresh = false;
        let value = &mut self.values[self.len - 1];
        *value = value.saturating_mul(10).saturating_add(u16::from(byte - b'0'));
    }

    pub(super) fn next_param(&mut self, is_sub: bool) {
        self.fresh = false;
        if self.len == MAX_PARAMS {
            self.overflow = true;
            return;
        }
        self.values[self.len] = 0;
        self.sub |= u32::from(is_sub) << self.len;
        self.len += 1;
    }

    pub(super) fn collect(&mut self, byte: u8) {
        self.fresh = false;
        if self.intermediate_len == MAX_INTERMEDIATES {
            self.overflow = true;
        } else {
            self.intermediates[self.intermediate_len] = byte;
            self.intermediate_len += 1;
        }
    }
}

/// Iterator over parameters with their sub-parameters.
pub(crate) struct Groups<'a> {
    sequence: &'a Sequence,
    at: usize,
}

impl<'a> Iterator for Groups<'a> {
    type Item = &'a [u16];

    fn next(&mut self) -> Option<&'a [u16]> {
        let sequence = self.sequence;
        if self.at >= sequence.len {
            return None;
        }
        let start = self.at;
        self.at += 1;
        while self.at < sequence.len && sequence.sub >> self.at & 1 == 1 {
            self.at += 1;
        }
        Some(&sequence.values[start..self.at])
    }
}
