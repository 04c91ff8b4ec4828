//! The schema of the parameters, for transports that announce them.

use serde_json::{Map, Value, json};

use super::params::{ACTION, AS_AGENT};
use super::{ACTIONS, known_params};

/// Name, type and meaning of every parameter of any action.
const PARAMETERS: [(&str, &str, &str); 69] = [
    ("session_id", "string", "The session, from create or list"),
    ("shell", "string", "create: the program; the server's default shell if not given"),
    ("args", "array", "create: arguments of the program"),
    ("cwd", "string", "create: directory to start in; must exist. resolve: directory that the shell is in"),
    ("cols", "integer", "create, resize: columns"),
    ("rows", "integer", "create, resize: rows"),
    ("env", "object", "create: variables to set"),
    ("label", "string", "create, adopt: a name for people; resolve, send_line_to_agent: whose session"),
    ("owner_agent_id", "string", "create, adopt: the agent that owns the session"),
    ("agent_id", "string", "resolve, send_line_to_agent: whose session; create, adopt: the same as owner_agent_id"),
    ("owner_session_id", "string", "create, adopt: the owner's own session; resolve: whose session"),
    ("owner_role", "string", "create, adopt: leader or worker"),
    ("claude_code_session_id", "string", "create, adopt: the Claude Code session that runs there; resolve: which"),
    ("cli_type", "string", "create: kind of program, shell if not given"),
    ("last_command", "string", "resolve: part of the command that was run last"),
    ("integration", "string", "create: auto, or off to leave the shell as it is"),
    ("pager", "boolean", "create: true leaves PAGER and the like as they are"),
    ("data", "string", "send_line, send_line_to_agent: the text; empty sends only Enter"),
    ("escapes", "boolean", "convert \\n \\r \\t \\xHH; on for send_line, off for talk and send_keys"),
    ("enter_delay_ms", "integer", "send_line, send_keys: pause between text and the key after it"),
    ("command", "string", "talk: the command, newlines and all"),
    ("sentinel", "string", "talk: the text that marks the end where nothing better is known"),
    ("timeout_ms", "integer", "how long to wait; 0 does not wait"),
    ("max_chars", "integer", "characters in the answer"),
    ("raw", "boolean", "talk: all raw output that is kept, not only its end; record: secrets stay"),
    ("op", "string", "record: start, stop, status or save_fixture"),
    ("name", "string", "record: name of the file or folder"),
    ("input", "boolean", "record: what is typed, too"),
    ("on_timeout", "string", "talk: leave, or interrupt to send Ctrl-C"),
    ("max_bytes", "integer", "read: bytes of raw output; record: bytes of the file"),
    ("mode", "string", "term_read: tail, viewport, delta, range or full; read: raw, viewport or tail"),
    ("max_lines", "integer", "term_read: lines; 0 only sets a marker"),
    ("merge_wrapped", "boolean", "term_read: join wrapped rows to lines"),
    ("marker_id", "integer", "term_read delta, wait: only what changed since this marker"),
    ("from_line", "integer", "the first line wanted"),
    ("until_line", "integer", "the line to stop before"),
    ("which", "string", "term_read, screenshot: active, or main for the screen behind a full-screen program"),
    ("format", "string", "screenshot: png or svg"),
    ("theme", "string", "screenshot: dark or light"),
    ("scale", "integer", "screenshot: 1 to 4 times the size"),
    ("cursor", "boolean", "screenshot: false draws no cursor"),
    ("keys", "", "send_keys: names such as \"Ctrl-C Enter\", or a list of names, {\"text\":…} and {\"paste\":…}"),
    ("text", "string", "send_keys: text to type; wait, search: text to look for"),
    ("paste", "string", "send_keys: text to paste"),
    ("mouse", "object", "send_keys: {action, row, col, button, text}; rows and columns from 0"),
    ("regex", "string", "wait: expression to appear; commands: lines of the output to show"),
    ("ignore_case", "boolean", "wait, search, commands: capitals do not matter"),
    ("gone", "boolean", "wait: until text or regex is gone instead"),
    ("gone_text", "string", "wait: until this text is gone from the screen"),
    ("gone_regex", "string", "wait: until nothing on the screen matches"),
    ("quiet_ms", "integer", "wait: until nothing was printed for so long"),
    ("prompt", "boolean", "wait: until the shell's prompt is back"),
    ("command_id", "string", "wait: until this command ends; commands, evidence: its output"),
    ("exit", "boolean", "wait: until the session's program ends"),
    ("pattern", "string", "search: regular expression"),
    ("context", "integer", "search: lines around each match"),
    ("max_matches", "integer", "search: matches in the answer"),
    ("command_ids", "array", "evidence: several commands"),
    ("screen", "boolean", "evidence: with what the screen shows now; on unless false"),
    ("intervention_type", "string", "evidence: why somebody stepped in, such as stuck_worker_recovery"),
    ("action_taken", "string", "evidence: what was done"),
    ("result", "string", "evidence: what came of it"),
    ("attach", "", "evidence: a list of other evidence, objects with a type, such as a screenshot"),
    ("limit", "integer", "commands: how many"),
    ("head", "integer", "commands: first lines of the output"),
    ("tail", "integer", "commands: last lines of the output"),
    ("force", "boolean", "kill: also a leader's session; adopt, disown: also another owner's"),
    ("as_agent", "string", "all actions: who asks, for the record"),
    ("action", "string", "what to do; 'help' tells more"),
];

/// A JSON schema of the arguments of [`super::Tools::call`].
pub fn input_schema() -> Value {
    input_schema_for(&ACTIONS)
}

/// The same for some of the actions: only what they read.
pub fn input_schema_for(actions: &[&str]) -> Value {
    let is_read =
        |name: &str| actions.iter().filter_map(|action| known_params(action)).any(|known| known.contains(&name));
    let mut properties = Map::new();
    for (name, kind, meaning) in PARAMETERS {
        if ![ACTION, AS_AGENT].contains(&name) && !is_read(name) {
            continue;
        }
        let mut property = json!({ "description": meaning });
        if !kind.is_empty() {
            property["type"] = json!(kind);
        }
        match (name, kind) {
            ("action", _) => property["enum"] = json!(actions),
            (_, "array") => property["items"] = json!({ "type": "string" }),
            (_, "integer") => property["minimum"] = json!(0),
            _ => {}
        }
        properties.insert(name.to_owned(), property);
    }
    json!({ "type": "object", "properties": properties, "required": ["action"] })
}
