//! Commands that show or copy what they are given, and which of their arguments are files.

use std::sync::LazyLock;

use super::super::by_name::ByName;
use super::super::table::Rule;
use super::super::wrappers::after_options;
use super::call::Call;

/// Commands that read, and which of their arguments they read.
struct Reader {
    names: &'static str,
    reads: Reads,
    /// A call with one of these words shows nothing of what it reads.
    silent: &'static [&'static str],
}

/// Which arguments are read.
enum Reads {
    All,
    /// All but the last operand, which is where a copy goes.
    Copies,
    /// The same behind its options: letters and names of options with a value. The key of a connection is not shown.
    CopiesBehind(&'static str, &'static [&'static str]),
    /// The operands behind the first, which is a pattern or a program, unless an option gives that.
    BehindPattern,
    /// All, where one of these options is given.
    With(&'static [&'static str]),
    /// All, unless the first argument lists an archive.
    Packs,
}

const fn reader(names: &'static str, reads: Reads, silent: &'static [&'static str]) -> Reader {
    Reader { names, reads, silent }
}

static READERS: &[Reader] = &[
    reader(
        "cat more less head tail tac nl od xxd hexdump hd strings base64 base32 basenc uuencode rev",
        Reads::All,
        &[],
    ),
    reader("sort uniq cut paste gzip bzip2 xz zstd cpio ar dd nc ncat netcat socat gpg pr fold fmt", Reads::All, &[]),
    reader(
        "expand column diff cmp view vim vi nano emacs ed tee iconv pbcopy xclip xsel mail sqlite3",
        Reads::All,
        &[],
    ),
    reader(
        "split bat batcat type get-content gc certutil compress-archive out-file most pg look shuf",
        Reads::All,
        &[],
    ),
    reader("python ccat glow rclone s3cmd gsutil mapfile readarray source john hashcat", Reads::All, &[]),
    reader("openssl", Reads::All, &["-pubout", "-noout"]),
    reader("curl wget", Reads::All, &["--key", "--cert", "--cacert", "--private-key"]),
    reader("tar zip 7z", Reads::Packs, &[]),
    reader("ln cp install copy copy-item cpi xcopy robocopy", Reads::Copies, &[]),
    reader("scp sftp", Reads::CopiesBehind("iFoPJlScDX", &[]), &[]),
    reader("rsync", Reads::CopiesBehind("eT", &["rsh", "exclude", "include", "files-from"]), &[]),
    reader("sed awk gawk mawk ag jq yq findstr select-string sls", Reads::BehindPattern, &[]),
    // A file that is only counted, or only named, is not shown.
    reader("grep egrep fgrep rg", Reads::BehindPattern, &["-q", "-c", "-l", "-L"]),
    // These go through their files line by line.
    reader("perl ruby", Reads::With(&["-ne", "-pe", "-n", "-p"]), &[]),
    reader("git", Reads::With(&["--no-index"]), &[]),
];

/// The rule for the first secret that the call shows or copies.
pub(super) fn secret(call: &Call<'_>) -> Option<&'static Rule> {
    static INDEX: LazyLock<ByName<Reader>> = LazyLock::new(|| ByName::new(READERS, |reader| reader.names));
    let reader = INDEX.first(call.name).filter(|reader| !reader.is_silent(call))?;
    let read = reader.arguments(call)?;
    let target = reader.target(read);
    // `file=@path`, `@path`, `--post-file=path`, `-T path`, `FILE:path`.
    let places = read.iter().flat_map(|text| [text.as_str(), text.rsplit(['=', '@', ',', '<']).next().unwrap_or(text)]);
    places.filter(|place| target != Some(place)).find_map(|place| call.path(place).secret())
}

impl Reader {
    fn is_silent(&self, call: &Call<'_>) -> bool {
        let is_option = |word: &str| self.silent.contains(&word) || word.starts_with("--private-key=");
        !self.silent.is_empty() && call.words().any(is_option)
    }

    /// The arguments that are read, if any.
    fn arguments<'a>(&self, call: &Call<'a>) -> Option<&'a [String]> {
        let all = call.arguments;
        match self.reads {
            Reads::All | Reads::Copies => Some(all),
            Reads::CopiesBehind(letters, names) => Some(after_options(all, letters, names)),
            Reads::BehindPattern if call.has(&["-e", "-f"]) => Some(all),
            Reads::BehindPattern => after_options(all, "ABCmF", &["context"]).get(1..),
            Reads::With(options) => call.has(options).then_some(all),
            Reads::Packs => (!all.first().is_some_and(|a| a.trim_start_matches('-').starts_with('t'))).then_some(all),
        }
    }

    /// Where a copy goes: a copy into a folder of keys shows nothing.
    fn target<'a>(&self, read: &'a [String]) -> Option<&'a str> {
        let is_copy = matches!(self.reads, Reads::Copies | Reads::CopiesBehind(..)) && read.len() > 1;
        is_copy.then(|| read.iter().map(String::as_str).rfind(|word| !word.starts_with('-'))).flatten()
    }
}
