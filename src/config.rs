//! Settings: what the environment says, read once. Nothing else reads it.
//!
//! An invalid value aborts startup, and all invalid values are named at once. `settings` has the table of variables.

mod choices;
mod memory;
mod places;
mod settings;
mod state_folder;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use kpty_emulator::{MAX_COLS, MAX_ROWS, Size};

pub use choices::{ScreenAccess, ToolSet};
pub use places::private_folder;
pub use settings::{DEFAULT_URL, SETTINGS, Setting, URL_VARIABLE, default_url, lookup, reference};

use crate::error::{Error, Result};
use crate::model::Role;
use kpty_guard::{Policy, UserRules};

/// The longest a `talk` waits for its command.
pub const LONGEST_TALK: Duration = Duration::from_secs(3_600);
/// Program of a new session by default.
const DEFAULT_SHELL: &str = if cfg!(windows) { "powershell.exe" } else { "/bin/bash" };
/// Range of the raw output kept for each session, in bytes.
const RING_BYTES: RangeInclusive<u64> = 1_024..=64 << 20;
/// More spawns at once than cores only queue up in the kernel.
const SPAWNS_AT_ONCE: u64 = 4;

/// Address to listen on by default.
const DEFAULT_HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Port to listen on by default.
const DEFAULT_PORT: u16 = 8100;
/// Path of MCP by default.
const DEFAULT_PATH: &str = "/mcp";
/// Port of the desktop app's bridge by default.
const BRIDGE_PORT: u16 = 8201;
/// Paths of other routes.
const TAKEN_PATHS: [&str; 9] = ["/", "/health", "/tools", "/openapi.json", "/v1", "/pty", "/_x9k", "/ws", "/ui"];

/// Words that mean yes, and words that mean no.
const YES_AND_NO: [(&str, bool); 6] =
    [("1", true), ("true", true), ("yes", true), ("0", false), ("false", false), ("no", false)];

/// A text that is compared and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text from being shown.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, to compare it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Which agent this server was started for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `KPTY_AGENT_ID`: the agent.
    pub agent_id: Option<String>,
    /// `KPTY_SESSION_ID`: its own session.
    pub session_id: Option<String>,
    /// `KPTY_CLI_TYPE`: the kind of program that it is.
    pub cli_type: Option<String>,
    /// `KPTY_IS_LEADER`: it leads.
    pub is_leader: bool,
    /// `KPTY_AGENT_ROLE`: `leader` says the same; other words are roles that we do not know.
    pub role: Option<Role>,
}

/// All settings, each with its documented default.
#[derive(Clone, Debug)]
pub struct Config {
    /// `KPTY_SHELL`: the program of a new session.
    pub shell: String,
    /// `KPTY_COLS`, `KPTY_ROWS`: its window.
    pub size: Size,
    /// `KPTY_BUFFER_SIZE`: bytes of raw output that are kept for each session.
    pub ring_bytes: usize,
    /// `KPTY_TIMEOUT_MS`: default timeout of `talk`.
    pub talk_timeout: Duration,
    /// `KPTY_TERM_BUFFER_ACCESS`: `off` forbids reading screens.
    pub screen_access: ScreenAccess,
    /// `KPTY_TOOLS`: which tools clients are shown.
    pub tools: ToolSet,
    /// `KPTY_PROJECT_ROOT`: where a new session starts.
    pub project_root: PathBuf,
    /// `KPTY_MAX_SESSIONS`: live sessions at most.
    pub max_sessions: usize,
    /// `KPTY_MEMORY_LIMIT`: bytes that all sessions together may hold.
    pub memory_limit: usize,
    /// `KPTY_SPAWNS_AT_ONCE`: programs that are started at the same time.
    pub spawns_at_once: usize,
    /// `KPTY_KEEP_DEAD_S`: how long a dead session stays readable.
    pub dead_retention: Duration,
    /// `KPTY_GUARD_RULES`, `KPTY_GUARD_DOWNLOADS`: what may be typed.
    pub policy: Policy,
    /// `KPTY_REDACT`: secrets are masked wherever text leaves a session.
    pub redact: bool,
    /// `KPTY_TRAFFIC_HOURS`: how long actions stay recorded.
    pub traffic_age: Duration,
    /// `KPTY_TRAFFIC_ROWS`: recorded actions at most.
    pub traffic_rows: u64,
    /// `KPTY_HOST`: the address to listen on.
    pub host: IpAddr,
    /// `KPTY_PORT`: the port to listen on.
    pub port: u16,
    /// `KPTY_MCP_PATH`: where MCP is spoken.
    pub mcp_path: String,
    /// `KPTY_GATEWAY_URL`: where traffic events are sent.
    pub gateway_url: Option<String>,
    /// `KPTY_DESKTOP_URL`, else the port `KPTY_BRIDGE_PORT` of this machine: the bridge of the desktop app.
    pub desktop_url: String,
    /// `KPTY_BRIDGE_PORT`, where it is set: the port, or the next free one, where this server is a bridge too.
    pub bridge_port: Option<u16>,
    /// Whom this server was started for.
    pub identity: Identity,
    /// `KPTY_INTERNAL_SECRET`: lets other services change owners.
    pub internal_secret: Option<Secret>,
    /// Hosts besides loopback where the bridge of a desktop may be.
    pub allow_bridge: Vec<String>,
    /// The environment that sessions inherit.
    pub inherited: Vec<(OsString, OsString)>,
}

