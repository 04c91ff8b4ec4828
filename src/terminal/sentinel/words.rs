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
