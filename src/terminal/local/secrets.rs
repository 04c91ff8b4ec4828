//! Secrets that are left to people: who may answer a question whose answer is not shown.
//!
//! Every way to type goes through [`Session::write`](super::Session::write), so that no action has to ask. A handle is an
//! agent's until whoever knows better makes it a person's.

use super::Session;
use crate::error::{Error, Result};
use crate::model::Secrets;
use crate::terminal::AttentionState;

/// What cancels a question gives nothing away.
const CANCEL: &[u8] = b"\x03";

impl Session {
    /// The same session in the hands of a person.
    pub fn as_person(&self) -> Self {
        Self { is_person: true, ..self.clone() }
    }

    /// Who answers its questions for secrets.
    pub fn secrets(&self) -> Secrets {
        self.shared.secrets
    }

    /// Refuses to answer a question for a secret that is left to people.
    pub fn check_secret_prompt(&self) -> Result<()> {
        let is_free = self.is_person || self.shared.secrets == Secrets::Agent;
        match is_free || !self.asks_for_what_is_hidden() {
            true => Ok(()),
            false => Err(Error::SecretPrompt(self.id().clone())),
        }
    }

    /// The same for keys.
    pub(super) fn check_typed(&self, bytes: &[u8]) -> Result<()> {
        if bytes == CANCEL { Ok(()) } else { self.check_secret_prompt() }
    }

    /// In doubt it does: what is typed while nothing is shown may be taken by a question that comes a moment later.
    fn asks_for_what_is_hidden(&self) -> bool {
        match self.attention().state {
            AttentionState::InputSecret => true,
            AttentionState::Prompt | AttentionState::FullScreen | AttentionState::Pager | AttentionState::Dead => false,
            _ => self.hides_input(),
        }
    }
}