impl Default for Config {
    /// The documented values and this process's environment for the children.
    fn default() -> Self {
        Self {
            shell: DEFAULT_SHELL.to_owned(),
            size: Size::default(),
            ring_bytes: 102_400,
            talk_timeout: Duration::from_secs(30),
            screen_access: ScreenAccess::On,
            tools: ToolSet::Auto,
            project_root: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            max_sessions: 1_000,
            memory_limit: memory::default_limit(),
            spawns_at_once: SPAWNS_AT_ONCE as usize,
            dead_retention: Duration::from_secs(600),
            policy: Policy::default(),
            redact: true,
            traffic_age: Duration::from_secs(24 * 3_600),
            traffic_rows: 10_000,
            host: DEFAULT_HOST,
            port: DEFAULT_PORT,
            mcp_path: DEFAULT_PATH.to_owned(),
            gateway_url: None,
            desktop_url: local_url(BRIDGE_PORT),
            bridge_port: None,
            identity: Identity::default(),
            internal_secret: None,
            allow_bridge: Vec::new(),
            inherited: std::env::vars_os().collect(),
        }
    }
}

/// Where a server keeps its state by default, from the environment of this process.
pub fn default_state_dir() -> Option<PathBuf> {
    let vars: Vec<_> = std::env::vars_os().collect();
    state_folder::choose(|name| lookup(&vars, name).map(|(_, value)| value.to_owned()))
}

/// Whoever runs this process wants no colours, as the convention named `NO_COLOR` has it.
pub fn wants_no_color() -> bool {
    std::env::vars_os().any(|(name, value)| name == "NO_COLOR" && !value.is_empty())
}

/// Whether there is a screen to open windows on; everywhere but on Linux and its like there is.
pub fn has_windows() -> bool {
    let is_display = |name: &OsStr| name == "DISPLAY" || name == "WAYLAND_DISPLAY";
    let has_display = || std::env::vars_os().any(|(name, value)| is_display(&name) && !value.is_empty());
    cfg!(any(windows, target_os = "macos")) || has_display()
}

/// The name of the user of this process, for people; nobody checks it.
pub fn user_name() -> Option<String> {
    let is_name = |name: &OsStr| ["USER", "LOGNAME", "USERNAME"].iter().any(|known| name == *known);
    let mut named = std::env::vars_os().filter(|(name, value)| is_name(name) && !value.is_empty());
    named.find_map(|(_, value)| value.into_string().ok())
}

impl Config {
    /// Reads the environment of this process.
    pub fn from_env() -> Result<Self> {
        Self::from_vars(std::env::vars_os().collect())
    }

