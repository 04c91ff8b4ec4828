//! Ending a session and what is left of it.

use std::time::Duration;

use super::driver::Order;
use super::{Session, Shared};
use crate::error::{Error, Result};
use crate::model::ExitInfo;
use crate::pty::{Control, Signal};

/// What to send, in this order, and how long each is given.
const STEPS: [(Signal, Duration); 3] = [
    (Signal::HangUp, Duration::from_millis(400)),
    (Signal::Terminate, Duration::from_millis(600)),
    (Signal::Kill, Duration::from_secs(2)),
];
/// How a session came to its end.
#[derive(Clone, Debug)]
pub struct KillReport {
    /// How the child ended.
    pub exit: ExitInfo,
    /// It had ended before.
    pub was_dead: bool,
    /// Processes of its terminal that were ended besides.
    pub others: usize,
}

impl Session {
    /// Ends the child and everything that is left of its terminal's session: hang-up, then terminate, then kill.
    pub async fn kill(&self) -> Result<KillReport> {
        if let Some(exit) = self.exit() {
            return Ok(KillReport { exit, was_dead: true, others: 0 });
        }
        let control = &self.shared.control;
        let mut others = 0;
        let mut survivors = Vec::new();
        for (signal, patience) in STEPS {
            survivors = control.members(&survivors);
            others = others.max(survivors.len().saturating_sub(1));
            if survivors.is_empty() {
                break;
            }
            control.signal_groups(signal);
            survivors.iter().for_each(|&pid| Control::signal_process(pid, signal));
            if all_gone(control, &survivors, patience).await {
                survivors.clear();
                break;
            }
        }
        // A driver that is gone already has nothing to close.
        let _ = self.shared.orders.send(Order::Close).await;
        let exit = exit_of(&self.shared).await;
        match survivors.is_empty() {
            true => Ok(KillReport { exit, was_dead: false, others }),
            false => Err(Error::Kill { session: self.id().clone(), survivors }),
        }
    }
}

/// Waits for processes to end, and for those that they started meanwhile.
async fn all_gone(control: &Control, known: &[u32], patience: Duration) -> bool {
    let gone = async {
        let mut left = known.to_vec();
        while !left.is_empty() {
            for &pid in &left {
                Control::process_ended(pid).await;
            }
            left = control.members(known);
        }
    };
    tokio::time::timeout(patience, gone).await.is_ok()
}

/// Waits for the driver to say how the child ended.
async fn exit_of(shared: &Shared) -> ExitInfo {
    let mut news = shared.news.subscribe();
    loop {
        if let Some(exit) = shared.lock().exit {
            return exit;
        }
        if news.changed().await.is_err() {
            return ExitInfo::Unknown;
        }
    }
}
