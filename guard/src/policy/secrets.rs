//! Which files hold secrets: keys, credentials, hashes of passwords.

use super::decode::glob_matches;
use super::table::{CLOUD_KEY, PASSWORDS, PRIVATE_KEY, Rule};
use super::targets::{Path, is_everything};
use super::words::UNKNOWN;

/// A folder that holds secrets, wherever it is.
struct Store {
    folder: &'static str,
    holds: Holds,
    rule: &'static Rule,
}

/// What of the folder is secret; names are given by their beginnings.
enum Holds {
    /// All but what begins so right below the folder, and files that end so.
    AllBut(&'static [&'static str], &'static [&'static str]),
    /// What begins so, what is called so, and the folder as a whole.
    Whole(&'static [&'static str], &'static [&'static str]),
    /// What begins so.
    Only(&'static [&'static str]),
}

const fn store(folder: &'static str, holds: Holds, rule: &'static Rule) -> Store {
    Store { folder, holds, rule }
}

static STORES: [Store; 11] = [
    store(
        ".ssh",
        Holds::AllBut(&["config", "known_hosts", "authorized_keys", "rc", "environment"], &[".pub", ".md"]),
        &PRIVATE_KEY,
    ),
    store(".aws", Holds::Whole(&["cred"], &["sso", "cli"]), &CLOUD_KEY),
    store("gcloud", Holds::AllBut(&["configurations", "logs", "active_config"], &[]), &CLOUD_KEY),
    store(".gnupg", Holds::Whole(&["private-keys", "secring"], &[]), &PRIVATE_KEY),
    store(".azure", Holds::Only(&["accessTokens", "msal_token", "azureProfile", "service_principal"]), &CLOUD_KEY),
    store(".kube", Holds::Only(&["config", "*"]), &CLOUD_KEY),
    store(".docker", Holds::Only(&["config.json"]), &CLOUD_KEY),
    store("gh", Holds::Only(&["hosts.yml"]), &CLOUD_KEY),
    store(".cargo", Holds::Only(&["credentials"]), &CLOUD_KEY),
    store(".gem", Holds::Only(&["credentials"]), &CLOUD_KEY),
    store(".terraform.d", Holds::Only(&["credentials"]), &CLOUD_KEY),
];
/// Folders of the settings of a user, in which alone `gcloud` means the program's own.
const SETTINGS: [&str; 3] = [".config", "AppData", "Roaming"];

/// Paths from the root below which everything is secret.
static TREES: [(&[&str], &Rule); 3] = [
    (&["run", "secrets"], &CLOUD_KEY),
    (&["var", "run", "secrets"], &CLOUD_KEY),
    (&["etc", "ssl", "private"], &PRIVATE_KEY),
];

/// Files that are secret wherever they are.
static FILES: [(&[&str], &Rule); 2] = [
    (&[".netrc", "_netrc", ".git-credentials", ".pgpass", ".vault-token", ".s3cfg", ".boto"], &CLOUD_KEY),
    (&["Login Data", "logins.json", "key4.db", "key3.db", "login.keychain-db", "login.keychain"], &PASSWORDS),
];
/// Files of a user's home, which are harmless elsewhere.
const HOME_FILES: [&str; 2] = [".pypirc", ".npmrc"];
/// Keys by their names alone.
const KEYS: [&str; 5] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_ed25519_sk"];
/// Files below `/etc` with hashes of passwords.
const HASHES: [&str; 5] = ["shadow", "gshadow", "shadow-", "gshadow-", "master.passwd"];
/// Folders that hold nothing but passwords.
const VAULTS: [&str; 2] = ["Keychains", ".password-store"];