    /// Reads these variables.
    pub fn from_vars(vars: Vec<(OsString, OsString)>) -> Result<Self> {
        let default = Self::default();
        let mut reader = Reader { vars: &vars, problems: Vec::new() };
        let cols = reader.number("KPTY_COLS", 1..=u64::from(MAX_COLS), 120) as u16;
        let rows = reader.number("KPTY_ROWS", 1..=u64::from(MAX_ROWS), 30) as u16;
        let has_bridge = reader.value("KPTY_BRIDGE_PORT").is_some();
        let bridge_port = reader.number("KPTY_BRIDGE_PORT", 1..=65_535, u64::from(BRIDGE_PORT)) as u16;
        let longest_ms = LONGEST_TALK.as_millis() as u64;
        let config = Self {
            shell: reader.program("KPTY_SHELL").unwrap_or(default.shell),
            size: Size::new(cols, rows)?,
            ring_bytes: reader.number("KPTY_BUFFER_SIZE", RING_BYTES, 102_400) as usize,
            talk_timeout: Duration::from_millis(reader.number("KPTY_TIMEOUT_MS", 1..=longest_ms, 30_000)),
            screen_access: match reader.text("KPTY_TERM_BUFFER_ACCESS") {
                Some(word) if word.eq_ignore_ascii_case("off") => ScreenAccess::Off,
                _ => ScreenAccess::On,
            },
            tools: reader.parsed("KPTY_TOOLS", "auto, term, k_pty or all").unwrap_or_default(),
            project_root: reader.folder("KPTY_PROJECT_ROOT").unwrap_or(default.project_root),
            max_sessions: reader.number("KPTY_MAX_SESSIONS", 1..=100_000, 1_000) as usize,
            memory_limit: reader.size("KPTY_MEMORY_LIMIT", default.memory_limit),
            spawns_at_once: reader.number("KPTY_SPAWNS_AT_ONCE", 1..=64, SPAWNS_AT_ONCE) as usize,
            dead_retention: Duration::from_secs(reader.number("KPTY_KEEP_DEAD_S", 0..=86_400, 600)),
            policy: reader.policy(),
            redact: reader.switch("KPTY_REDACT", true),
            traffic_age: Duration::from_secs(3_600 * reader.number("KPTY_TRAFFIC_HOURS", 1..=8_760, 24)),
            traffic_rows: reader.number("KPTY_TRAFFIC_ROWS", 1..=1_000_000, 10_000),
            host: reader.parsed("KPTY_HOST", "an address such as 127.0.0.1").unwrap_or(default.host),
            port: reader.number("KPTY_PORT", 0..=65_535, u64::from(DEFAULT_PORT)) as u16,
            mcp_path: reader.path("KPTY_MCP_PATH").unwrap_or(default.mcp_path),
            gateway_url: reader.url("KPTY_GATEWAY_URL"),
            desktop_url: reader.url("KPTY_DESKTOP_URL").unwrap_or(local_url(bridge_port)),
            bridge_port: has_bridge.then_some(bridge_port),
            identity: Identity {
                agent_id: reader.text("KPTY_AGENT_ID").map(str::to_owned),
                session_id: reader.text("KPTY_SESSION_ID").map(str::to_owned),
                cli_type: reader.text("KPTY_CLI_TYPE").map(str::to_owned),
                is_leader: reader.flag("KPTY_IS_LEADER"),
                role: reader.text("KPTY_AGENT_ROLE").and_then(|role| Role::from_name(&role.to_lowercase())),
            },
            internal_secret: reader.text("KPTY_INTERNAL_SECRET").map(Secret::new),
            allow_bridge: Vec::new(),
            inherited: Vec::new(),
        };
        match reader.problems.is_empty() {
            true => Ok(Self { inherited: vars, ..config }),
            false => Err(Error::Usage(format!("Invalid settings: {}", reader.problems.join("; ")))),
        }
    }
}

/// A port of this machine.
fn local_url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// Reads variables and notes what is wrong with them.
struct Reader<'a> {
    vars: &'a [(OsString, OsString)],
    problems: Vec<String>,
}

