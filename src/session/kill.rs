//! Ending a session and what is left of it.

use std::time::Duration;

use super::driver::Order;
use super::{Session, Shared};
use crate::error::{Error, Result};
use crate::model::ExitInfo;
use crate::pty::{Control, ProcessTable, Signal};

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
        let Ended { others, survivors } = end(std::slice::from_ref(self)).await.swap_remove(0);
        let exit = exit_of(&self.shared).await;
        match survivors.is_empty() {
            true => Ok(KillReport { exit, was_dead: false, others }),
            false => Err(Error::Kill { session: self.id().clone(), survivors }),
        }
    }
}

/// Ends sessions together, as [`Session::kill`] does with one: however many they are, each step reads the process table
/// a few times and takes no longer than for one.
pub async fn kill_all(sessions: &[Session]) {
    let living: Vec<_> = sessions.iter().filter(|session| session.exit().is_none()).cloned().collect();
    end(&living).await;
    for session in &living {
        exit_of(&session.shared).await;
    }
}

/// What became of one session's processes.
#[derive(Clone, Debug, Default)]
struct Ended {
    /// The most that there were besides the child.
    others: usize,
    survivors: Vec<u32>,
}

/// Goes through the steps until nothing is left, and closes the terminals.
async fn end(sessions: &[Session]) -> Vec<Ended> {
    let mut all = vec![Ended::default(); sessions.len()];
    for (signal, patience) in STEPS {
        let table = ProcessTable::read();
        for (session, ended) in sessions.iter().zip(&mut all) {
            let control = &session.shared.control;
            ended.survivors = control.members(&table, &ended.survivors);
            ended.others = ended.others.max(ended.survivors.len().saturating_sub(1));
            if !ended.survivors.is_empty() {
                control.signal_groups(signal);
                ended.survivors.iter().for_each(|&pid| Control::signal_process(pid, signal));
            }
        }
        if all.iter().all(|ended| ended.survivors.is_empty()) {
            break;
        }
        if all_gone(sessions, &all, patience).await {
            all.iter_mut().for_each(|ended| ended.survivors.clear());
            break;
        }
    }
    for session in sessions {
        // A driver that is gone already has nothing to close.
        let _ = session.shared.orders.send(Order::Close).await;
    }
    all
}

/// Waits for processes to end, and for those that they started meanwhile.
async fn all_gone(sessions: &[Session], known: &[Ended], patience: Duration) -> bool {
    let gone = async {
        let mut left: Vec<u32> = known.iter().flat_map(|ended| &ended.survivors).copied().collect();
        while !left.is_empty() {
            for &pid in &left {
                Control::process_ended(pid).await;
            }
            let table = ProcessTable::read();
            let members = sessions.iter().zip(known);
            left = members.flat_map(|(one, ended)| one.shared.control.members(&table, &ended.survivors)).collect();
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
