//! `evidence`: what was run and what came of it, as one JSON that a leader can attach to a message.
//!
//! One command gives a transcript. Words about an intervention, several commands, or something attached give a pack of
//! transcripts. Secrets are masked; who ran a command is what was recorded, which is a claim.

use std::time::SystemTime;

use kpty_emulator::{Mode, Request as Read};
use serde_json::{Map, Value, json};

use super::commands::{COMMAND_ID, MAX_CHARS};
use super::talk::millis;
use super::{SESSION_ID, Target};
use crate::error::{Error, Result};
use crate::ids::CommandId;
use crate::model::{SessionRecord, iso_time};
use crate::registry::Located;
use crate::terminal::local::Session;
use crate::tools::Tools;
use crate::tools::envelope::shown_record;
use crate::tools::handler::{Handler, Outcome, begin};
use crate::tools::params::{Params, wrong_type};
use crate::tools::spec::{Action, Effect, Param};
use crate::traffic::new_id;
use kpty_guard::{Masked, Redactor};

pub(in crate::tools) static ACTION: Action = Action {
    name: "evidence",
    aliases: &[],
    summary: "A transcript to attach to a message",
    notes: "Of the last command unless others are named. With intervention_type, action_taken, result or attach \
            ([{type,…}]): a pack with evidence[].",
    example: r#"{"action":"evidence","session_id":"pty_0123abcd","command_id":"cmd_1"}"#,
    params: &[SESSION_ID, COMMAND_ID, COMMAND_IDS, SCREEN, MAX_CHARS, INTERVENTION, ACTION_TAKEN, RESULT, ATTACH],
    effect: Effect::Read,
    on_page: false,
    forwarded: false,
    shows_screen: false,
    begin: begin::<Evidence>,
};

const COMMAND_IDS: Param = Param::list("command_ids", "several commands");
const SCREEN: Param = Param::flag("screen", true, "with what the screen shows now; on unless false");
const INTERVENTION: Param = Param::text("intervention_type", "why somebody stepped in, such as stuck_worker_recovery");
const ACTION_TAKEN: Param = Param::text("action_taken", "what was done");
const RESULT: Param = Param::text("result", "what came of it");
const ATTACH: Param = Param::any("attach", "a list of other evidence, objects with a type, such as a screenshot");

/// Commands in one pack.
const MAX_COMMANDS: usize = 50;
/// Things attached to one pack, and the bytes of them all.
const MAX_ATTACHED: usize = 20;
const MAX_ATTACHED_BYTES: usize = 64 << 10;
/// Characters of each word about an intervention.
const WORD_CHARS: usize = 4_000;

struct Evidence {
    session: Target,
    /// The session's own fields, and its owner.
    facts: Value,
    owner: Option<Masked>,
    commands: Vec<CommandId>,
    wants_screen: bool,
    max_chars: usize,
    /// `intervention_type`, `action_taken`, `result`.
    words: [Option<Masked>; 3],
    attached: Vec<Value>,
    /// Several commands were asked for by name.
    is_list: bool,
    collected_by: Option<Masked>,
}

impl Handler for Evidence {
    type Context = Tools;

