//! The table of settings, and the lookup of a variable by its name or its older alias.
//!
//! The table is the only place that knows both names. `docs/src/settings.md` and the action `help` are made from it. A
//! variable that is set to nothing counts as not set; where both names are set, the `KPTY_*` name applies.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;

use super::{DEFAULT_PATH, DEFAULT_SHELL};

/// A variable of the environment that kpty reads.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The documented name.
    pub name: &'static str,
    /// The older name, which is still read.
    pub alias: Option<&'static str>,
    /// The value without the variable, for people.
    pub default: &'static str,
    /// Accepted values, for people.
    pub values: &'static str,
    /// What it sets.
    pub meaning: &'static str,
}

/// A row of the table.
const fn row(
    name: &'static str,
    alias: &'static str,
    default: &'static str,
    values: &'static str,
    meaning: &'static str,
) -> Setting {
    let alias = if alias.is_empty() { None } else { Some(alias) };
    Setting { name, alias, default, values, meaning }
}

/// The server that the command line calls by default.
pub const DEFAULT_URL: &str = "http://127.0.0.1:8100";
/// The variable that names another one.
pub const URL_VARIABLE: &str = "KPTY_URL";

/// All variables, in the order of the reference.
#[rustfmt::skip]
pub const SETTINGS: [Setting; 33] = [
    row("KPTY_SHELL", "KURORYUU_PTY_SHELL", DEFAULT_SHELL, "a program, by path or by name in `PATH`", "program of a new session"),
    row("KPTY_COLS", "KURORYUU_PTY_COLS", "120", "1 to 2000", "width of a new session"),
    row("KPTY_ROWS", "KURORYUU_PTY_ROWS", "30", "1 to 1000", "height of a new session"),
    row("KPTY_BUFFER_SIZE", "KURORYUU_PTY_BUFFER_SIZE", "102400", "1024 to 67108864", "bytes of raw output kept for each session"),
    row("KPTY_TIMEOUT_MS", "KURORYUU_PTY_TIMEOUT_MS", "30000", "1 to 3600000", "timeout of `talk` when the call gives none"),
    row("KPTY_TERM_BUFFER_ACCESS", "KURORYUU_TERM_BUFFER_ACCESS", "on", "`on`, `off`", "`off` forbids reading screens"),
    row("KPTY_TOOLS", "", "auto", "`auto`, `term`, `k_pty`, `all`", "tools that clients are shown; `auto`: `term_*` to clients that speak MCP, `k_pty` to plain ones"),
    row("KPTY_PROJECT_ROOT", "KURORYUU_PROJECT_ROOT", "current folder", "a folder", "directory of a new session; if set, the state folder is below it"),
    row("KPTY_HOST", "KURORYUU_MCP_HOST", "127.0.0.1", "an address", "address to listen on"),
    row("KPTY_PORT", "KURORYUU_MCP_PORT", "8100", "0 to 65535; 0 takes a free port", "port to listen on"),
    row("KPTY_MCP_PATH", "KURORYUU_MCP_PATH", DEFAULT_PATH, "a path that no other route has", "path of MCP"),
    row(URL_VARIABLE, "KURORYUU_MCP_URL", DEFAULT_URL, "a URL", "server that the command line calls"),
    row("KPTY_TOKEN_FILE", "", "none", "a file with mode 0600", "as `--token-file`, for the server and the command line"),
    row("KPTY_SERVER_USER", "", "none", "a user id", "as `--server-user`: another user whose server the command line may send the token"),
    row("KPTY_MAX_SESSIONS", "", "1000", "1 to 100000", "live sessions at most"),
    row("KPTY_MEMORY_LIMIT", "", "a quarter", "a size such as `512M`", "memory of all sessions together; by default a quarter of the machine's"),
    row("KPTY_SPAWNS_AT_ONCE", "", "4", "1 to 64", "programs started at the same time"),
    row("KPTY_KEEP_DEAD_S", "", "600", "0 to 86400", "seconds that a dead session stays readable"),
    row("KPTY_GUARD_RULES", "", "none", "a TOML file", "your own rules of the command policy"),
    row("KPTY_GUARD_DOWNLOADS", "", "no", "`yes`, `no`", "`yes` also refuses to run downloads unread, and reverse shells"),
    row("KPTY_REDACT", "", "on", "`on`, `off`", "`off` shows secrets as they are"),
    row("KPTY_TRAFFIC_HOURS", "", "24", "1 to 8760", "hours that actions stay recorded"),
    row("KPTY_TRAFFIC_ROWS", "", "10000", "1 to 1000000", "recorded actions at most"),
    row("KPTY_GATEWAY_URL", "KURORYUU_GATEWAY_URL", "none", "a URL", "gateway that receives each action and is asked who leads"),
    row("KPTY_DESKTOP_URL", "KURORYUU_DESKTOP_URL", "none", "a URL", "bridge of the desktop app; by default the bridge port of this machine"),
    row("KPTY_BRIDGE_PORT", "KURORYUU_PTY_BRIDGE_PORT", "8201", "1 to 65535", "port of that bridge; if set, this server is a bridge there or at the next free port, too"),
    row("KPTY_AGENT_ID", "KURORYUU_AGENT_ID", "none", "a name", "agent that the server was started for"),
    row("KPTY_SESSION_ID", "KURORYUU_SESSION_ID", "none", "a name", "session of that agent"),
    row("KPTY_CLI_TYPE", "KURORYUU_CLI_TYPE", "none", "a name", "kind of program that the agent is"),
    row("KPTY_IS_LEADER", "KURORYUU_IS_LEADER", "no", "`1`, `true`, `yes`, `0`, `false`, `no`", "whether the agent leads"),
    row("KPTY_AGENT_ROLE", "KURORYUU_AGENT_ROLE", "none", "`leader`; other roles are ignored", "`leader`: the agent leads"),
    row("KPTY_INTERNAL_SECRET", "KURORYUU_INTERNAL_SECRET", "none", "a secret", "lets other services change owners"),
    row("RUST_LOG", "", "warn", "a filter such as `info`", "what is logged to standard error"),
];

