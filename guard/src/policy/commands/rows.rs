//! The table: which command does harm with which arguments.
//!
//! A row is refused when its condition holds. Rows of one command are asked in the order of the table, and the first
//! that refuses names the rule. What needs more than a condition asks a function of `power`, `rights` or `files`.

use std::sync::LazyLock;

use super::super::by_name::ByName;
use super::super::table::*;
use super::call::Call;
use super::{files, power, rights};

/// Names of commands, separated by blanks, and what about them is refused. A name with one of `. _ :` at its end stands
/// for all that begin with it.
#[derive(Debug)]
pub(super) struct Row {
    names: &'static str,
    pub(super) when: When,
    pub(super) then: Then,
}

/// A condition on the arguments.
#[derive(Debug)]
pub(super) enum When {
    Always,
    /// One of these words is among the arguments.
    Word(&'static [&'static str]),
    /// An argument begins with one of these.
    Start(&'static [&'static str]),
    /// The first argument begins with one of these.
    First(&'static [&'static str]),
    /// One of these letters is given as a short option.
    Letter(&'static str),
    /// The first operand is one of these.
    Verb(&'static [&'static str]),
    /// An operand is one of these.
    Operand(&'static [&'static str]),
    /// The only operand is one of these.
    OnlyOperand(&'static [&'static str]),
    /// An option of the first list has one of the values of the second.
    Value(&'static [&'static str], &'static [&'static str]),
    /// An argument ends with one of these names of methods.
    Method(&'static [&'static str]),
    /// An operand is a disk.
    Disk,
    /// An operand cannot be known from the line.
    Unknown,
    /// There are operands.
    Operands,
    All(&'static [When]),
    Any(&'static [When]),
    Not(&'static When),
    Ask(fn(&Call<'_>) -> bool),
}

/// What follows when the condition holds.
#[derive(Debug)]
pub(super) enum Then {
    Refuse(&'static Rule),
    /// The paths are removed, and refused where that does harm.
    Removes(Paths),
    Writes(Paths),
    Reads(Paths),
    /// The function tells the rule.
    Decide(fn(&Call<'_>) -> Option<&'static Rule>),
}

/// Which arguments are paths.
#[derive(Debug)]
pub(super) enum Paths {
    All,
    Last,
    /// The last of several operands.
    Target,
    /// Without the first operand.
    Rest,
    Second,
    /// Behind one of these options.
    Option(&'static [&'static str]),
    /// What follows one of these beginnings of a word.
    Attached(&'static [&'static str]),
}

impl When {
    pub(super) fn holds(&self, call: &Call<'_>) -> bool {
        match self {
            Self::Always => true,
            Self::Word(words) => call.has(words),
            Self::Start(starts) => call.has_start(starts),
            Self::First(starts) => call.words().next().is_some_and(|word| starts.iter().any(|s| word.starts_with(s))),
            Self::Letter(letters) => call.has_letter(letters),
            Self::Verb(verbs) => verbs.contains(&call.verb()),
            Self::Operand(words) => call.operands.iter().any(|operand| words.contains(operand)),
            Self::OnlyOperand(words) => matches!(call.operands.as_slice(), [only] if words.contains(only)),
            Self::Value(options, values) => call.values(options).any(|value| values.contains(&value)),
            Self::Method(names) => {
                call.words().any(|a| a.rsplit(['.', '/']).next().is_some_and(|m| names.contains(&m)))
            }
            Self::Disk => call.has_disk(),
            Self::Unknown => call.has_unknown(),
            Self::Operands => !call.operands.is_empty(),
            Self::All(all) => all.iter().all(|when| when.holds(call)),
            Self::Any(any) => any.iter().any(|when| when.holds(call)),
            Self::Not(when) => !when.holds(call),
            Self::Ask(ask) => ask(call),
        }
    }
}

impl Then {
    pub(super) fn rule(&self, call: &Call<'_>) -> Option<&'static Rule> {
        match self {
            Self::Refuse(rule) => Some(*rule),
            Self::Removes(paths) => paths.of(call).into_iter().find_map(|path| call.path(path).removal()),
            Self::Writes(paths) => paths.of(call).into_iter().find_map(|path| call.path(path).write()),
            Self::Reads(paths) => paths.of(call).into_iter().find_map(|path| call.path(path).secret()),
            Self::Decide(decide) => decide(call),
        }
    }
}

impl Paths {
    fn of<'a>(&self, call: &Call<'a>) -> Vec<&'a str> {
        let operands = &call.operands;
        match self {
            Self::All => operands.clone(),
            Self::Last => call.last().into_iter().collect(),
            Self::Target => operands.get(1..).and_then(<[_]>::last).copied().into_iter().collect(),
            Self::Rest => operands.get(1..).unwrap_or_default().to_vec(),
            Self::Second => operands.get(1).copied().into_iter().collect(),
            Self::Option(options) => call.values(options).collect(),
            Self::Attached(starts) => call.attached(starts).collect(),
        }
    }
}

/// The rows for a command, in the order of the table.
pub(super) fn of(name: &str) -> impl Iterator<Item = &'static Row> {
    static INDEX: LazyLock<ByName<Row>> = LazyLock::new(|| ByName::new(ROWS, |row| row.names));
    let family = name.find(['.', '_', ':']).map_or("", |at| &name[..=at]);
    INDEX.all(name).iter().chain(INDEX.all(family)).copied()
}

const fn row(names: &'static str, when: When, then: Then) -> Row {
    Row { names, when, then }
}

use Paths::{All as Operands, Attached, Last, Option as Behind, Rest, Second, Target};
use Then::{Decide, Reads, Refuse, Removes, Writes};
use When::{
    All, Always, Any, Ask, Disk, First, Letter, Method, Not, OnlyOperand, Operand, Operands as HasOperands, Start,
    Unknown, Value, Verb, Word,
};

static ROWS: &[Row] = &[
    // Files.
    row("rm grm unlink rimraf srm trash trash-put del-cli rmtree", Always, Removes(Operands)),
    row("rm grm unlink rimraf srm trash trash-put del-cli rmtree", Start(&["--no-preserve"]), Refuse(&REMOVE_ROOT)),
    row("wipe", Letter("r"), Removes(Operands)),
    row("gio gvfs-trash", Verb(&["trash", "remove"]), Removes(Rest)),
    row("rclone", Verb(&["purge", "delete", "rmdirs"]), Removes(Rest)),
    row("tar gtar bsdtar", Word(&["--remove-files"]), Removes(Operands)),
    row("zip", Letter("m"), Removes(Rest)),
    row("rsync", Start(&["--delete"]), Decide(files::mirrored)),
    row("mv gmv", Always, Decide(files::moved)),
    row("mv gmv", Always, Writes(Last)),
    row("ln", Word(&["-f", "-sf", "-fs", "-snf", "-sfn", "--force"]), Writes(Rest)),
    row("shred", Ask(files::is_system_tree), Refuse(&REMOVE_SYSTEM)),
    row("apt apt-get", Word(&["--allow-remove-essential"]), Refuse(&REMOVE_VITAL)),
    row("dpkg", Start(&["--force-remove-essential"]), Refuse(&REMOVE_VITAL)),
    // Disks.
    row("mkfs mke2fs mkswap mkntfs mkdosfs mformat", Any(&[Disk, Unknown]), Refuse(&DISK_FORMAT)),
    row("mkfs", Word(&["/dev"]), Refuse(&DISK_FORMAT)),
    row("newfs", All(&[Any(&[Disk, Unknown]), Not(&Word(&["-N"]))]), Refuse(&DISK_FORMAT)),
    row("mkfs. newfs_", Disk, Refuse(&DISK_FORMAT)),
    row("dd dcfldd dc3dd gdd", Always, Writes(Attached(&["of=", "hof="]))),
    row("dd dcfldd dc3dd gdd", Always, Reads(Attached(&["if="]))),
    row(
        "fdisk cfdisk gdisk cgdisk sgdisk sfdisk parted partx",
        Ask(super::partitions::changes),
        Refuse(&DISK_PARTITION),
    ),
    row("wipefs", All(&[Disk, Any(&[Word(&["--all", "--offset"]), Letter("ao")])]), Refuse(&DISK_ERASE)),
    row("shred scrub blkdiscard wipe nwipe", Disk, Refuse(&DISK_ERASE)),
    row("nwipe", Word(&["--autonuke"]), Refuse(&DISK_ERASE)),
    row("badblocks", All(&[Disk, Letter("w")]), Refuse(&DISK_ERASE)),
    row("shred truncate", Always, Writes(Operands)),
    row(
        "hdparm",
        Start(&["--security-erase", "--trim", "--make-bad", "--dco-restore", "--write-sector", "--sanitize"]),
        Refuse(&DISK_ERASE),
    ),
    row("sg_format", Any(&[Letter("F"), Start(&["--format", "--resize"])]), Refuse(&DISK_ERASE)),
    row("sg_sanitize sg_write_same sg_unmap", HasOperands, Refuse(&DISK_ERASE)),
    row("nvme", Word(&["format", "sanitize", "write-zeroes", "delete-ns"]), Refuse(&DISK_ERASE)),
    row("cryptsetup", Word(&["luksFormat", "erase", "luksErase", "reencrypt", "luksKillSlot"]), Refuse(&DISK_ERASE)),
    row("systemd-cryptenroll", All(&[Disk, Start(&["--wipe-slot"])]), Refuse(&DISK_ERASE)),
    row("flash_erase flash_eraseall flashcp nandwrite", Disk, Refuse(&DISK_ERASE)),
    row("mtd", First(&["erase", "write"]), Refuse(&DISK_ERASE)),
    row("ntfsclone", All(&[Disk, Any(&[Letter("O"), Start(&["--overwrite"])])]), Refuse(&DISK_WRITE)),
    row("bmaptool", Verb(&["copy"]), Writes(Last)),
    row(
        "mdadm",
        All(&[Disk, Any(&[Word(&["--zero-superblock", "--create", "--stop"]), Letter("SC")])]),
        Refuse(&DISK_PARTITION),
    ),
    row("pvcreate vgremove lvremove pvremove vgreduce lvreduce", HasOperands, Refuse(&DISK_PARTITION)),
    row("dmsetup", Verb(&["remove", "remove_all", "wipe_table"]), Refuse(&DISK_PARTITION)),
    row("zpool", Any(&[Word(&["destroy", "labelclear"]), All(&[Word(&["create"]), Disk])]), Refuse(&DISK_PARTITION)),
    row("zfs", Word(&["destroy"]), Refuse(&BACKUPS)),
    row("zfs", All(&[Verb(&["rollback"]), Letter("rR")]), Refuse(&BACKUPS)),
    row("btrfs", All(&[Word(&["delete"]), Word(&["subvolume", "device"])]), Refuse(&BACKUPS)),
    row("btrfs", All(&[Verb(&["device"]), Word(&["remove"])]), Refuse(&BACKUPS)),
    row("diskutil", Ask(files::erases_mac_disk), Refuse(&DISK_ERASE)),
    row("tmutil", First(&["delete"]), Refuse(&BACKUPS)),
    // The machine.
    row("shutdown", Ask(power::shuts_down), Refuse(&POWER)),
    row("halt poweroff reboot openrc-shutdown", Ask(power::stops_now), Refuse(&POWER)),
    row("init telinit", OnlyOperand(&["0", "1", "6", "s", "S"]), Refuse(&POWER)),
    row("systemctl loginctl", Ask(power::starts_stopping), Refuse(&POWER)),
    row("kexec", Word(&["-e", "--exec"]), Refuse(&POWER)),
    row("initctl", Any(&[Verb(&["shutdown"]), OnlyOperand(&["stop"])]), Refuse(&POWER)),
    row("rundll32", Ask(power::exits_windows), Refuse(&POWER)),
    row("pm-suspend pm-hibernate pm-suspend-hybrid", Not(&Word(&["--help"])), Refuse(&POWER)),
    row("rtcwake", Value(&["-m", "--mode"], &["off", "mem", "disk", "freeze", "standby"]), Refuse(&POWER)),
    row("rtcwake", Word(&["--mode=off", "--mode=mem", "--mode=disk", "-moff", "-mmem", "-mdisk"]), Refuse(&POWER)),
    row("ipmitool", All(&[Word(&["power"]), Word(&["off", "cycle", "reset", "soft", "diag"])]), Refuse(&POWER)),
    row(
        "dbus-send busctl gdbus qdbus",
        Method(&["PowerOff", "Reboot", "Halt", "poweroff", "logoutDialog", "requestShutdown"]),
        Refuse(&POWER),
    ),
    row("kill", Ask(power::kills_everything), Refuse(&KILL_ALL)),
    row("killall5", Always, Refuse(&KILL_ALL)),
    row("pkill killall skill", Operand(&[".", ".*", "init", "systemd", "launchd"]), Refuse(&KILL_ALL)),
    row("pkill killall skill", All(&[Letter("uU"), OnlyOperand(&["root", "0"])]), Refuse(&KILL_ALL)),
    row("chmod chown chgrp chattr setfacl chflags", Always, Decide(rights::changed)),
    row("userdel deluser", Operand(&["root"]), Refuse(&ACCOUNT_FILES)),
    row("passwd", All(&[Word(&["root"]), Word(&["-d", "-l", "--delete", "--lock"])]), Refuse(&ACCOUNT_FILES)),
    row("usermod", All(&[Word(&["root"]), Word(&["-L", "--lock"])]), Refuse(&ACCOUNT_FILES)),
    row("efibootmgr", Word(&["-B", "-O", "--delete-bootnum", "-N"]), Refuse(&BOOT_SETTINGS)),
    row("grub-install grub2-install extlinux lilo", Disk, Refuse(&BOOT_SETTINGS)),
    row("flashrom", Any(&[Letter("wE"), Word(&["--write", "--erase"])]), Refuse(&BOOT_SETTINGS)),
    // Secrets.
    row("security", Word(&["dump-keychain", "export"]), Refuse(&PASSWORDS)),
    row("security", All(&[First(&["find-"]), Letter("wg")]), Refuse(&PASSWORDS)),
    row("getent", Word(&["shadow", "gshadow"]), Refuse(&PASSWORDS)),
    row(
        "unshadow pwdump fgdump secretsdump secretsdump.py lazagne lazagne.py mimikatz mimipenguin mimipenguin.sh",
        Always,
        Refuse(&PASSWORDS),
    ),
    row(
        "hashdump sekurlsa pypykatz nanodump invoke-mimikatz gsecdump wce sekurlsa: lsadump:",
        Always,
        Refuse(&PASSWORDS),
    ),
    row(
        "procdump procdump64 rundll32 taskmgr sqldumper ntdsutil createdump vaultcmd esentutl",
        Ask(files::names_passwords),
        Refuse(&PASSWORDS),
    ),
    row("gpg gpg2", Start(&["--export-secret"]), Refuse(&PRIVATE_KEY)),
    row("aws", Word(&["export-credentials"]), Refuse(&CLOUD_KEY)),
    row(
        "aws",
        All(&[Word(&["configure"]), Word(&["get"]), Word(&["aws_secret_access_key", "aws_session_token"])]),
        Refuse(&CLOUD_KEY),
    ),
    row("gcloud", Word(&["print-access-token", "print-identity-token"]), Refuse(&CLOUD_KEY)),
    // What commands write.
    row("tee sponge", Always, Writes(Operands)),
    row("cp install rsync scp gcp", Always, Writes(Target)),
    row("ddrescue gddrescue", Always, Writes(Second)),
    row("sed perl gsed", Any(&[Letter("i"), Start(&["-i", "--in-place", "-pi"])]), Writes(Rest)),
    row("curl wget", Always, Writes(Behind(&["-o", "-O", "--output"]))),
    row("sort", Always, Writes(Behind(&["-o"]))),
];
