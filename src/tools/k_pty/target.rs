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
        self.target_named(&session_id(params)?)
    }

    /// The session of this id, whoever runs it.
    pub(super) fn target_named(&self, id: &SessionId) -> Result<Target> {
        Ok(match self.registry.locate(id)? {
            Located::Local(session) => Arc::new(session),
            Located::Desktop(record) => Arc::new(self.bridges.session(&record)),
        })
    }

    /// The session that is asked for, where it has to be one of this server.
    pub(super) fn session(&self, params: &Params<'_>) -> Result<Session> {
        let id = session_id(params)?;
        match self.registry.locate(&id)? {
            Located::Local(session) => Ok(session),
            Located::Desktop(_) => Err(Error::DesktopOnly(id)),
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
