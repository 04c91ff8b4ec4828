//! `kpty completions`: what a shell needs to complete the arguments of `kpty`.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{Arguments, Failure, Outcome, print};

#[derive(Args)]
#[command(after_help = "\
Examples:
  kpty completions bash > ~/.local/share/bash-completion/completions/kpty
  kpty completions zsh > \"${fpath[1]}/_kpty\"
  kpty completions fish > ~/.config/fish/completions/kpty.fish")]
pub(super) struct CompletionsArguments {
    /// The shell they are for
    shell: Shell,
}

pub(super) fn run(arguments: &CompletionsArguments) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "kpty", &mut script);
    print::text(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Done)
}
