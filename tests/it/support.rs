//! Running the built `kpty`, and files to run it on.

pub(crate) mod desktop;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// How a run of `kpty` ended.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Variables of the caller that would change how a shell starts, besides those of kpty itself.
const SHELL_VARIABLES: [&str; 8] =
    ["ZDOTDIR", "BASH_ENV", "ENV", "INPUTRC", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"];

/// The program under test: the one that was built with the tests, or that of `KPTY_TEST_PROGRAM`, an optimised build for
/// tests that measure.
#[expect(clippy::disallowed_methods, reason = "a setting of the tests, not of the program")]
fn program() -> OsString {
    std::env::var_os("KPTY_TEST_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_kpty").into())
}

/// Returns the command, not started: with an empty home and without settings of the caller.
pub(crate) fn command<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(program());
    let is_setting = |name: &str| name.starts_with("KPTY_") || name.starts_with("KURORYUU_");
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| is_setting(name) || SHELL_VARIABLES.contains(&name.as_str())) {
        command.env_remove(name);
    }
    command.env("HOME", empty_home()).args(arguments);
    command
}

/// A home that all tests share; nothing is written there but what shells keep for themselves.
fn empty_home() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("home");
    // Without it, fish reads all manual pages when it is started for the first time, for minutes.
    fs::create_dir_all(home.join(".local/share/fish/generated_completions")).expect("a folder for tests");
    home
}

/// Runs `kpty` to its end. A panic of the program fails the test in any case.
pub(crate) fn kpty<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    finished(command(arguments).output().expect("kpty starts"))
}

/// The end of a run that has been waited for.
pub(crate) fn finished(output: Output) -> Run {
    let text = |bytes| String::from_utf8(bytes).expect("kpty writes UTF-8");
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(!stderr.contains("panicked"), "{stderr}");
    Run { code: output.status.code().expect("kpty is not ended by a signal"), stdout, stderr }
}

/// Runs a command that must succeed without messages. Returns its output.
pub(crate) fn shown<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> String {
    let run = kpty(arguments);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{}", run.stdout);
    run.stdout
}

/// Runs what must be refused: exit code 2, nothing on standard output. Returns the first line of the message; what
/// follows it may only be advice.
pub(crate) fn refused<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> String {
    let run = kpty(arguments);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
    run.stderr.lines().next().expect("a refusal has a message").to_owned()
}

/// A folder with files, gone when dropped.
pub(crate) struct Folder(TempDir);

impl Folder {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file. Returns its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, content).expect("a writable temporary folder");
        path
    }

    /// Reads a file back.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).expect("a file that the test or kpty wrote")
    }
}

/// Arguments of `kpty replay FILE …`, the rest split at blanks.
pub(crate) fn replay(file: &Path, rest: &str) -> Vec<PathBuf> {
    let mut arguments = vec![PathBuf::from("replay"), file.to_owned()];
    arguments.extend(rest.split_whitespace().map(PathBuf::from));
    arguments
}

/// The folder that holds the workspace's `Cargo.toml`.
pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
