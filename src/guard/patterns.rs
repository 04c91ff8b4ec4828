//! The commands that are refused, as a table.
//!
//! The expressions are a contract: callers see them in the answer and tests of theirs name them. They are searched
//! anywhere in the text, without regard to case, and a dot does not cross a line; the first match in this order is
//! the one reported. Closing a gap is a new row at the end, never an edit.

/// One row: what is searched, and what to say about it.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The regular expression.
    pub(super) regex: &'static str,
    /// The kind of damage, one word.
    pub(super) category: &'static str,
    /// What the command would do.
    pub(super) why: &'static str,
}

const fn row(regex: &'static str, category: &'static str, why: &'static str) -> Pattern {
    Pattern { regex, category, why }
}

/// All of them, in the order of their report.
pub(super) static PATTERNS: [Pattern; 25] = [
    row(r"rm\s+(-[rf]+\s+)*[/~]", "files", "deletes below the root or a home directory"),
    row(r"del\s+/[sqf]", "files", "deletes files in bulk"),
    row(r"rmdir\s+/[sq]", "files", "deletes a directory tree"),
    row(r"rd\s+/[sq]", "files", "deletes a directory tree"),
    row(r"format\s+[a-z]:", "disk", "formats a drive"),
    row(r"diskpart", "disk", "changes partitions"),
    row(r"mkfs\.", "disk", "makes a new file system over an old one"),
    row(r"dd\s+if=.+of=/dev", "disk", "writes over a device"),
    row(r"fdisk", "disk", "changes partitions"),
    row(r":\(\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;", "exhaustion", "forks without end"),
    row(r"%0\|%0", "exhaustion", "starts itself without end"),
    row(r"shutdown\s+[/-]", "power", "shuts the machine down"),
    row(r"\bhalt\b", "power", "stops the machine"),
    row(r"init\s+0", "power", "stops the machine"),
    row(r"cat.+\.ssh/", "credentials", "shows SSH keys"),
    row(r"type.+\\\.ssh\\", "credentials", "shows SSH keys"),
    row(r"cat.+\.aws/", "credentials", "shows AWS credentials"),
    row(r"cat.+\.config/gcloud", "credentials", "shows Google Cloud credentials"),
    row(r"reg\s+query.+SAM", "credentials", "reads the accounts of the registry"),
    row(r"mimikatz", "credentials", "takes credentials from memory"),
    row(r"sekurlsa", "credentials", "takes credentials from memory"),
    row(r"reg\s+(delete|add)\s+HK(LM|CU)", "system", "changes the registry"),
    row(r"bcdedit", "system", "changes how the machine starts"),
    row(r"vssadmin\s+delete", "backups", "deletes shadow copies"),
    row(r"wbadmin\s+delete", "backups", "deletes backups"),
];
