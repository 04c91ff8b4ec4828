//! Ending a session and what is left of it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Session, Shared};
use crate::error::{Error, Result};
use crate::model::ExitInfo;
use crate::terminal::local::pty::{Control, Incarnation, ProcessTable, Signal};

/// What to send, in this order, and how long each is given.
const STEPS: [(Signal, Duration); 3] = [
    (Signal::HangUp, Duration::from_millis(400)),
    (Signal::Terminate, Duration::from_millis(600)),
    (Signal::Kill, Duration::from_secs(2)),
];
/// How long after a child's end it may take to find out what it left behind.
const NOTE_TIMEOUT: Duration = Duration::from_millis(500);

/// How a session came to its end.
#[derive(Clone, Debug)]
pub struct KillReport {
    /// How the child ended.
    pub exit: ExitInfo,
    /// It had ended before.
    pub was_dead: bool,
    /// Processes of its terminal that were ended besides.
    pub others: usize,
    /// Processes that its child or others of it had started in sessions of their own (`setsid`, daemons), and that live
    /// on: they are left alone.
    pub strayed: Vec<u32>,
}

impl Session {
    /// Ends the child and everything that is left of its terminal's session: hang-up, then terminate, then kill.
    pub async fn kill(&self) -> Result<KillReport> {
        let (was_dead, mut doomed) = (self.exit().is_some(), [Doomed::new(self).await]);
        end(&mut doomed).await;
        let exit = exit_of(&self.shared).await;
        let [Doomed { others, survivors, strayed, .. }] = doomed;
        let strayed = still_there(&strayed);
        match survivors.is_empty() {
            true => Ok(KillReport { exit, was_dead, others, strayed }),
            false => Err(Error::Kill { session: self.id().clone(), survivors }),
        }
    }

    /// Notes what the child has left behind, now that it has ended by itself, and hangs it up: the terminal is gone. What
    /// ignores that (`nohup`) or is in a session of its own (`setsid`) lives on. Reads the process table: not for a thread
    /// that serves others.
    pub(super) fn note_left_behind(shared: &Shared) {
        let left = match shared.is_being_killed.load(Ordering::Acquire) {
            // Whoever kills it has looked.
            true => Vec::new(),
            false => ProcessTable::read().session(shared.control.pid()),
        };
        left.iter().for_each(|process| Control::signal_process(process.pid, Signal::HangUp));
        shared.left_behind.send_replace(Some(left));
    }
}

/// Ends sessions together, as [`Session::kill`] does with one: however many they are, each step reads the process table
/// a few times and takes no longer than for one.
pub async fn kill_all(sessions: &[Session]) {
    let mut doomed = Vec::with_capacity(sessions.len());
    for session in sessions {
        doomed.push(Doomed::new(session).await);
    }
    end(&mut doomed).await;
    for Doomed { session, .. } in &doomed {
        exit_of(&session.shared).await;
    }
}

/// For want of time: kills what is left of sessions, and waits for nothing.
pub fn kill_now(sessions: &[Session]) {
    let table = ProcessTable::read();
    for session in sessions.iter().filter(|session| session.exit().is_none()) {
        let members = session.shared.control.members(&table, None);
        members.into_iter().for_each(|pid| Control::signal_process(pid, Signal::Kill));
    }
}

/// A session that is to end, and what became of its processes.
struct Doomed {
    session: Session,
    /// What its child left behind; none while the child was there.
    left: Option<Vec<Incarnation>>,
    /// The most that there were besides the child.
    others: usize,
    survivors: Vec<u32>,
    /// Those of other sessions that descended from the child before it was ended; afterwards nobody can tell.
    strayed: Vec<Incarnation>,
}

impl Doomed {
    async fn new(session: &Session) -> Self {
        let shared = &session.shared;
        let left = match session.exit() {
            None => {
                shared.is_being_killed.store(true, Ordering::Release);
                None
            }
            Some(_) => {
                let mut left_behind = shared.left_behind.subscribe();
                let noted = tokio::time::timeout(NOTE_TIMEOUT, left_behind.wait_for(Option::is_some)).await;
                // Of one whose end nobody saw, nothing is certain.
                Some(noted.ok().and_then(|noted| noted.ok()?.clone()).unwrap_or_default())
            }
        };
        Self { session: session.clone(), left, others: 0, survivors: Vec::new(), strayed: Vec::new() }
    }

    fn members(&self, table: &ProcessTable) -> Vec<u32> {
        self.session.shared.control.members(table, self.left.as_deref())
    }

    /// Looks who is there, and tells them.
    fn signal(&mut self, table: &ProcessTable, signal: Signal) {
        self.survivors = self.members(table);
        if signal == Signal::HangUp && self.left.is_none() {
            self.strayed = table.strayed(self.session.shared.control.pid());
        }
        let others = self.survivors.iter().filter(|&&pid| pid != self.session.shared.control.pid()).count();
        self.others = self.others.max(others);
        if !self.survivors.is_empty() {
            self.session.shared.control.signal_groups(signal);
            self.survivors.iter().for_each(|&pid| Control::signal_process(pid, signal));
        }
    }
}

/// Which of these processes live.
fn still_there(processes: &[Incarnation]) -> Vec<u32> {
    if processes.is_empty() {
        return Vec::new();
    }
    let table = ProcessTable::read();
    processes.iter().filter(|process| table.has(process)).map(|process| process.pid).collect()
}

/// Goes through the steps until nothing is left, and closes the terminals.
async fn end(all: &mut [Doomed]) {
    for (signal, timeout) in STEPS {
        let table = ProcessTable::read();
        all.iter_mut().for_each(|doomed| doomed.signal(&table, signal));
        if all.iter().all(|doomed| doomed.survivors.is_empty()) {
            break;
        }
        if all_gone(all, signal, timeout).await {
            all.iter_mut().for_each(|doomed| doomed.survivors.clear());
            break;
        }
    }
    if all.iter().any(|doomed| !doomed.survivors.is_empty()) {
        // On a machine that stood still for a while they may be gone, and nobody has looked since.
        let table = ProcessTable::read();
        all.iter_mut().for_each(|doomed| doomed.survivors = doomed.members(&table));
    }
    for Doomed { session, .. } in all {
        session.shared.closing.notify_one();
    }
}

/// Waits for processes to end, and for those that they started meanwhile: one that was started between the look at the
/// table and the end of its parent is killed like its parent.
async fn all_gone(all: &[Doomed], signal: Signal, timeout: Duration) -> bool {
    let gone = async {
        let mut left: Vec<u32> = all.iter().flat_map(|doomed| &doomed.survivors).copied().collect();
        while !left.is_empty() {
            for &pid in &left {
                Control::process_ended(pid).await;
            }
            let table = ProcessTable::read();
            left = all.iter().flat_map(|doomed| doomed.members(&table)).collect();
            if signal == Signal::Kill {
                left.iter().for_each(|&pid| Control::signal_process(pid, signal));
            }
        }
    };
    tokio::time::timeout(timeout, gone).await.is_ok()
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
