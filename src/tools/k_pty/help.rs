//! `help`: what there is, in a page.

use serde_json::{Map, Value, json};

use super::{search, talk, term_read, wait};
use crate::config::{Config, LONGEST_TALK, SETTINGS};
use crate::terminal::commands::MAX_COMMANDS;
use kpty_emulator::{MAX_COLS, MAX_ROWS};

/// One line or two for each action; a question mark marks what may be left out.
const TEXTS: [(&str, &str); 22] = [
    ("help", "This page."),
    ("list", "All sessions; dead ones stay listed for a while with is_alive:false and their exit_code or signal."),
    (
        "create",
        "Start a session: shell?, args?, cwd?, cols?, rows?, env?, label?, owner_agent_id?, owner_session_id?, \
         owner_role? leader|worker, claude_code_session_id?, cli_type?, integration? auto|off, pager? true keeps \
         pagers. Returns session_id.",
    ),
    (
        "talk",
        "Run a command and get its output and exit_code: session_id, command, timeout_ms?, max_chars?, sentinel?, \
         escapes? false, raw?, on_timeout? leave|interrupt. On PTY_TIMEOUT the command goes on: wait with its \
         command_id. PTY_BUSY means that nothing was typed.",
    ),
    ("run", "The same as talk."),
    (
        "wait",
        "Until the first of: text|regex appears, gone_text|gone_regex disappears, quiet_ms of silence, prompt, \
         command_id ends, exit; timeout_ms?, marker_id? (only what changed since). ended_by says which. Text that is \
         on the screen already counts, also the echo of what you typed: use a marker_id or a regex that only the \
         answer matches.",
    ),
    (
        "send_line",
        "Type data and press Enter: session_id, data (empty: only Enter), escapes? true (\\n \\r \\t \\xHH), \
         enter_delay_ms?. For prompts and programs; for commands use talk.",
    ),
    (
        "send_keys",
        "Keys without Enter: text?, paste?, keys? (\"Ctrl-C\", \"Down Down Enter\", or a list with {\"text\":…} and \
         {\"paste\":…} parts), mouse? {action: click|press|release|scroll_up|scroll_down, row, col (from 0) or text, \
         button?}. Sent in this order: text, paste, keys, mouse.",
    ),
    (
        "term_read",
        "The screen as text: mode? tail|viewport|delta|range|full, max_lines?, max_chars?, marker_id? (delta: what \
         changed since; max_lines:0 only sets a marker), from_line?, until_line?, merge_wrapped? true, which? main \
         (behind a full-screen program). Lines have numbers that stay.",
    ),
    (
        "screenshot",
        "A picture of the screen: format? png|svg, theme? dark|light, scale? 1-4, cursor? true; from_line?, \
         until_line?, which? for lines of the history.",
    ),
    ("read", "The newest raw output: max_bytes?, timeout_ms? (waits only while there is none), mode? viewport|tail."),
    (
        "search",
        "Lines of history and screen: pattern (a regex) or text, ignore_case?, context?, max_matches?, from_line?, \
         until_line?.",
    ),
    (
        "commands",
        "The last commands: limit?. With command_id: its output, by head?, tail?, from_line?, until_line? (counted \
         from 0 in the output), regex?, max_chars?.",
    ),
    (
        "evidence",
        "A transcript to attach to a message: command_id? (the last one) or command_ids?, screen? true, max_chars?. \
         With intervention_type?, action_taken?, result? or attach? ([{type,…}]): a pack with evidence[].",
    ),
    (
        "record",
        "An asciicast of a session in the server's folder: op start|stop|status, name?, input? (what is typed too), raw? \
         (secrets stay), max_bytes?; op save_fixture saves a folder for kpty replay --check.",
    ),
    ("resize", "Another window: session_id, cols, rows."),
    ("kill", "End a session and all in it: session_id, force? (for a leader's session)."),
    (
        "resolve",
        "Find your session again, by any of agent_id, owner_session_id, label, claude_code_session_id, cwd, \
         last_command (a part of it). One live session, or NOT_FOUND, or AMBIGUOUS with matches.",
    ),
    ("send_line_to_agent", "send_line to the one session that resolve finds: data and the keys of resolve."),
    (
        "adopt",
        "Become the owner: session_id, owner_agent_id, owner_session_id?, owner_role?, label?, \
         claude_code_session_id?, force? (from another owner).",
    ),
    ("disown", "No owner any more: session_id, owner_agent_id? (refused if it is another's), force?."),
    ("write", "Deprecated: use send_line, talk or send_keys."),
];

