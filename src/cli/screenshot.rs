//! `kpty screenshot`: a picture of a session in a file.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;

use super::client::Connection;
use super::remote::{EXIT_CODES, Remote};
use super::{EXIT_DONE, Failure, Outcome, print};
use crate::error::Error;
use crate::picture::{Look, Theme};

#[derive(Args)]
#[command(after_help = format!("\
Without -o the file is named after the session, here. Secrets are masked as in every other answer.

{EXIT_CODES}

Examples:
  kpty screenshot editor                         pty_0123abcd.png
  kpty screenshot web -o web.svg --theme light   an SVG, dark on white
  kpty screenshot build --from 100 --until 140   forty lines of the history"))]
pub(super) struct ScreenshotArguments {
    /// Id, beginning of the id, or label
    session: String,

    /// File to write; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// What to draw; the ending of the file tells, else png
    #[arg(long, value_enum)]
    format: Option<FormatName>,

    /// Draw lines of the history from this one on instead of the screen
    #[arg(long, value_name = "LINE")]
    from: Option<u64>,

    /// With --from: stop before this line
    #[arg(long, value_name = "LINE", requires = "from")]
    until: Option<u64>,

    #[command(flatten)]
    look: LookArguments,

    #[command(flatten)]
    connection: Connection,
}

/// How pictures are drawn.
#[derive(Args)]
pub(super) struct LookArguments {
    /// Colours of a picture
    #[arg(long, value_enum, default_value = "dark")]
    theme: ThemeName,

    /// Size of a picture: 1 to 4 times
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=4))]
    scale: u32,

    /// Draw no cursor
    #[arg(long)]
    pub(super) no_cursor: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum ThemeName {
    /// Light text on black
    Dark,
    /// Dark text on white
    Light,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatName {
    Png,
    Svg,
}

impl FormatName {
    fn as_str(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Svg => "svg",
        }
    }
}

impl LookArguments {
    pub(super) fn look(&self) -> Look {
        let theme = match self.theme {
            ThemeName::Dark => Theme::Dark,
            ThemeName::Light => Theme::Light,
        };
        Look { theme, scale: self.scale }
    }
}

pub(super) async fn screenshot(arguments: ScreenshotArguments) -> Result<Outcome, Failure> {
    let remote = Remote::new(&arguments.connection)?;
    let session = remote.resolve(&arguments.session).await?;
    let is_svg = arguments.output.as_deref().and_then(Path::extension).is_some_and(|ending| ending == "svg");
    let format = arguments.format.unwrap_or(if is_svg { FormatName::Svg } else { FormatName::Png });
    let theme = match arguments.look.theme {
        ThemeName::Dark => "dark",
        ThemeName::Light => "light",
    };
    let parameters = json!({
        "session_id": session,
        "format": format.as_str(),
        "theme": theme,
        "scale": arguments.look.scale,
        "cursor": !arguments.look.no_cursor,
        "from_line": arguments.from,
        "until_line": arguments.until,
    });
    let answer = remote.client.call("screenshot", parameters).await?;
    let path = arguments.output.unwrap_or_else(|| PathBuf::from(format!("{session}.{}", format.as_str())));
    let is_stdout = path == Path::new("-");
    if answer.is_ok() {
        let picture = answer.picture.as_deref();
        let picture = picture.ok_or_else(|| Error::Server("the server's answer has no picture".to_owned()))?;
        match is_stdout {
            true => print::bytes(picture)?,
            false => save(&path, picture)?,
        }
        if is_stdout {
            return Ok(Outcome::Done);
        }
    }
    remote.finish(&answer, |_| EXIT_DONE, |_| Ok(print::line(&path.display().to_string())?))
}

/// Writes a picture where whoever runs the program wants it.
pub(super) fn save(path: &Path, picture: &[u8]) -> Result<(), Error> {
    std::fs::write(path, picture).map_err(|cause| Error::file("write", path, cause))
}
