//! The gateway's routes for agents, so that a session can be linked to its agent without a gateway.
//!
//! An agent's data is a claim: it names owners and grants no permission. A session of another owner is not reassigned.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Map, Value, json};

use super::body::{JsonResult, Refusal, json_bytes};
use super::query::echo;
use super::traffic_http::caller;
use crate::ids::SessionId;
use crate::model::{Owner, Role, iso_time};
use crate::registry::{OwnerChange, check_text};
use crate::tools::{Reply, Tools};
use crate::traffic::new_id;
use kpty_guard::Redactor;

/// Maximum number of agents; the least recently heard of is evicted first.
const MAX_AGENTS: usize = 1_000;
/// Maximum number of capabilities of one agent.
const MAX_CAPABILITIES: usize = 100;
/// After this time without a heartbeat another agent may take over as leader.
const LEADER_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Clone)]
struct Agents {
    tools: Tools,
    known: Arc<Mutex<AgentTable>>,
}

#[derive(Default)]
struct AgentTable {
    agents: Vec<Agent>,
    leader: Option<String>,
}

struct Agent {
    id: String,
    model_name: String,
    role: Role,
    capabilities: Vec<String>,
    session: Option<String>,
    registered_at: SystemTime,
    heard_at: SystemTime,
    heard: Instant,
}

/// Routes of this module.
pub(super) fn routes(tools: &Tools) -> Router {
    Router::new()
        .route("/v1/agents/register", post(register))
        .route("/v1/agents/leader", get(leader))
        .with_state(Agents { tools: tools.clone(), known: Arc::default() })
}

impl Agents {
    fn known(&self) -> MutexGuard<'_, AgentTable> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent {
    fn fields(&self) -> Value {
        json!({
            "agent_id": self.id,
            "model_name": self.model_name,
            "role": self.role,
            "status": "idle",
            "capabilities": self.capabilities,
            "current_task_id": null,
            "pty_session_id": self.session,
            "last_heartbeat": iso_time(self.heard_at),
            "registered_at": iso_time(self.registered_at),
        })
    }
}

/// Data that an agent registers.
struct AgentRegistration {
    model_name: String,
    role: Option<Role>,
    capabilities: Vec<String>,
    agent_id: Option<String>,
    session: Option<String>,
}

/// Rejects a missing or invalid field of the body.
fn unprocessable(name: &str, problem: &str) -> Refusal {
    let fault = json!({ "type": "value_error", "loc": ["body", name], "msg": problem, "input": null });
    (StatusCode::UNPROCESSABLE_ENTITY, Json(json!({ "detail": [fault] })))
}

impl AgentRegistration {
    fn read(body: &Map<String, Value>) -> Result<Self, Refusal> {
        let text = |name: &str| match body.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => match check_text(name, text) {
                Ok(()) => Ok(Some(text.clone())),
                Err(error) => Err(unprocessable(name, &error.to_string())),
            },
            Some(_) => Err(unprocessable(name, "a string is expected")),
        };
        let role = match text("role")? {
            None => None,
            Some(role) => {
                Some(Role::from_name(&role).ok_or_else(|| unprocessable("role", "leader or worker is expected"))?)
            }
        };
        let capabilities = match body.get("capabilities") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(list)) if list.len() <= MAX_CAPABILITIES => {
                let texts: Option<Vec<String>> = list.iter().map(|item| item.as_str().map(short)).collect();
                texts.ok_or_else(|| unprocessable("capabilities", "a list of strings is expected"))?
            }
            Some(_) => return Err(unprocessable("capabilities", "a short list of strings is expected")),
        };
        Ok(Self {
            model_name: text("model_name")?.ok_or_else(|| unprocessable("model_name", "Field required"))?,
            role,
            capabilities,
            agent_id: text("agent_id")?,
            session: text("pty_session_id")?,
        })
    }
}

fn short(text: &str) -> String {
    echo(text, &Redactor::default())
}

impl AgentTable {
    /// Adds or refreshes an agent. There is one leader: the first that asks, until it falls silent.
    fn add(&mut self, given: AgentRegistration) -> (String, Role, String) {
        let now = (SystemTime::now(), Instant::now());
        let id = given.agent_id.clone().unwrap_or_else(|| {
            let stamp = new_id(now.0);
            format!("{}{}", given.model_name, stamp.trim_start_matches("pty"))
        });
        let (role, message) = self.role_for(&id, given.role);
        let is_known = self.agents.iter().any(|agent| agent.id == id);
        let mut agent = match self.agents.iter().position(|agent| agent.id == id) {
            Some(at) => self.agents.remove(at),
            None => Agent {
                id: id.clone(),
                model_name: String::new(),
                role,
                capabilities: Vec::new(),
                session: None,
                registered_at: now.0,
                heard_at: now.0,
                heard: now.1,
            },
        };
        agent.model_name = given.model_name;
        agent.role = role;
        agent.capabilities = given.capabilities;
        agent.session = given.session.or(agent.session);
        (agent.heard_at, agent.heard) = now;
        // The newest is last, and the first is evicted.
        self.agents.push(agent);
        if self.agents.len() > MAX_AGENTS {
            self.agents.remove(0);
        }
        let again = || format!("Agent {id} heartbeat updated (already registered)");
        let message = if is_known && given.role.is_none() { again() } else { message };
        (id, role, message)
    }

