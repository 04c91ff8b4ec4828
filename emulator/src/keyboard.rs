//! The flags of the kitty keyboard protocol, as a bounded stack.

/// Entries kept; the oldest goes first.
const STACK_LIMIT: usize = 16;
/// The five flags that the protocol defines.
const KNOWN_FLAGS: u16 = 0b1_1111;

/// How `CSI = flags ; mode u` changes the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apply {
    Replace,
    Add,
    Remove,
}

impl Apply {
    pub(crate) fn from_param(param: u16) -> Self {
        match param {
            2 => Self::Add,
            3 => Self::Remove,
            _ => Self::Replace,
        }
    }
}

/// Pushed flags; the last entry is in force.
#[derive(Debug, Default)]
pub(crate) struct KeyboardStack(Vec<u8>);

impl KeyboardStack {
    pub(crate) fn flags(&self) -> u8 {
        self.0.last().copied().unwrap_or(0)
    }

    pub(crate) fn push(&mut self, flags: u16) {
        if self.0.len() == STACK_LIMIT {
            self.0.remove(0);
        }
        self.0.push((flags & KNOWN_FLAGS) as u8);
    }

    pub(crate) fn pop(&mut self, count: usize) {
        self.0.truncate(self.0.len().saturating_sub(count));
    }

    pub(crate) fn apply(&mut self, flags: u16, how: Apply) {
        let flags = (flags & KNOWN_FLAGS) as u8;
        let current = self.0.pop().unwrap_or(0);
        self.0.push(match how {
            Apply::Replace => flags,
            Apply::Add => current | flags,
            Apply::Remove => current & !flags,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_pushed_popped_and_changed_within_the_bound() {
        let mut stack = KeyboardStack::default();
        stack.apply(0b101, Apply::Replace);
        stack.apply(0b010, Apply::Add);
        stack.apply(0b001, Apply::Remove);
        assert_eq!(stack.flags(), 0b110);
        for flags in 0..100 {
            stack.push(flags);
        }
        assert_eq!(stack.0.len(), STACK_LIMIT);
        assert_eq!(stack.flags(), 99 & 0b1_1111);
        stack.pop(1_000);
        assert_eq!(stack.flags(), 0);
    }
}
