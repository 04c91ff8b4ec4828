//! `kpty read`, `search`, `commands`: what a session shows and showed.

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::client::{Answer, Connection, text};
use super::remote::{EXIT_CODES, Remote};
use super::{EXIT_DONE, EXIT_NOTHING, Failure, Outcome, print};

/// As many lines as the server puts into one answer.
const PAGE_LINES: u64 = 200;
/// As many characters.
const PAGE_CHARS: u64 = 50_000;
/// As many characters as the server gives of a command's output.
const OUTPUT_CHARS: u64 = 200_000;

#[derive(Args)]
#[command(after_help = format!("\
Prints text as a person would see it. With --mode delta, standard error names the marker for the next call.

{EXIT_CODES}

Examples:
  kpty read web                                  the last 40 lines
  kpty read editor --mode viewport               the visible screen
  kpty read build --mode delta --marker 7        what changed since marker 7"))]
pub(super) struct ReadArguments {
    /// Id, beginning of the id, or label
    session: String,

    /// Part to print
    #[arg(long, value_enum, default_value = "tail")]
    mode: ModeName,

    /// Number of newest lines, at most 200; --mode full prints all
    #[arg(long, value_name = "N")]
    lines: Option<u64>,

    /// With --mode delta: marker of an earlier reply
    #[arg(long, value_name = "ID")]
    marker: Option<u64>,

    /// Print soft-wrapped rows separately instead of joined
    #[arg(long)]
    no_merge: bool,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModeName {
    /// The last lines
    Tail,
    /// The visible screen
    Viewport,
    /// What changed since a marker
    Delta,
    /// All lines that are kept
    Full,
}

impl ModeName {
    /// The server's word for it: everything is a range from the first line on.
    fn as_str(self) -> &'static str {
        match self {
            Self::Tail => "tail",
            Self::Viewport => "viewport",
            Self::Delta => "delta",
            Self::Full => "range",
        }
    }
}

#[derive(Args)]
#[command(after_help = format!("\
Prints matching lines with their numbers; context lines have a dash instead of a colon.

{EXIT_CODES}

Examples:
  kpty search build 'error|warning' -C 2
  kpty search web -i listening"))]
pub(super) struct SearchArguments {
    /// Id, beginning of the id, or label
    session: String,

    /// Regular expression
    #[arg(allow_hyphen_values = true)]
    regex: String,

    /// Context lines around a match
    #[arg(short = 'C', long, value_name = "N")]
    context: Option<u64>,

    /// Ignore case
    #[arg(short, long)]
    ignore_case: bool,

    /// Maximum number of matches, the newest
    #[arg(long, value_name = "N")]
    max: Option<u64>,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Args)]
#[command(after_help = format!("\
{EXIT_CODES}

Examples:
  kpty commands build                       what was run, with exit codes
  kpty commands build cmd_3                 the output of one"))]
pub(super) struct CommandsArguments {
    /// Id, beginning of the id, or label
    session: String,

    /// Print the output of this command instead of the list
    #[arg(value_name = "ID")]
    command: Option<String>,

