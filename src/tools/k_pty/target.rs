//! The session that an action works on, and what the settings allow to be seen of it.

use std::sync::Arc;

use crate::config::ScreenAccess;
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::registry::Located;
use crate::terminal::Terminal;
use crate::terminal::local::Session;
use crate::tools::Tools;
use crate::tools::params::Params;
use crate::tools::spec::{Param, Recorded};

/// A session that an action works on: one of this server, or a desktop's.
pub(in crate::tools) type Target = Arc<dyn Terminal>;

/// Which session.
pub(super) const SESSION_ID: Param =
    Param::text("session_id", "The session, from create or list").required().recorded(Recorded::Omitted);

/// The id of the session that is asked for.
pub(super) fn session_id(params: &Params<'_>) -> Result<SessionId> {
    Ok(SessionId::named(params.required(&SESSION_ID)?.trim()))
}

impl Tools {
    /// The session that is asked for, whoever runs it.
    pub(super) fn target(&self, params: &Params<'_>) -> Result<Target> {
        Ok(match self.located(params)? {
            Located::Local(session) if params.caller().is_person => Arc::new(session.as_person()),
            located => self.target_of(located),
        })
    }

    /// The terminal of a session.
    pub(in crate::tools) fn target_of(&self, located: Located) -> Target {
        match located {
            Located::Local(session) => Arc::new(session),
            Located::Desktop(record) => Arc::new(self.bridges.session(&record)),
        }
    }

    /// Where the session is that is asked for. It is looked up once per call.
    pub(in crate::tools) fn located(&self, params: &Params<'_>) -> Result<Located> {
        let id = session_id(params)?;
        params.located.get_or_init(|| self.locate(&id).ok()).clone().ok_or(Error::SessionNotFound(id))
    }

    /// Looks a session up.
    pub(in crate::tools) fn locate(&self, id: &SessionId) -> Result<Located> {
        #[cfg(test)]
        self.lookups.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.registry.locate(id)
    }

    /// The session that is asked for, where it has to be one of this server.
    pub(super) fn session(&self, params: &Params<'_>) -> Result<Session> {
        match self.located(params)? {
            Located::Local(session) => Ok(session),
            Located::Desktop(record) => Err(Error::DesktopOnly(SessionId::named(&record.session_id))),
        }
    }

    /// Refuses to show screens where that is switched off.
    pub(in crate::tools) fn may_read_screens(&self) -> Result<()> {
        match self.config.screen_access {
            ScreenAccess::On => Ok(()),
            ScreenAccess::Off => Err(Error::TermReadDisabled),
        }
    }
}
