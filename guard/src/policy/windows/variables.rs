//! Variables of `cmd` and PowerShell.

use super::super::words::HOME;
use super::Reader;

impl Reader<'_, '_> {
    /// Variables of either shell, where the line or Windows itself gives them a value.
    pub(super) fn expand(&self, word: &str) -> String {
        if !word.contains(['%', '$', '~', '!']) {
            return word.to_owned();
        }
        let mut out = String::new();
        let mut rest = word;
        while let Some(at) = rest.find(['%', '$', '!']) {
            out.push_str(&rest[..at]);
            let mark = rest.as_bytes()[at];
            let after = &rest[at + 1..];
            let (name, tail) = match mark {
                b'$' => {
                    let braces = after.strip_prefix('{');
                    let body = braces.unwrap_or(after);
                    let end =
                        body.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | ':')).unwrap_or(body.len());
                    (
                        &body[..end],
                        if braces.is_some() { body[end..].strip_prefix('}').unwrap_or("") } else { &body[end..] },
                    )
                }
                mark => match after.split_once(mark as char) {
                    Some((name, tail)) if !name.is_empty() && !name.contains(' ') => (name, tail),
                    _ => {
                        out.push(mark as char);
                        rest = after;
                        continue;
                    }
                },
            };
            match self.variable(name) {
                Some(value) => out.push_str(&value),
                None => out.push_str(&rest[at..rest.len() - tail.len()]),
            }
            rest = tail;
        }
        out.push_str(rest);
        match out.strip_prefix('~') {
            Some(tail) if tail.is_empty() || tail.starts_with(['\\', '/']) => format!("C:\\Users\\{HOME}{tail}"),
            _ => out,
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        let folded = name.to_lowercase();
        let folded = folded.strip_prefix("env:").unwrap_or(&folded);
        let (name, cut) = folded.split_once(":~").map_or((folded, None), |(name, cut)| (name, Some(cut)));
        let value = match self.vars.get(name) {
            Some(value) => value.clone(),
            None => match name {
                "userprofile" | "home" => format!("C:\\Users\\{HOME}"),
                "homepath" => format!("\\Users\\{HOME}"),
                "systemroot" | "windir" => "C:\\Windows".to_owned(),
                "systemdrive" | "homedrive" => "C:".to_owned(),
                "programfiles" => "C:\\Program Files".to_owned(),
                "programdata" | "allusersprofile" => "C:\\ProgramData".to_owned(),
                "appdata" => format!("C:\\Users\\{HOME}\\AppData\\Roaming"),
                "localappdata" => format!("C:\\Users\\{HOME}\\AppData\\Local"),
                "comspec" => "cmd".to_owned(),
                _ => return None,
            },
        };
        let Some(cut) = cut else { return Some(value) };
        let chars: Vec<char> = value.chars().collect();
        let mut numbers = cut.split(',').map(|number| number.trim().parse::<i64>().unwrap_or(0));
        let place = |number: i64| {
            if number < 0 {
                chars.len().saturating_sub(number.unsigned_abs() as usize)
            } else {
                (number as usize).min(chars.len())
            }
        };
        let from = place(numbers.next().unwrap_or(0));
        let to = match numbers.next() {
            Some(length) if length >= 0 => (from + length as usize).min(chars.len()),
            Some(length) => place(length).max(from),
            None => chars.len(),
        };
        Some(chars[from..to].iter().collect())
    }
}