    /// Number of newest commands; 20 by default
    #[arg(long, value_name = "N", conflicts_with = "command")]
    limit: Option<u64>,

    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn read(arguments: ReadArguments) -> Result<Outcome, Failure> {
    let remote = Remote::new(&arguments.connection)?;
    let session = remote.resolve(&arguments.session).await?;
    let parameters = json!({
        "session_id": session,
        "mode": arguments.mode.as_str(),
        "max_lines": arguments.lines,
        "marker_id": arguments.marker,
        "merge_wrapped": !arguments.no_merge,
    });
    let answer = match arguments.mode {
        ModeName::Full => read_all(&remote, parameters).await?,
        _ => remote.client.call("term_read", parameters).await?,
    };
    remote.finish(
        &answer,
        |_| EXIT_DONE,
        |answer| {
            print::text(answer.text("text"))?;
            if let (ModeName::Delta, Some(marker)) = (arguments.mode, answer.number("marker_id")) {
                print::problem(&format!("go on with --marker {marker}"));
            }
            Ok(())
        },
    )
}

/// Everything that is kept, page by page, as one answer.
async fn read_all(remote: &Remote, mut parameters: Value) -> Result<Answer, Failure> {
    let mut pages = Vec::new();
    let mut numbers = Vec::new();
    let mut from = 0;
    loop {
        parameters["from_line"] = json!(from);
        parameters["max_lines"] = json!(PAGE_LINES);
        parameters["max_chars"] = json!(PAGE_CHARS);
        let mut answer = remote.client.call("term_read", parameters.clone()).await?;
        if !answer.is_ok() {
            return Ok(answer);
        }
        let list = |name: &str| answer.body.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        pages.extend(list("lines"));
        numbers.extend(list("line_numbers"));
        match answer.number("continue_from").and_then(|next| u64::try_from(next).ok()) {
            // What comes next always lies ahead; a server that says otherwise is not asked for ever.
            Some(next) if next > from => from = next,
            _ => {
                let text = pages.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
                let whole = [("text", json!(text)), ("lines", json!(pages)), ("line_numbers", json!(numbers))];
                answer.body.extend(whole.map(|(name, value)| (name.to_owned(), value)));
                return Ok(answer);
            }
        }
    }
}

pub(super) async fn search(arguments: SearchArguments) -> Result<Outcome, Failure> {
    let remote = Remote::new(&arguments.connection)?;
    let session = remote.resolve(&arguments.session).await?;
    let parameters = json!({
        "session_id": session,
        "pattern": arguments.regex,
        "context": arguments.context,
        "ignore_case": arguments.ignore_case,
        "max_matches": arguments.max,
    });
    let answer = remote.client.call("search", parameters).await?;
    let code = |answer: &Answer| if answer.objects("matches").is_empty() { EXIT_NOTHING } else { EXIT_DONE };
    remote.finish(&answer, code, |answer| {
        let rows = matching_rows(&answer.objects("matches"));
        rows.iter().try_for_each(|row| print::line(row)).map_err(Failure::from)
    })
}

/// Matches as grep shows them: each line once, `--` where lines are left out.
fn matching_rows(matches: &[&Map<String, Value>]) -> Vec<String> {
    let mut lines: std::collections::BTreeMap<u64, (char, &str)> = std::collections::BTreeMap::new();
    for found in matches {
        let Some(line) = found.get("line").and_then(Value::as_u64) else { continue };
        let list =
            |name: &str| found.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let before: Vec<&str> = list("before").collect();
        let first = line.saturating_sub(before.len() as u64);
        for (number, around) in (first..).zip(before).chain((line + 1..).zip(list("after"))) {
            lines.entry(number).or_insert(('-', around));
        }
        lines.insert(line, (':', text(found, "text")));
    }
    let has_context = lines.values().any(|(sign, _)| *sign == '-');
    let mut rows = Vec::new();
    let mut last = None;
    for (number, (sign, content)) in lines {
        if has_context && last.is_some_and(|last| last + 1 != number) {
            rows.push("--".to_owned());
        }
        rows.push(format!("{number}{sign}{content}"));
        last = Some(number);
    }
    rows
}

pub(super) async fn commands(arguments: CommandsArguments) -> Result<Outcome, Failure> {
    let remote = Remote::new(&arguments.connection)?;
    let session = remote.resolve(&arguments.session).await?;
    let is_list = arguments.command.is_none();
    let parameters = json!({
        "session_id": session,
        "command_id": arguments.command,
        "limit": arguments.limit,
        "max_chars": (!is_list).then_some(OUTPUT_CHARS),
    });
    let answer = remote.client.call("commands", parameters).await?;
    remote.finish(
        &answer,
        |_| EXIT_DONE,
        |answer| {
            if !is_list {
                print::text(answer.text("output"))?;
                if answer.flag("truncated") {
                    print::problem("the middle of the output is omitted");
                }
                return Ok(());
            }
            let rows: Vec<_> = answer.objects("commands").into_iter().map(command_row).collect();
            Ok(print::table(&["ID", "CODE", "TIME", "COMMAND"], &rows)?)
        },
    )
}

fn command_row(command: &Map<String, Value>) -> Vec<String> {
    let number = |name: &str| command.get(name).and_then(Value::as_i64);
    vec![
        text(command, "id").to_owned(),
        match number("exit_code") {
            Some(code) => code.to_string(),
            None if command.get("running") == Some(&Value::Bool(true)) => "running".to_owned(),
            None => "-".to_owned(),
        },
        number("duration_ms").map_or("-".to_owned(), |duration| format!("{duration} ms")),
        print::tame(text(command, "line")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_that_overlap_are_shown_once() {
        let matches = [
            json!({ "line": 5, "text": "e5", "before": ["l4"], "after": ["e6"] }),
            json!({ "line": 6, "text": "e6", "before": ["e5"], "after": ["l7"] }),
            json!({ "line": 9, "text": "e9", "before": ["l8"], "after": [] }),
            json!({ "line": 20, "text": "e20" }),
        ];
        let matches: Vec<_> = matches.iter().filter_map(Value::as_object).collect();
        assert_eq!(matching_rows(&matches).join(" "), "4-l4 5:e5 6:e6 7-l7 8-l8 9:e9 -- 20:e20");
        assert_eq!(matching_rows(&matches[3..]), ["20:e20"]);
    }
}
