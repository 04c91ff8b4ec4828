//! The default place of the state folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The state folder below a project's folder.
const IN_PROJECT: &str = "ai/checkpoints/pty";
/// Our folder among those of other programs.
const OWN_NAME: &str = "kpty";

/// The state folder for this environment: in the project where one is named, else where the platform keeps state.
/// None where the environment names no place at all.
pub(super) fn choose(variable: impl Fn(&'static str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &'static str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(root) = set("KPTY_PROJECT_ROOT") {
        return std::path::absolute(root).ok().map(|root| root.join(IN_PROJECT));
    }
    // A relative path is no place: it would be another one in each folder.
    let place = |name: &'static str| set(name).filter(|path| path.is_absolute());
    let among = |folder: &Path| folder.join(OWN_NAME);
    if cfg!(windows) {
        return place("LOCALAPPDATA").as_deref().map(among);
    }
    let at_home = || place("HOME").map(|home| home.join(".local/state"));
    place("XDG_STATE_HOME").or_else(at_home).as_deref().map(among)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_that_is_named_is_taken() {
        for (project, xdg, home, expected) in [
            ("/p", "/x", "/h", Some("/p/ai/checkpoints/pty")),
            ("", "/x", "/h", Some("/x/kpty")),
            ("", "", "/h", Some("/h/.local/state/kpty")),
            ("", "relative", "/h", Some("/h/.local/state/kpty")),
            ("", "", "relative", None),
            ("", "", "", None),
        ] {
            let variable = |name: &str| {
                let value = match name {
                    "KPTY_PROJECT_ROOT" => project,
                    "XDG_STATE_HOME" => xdg,
                    "HOME" => home,
                    _ => "",
                };
                Some(OsString::from(value))
            };
            assert_eq!(choose(variable), expected.map(PathBuf::from), "{project:?} {xdg:?} {home:?}");
        }
        let relative = choose(|name| (name == "KPTY_PROJECT_ROOT").then(|| OsString::from("p")));
        assert!(relative.is_some_and(|path| path.is_absolute() && path.ends_with("p/ai/checkpoints/pty")));
        assert_eq!(choose(|_| None), None);
    }
}
