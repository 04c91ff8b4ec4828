//! What all actions that type have in common: the guard's question, and the pause before Enter.

use std::time::Duration;

use super::params::Params;
use crate::error::{Error, Result};
use crate::guard;
use crate::session::source::Source;

/// Programs with a composer take an Enter that comes in a burst for a pasted newline.
const ENTER_DELAY: Duration = Duration::from_millis(150);
/// The longest pause that can be asked for.
const LONGEST_ENTER_DELAY: Duration = Duration::from_secs(5);

/// Refuses text that has a dangerous command, in any of its forms.
pub(super) fn guard_forms(forms: &[&str]) -> Result<()> {
    forms.iter().try_for_each(|text| {
        guard::check_command(text).map_err(|blocked| Error::Blocked {
            pattern: blocked.pattern,
            category: blocked.category,
            preview: blocked.preview,
        })
    })
}

/// The pause before Enter that was asked for.
pub(super) fn enter_delay(params: &mut Params<'_>) -> Result<Option<Duration>> {
    match params.value("enter_delay_ms") {
        None => Ok(None),
        Some(_) => params.millis("enter_delay_ms", ENTER_DELAY, LONGEST_ENTER_DELAY).map(Some),
    }
}

/// Waits between text and Enter: as long as asked for, else only where a program other than a shell reads key by key.
pub(super) async fn pause_before_enter(session: &dyn Source, asked: Option<Duration>) {
    let pause = match asked {
        Some(pause) => pause,
        None if session.reads_keys() => ENTER_DELAY,
        None => return,
    };
    tokio::time::sleep(pause).await;
}
