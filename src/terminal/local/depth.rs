//! How deep the calls of a marked shell are when it reads a command: a builtin that asks something with the same line
//! editor (`read -e`, `vared`) reads at another depth.

use std::time::Duration;

use super::Session;
use crate::terminal::local::pty;

/// How often, and after which pause, a shell that has drawn its prompt is looked at until it reads.
const DEPTH_LOOKS: usize = 200;
const DEPTH_PAUSE: Duration = Duration::from_millis(1);

impl Session {
    /// Notes the depth once. The shell has drawn its prompt.
    pub(super) async fn learn_prompt_depth(&self) {
        let is_known =
            |session: &Self| session.shared.lock().shell.as_ref().is_none_or(|shell| shell.prompt_depth.is_some());
        for _ in 0..DEPTH_LOOKS {
            if is_known(self) {
                return;
            }
            let pid = self.shared.control.pid();
            if !matches!(pty::waits_for(pid), None | Some(pty::Waiting::Nothing)) {
                let depth = pty::call_depth(pid);
                if let Some(shell) = &mut self.shared.lock().shell {
                    shell.prompt_depth = depth;
                }
                return;
            }
            tokio::time::sleep(DEPTH_PAUSE).await;
        }
    }
}
