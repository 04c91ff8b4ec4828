//! Commands that run another command: what is inside, once their own options are taken off.
//!
//! `prefixes` holds the wrappers whose command simply follows their options, `forms` all others; `xargs`, `container` and
//! `finders` hold those that change the command on the way. `options` holds commands that stand in the options of
//! another one, which is judged itself as well. One layer is peeled at a time; the judge counts them.

mod arguments;
mod container;
pub(super) mod finders;
mod forms;
pub(super) mod options;
mod prefixes;
mod xargs;

pub(super) use self::arguments::{after_options, is_assignment};
pub(super) use self::prefixes::folder;
pub(super) use self::xargs::argument_file;

/// What a wrapper runs.
#[derive(Debug, PartialEq)]
pub(super) enum Inner {
    /// Words as they are.
    Vector(Vec<String>),
    /// Text that a shell reads once more.
    Script(String),
}

impl Inner {
    fn line(words: &[String]) -> Vec<Self> {
        vec![Self::Script(words.join(" "))]
    }

    fn vector(words: &[String]) -> Vec<Self> {
        vec![Self::Vector(words.to_vec())]
    }

    fn script(text: &str) -> Self {
        Self::Script(text.to_owned())
    }

    /// One word is a line for a shell, several are a command.
    fn line_or_vector(words: &[String]) -> Vec<Self> {
        match words {
            [only] => vec![Self::Script(only.clone())],
            words => Self::vector(words),
        }
    }
}

/// A command that may run another one, and what it reads, where that is known.
#[derive(Clone, Copy, Debug)]
struct Wrapper<'a> {
    name: &'a str,
    arguments: &'a [String],
    input: Option<&'a str>,
}

/// What stands inside, if this is a wrapper. `input` is what it reads, where that is known.
pub(super) fn inner(name: &str, arguments: &[String], input: Option<&str>) -> Option<Vec<Inner>> {
    let wrapper = Wrapper { name, arguments, input };
    prefixes::inner(wrapper).or_else(|| forms::inner(wrapper))
}
