//! Folders that the system has for a program.

use std::path::PathBuf;

/// Where files are put that live for a moment and are nobody else's: in memory where the system has such a place.
pub fn private_folder() -> PathBuf {
    let runtime =
        std::env::vars_os().find(|(name, _)| name == "XDG_RUNTIME_DIR").map(|(_, value)| PathBuf::from(value));
    runtime.filter(|folder| folder.is_absolute() && folder.is_dir()).unwrap_or_else(std::env::temp_dir)
}
