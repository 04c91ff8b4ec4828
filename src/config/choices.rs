//! Settings that are one of a few words.

use std::str::FromStr;

/// Whether screens may be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScreenAccess {
    /// They may.
    #[default]
    On,
    /// They may not.
    Off,
}

impl ScreenAccess {
    /// The text on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// Which tools clients are shown. Every tool can be called by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolSet {
    /// The short ones for clients that speak MCP, those with actions for plain ones.
    #[default]
    Auto,
    /// The short ones, `term_*`.
    Term,
    /// Those with actions, such as `k_pty`.
    Actions,
    /// All.
    All,
}

impl FromStr for ToolSet {
    type Err = String;

    fn from_str(word: &str) -> std::result::Result<Self, String> {
        match word.to_ascii_lowercase().as_str() {
            "auto" => Ok(Self::Auto),
            "term" => Ok(Self::Term),
            "k_pty" => Ok(Self::Actions),
            "all" => Ok(Self::All),
            _ => Err(format!("{word:?} is not auto, term, k_pty or all")),
        }
    }
}
