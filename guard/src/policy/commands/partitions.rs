//! Partition editors: one table of options and verbs for each, because the same letter looks in one and deletes in another.

use super::call::Call;

/// The options and verbs of one tool.
struct Tool {
    name: &'static str,
    /// Options that only look. One of them makes an otherwise interactive or writing call harmless.
    looks: &'static [&'static str],
    /// Options that change something, whatever else is given.
    changes: &'static [&'static str],
    /// Verbs that change something; the tool knows them by their first letters, too.
    verbs: &'static [&'static str],
    /// Verbs that only look.
    looking_verbs: &'static [&'static str],
    /// Without a device it takes the first disk that it finds.
    finds_disk: bool,
}

const TOOLS: [Tool; 7] = [
    Tool {
        name: "fdisk",
        looks: &["-l", "--list", "-x", "--list-details", "-s", "--getsz", "-V", "--version", "-v", "-h", "--help"],
        changes: &[],
        verbs: &[],
        looking_verbs: &[],
        finds_disk: false,
    },
    Tool {
        name: "cfdisk",
        looks: &["-V", "--version", "-h", "--help"],
        changes: &[],
        verbs: &[],
        looking_verbs: &[],
        finds_disk: true,
    },
    Tool {
        name: "gdisk",
        looks: &["-l", "-V", "--version", "-h", "--help"],
        changes: &[],
        verbs: &[],
        looking_verbs: &[],
        finds_disk: true,
    },
    Tool {
        name: "cgdisk",
        looks: &["-l", "-V", "--version", "-h", "--help"],
        changes: &[],
        verbs: &[],
        looking_verbs: &[],
        finds_disk: true,
    },
    Tool {
        name: "sfdisk",
        looks: &[
            "-l",
            "--list",
            "-d",
            "--dump",
            "-J",
            "--json",
            "-s",
            "--show-size",
            "-F",
            "--list-free",
            "-V",
            "--verify",
            "-T",
            "--list-types",
            "-g",
            "--show-geometry",
            "-n",
            "--no-act",
            "-v",
            "--version",
            "-h",
            "--help",
        ],
        changes: &["--delete", "-A", "--activate", "--reorder", "-r", "--relocate"],
        verbs: &[],
        looking_verbs: &[],
        finds_disk: false,
    },
    Tool {
        name: "parted",
        looks: &["-l", "--list", "-v", "--version", "-h", "--help"],
        changes: &[],
        verbs: &[
            "mklabel",
            "mktable",
            "mkpart",
            "mkpartfs",
            "mkfs",
            "rm",
            "name",
            "set",
            "toggle",
            "resizepart",
            "resize",
            "move",
            "cp",
            "rescue",
            "disk_set",
            "disk_toggle",
            "type",
        ],
        looking_verbs: &["print", "unit", "align-check", "help", "version", "quit", "p", "u", "q"],
        finds_disk: true,
    },
    Tool {
        name: "partx",
        looks: &["-s", "--show", "-o", "-b", "-P", "--pairs", "-r", "--raw", "-V", "--version", "-h", "--help"],
        changes: &["-d", "--delete"],
        verbs: &[],
        looking_verbs: &[],
        finds_disk: false,
    },
];

/// The letters of sgdisk that only look; all others change something.
const SGDISK_LOOKS: &str = "pivLODEfFVPb";
/// Its words that only look.
const SGDISK_WORDS: [&str; 16] = [
    "--print",
    "--info",
    "--verify",
    "--list-types",
    "--print-mbr",
    "--display-alignment",
    "--end-of-largest",
    "--first-aligned-in-largest",
    "--first-in-largest",
    "--version",
    "--pretend",
    "--backup",
    "--help",
    "-?",
    "--usage",
    "--end-of-largest-aligned",
];

/// The call changes the partitions of a disk.
pub(super) fn changes(call: &Call<'_>) -> bool {
    let has_disk = call.has_disk();
    match call.name {
        "sgdisk" => has_disk && sgdisk_changes(call.arguments),
        name => TOOLS.iter().find(|tool| tool.name == name).is_some_and(|tool| {
            has_disk && tool.changes(call.arguments) || call.arguments.is_empty() && tool.finds_disk
        }),
    }
}

