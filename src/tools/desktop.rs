//! Sessions of desktop apps, where an action needs more than the registry knows of them.
//!
//! All such actions come here; nothing reaches a desktop yet.

use crate::error::Error;
use crate::ids::SessionId;
use crate::model::SessionRecord;

/// Why nothing can be done in a desktop session.
pub(super) fn not_connected(record: &SessionRecord) -> Error {
    Error::DesktopNotConnected(SessionId::named(&record.session_id))
}