    fn read(params: &mut Params<'_>, tools: &Tools) -> Result<Self> {
        let located = tools.located(params)?;
        let redactor = tools.redactor_of(Some(&located));
        let (facts, owner) = match &located {
            Located::Local(session) => {
                (session_fields(session, &redactor), session.with_owner(|owner| owner.agent_id.clone()))
            }
            Located::Desktop(record) => (desktop_fields(record, &redactor), record.owner_agent_id.clone()),
        };
        let owner = owner.map(|owner| redactor.mask(owner));
        let session = tools.target_of(located);
        let listed = params.strings(&COMMAND_IDS)?;
        let is_list = listed.is_some();
        let mut commands = match listed {
            None => Vec::new(),
            Some(ids) => ids.iter().map(|id| named(id)).collect::<Result<Vec<_>>>()?,
        };
        commands.extend(params.command_id(&COMMAND_ID)?);
        commands.dedup();
        if commands.len() > MAX_COMMANDS {
            return Err(Error::invalid(COMMAND_IDS.name, format!("has more than {MAX_COMMANDS} commands")));
        }
        if commands.is_empty() {
            commands.extend(session.commands().last().map(|command| command.id));
        }
        let word = |param| -> Result<Option<Masked>> {
            let text = params.text(param)?.map(|text| redactor.mask_str(text));
            Ok(text.map(|text| text.as_masked().head(WORD_CHARS).to_masked()))
        };
        let words = [word(&INTERVENTION)?, word(&ACTION_TAKEN)?, word(&RESULT)?];
        let attached = attached(params)?.into_iter().map(|item| masked(item, &redactor)).collect();
        let wants_screen = params.flag(&SCREEN)? && tools.may_read_screens().is_ok();
        let max_chars = params.count(&MAX_CHARS)?;
        let collected_by = params.caller().identity(params.arguments(), tools.config.identity.agent_id.as_deref());
        let collected_by = collected_by.map(|name| redactor.mask(name));
        Ok(Self { session, facts, owner, commands, wants_screen, max_chars, words, attached, is_list, collected_by })
    }

    async fn run(self, tools: &Tools) -> Outcome {
        let now = iso_time(SystemTime::now());
        let evidence_id = format!("ev_{}", new_id(SystemTime::now()).trim_start_matches("pty_"));
        let actors = self.actors(tools).await;
        let mut transcripts = Vec::new();
        for (id, actor) in self.commands.iter().zip(actors) {
            transcripts.push(self.transcript(*id, actor, &now)?);
        }
        if transcripts.is_empty() {
            transcripts.push(self.bare_transcript(&now));
        }
        // The screen is that of now, so it belongs to the last one.
        if let (true, Some(last)) = (self.wants_screen, transcripts.last_mut()) {
            // A desktop that does not answer takes nothing from what is known of the command.
            let screen = self.session.view(&Read::new(Mode::Viewport)).await.ok();
            last.insert("screen".to_owned(), json!(screen.map(|view| view.answer.text.trim_end())));
        }
        let is_pack = self.is_list || !self.attached.is_empty() || self.words.iter().any(Option::is_some);
        let mut pack = match is_pack {
            false => transcripts.pop().unwrap_or_default(),
            true => {
                let [intervention_type, action_taken, result] = self.words;
                let evidence: Vec<Value> = transcripts.into_iter().map(Value::Object).chain(self.attached).collect();
                let pack = json!({
                    "intervention_type": intervention_type,
                    "session_id": self.session.id().as_str(),
                    "timestamp": now,
                    "evidence": evidence,
                    "action_taken": action_taken,
                    "result": result,
                });
                pack.as_object().cloned().unwrap_or_default()
            }
        };
        pack.insert("evidence_id".to_owned(), json!(evidence_id));
        pack.insert("collected_by".to_owned(), json!(self.collected_by));
        pack.insert("session".to_owned(), self.facts);
        Ok(pack.into())
    }
}

impl Evidence {
    /// Who ran each command, as it was recorded; otherwise the session's owner.
    async fn actors(&self, tools: &Tools) -> Vec<Option<Masked>> {
        let traffic = tools.traffic.clone();
        let session = self.session.id().to_string();
        let commands: Vec<String> = self.commands.iter().map(ToString::to_string).collect();
        let count = commands.len();
        let looked = tokio::task::spawn_blocking(move || {
            let record = traffic.record();
            let who = |command: &String| record.as_ref()?.who_ran(&session, command).ok().flatten();
            commands.iter().map(who).collect::<Vec<_>>()
        });
        // A record that cannot be read names nobody.
        let recorded = looked.await.unwrap_or_else(|_| vec![None; count]);
        let redactor = self.session.redactor();
        let given = |actor: Option<String>| actor.map(|actor| redactor.mask(actor));
        recorded.into_iter().map(|actor| given(actor).or_else(|| self.owner.clone())).collect()
    }