impl<'a> Reader<'a> {
    fn value(&self, name: &'static str) -> Option<&'a OsStr> {
        lookup(self.vars, name).map(|(_, value)| value)
    }

    fn text(&mut self, name: &'static str) -> Option<&'a str> {
        self.named_text(name).map(|(_, text)| text)
    }

    /// The trimmed value, with the name of the variable that was set: the one that a message has to name.
    fn named_text(&mut self, name: &'static str) -> Option<(&'static str, &'a str)> {
        let (name, value) = lookup(self.vars, name)?;
        let text = value.to_str().map(str::trim);
        if text.is_none() {
            self.problems.push(format!("{name} is not UTF-8"));
        }
        Some((name, text.filter(|text| !text.is_empty())?))
    }

    fn number(&mut self, name: &'static str, range: RangeInclusive<u64>, default: u64) -> u64 {
        let Some((name, text)) = self.named_text(name) else { return default };
        match text.parse() {
            Ok(number) if range.contains(&number) => number,
            _ => {
                let (least, most) = range.into_inner();
                self.problems.push(format!("{name}={text:?} is not a number from {least} to {most}"));
                default
            }
        }
    }

    /// Yes or no; no by default.
    fn flag(&mut self, name: &'static str) -> bool {
        let Some((name, text)) = self.named_text(name) else { return false };
        let word = YES_AND_NO.iter().find(|(word, _)| text.eq_ignore_ascii_case(word));
        if word.is_none() {
            self.problems.push(format!("{name}={text:?} is not 1, true, yes, 0, false or no"));
        }
        word.is_some_and(|(_, meaning)| *meaning)
    }

    /// The command policy: the table, with the rules of a file.
    fn policy(&mut self) -> Policy {
        const FILE: &str = "KPTY_GUARD_RULES";
        const LARGEST_BYTES: u64 = 1 << 20;
        let downloads = self.flag("KPTY_GUARD_DOWNLOADS");
        let rules = match self.value(FILE).map(PathBuf::from) {
            None => Ok(UserRules::default()),
            Some(path) => {
                let is_large = std::fs::metadata(&path).is_ok_and(|file| file.len() > LARGEST_BYTES);
                let text = if is_large {
                    Err("it is too large".to_owned())
                } else {
                    std::fs::read_to_string(&path).map_err(|e| e.to_string())
                };
                text.and_then(|text| UserRules::parse(&text))
                    .map_err(|problem| format!("{FILE}: {}: {problem}", path.display()))
            }
        };
        let rules = rules.unwrap_or_else(|problem| {
            self.problems.push(problem);
            UserRules::default()
        });
        Policy::new(rules.with_downloads(downloads))
    }

    /// On or off; any other word is a problem.
    fn switch(&mut self, name: &'static str, default: bool) -> bool {
        match self.named_text(name) {
            None => default,
            Some((_, word)) if word.eq_ignore_ascii_case("on") => true,
            Some((_, word)) if word.eq_ignore_ascii_case("off") => false,
            Some((name, word)) => {
                self.problems.push(format!("{name}={word:?} is not on or off"));
                default
            }
        }
    }

    /// A value that is parsed from text.
    fn parsed<T: FromStr>(&mut self, name: &'static str, kind: &str) -> Option<T> {
        let (name, text) = self.named_text(name)?;
        let value = text.parse().ok();
        if value.is_none() {
            self.problems.push(format!("{name}={text:?} is not {kind}"));
        }
        value
    }

    /// A path for MCP that no other route has.
    fn path(&mut self, name: &'static str) -> Option<String> {
        let (name, text) = self.named_text(name)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/_-.".contains(&byte);
        let is_taken = TAKEN_PATHS.iter().any(|taken| text == *taken || (taken.len() > 3 && text.starts_with(taken)))
            || text.starts_with("/v1/");
        if text.starts_with('/') && !text.contains("//") && text.bytes().all(is_plain) && !is_taken {
            return Some(text.trim_end_matches('/').to_owned());
        }
        self.problems.push(format!("{name}={text:?} is not a free path such as /mcp"));
        None
    }

    /// The address of a service; the caller decides whether it may be called.
    fn url(&mut self, name: &'static str) -> Option<String> {
        let (name, text) = self.named_text(name)?;
        let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        if rest.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Some(text.trim_end_matches('/').to_owned());
        }
        self.problems.push(format!("{name}={text:?} is not a URL such as http://127.0.0.1:8200"));
        None
    }

    /// A program that exists: by its path, or by a name in `PATH`.
    fn program(&mut self, name: &'static str) -> Option<String> {
        let (name, text) = self.named_text(name)?;
        let is_there = match Path::new(text).components().count() {
            1 => {
                let search = self.value("PATH").unwrap_or_default();
                let file = format!("{text}{}", std::env::consts::EXE_SUFFIX);
                std::env::split_paths(search).any(|folder| [text, &file].iter().any(|name| folder.join(name).is_file()))
            }
            _ => Path::new(text).is_file(),
        };
        if !is_there {
            self.problems.push(format!("{name}={text:?} is not a program of this machine"));
        }
        Some(text.to_owned())
    }

    fn folder(&mut self, name: &'static str) -> Option<PathBuf> {
        let (name, value) = lookup(self.vars, name)?;
        let path = PathBuf::from(value);
        match std::path::absolute(&path).ok().filter(|path| path.is_dir()) {
            Some(path) => Some(path),
            None => {
                self.problems.push(format!("{name}={:?} is not a folder", path.display().to_string()));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(vars: &[(&str, &str)]) -> Result<Config> {
        Config::from_vars(vars.iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    #[test]
    fn nothing_said_gives_the_documented_values() {
        let config = config(&[("KURORYUU_PTY_COLS", "")]).expect("the defaults");
        assert_eq!((config.size.cols(), config.size.rows()), (120, 30));
        assert_eq!((config.ring_bytes, config.max_sessions), (102_400, 1_000));
        assert_eq!(config.talk_timeout, Duration::from_secs(30));
        assert_eq!(config.dead_retention, Duration::from_secs(600));
        assert_eq!(config.screen_access, ScreenAccess::On);
        assert_eq!(config.inherited.len(), 1);
        let default = Config::default();
        assert_eq!((default.size, &default.shell), (config.size, &config.shell));
        assert_eq!(default.spawns_at_once, config.spawns_at_once);
    }

    #[test]
    fn values_are_taken() {
        let config = config(&[
            ("KURORYUU_PTY_SHELL", "/bin/sh"),
            ("KURORYUU_PTY_COLS", "80"),
            ("KURORYUU_PTY_ROWS", " 24 "),
            ("KURORYUU_PTY_TIMEOUT_MS", "500"),
            ("KPTY_KEEP_DEAD_S", "0"),
        ]);
        let config = config.expect("good values");
        assert_eq!((config.shell.as_str(), config.size.cols(), config.size.rows()), ("/bin/sh", 80, 24));
        assert_eq!((config.talk_timeout, config.dead_retention), (Duration::from_millis(500), Duration::ZERO));
    }

    #[test]
    fn it_is_known_whom_the_server_is_for() {
        let config = config(&[
            ("KURORYUU_AGENT_ID", "a1"),
            ("KURORYUU_SESSION_ID", "s1"),
            ("KURORYUU_CLI_TYPE", "claude"),
            ("KURORYUU_IS_LEADER", "Yes"),
            ("KURORYUU_AGENT_ROLE", "Leader"),
            ("KURORYUU_INTERNAL_SECRET", "hush"),
        ]);
        let config = config.expect("good values");
        let identity = &config.identity;
        assert_eq!((identity.agent_id.as_deref(), identity.session_id.as_deref()), (Some("a1"), Some("s1")));
        assert_eq!((identity.cli_type.as_deref(), identity.is_leader), (Some("claude"), true));
        assert_eq!(identity.role, Some(Role::Leader));
        assert_eq!(config.internal_secret.as_ref().map(Secret::reveal), Some("hush"));
        assert!(!format!("{:?}", config.internal_secret).contains("hush"));
        let other = self::config(&[("KURORYUU_IS_LEADER", "0"), ("KURORYUU_AGENT_ROLE", "thinker")]);
        assert_eq!(other.expect("a role that we do not know").identity, Identity::default());
        self::config(&[("KURORYUU_IS_LEADER", "perhaps")]).expect_err("a word that we do not know");
    }

    #[test]
    fn addresses_are_taken_or_named() {
        let good = config(&[
            ("KURORYUU_MCP_HOST", "::1"),
            ("KURORYUU_MCP_PORT", "0"),
            ("KURORYUU_MCP_PATH", "/tools-for-agents/mcp/"),
            ("KURORYUU_GATEWAY_URL", "http://127.0.0.1:8200/"),
            ("KURORYUU_PTY_BRIDGE_PORT", "8301"),
        ]);
        let good = good.expect_err("a path that begins like a taken one").to_string();
        assert!(good.contains("KURORYUU_MCP_PATH") && !good.contains("PORT"), "{good}");
        let good = config(&[
            ("KURORYUU_MCP_HOST", "::1"),
            ("KURORYUU_MCP_PATH", "/agents/mcp/"),
            ("KURORYUU_GATEWAY_URL", "http://127.0.0.1:8200/"),
            ("KURORYUU_PTY_BRIDGE_PORT", "8301"),
        ]);
        let good = good.expect("good values");
        assert_eq!(
            (good.host, good.port, good.mcp_path.as_str()),
            ("::1".parse().expect("an address"), 8100, "/agents/mcp")
        );
        assert_eq!(good.gateway_url.as_deref(), Some("http://127.0.0.1:8200"));
        assert_eq!((good.desktop_url.as_str(), good.bridge_port), ("http://127.0.0.1:8301", Some(8301)));
        for (name, value) in [
            ("KURORYUU_MCP_HOST", "localhost"),
            ("KURORYUU_MCP_PORT", "65536"),
            ("KURORYUU_MCP_PATH", "mcp"),
            ("KURORYUU_MCP_PATH", "/"),
            ("KURORYUU_MCP_PATH", "/v1/pty/sessions"),
            ("KURORYUU_MCP_PATH", "/a{b}"),
            ("KURORYUU_GATEWAY_URL", "ftp://x"),
            ("KURORYUU_DESKTOP_URL", "127.0.0.1:8201"),
            ("KURORYUU_PTY_BRIDGE_PORT", "0"),
        ] {
            let message = config(&[(name, value)]).expect_err("a bad value").to_string();
            assert!(message.contains(name), "{name}={value}: {message}");
        }
    }

    #[test]
    fn only_off_forbids_reading() {
        for (word, access) in [
            ("off", ScreenAccess::Off),
            ("OFF", ScreenAccess::Off),
            (" off ", ScreenAccess::Off),
            ("on", ScreenAccess::On),
            ("all", ScreenAccess::On),
            ("leader_only", ScreenAccess::On),
        ] {
            assert_eq!(
                config(&[("KURORYUU_TERM_BUFFER_ACCESS", word)]).expect("a word").screen_access,
                access,
                "{word}"
            );
        }
    }

    #[test]
    fn a_shell_has_to_be_there() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("mysh"), "").expect("a file");
        let search = folder.path().to_str().expect("UTF-8");
        for (shell, is_there) in [("mysh", true), ("yoursh", false), (search, false)] {
            assert_eq!(config(&[("KURORYUU_PTY_SHELL", shell), ("PATH", search)]).is_ok(), is_there, "{shell}");
        }
    }

    #[test]
    fn all_bad_values_are_named_at_once() {
        let error = config(&[
            ("KURORYUU_PTY_COLS", "0"),
            ("KURORYUU_PTY_ROWS", "many"),
            ("KURORYUU_PTY_BUFFER_SIZE", "-1"),
            ("KURORYUU_PTY_TIMEOUT_MS", "1e3"),
            ("KURORYUU_PROJECT_ROOT", "no such folder"),
            ("KPTY_MAX_SESSIONS", "0"),
            ("KURORYUU_PTY_SHELL", "/no/such/shell"),
        ]);
        let message = error.expect_err("bad values").to_string();
        for name in ["PTY_SHELL", "PTY_COLS", "PTY_ROWS", "BUFFER_SIZE", "TIMEOUT_MS", "PROJECT_ROOT", "MAX_SESSIONS"] {
            assert!(message.contains(name), "{name}: {message}");
        }
    }
}