pub(in crate::tools) fn help(config: &Config) -> Map<String, Value> {
    let actions: Map<String, Value> = TEXTS.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect();
    let data = json!({
        "tool": "k_pty",
        "description": "Terminal sessions: run commands and get their output and exit code, drive interactive \
                        programs, read their screen as text.",
        "actions": actions,
        "leader_only": false,
        // Older callers ask whether there are terminals at all by this name.
        "pywinpty_available": true,
        "sentinel_pattern": "__KR_DONE_<8 hex>__",
        "line_endings": "Enter is a carriage return; a newline inside a talk command stays one",
        "targeted_routing": {
            "description": "Sessions carry their owner; any key finds the one session that has it, never several",
            "primary_key": "agent_id",
            "secondary_keys": ["owner_session_id", "label", "claude_code_session_id", "cwd", "last_command"],
            "workflow": "create or adopt with owner_agent_id, then resolve or send_line_to_agent with agent_id",
        },
        "term_buffer_access": {
            "description": "Whether term_read, search and rendered read may show the screen",
            "config_env": "KURORYUU_TERM_BUFFER_ACCESS",
            "modes": { "off": "Disabled", "on": "All agents (default)" },
            "current_mode": config.screen_access.as_str(),
            "read_modes": ["tail", "viewport", "delta", "range", "full"],
        },
        "parameters": "Numbers and booleans may be strings. Above a cap: clamped, see 'clamped'. Unknown names: see \
                       'ignored_params'. timeout_ms 0: do not wait. as_agent? in any action: who asks, for the record.",
        "limits": limits(config),
        "settings": SETTINGS.map(|(name, default, _)| format!("{name}={default}")),
    });
    Map::from_iter([("data".to_owned(), data), ("error".to_owned(), Value::Null)])
}

fn limits(config: &Config) -> Value {
    json!({
        "sessions": config.max_sessions,
        "dead_sessions_kept_s": config.dead_retention.as_secs(),
        "shell": config.shell,
        "cols": { "default": config.size.cols(), "cap": MAX_COLS },
        "rows": { "default": config.size.rows(), "cap": MAX_ROWS },
        "raw_bytes_kept": config.ring_bytes,
        "commands_kept": MAX_COMMANDS,
        "talk": {
            "timeout_ms": { "default": talk::millis(config.talk_timeout), "cap": talk::millis(LONGEST_TALK) },
            "max_chars": { "default": talk::MAX_CHARS, "cap": talk::MAX_CHARS_CAP },
        },
        "term_read": {
            "max_lines": { "default": term_read::MAX_LINES, "cap": term_read::MAX_LINES_CAP },
            "max_chars": { "default": term_read::MAX_CHARS, "cap": term_read::MAX_CHARS_CAP },
        },
        "wait": { "timeout_ms": { "cap": talk::millis(wait::LONGEST_SILENT_WAIT), "cap_with_progress": talk::millis(LONGEST_TALK) } },
        "search": { "max_matches": { "default": search::MAX_MATCHES, "cap": search::MAX_MATCHES_CAP } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_every_action_and_stays_a_page() {
        let help = help(&Config::default());
        let page = serde_json::to_string(&help).expect("JSON");
        assert!(page.len() <= 8 << 10, "{} bytes", page.len());
        for action in crate::tools::ACTIONS {
            assert!(help["data"]["actions"].get(action).is_some(), "{action}");
        }
    }
}
