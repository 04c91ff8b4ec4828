//! Which program a process of this machine runs.

/// The name of the file that a process runs; also where that file has been replaced since.
pub fn executable_name(pid: u32) -> Option<String> {
    let path = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let name = path.file_name()?.to_str()?;
    Some(name.strip_suffix(" (deleted)").unwrap_or(name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_name_of_this_program_is_found() {
        assert!(executable_name(std::process::id()).is_some_and(|name| name.starts_with("kpty")));
    }
}
