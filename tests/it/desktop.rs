//! Sessions of desktop apps, driven through their bridge: the same claims as for our own, every bad behaviour of a
//! bridge, and what a restart brings back.

mod claims;
mod fake;
mod faults;
mod leaders;
mod peer;
mod sample;
mod start;

use kpty::model::Owner;
use kpty::registry::Registration;

use crate::tools::Rig;

/// Tells a server of a desktop's terminal.
fn register(rig: &Rig, id: &str, url: &str, owner: Owner) {
    let (session_id, desktop_url) = (id.to_owned(), url.to_owned());
    let given = Registration { session_id, desktop_url, owner, ..Registration::default() };
    rig.tools.registry().register_desktop(given).expect("a good entry");
}
