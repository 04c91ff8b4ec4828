//! Words that stand in every form, as each dialect spells them.

use super::Form;

/// Hides what a shell says of our own commands (`set -x`).
pub(super) fn quiet(form: Form) -> &'static str {
    match form {
        // These may be restricted: then they open no file.
        Form::Bash | Form::Mksh => ">&- 2>&-",
        // Where no descriptor is left to save them in, outputs that others have closed stay so.
        _ => ">/dev/null 2>&1",
    }
}

/// Runs a text in this shell; an error in it must not end the shell.
pub(super) fn eval(form: Form) -> &'static str {
    match form {
        // In mksh, `command` would keep positional parameters and `typeset` from the shell.
        Form::Zsh | Form::Mksh => r"\builtin eval ",
        Form::Bash => r"\builtin command eval ",
        _ => r"\command eval ",
    }
}

/// Removes variables, or functions with `-f` behind it.
pub(super) fn unset(form: Form) -> &'static str {
    if matches!(form, Form::Bash | Form::Mksh | Form::Zsh) { r"\builtin unset" } else { r"\unset" }
}
