//! Who leads, as desktops and the gateway tell. Asked for at most every five seconds; it is shown and enforced nowhere.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Bridges;

/// How long an answer holds.
const HOLDS: Duration = Duration::from_secs(5);
/// Answers that are kept.
const MAX_ANSWERS: usize = 1_000;

/// Answers that still hold.
#[derive(Debug, Default)]
pub(super) struct LeaderCache {
    /// What was answered for whom, and when.
    answers: Mutex<HashMap<String, (Instant, Option<String>)>>,
}

impl LeaderCache {
    fn get(&self, key: &str) -> Option<Option<String>> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(key).filter(|(at, _)| at.elapsed() < HOLDS).map(|(_, answer)| answer.clone())
    }

    fn put(&self, key: String, answer: Option<String>) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MAX_ANSWERS {
            answers.retain(|_, (at, _)| at.elapsed() < HOLDS);
        }
        if answers.len() < MAX_ANSWERS {
            answers.insert(key, (Instant::now(), answer));
        }
    }
}

/// What is asked about an agent, in this order.
#[derive(Clone, Copy, Debug)]
pub struct LeaderQuestion<'a> {
    /// The agent.
    pub agent_id: &'a str,
    /// The bridge and the terminal to ask it about, where the agent is our own.
    pub terminal: Option<(&'a str, &'a str)>,
    /// This server was started for that agent as a leader.
    pub is_own_leader: bool,
    /// The gateway.
    pub gateway_url: Option<&'a str>,
}

impl Bridges {
    /// Whether an agent leads. Who cannot be asked says nothing.
    pub async fn is_leader(&self, question: LeaderQuestion<'_>) -> bool {
        if let Some((url, session)) = question.terminal {
            let key = format!("{url} {session}");
            let leads = match self.leaders.get(&key) {
                Some(answer) => answer.is_some(),
                None => {
                    let leads = self.client.is_leader(url, session).await.ok().flatten() == Some(true);
                    self.leaders.put(key, leads.then(String::new));
                    leads
                }
            };
            if leads {
                return true;
            }
        }
        if question.is_own_leader {
            return true;
        }
        let Some(gateway) = question.gateway_url else { return false };
        let leader = match self.leaders.get(gateway) {
            Some(leader) => leader,
            None => {
                let leader = self.client.gateway_leader(gateway).await.ok().flatten();
                self.leaders.put(gateway.to_owned(), leader.clone());
                leader
            }
        };
        leader.as_deref() == Some(question.agent_id)
    }
}
