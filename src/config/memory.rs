//! How much memory sessions may take: a size as people write it, or a part of what the machine has.

use super::Reader;

/// Default share of the machine's memory for sessions.
const PART: u64 = 4;
/// Where nobody tells how much the machine has.
const UNKNOWN_MACHINE: u64 = 4 << 30;
/// Less than this is no room for a session.
const LEAST: u64 = 4 << 20;

impl Reader<'_> {
    /// A number of bytes, with K, M, G or T behind it or not.
    pub(super) fn size(&mut self, name: &'static str, default: usize) -> usize {
        let Some((name, text)) = self.named_text(name) else { return default };
        match parse(text).filter(|&bytes| bytes >= LEAST) {
            Some(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
            None => {
                self.problems.push(format!("{name}={text:?} is not a size of at least 4M, such as 512M or 2G"));
                default
            }
        }
    }
}

fn parse(text: &str) -> Option<u64> {
    let text = text.trim_end_matches(['B', 'b']);
    let text = text.strip_suffix(['i', 'I']).unwrap_or(text);
    let shift = match text.chars().last()?.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => 0,
    };
    let number = if shift == 0 { text } else { &text[..text.len() - 1] };
    number.trim().parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A quarter of the machine's memory, or of what the control group of this process may have where that is less.
pub(super) fn default_limit() -> usize {
    let machine = machine_memory().unwrap_or(UNKNOWN_MACHINE);
    let available = group_limit().map_or(machine, |limit| limit.min(machine));
    usize::try_from(available / PART).unwrap_or(usize::MAX).max(LEAST as usize)
}

fn machine_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// The tightest limit of the control groups around this process, of either version.
fn group_limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let limits = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        // In a container the path may be one of the host's: the root itself is asked too.
        let path = std::path::Path::new(path.trim_start_matches('/'));
        let limit = |folder: &std::path::Path| {
            let text = std::fs::read_to_string(std::path::Path::new(root).join(folder).join(file)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        path.ancestors().filter_map(limit).min()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("1048576", Some(1 << 20)),
            ("256M", Some(256 << 20)),
            ("256 m", Some(256 << 20)),
            ("2G", Some(2 << 30)),
            ("2GiB", Some(2 << 30)),
            ("512kb", Some(512 << 10)),
            ("1T", Some(1 << 40)),
            ("", None),
            ("M", None),
            ("-1M", None),
            ("1.5G", None),
            ("99999999999T", None),
        ] {
            assert_eq!(parse(text), bytes, "{text:?}");
        }
        assert!(default_limit() >= LEAST as usize);
    }
}
