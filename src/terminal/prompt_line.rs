//! A line behind a shell's prompt, as a screen shows it, and the ways in which it can be read.

/// What ends a prompt, with a blank behind it.
const PROMPT_ENDS: [char; 7] = ['$', '#', '%', '>', '❯', '➜', 'λ'];

/// What a screen tells of the line that would be sent off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendered {
    /// No shell reads: Enter is for a program.
    NoShell,
    /// The line that was expected.
    AsExpected,
    /// Another one, in the ways in which it can be read.
    Lines(Vec<String>),
    /// A shell reads, or will, and its line cannot be seen.
    Unreadable,
}

/// A line behind its prompt.
pub(super) struct BehindPrompt {
    /// Its rows down to the cursor's, soft-wrapped ones merged.
    pub(super) lines: Vec<String>,
    /// Those below it that may belong to the same line.
    pub(super) below: Vec<String>,
    /// Characters of the first line that are the prompt; nothing where that is not known.
    pub(super) prompt: Option<usize>,
}

impl BehindPrompt {
    /// It is this line.
    pub(super) fn is(&self, expected: &str) -> bool {
        let expected = expected.trim_end();
        match self.prompt {
            Some(_) => self.below.is_empty() && self.text().trim_end() == expected,
            None => self.lines.join("\n").trim_end().ends_with(expected) && !expected.is_empty(),
        }
    }

    fn text(&self) -> String {
        let text = self.lines.join("\n");
        match self.prompt {
            Some(chars) => text.chars().skip(chars).collect(),
            None => text,
        }
    }

    /// The ways in which it can be read.
    pub(super) fn all(&self) -> Vec<String> {
        let text = self.text();
        if let Some(found) = searched(self.lines.last().map_or("", String::as_str)) {
            return vec![found.to_owned()];
        }
        let mut all = match self.prompt {
            Some(_) => vec![text.clone(), text.replace('\n', "")],
            None => vec![text.clone(), behind_prompt_end(&text).to_owned()],
        };
        if !self.below.is_empty() {
            all.push(format!("{text}\n{}", self.below.join("\n")));
        }
        if let Some((first, _)) = text.split_once('\n') {
            all.push(first.to_owned());
        }
        all.sort();
        all.dedup();
        all
    }
}

/// The ways in which the line of a shell can be read of which nothing else is known.
pub fn line_readings(line: &str) -> Vec<String> {
    BehindPrompt { lines: vec![line.to_owned()], below: Vec::new(), prompt: None }.all()
}

/// What a search of readline has found, of the line that shows it.
fn searched(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("i-search)`").filter(|(head, _)| head.starts_with('('))?;
    rest.split_once("': ").map(|(_, found)| found)
}

/// What stands behind the first thing that looks like the end of a prompt.
fn behind_prompt_end(line: &str) -> &str {
    let ends = line.char_indices().filter(|(_, c)| PROMPT_ENDS.contains(c));
    let mut behind = ends.filter_map(|(at, c)| line[at + c.len_utf8()..].strip_prefix(' '));
    behind.next().unwrap_or(line).trim_start_matches(PROMPT_ENDS).trim_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behind(lines: &[&str], prompt: Option<usize>) -> BehindPrompt {
        BehindPrompt { lines: lines.iter().map(|line| (*line).to_owned()).collect(), below: Vec::new(), prompt }
    }

    #[test]
    fn a_line_is_read_behind_its_prompt() {
        assert!(behind(&["~ $ ls -la"], Some(4)).is("ls -la "));
        assert!(behind(&["~ $ ls -la"], None).is("ls -la"));
        assert!(behind(&["$ a", "b"], Some(2)).is("a\nb"));
        assert!(!behind(&["~ $ ls -la; x"], Some(4)).is("ls -la"));
        assert!(!behind(&["~ $ "], None).is(""));
        assert_eq!(behind(&["~ $ one", "two"], Some(4)).all(), ["one", "one\ntwo", "onetwo"]);
        assert_eq!(behind(&["me:~# ls > x"], None).all(), ["ls > x", "me:~# ls > x"]);
        assert_eq!(behind(&["(reverse-i-search)`l': ls -la"], Some(4)).all(), ["ls -la"]);
        assert_eq!(behind(&["(failed reverse-i-search)`l': ls"], Some(4)).all(), ["ls"]);
    }
}