    fn role_for(&mut self, id: &str, wanted: Option<Role>) -> (Role, String) {
        let leader = self.leader.as_ref().and_then(|leader| self.agents.iter().find(|agent| agent.id == *leader));
        let is_heard = leader.is_some_and(|leader| leader.heard.elapsed() < LEADER_TIMEOUT);
        match (wanted, &self.leader) {
            (None, Some(leader)) if leader == id => (Role::Leader, "Registered as leader".to_owned()),
            (None | Some(Role::Worker), leader) => {
                if leader.as_deref() == Some(id) {
                    self.leader = None;
                }
                (Role::Worker, "Registered as worker".to_owned())
            }
            (Some(Role::Leader), Some(leader)) if leader != id && is_heard => {
                (Role::Worker, format!("Leader already exists ({leader}), registered as worker"))
            }
            (Some(Role::Leader), previous) => {
                let message = match previous {
                    Some(leader) if leader != id => {
                        format!("Registered as leader (previous leader {leader} is silent)")
                    }
                    _ => "Registered as leader (first to claim)".to_owned(),
                };
                self.leader = Some(id.to_owned());
                (Role::Leader, message)
            }
        }
    }
}

async fn register(State(agents): State<Agents>, request: Request) -> JsonResult {
    let began = Instant::now();
    let mut caller = caller(request.headers());
    let bytes = json_bytes(request).await?;
    let body: Map<String, Value> =
        serde_json::from_slice(&bytes).map_err(|_| unprocessable("body", "an object is expected"))?;
    let given = AgentRegistration::read(&body)?;
    let session = given.session.clone();
    let (id, role, message) = agents.known().add(given);
    let linked = session.as_ref().map(|session| {
        let owner = Owner { agent_id: Some(id.clone()), role: Some(role), ..Owner::default() };
        let change = OwnerChange::Adopt { owner, force: false };
        agents.tools.registry().change_owner(&SessionId::named(session), &change)
    });
    let is_linked = matches!(linked, Some(Ok(_)));
    let problem = linked.and_then(Result::err).map(|error| error.to_string());
    let answer = json!({
        "ok": true, "agent_id": id, "role": role, "message": message, "pty_linked": is_linked, "pty_error": problem,
    });
    caller.agent = caller.agent.or(Some(id));
    let mut arguments = body;
    arguments.insert("action".to_owned(), json!("register_agent"));
    arguments.extend(session.map(|session| ("session_id".to_owned(), json!(session))));
    let reply = Reply { body: answer.as_object().cloned().unwrap_or_default(), is_error: false };
    agents.tools.record(&arguments, &caller, began, &reply);
    Ok(Json(answer))
}

async fn leader(State(agents): State<Agents>) -> JsonResult {
    let known = agents.known();
    let leader = known.leader.as_ref().and_then(|leader| known.agents.iter().find(|agent| agent.id == *leader));
    match leader {
        Some(agent) => Ok(Json(agent.fields())),
        None => Err((StatusCode::NOT_FOUND, Json(json!({ "detail": "No leader registered" })))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn introduction(id: &str, role: Option<Role>) -> AgentRegistration {
        AgentRegistration {
            model_name: "model".to_owned(),
            role,
            capabilities: Vec::new(),
            agent_id: (!id.is_empty()).then(|| id.to_owned()),
            session: None,
        }
    }

    #[test]
    fn the_first_to_ask_leads_until_it_falls_silent() {
        let mut known = AgentTable::default();
        assert_eq!(known.add(introduction("a", Some(Role::Leader))).1, Role::Leader);
        let (_, role, message) = known.add(introduction("b", Some(Role::Leader)));
        assert_eq!(role, Role::Worker);
        assert!(message.contains("already exists (a)"), "{message}");
        assert_eq!(known.add(introduction("a", None)).1, Role::Leader, "it only says that it is still there");
        known.agents.iter_mut().for_each(|agent| agent.heard -= LEADER_TIMEOUT);
        assert_eq!(known.add(introduction("b", Some(Role::Leader))).1, Role::Leader);
        assert_eq!(known.add(introduction("b", Some(Role::Worker))).1, Role::Worker);
        assert_eq!(known.leader, None);
    }

    #[test]
    fn an_agent_without_a_name_gets_one_and_the_table_is_bounded() {
        let mut known = AgentTable::default();
        let (id, ..) = known.add(introduction("", None));
        assert!(id.starts_with("model_2") && id.len() == "model_20000101_000000_01234567".len(), "{id}");
        for number in 0..MAX_AGENTS + 5 {
            known.add(introduction(&format!("agent_{number}"), None));
        }
        assert_eq!(known.agents.len(), MAX_AGENTS);
        assert!(known.agents.iter().all(|agent| agent.id != id));
    }
}