impl Path {
    /// The rule under which this may not be shown or copied.
    pub(super) fn secret(&self) -> Option<&'static Rule> {
        let names: Vec<&str> = self.names.iter().map(|name| meant(name)).collect();
        let last = names.last().copied().unwrap_or("");
        let stores = STORES.iter().filter(|store| store.is_meant(&names));
        if let Some(decided) = stores.filter_map(|store| store.decides(&names)).next() {
            return decided;
        }
        let by_place = TREES.iter().find(|(tree, _)| self.starts(tree));
        let by_name = || FILES.iter().find(|(files, _)| files.contains(&last));
        if let Some((_, rule)) = by_place.or_else(by_name) {
            return Some(rule);
        }
        let of_home = HOME_FILES.contains(&last) && matches!(names.first(), Some(&"home" | &"root"));
        let rules =
            [(of_home, &CLOUD_KEY), (self.is_key(&names, last), &PRIVATE_KEY), (is_vault(&names, last), &PASSWORDS)];
        rules.into_iter().find_map(|(is_met, rule)| is_met.then_some(rule))
    }

    /// A private key by its name.
    fn is_key(&self, names: &[&str], last: &str) -> bool {
        let is_host_key = self.starts(&["etc", "ssh"]) && last.starts_with("ssh_host") && !last.ends_with(".pub");
        let above = names.len().checked_sub(2).map(|at| names[at]);
        let is_bare = names.len() == 1 || above.is_some_and(|name| name.contains(UNKNOWN));
        is_host_key || last.starts_with("privkey") && last.ends_with(".pem") || is_bare && KEYS.contains(&last)
    }
}

/// A store of passwords or of their hashes.
fn is_vault(names: &[&str], last: &str) -> bool {
    matches!(names, ["etc", file] if HASHES.contains(file))
        || is_windows_hive(names)
        || last.eq_ignore_ascii_case("ntds.dit")
        || last.ends_with(".kdbx")
        || names.iter().any(|name| VAULTS.contains(name))
}

/// The registry's files with the hashes of Windows.
fn is_windows_hive(names: &[&str]) -> bool {
    let folded: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let has = |wanted: &[&str]| folded.iter().any(|name| wanted.contains(&name.as_str()));
    has(&["config", "repair", "regback"])
        && has(&["system32", "windows"])
        && folded.last().is_some_and(|name| matches!(name.as_str(), "sam" | "system" | "security"))
}

impl Store {
    fn is_meant(&self, names: &[&str]) -> bool {
        names.contains(&self.folder) && (self.folder != "gcloud" || names.iter().any(|name| SETTINGS.contains(name)))
    }

    /// The rule for a path through the folder, if there is one; `None` where something else may make it secret.
    fn decides(&self, names: &[&str]) -> Option<Option<&'static Rule>> {
        let at = names.iter().rposition(|name| *name == self.folder)?;
        let rest = &names[at + 1..];
        let begins = |starts: &[&str]| rest.iter().any(|name| starts.iter().any(|start| name.starts_with(start)));
        let is_secret = match self.holds {
            Holds::AllBut(starts, ends) => {
                let name = rest.first().copied().unwrap_or("*");
                !starts.iter().any(|start| name.starts_with(start)) && !ends.iter().any(|end| name.ends_with(end))
            }
            Holds::Whole(starts, whole) => {
                rest.iter().all(|name| is_everything(name)) || begins(starts) || rest.iter().any(|n| whole.contains(n))
            }
            Holds::Only(starts) => return begins(starts).then_some(Some(self.rule)),
        };
        Some(is_secret.then_some(self.rule))
    }
}

/// The name that a pattern is likely to be meant for.
fn meant(name: &str) -> &str {
    const NAMES: [&str; 12] = [
        ".ssh",
        ".aws",
        ".gnupg",
        ".kube",
        ".config",
        ".docker",
        "gcloud",
        "id_rsa",
        "id_ed25519",
        "shadow",
        "credentials",
        "etc",
    ];
    let is_pattern = name.contains(['*', '?', '[']) && !is_everything(name) && name.chars().any(char::is_alphanumeric);
    let fits = |known: &&&str| known.starts_with('.') == name.starts_with('.') && glob_matches(name, known);
    if is_pattern { NAMES.iter().find(fits).map_or(name, |known| known) } else { name }
}