/// The value of a variable, and the name under which it was found.
pub fn lookup<'a>(vars: &'a [(OsString, OsString)], name: &'static str) -> Option<(&'static str, &'a OsStr)> {
    let alias = SETTINGS.iter().find(|setting| setting.name == name).and_then(|setting| setting.alias);
    let value = |name: &'static str| {
        let (_, value) = vars.iter().find(|(other, value)| other == name && !value.is_empty())?;
        Some((name, value.as_os_str()))
    };
    value(name).or_else(|| value(alias?))
}

/// The server that the command line calls when `--url` and `KPTY_URL` are absent.
pub fn default_url() -> String {
    let vars: Vec<_> = std::env::vars_os().collect();
    let named = lookup(&vars, URL_VARIABLE).and_then(|(_, url)| url.to_str());
    named.unwrap_or(DEFAULT_URL).to_owned()
}

/// The page of the reference, in Markdown.
pub fn reference() -> String {
    let mut page = String::from(
        "# Settings\n\n\
         The server reads these variables from its environment when it starts. An invalid value aborts startup, and all invalid \
         values are\nnamed at once. A variable that is set to nothing counts as not set. Options of the [command line](cli.md) \
         take precedence.\n\n\
         | variable | default | values | meaning |\n| --- | --- | --- | --- |\n",
    );
    for Setting { name, default, values, meaning, .. } in SETTINGS {
        let default = match name {
            // It depends on the platform.
            "KPTY_SHELL" => "`/bin/bash` (`powershell.exe` on Windows)".to_owned(),
            _ if default.contains(' ') || default == "none" => default.to_owned(),
            _ => format!("`{default}`"),
        };
        let _ = writeln!(page, "| `{name}` | {default} | {values} | {meaning} |");
    }
    page.push_str(
        "\n## Aliases\n\nEvery older name is still read. Where both are set, the `KPTY_*` name applies.\n\n\
         | variable | alias |\n| --- | --- |\n",
    );
    for (name, alias) in SETTINGS.iter().filter_map(|setting| Some((setting.name, setting.alias?))) {
        let _ = writeln!(page, "| `{name}` | `{alias}` |");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(vars: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        vars.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    #[test]
    fn both_names_are_read_and_the_documented_one_applies() {
        for (set, expected) in [
            (&[("KPTY_COLS", "80")][..], Some(("KPTY_COLS", "80"))),
            (&[("KURORYUU_PTY_COLS", "90")], Some(("KURORYUU_PTY_COLS", "90"))),
            (&[("KURORYUU_PTY_COLS", "90"), ("KPTY_COLS", "80")], Some(("KPTY_COLS", "80"))),
            (&[("KPTY_COLS", ""), ("KURORYUU_PTY_COLS", "90")], Some(("KURORYUU_PTY_COLS", "90"))),
            (&[("KPTY_COLS", "")], None),
            (&[], None),
        ] {
            let vars = vars(set);
            let found = lookup(&vars, "KPTY_COLS").map(|(name, value)| (name, value.to_str().expect("UTF-8")));
            assert_eq!(found, expected, "{set:?}");
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = SETTINGS.iter().flat_map(|s| std::iter::once(s.name).chain(s.alias)).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