    fn transcript(&self, id: CommandId, actor: Option<Masked>, now: &str) -> Result<Map<String, Value>> {
        let unknown =
            || Error::invalid(COMMAND_ID.name, format!("{id} is no command of this session, or is forgotten"));
        let command = self.session.command(id).ok_or_else(unknown)?;
        let output = self.session.output_of(id, self.max_chars).unwrap_or_default();
        let (end, redactor) = (command.end.as_ref(), self.session.redactor());
        let fields = json!({
            "type": "pty_transcript",
            "session_id": self.session.id().as_str(),
            "command_id": id.to_string(),
            "command": command.line(&redactor),
            "output": output.text,
            "exit_code": end.and_then(|end| end.status),
            "timestamp": now,
            "actor": actor,
            "running": end.is_none(),
            "completed_by": end.map(|end| end.by.as_str()),
            "started_at": iso_time(command.started_at),
            "duration_ms": millis(command.age()),
            "cwd": command.cwd(&redactor),
            "truncated": output.truncated,
            "omitted_chars": output.omitted_chars,
            "evicted_lines": output.evicted_lines,
        });
        Ok(fields.as_object().cloned().unwrap_or_default())
    }

    /// Nothing was run: only the screen can tell.
    fn bare_transcript(&self, now: &str) -> Map<String, Value> {
        let fields = json!({
            "type": "pty_transcript",
            "session_id": self.session.id().as_str(),
            "command_id": null,
            "command": null,
            "output": "",
            "exit_code": null,
            "timestamp": now,
            "actor": self.owner,
        });
        fields.as_object().cloned().unwrap_or_default()
    }
}

fn named(id: &str) -> Result<CommandId> {
    let problem = || Error::invalid(COMMAND_IDS.name, "must be ids of commands, such as cmd_1");
    id.trim().parse().map_err(|()| problem())
}

/// What the caller adds of its own: screenshots, for example. Each says its type.
fn attached(params: &Params<'_>) -> Result<Vec<Value>> {
    let Some(value) = params.value(&ATTACH) else { return Ok(Vec::new()) };
    let inner = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let Value::Array(list) = inner.as_ref().unwrap_or(value) else {
        return Err(wrong_type(ATTACH.name, "a list of objects", value));
    };
    let has_type = |item: &Value| item.get("type").is_some_and(Value::is_string);
    if !list.iter().all(has_type) {
        return Err(Error::invalid(ATTACH.name, "must be a list of objects with a type"));
    }
    if list.len() > MAX_ATTACHED || json!(list).to_string().len() > MAX_ATTACHED_BYTES {
        let bounds = format!("is more than {MAX_ATTACHED} things or {MAX_ATTACHED_BYTES} bytes");
        return Err(Error::invalid(ATTACH.name, bounds));
    }
    Ok(list.clone())
}

/// The same with every text masked.
fn masked(value: Value, redactor: &Redactor) -> Value {
    match value {
        Value::String(text) => Value::String(redactor.redact(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(|item| masked(item, redactor)).collect(),
        Value::Object(fields) => {
            // A field may say by its name that its value is a secret.
            let texts = fields.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
            let redactor = redactor.with_variables(texts);
            fields.into_iter().map(|(name, value)| (name, masked(value, &redactor))).collect()
        }
        other => other,
    }
}

fn session_fields(session: &Session, redactor: &Redactor) -> Value {
    let info = session.info();
    let given = |text: &Option<String>| text.as_deref().map(|text| redactor.mask_str(text));
    json!({
        "session_id": info.id.as_str(),
        "source": "local",
        "label": given(&info.owner.label),
        "owner_agent_id": given(&info.owner.agent_id),
        "owner_session_id": given(&info.owner.session_id),
        "owner_role": info.owner.role,
        "shell": info.shell,
        "cwd": info.cwd,
        "cols": info.size.cols(),
        "rows": info.size.rows(),
        "is_alive": info.exit.is_none(),
    })
}

/// What a desktop reported of its session: neither folder nor size.
fn desktop_fields(record: &SessionRecord, redactor: &Redactor) -> Value {
    let record = shown_record(record.clone(), redactor);
    json!({
        "session_id": record.session_id,
        "source": record.source,
        "desktop_url": record.desktop_url,
        "label": record.label,
        "owner_agent_id": record.owner_agent_id,
        "owner_session_id": record.owner_session_id,
        "owner_role": record.owner_role,
        "cli_type": record.cli_type,
    })
}
