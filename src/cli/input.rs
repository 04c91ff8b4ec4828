//! `kpty send` and `keys`: type a line, press keys.

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use serde_json::{Value, json};

use super::client::Connection;
use super::remote::{EXIT_CODES, Remote};
use super::{EXIT_DONE, Failure, Outcome};

#[derive(Args)]
#[command(after_help = format!("\
Types the line as it is, presses Enter and returns at once. Use `kpty talk` for shell commands.

{EXIT_CODES}

Examples:
  kpty send repl 'print(6 * 7)'
  kpty send repl ''                              Enter alone"))]
pub(super) struct SendArguments {
    /// Id, beginning of the id, or label
    session: String,

    /// Text to type; line ends in it are dropped
    #[arg(allow_hyphen_values = true)]
    line: String,

    /// Interpret \n, \t, \r and \xHH
    #[arg(long)]
    escapes: bool,

    #[command(flatten)]
    connection: Connection,
}

#[derive(Args)]
#[command(after_help = format!("\
Keys and texts are sent in the order of the arguments. No Enter is added.

{EXIT_CODES}

Examples:
  kpty keys build Ctrl-C
  kpty keys editor Esc --text :wq Enter
  kpty keys menu Down Down Enter"))]
pub(super) struct KeysArguments {
    /// Id, beginning of the id, or label
    session: String,

    #[command(flatten)]
    presses: Presses,

    #[command(flatten)]
    connection: Connection,
}

/// Keys and texts, in the order of the command line.
struct Presses(Vec<Press>);

enum Press {
    Key(String),
    Text(String),
}

impl Args for Presses {
    fn augment_args(command: Command) -> Command {
        command
            .arg(
                Arg::new("keys")
                    .action(ArgAction::Append)
                    .num_args(0..)
                    .value_name("KEY")
                    .help("Names and chords such as Enter, Esc, Tab, Up, F5, Ctrl-C, Alt-x, Shift-Tab, PageDown"),
            )
            .arg(
                Arg::new("text")
                    .long("text")
                    .action(ArgAction::Append)
                    .value_name("TEXT")
                    .allow_hyphen_values(true)
                    .help("Text to type between the keys; may be repeated"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Presses {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut presses: Vec<(usize, Press)> = Vec::new();
        for (name, press) in [("keys", Press::Key as fn(String) -> Press), ("text", Press::Text)] {
            let values = matches.get_many::<String>(name).into_iter().flatten();
            let indices = matches.indices_of(name).into_iter().flatten();
            presses.extend(indices.zip(values).map(|(index, value)| (index, press(value.clone()))));
        }
        if presses.is_empty() {
            let message = "give a key to press, or a --text to type\n";
            return Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, message));
        }
        presses.sort_by_key(|(index, _)| *index);
        Ok(Self(presses.into_iter().map(|(_, press)| press).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

pub(super) async fn send(arguments: SendArguments) -> Result<Outcome, Failure> {
    let remote = Remote::new(&arguments.connection)?;
    let session = remote.resolve(&arguments.session).await?;
    let parameters = json!({ "session_id": session, "data": arguments.line, "escapes": arguments.escapes });
    let answer = remote.client.call("send_line", parameters).await?;
    remote.finish(&answer, |_| EXIT_DONE, |_| Ok(()))
}

pub(super) async fn keys(arguments: KeysArguments) -> Result<Outcome, Failure> {
    let remote = Remote::new(&arguments.connection)?;
    let session = remote.resolve(&arguments.session).await?;
    let parts = arguments.presses.0.into_iter().map(|press| match press {
        Press::Key(name) => json!(name),
        Press::Text(text) => json!({ "text": text }),
    });
    let parameters = json!({ "session_id": session, "keys": parts.collect::<Vec<Value>>() });
    let answer = remote.client.call("send_keys", parameters).await?;
    remote.finish(&answer, |_| EXIT_DONE, |_| Ok(()))
}