impl Tool {
    fn changes(&self, arguments: &[String]) -> bool {
        let has = |words: &[&str]| {
            let option = |word: &String| word.split_once('=').map_or(word.clone(), |(option, _)| option.to_owned());
            arguments.iter().any(|word| words.contains(&option(word).as_str()))
        };
        let is_verb = |word: &&String| {
            let is_short = word.len() >= 2 && self.verbs.iter().any(|verb| verb.starts_with(word.as_str()));
            is_short && !word.starts_with(['-', '/'])
        };
        if has(self.changes) || arguments.iter().any(|word| is_verb(&word)) {
            return true;
        }
        // Not read-only: it applies the edits that follow, or prompts for them.
        !has(self.looks) && !has(self.looking_verbs)
    }
}

/// An option other than those that look, or none at all.
fn sgdisk_changes(arguments: &[String]) -> bool {
    let options: Vec<&String> = arguments.iter().filter(|word| word.starts_with('-') && word.len() > 1).collect();
    let only_shows = arguments.iter().any(|word| word.ends_with(":show") || word == "show");
    if options.iter().any(|word| matches!(word.as_str(), "-P" | "--pretend")) {
        return false;
    }
    let looks = |word: &&&String| match word.strip_prefix("--") {
        Some(_) => {
            let option = word.split_once('=').map_or(word.as_str(), |(option, _)| option);
            SGDISK_WORDS.contains(&option) || only_shows && option == "--attributes"
        }
        None => {
            let letter = word.chars().nth(1).unwrap_or('-');
            SGDISK_LOOKS.contains(letter) || letter == '?' || only_shows && letter == 'A'
        }
    };
    options.is_empty() || !options.iter().all(|word| looks(&word))
}

#[cfg(test)]
mod tests {
    use crate::policy::Policy;

    #[test]
    fn calls_that_only_look_at_partitions_pass() {
        for (line, is_blocked) in [
            ("sgdisk -d 1 /dev/sda", true),
            ("sgdisk -d1 /dev/sda", true),
            ("sgdisk --delete=1 /dev/sda", true),
            ("sgdisk -t 1:8300 /dev/sda", true),
            ("sgdisk -c 1:root /dev/sda", true),
            ("sgdisk -G /dev/sda", true),
            ("sgdisk -R /dev/sdb /dev/sda", true),
            ("sgdisk --load-backup=x /dev/sda", true),
            ("sgdisk -A 1:set:2 /dev/sda", true),
            ("sgdisk -p -d 1 /dev/sda", true),
            ("sgdisk -p /dev/sda", false),
            ("sgdisk -i 1 /dev/sda", false),
            ("sgdisk --info=1 /dev/sda", false),
            ("sgdisk -A 1:show /dev/sda", false),
            ("sgdisk -P -d 1 /dev/sda", false),
            ("sgdisk --backup=table.bin /dev/sda", false),
            ("sgdisk -d 1 disk.img", false),
            ("parted -s /dev/sda toggle 1 boot", true),
            ("parted -s /dev/sda rescue 0 100%", true),
            ("parted -s /dev/sda disk_set pmbr_boot on", true),
            ("parted -s /dev/sda mkl gpt", true),
            ("parted -s /dev/sda rm 1", true),
            ("parted -s /dev/sda unit s print rm 1", true),
            ("parted -s -a optimal /dev/sda mkpart x 0% 100%", true),
            ("parted /dev/sda", true),
            ("parted -s /dev/sda print", false),
            ("parted -s /dev/sda unit MiB print free", false),
            ("parted -sm /dev/nvme0n1 unit s p", false),
            ("parted -l", false),
            ("parted -s /dev/sda align-check opt 1", false),
            ("parted -s disk.img mklabel gpt", false),
            ("sfdisk -d /dev/sda", false),
            ("sfdisk --delete /dev/sda 1", true),
            ("sfdisk /dev/sda < table", true),
            ("fdisk -l /dev/sda", false),
            ("cgdisk /dev/sda", true),
            ("cgdisk --version", false),
            ("fdisk /dev/sda", true),
            ("partx -d /dev/sda", true),
            ("partx --show /dev/sda", false),
        ] {
            assert_eq!(Policy::default().judge(line).is_err(), is_blocked, "{line}");
        }
    }
}
