//! The bytes of a command as they are typed: a paste where the line editor takes one, else line by line. Pure.

use crate::terminal::commands::TypedTo;
use crate::terminal::sentinel::Form;

/// A control character in a paste may mean something to the terminal or to the line editor.
pub(super) fn can_be_pasted(text: &str) -> bool {
    !text.chars().any(|c| c.is_control() && c != '\n')
}

/// A shell that never asks for pastes, whatever a program left the terminal's modes in.
pub(super) fn is_plain(typed_to: Option<&TypedTo>) -> bool {
    let program = typed_to.and_then(|typed_to| typed_to.args.first());
    program.is_some_and(|program| {
        let is_bash = program.rsplit('/').next().is_some_and(|name| name.contains("bash"));
        !is_bash && matches!(Form::for_program(program), Some(Form::Posix | Form::Mksh))
    })
}

/// How a line is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Enter {
    /// All lines are one paste; the line editor knows the key.
    Paste,
    /// The same; the system drops that key, and the line editor takes a line feed for it.
    PasteLineFeed,
    /// The system makes a line feed of the key.
    Key,
    /// Nobody does.
    LineFeed,
}

/// Text as it is typed: in one piece where the line editor takes a paste, else line by line.
pub(super) fn typed(text: &str, enter: Enter) -> Vec<u8> {
    let plain = || text.replace("\r\n", "\n");
    match enter {
        Enter::Key => return format!("{}\r", plain().replace('\n', "\r")).into_bytes(),
        Enter::LineFeed => return format!("{}\n", plain()).into_bytes(),
        Enter::Paste | Enter::PasteLineFeed => {}
    }
    let mut text = text.to_owned();
    // Taking one out may make another.
    while text.contains("\x1b[201~") {
        text = text.replace("\x1b[201~", "");
    }
    let key = if enter == Enter::PasteLineFeed { '\n' } else { '\r' };
    format!("\x1b[200~{text}\x1b[201~{key}").into_bytes()
}
