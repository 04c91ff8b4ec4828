//! `kpty reference` and `kpty man`: reference pages made from the definitions of the command line and of the settings.
//!
//! Both are hidden: they serve packagers and the tests, which fail when the pages in `docs/src` are stale.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use clap::{Arg, Args, Command, CommandFactory as _, ValueEnum};

use super::{Arguments, Failure, Outcome, print};
use crate::config;
use crate::error::Error;

/// Options that every command with a connection has; they are described once.
const CONNECTION: [&str; 4] = ["url", "token_file", "server_user", "json"];

/// The beginning of the page, with what no definition says.
const HEAD: &str = "\
# Command line

`SESSION` is an id, the beginning of one, or a label; a name that fits several sessions is refused. Times are written `500ms`, `30s`,
`2m` or `1h`. `--json` prints a reply as one line of JSON, failures too. `kpty man DIR` writes man pages.

## Exit codes

| code | `talk` | `run`, `record` | other commands |
| --- | --- | --- | --- |
| the program's own | the command ended | the program ended; 128 and the signal's number for a signal | `attach`: the program ended |
| 0 | | | done |
| 1 | | | `search` found nothing, a `wait` timed out, `replay --check` found differences, `doctor` found a fault, no server answers `status` |
| 2 | wrong usage, no server, any other failure | the same | the same |
| 3 | no such session | | no such session |
| 4 | the session is busy | | the session is busy |
| 5 | the session's program has ended | | the session's program has ended |
| 124 | timeout | timeout | |
| 127 | | the program could not be started | |

Where a code of `talk` may be the command's own or kpty's, standard error tells: a failure of kpty prints a line there that ends with
the error code. `--json` tells by `ok`.
";

#[derive(Args)]
pub(super) struct ReferenceArguments {
    /// Page to print
    page: Page,
}

#[derive(Clone, Copy, ValueEnum)]
enum Page {
    /// docs/src/cli.md
    Cli,
    /// docs/src/settings.md
    Settings,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  kpty man ~/.local/share/man/man1")]
pub(super) struct ManArguments {
    /// Folder to write the man pages to, created when missing
    dir: PathBuf,
}

pub(super) fn reference(arguments: &ReferenceArguments) -> Result<Outcome, Failure> {
    let page = match arguments.page {
        Page::Cli => command_line(),
        Page::Settings => config::reference(),
    };
    print::text(&page)?;
    Ok(Outcome::Done)
}

pub(super) fn man(arguments: &ManArguments) -> Result<Outcome, Failure> {
    let written = fs::create_dir_all(&arguments.dir)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), &arguments.dir));
    written.map_err(|cause| Error::Usage(format!("cannot write to {}: {cause}", arguments.dir.display())))?;
    Ok(Outcome::Done)
}

/// The page of all commands, in Markdown.
fn command_line() -> String {
    let mut root = Arguments::command();
    root.build();
    let mut page = HEAD.to_owned();
    page.push_str("\n## Connection options\n\nEvery command that calls a server has these.\n\n");
    let connected = root.get_subcommands().find(|command| has_connection(command));
    write_table(&mut page, connected.into_iter().flat_map(Command::get_arguments).filter(|arg| is_connection(arg)));
    page.push_str("\n## Commands\n");
    for command in root.get_subcommands() {
        write_command(&mut page, command, "kpty");
    }
    page
}

fn is_connection(arg: &Arg) -> bool {
    CONNECTION.contains(&arg.get_id().as_str())
}

fn has_connection(command: &Command) -> bool {
    CONNECTION.iter().all(|name| command.get_arguments().any(|arg| arg.get_id() == *name))
}

/// A command and the commands in it.
fn write_command(page: &mut String, command: &Command, parent: &str) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let name = format!("{parent} {}", command.get_name());
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let _ = write!(page, "\n### `{name}`\n\n{}\n", sentence(&about));
    let usage = command.clone().render_usage().to_string();
    let _ = write!(page, "\n```text\n{}\n```\n", usage.trim_start_matches("Usage: ").trim_end());
    let has_connection = has_connection(command);
    let is_elsewhere = |arg: &Arg| {
        let is_common = ["help", "version"].contains(&arg.get_id().as_str());
        arg.is_hide_set() || is_common || (has_connection && is_connection(arg))
    };
    let own: Vec<&Arg> = command.get_arguments().filter(|arg| !is_elsewhere(arg)).collect();
    if !own.is_empty() {
        page.push('\n');
        write_table(page, own);
    }
    if has_connection {
        page.push_str("\nAlso: the [connection options](#connection-options).\n");
    }
    if let Some(notes) = command.get_after_long_help().or(command.get_after_help()) {
        let _ = write!(page, "\n```text\n{}\n```\n", notes.to_string().trim());
    }
    for inner in command.get_subcommands() {
        write_command(page, inner, &name);
    }
}

/// Arguments, one per row.
fn write_table<'a>(page: &mut String, arguments: impl IntoIterator<Item = &'a Arg>) {
    page.push_str("| argument | meaning |\n| --- | --- |\n");
    for arg in arguments {
        let _ = writeln!(page, "| {} | {} |", shown(arg).replace('|', "\\|"), meaning(arg).replace('|', "\\|"));
    }
}

/// How an argument is written.
fn shown(arg: &Arg) -> String {
    let value = || {
        let names = arg.get_value_names().unwrap_or_default();
        names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ")
    };
    if arg.is_positional() {
        return format!("`{}`", value());
    }
    let value = if arg.get_action().takes_values() { format!(" {}", value()) } else { String::new() };
    let short = arg.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    format!("{short}`--{}{value}`", arg.get_long().unwrap_or_default())
}

/// What an argument means, with its values, its default and its variable.
fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = sentence(&help.replace('\n', " "));
    let takes_values = arg.get_action().takes_values();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| takes_values && !arg.is_hide_possible_values_set() && !value.is_hide_set())
        .map(|value| match value.get_help() {
            Some(help) => format!("`{}` ({help})", value.get_name()),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if !values.is_empty() {
        let _ = write!(text, " Values: {}.", values.join(", "));
    }
    if takes_values && let Some(default) = arg.get_default_values().first() {
        let _ = write!(text, " Default: `{}`.", default.to_string_lossy());
    }
    if let Some(variable) = arg.get_env() {
        let _ = write!(text, " Environment: `{}`.", variable.to_string_lossy());
    }
    text
}

/// Help texts leave out the last full stop.
fn sentence(text: &str) -> String {
    let text = text.trim();
    match text.ends_with(['.', '!', '?']) || text.is_empty() {
        true => text.to_owned(),
        false => format!("{text}."),
    }
}
