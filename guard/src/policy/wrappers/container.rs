//! Containers: `docker`, `kubectl` and their relatives.

use super::super::words::HOME;
use super::arguments::{after_options, following};
use super::{Inner, Wrapper};

/// Options of `docker run` and `exec` that take a value.
const CONTAINER_OPTIONS: &[&str] = &[
    "volume",
    "env",
    "publish",
    "workdir",
    "user",
    "name",
    "network",
    "net",
    "memory",
    "cpus",
    "entrypoint",
    "mount",
    "label",
    "hostname",
    "add-host",
    "device",
    "env-file",
    "platform",
    "pull",
    "restart",
    "gpus",
    "shm-size",
    "tmpfs",
    "ulimit",
    "volumes-from",
    "ipc",
    "pid",
    "cap-add",
    "cap-drop",
    "security-opt",
    "cidfile",
    "link",
    "dns",
    "userns",
    "runtime",
    "file",
    "container",
    "namespace",
    "context",
    "index",
    "profile",
    "project-name",
    "project-directory",
];

/// Options of `kubectl exec` that take a value.
const KUBECTL_OPTIONS: &[&str] = &["container", "namespace", "context", "cluster", "kubeconfig", "filename", "user"];

/// What stands behind the dashes; `kubectl exec` once took the command without them.
pub(super) fn kubectl(wrapper: Wrapper<'_>) -> Vec<Inner> {
    let arguments = wrapper.arguments;
    if let Some(cut) = arguments.iter().position(|argument| argument == "--") {
        return Inner::vector(&arguments[cut + 1..]);
    }
    let verb = arguments.iter().position(|argument| argument == "exec").filter(|_| wrapper.name == "kubectl");
    let rest = verb.map_or(&[][..], |at| after_options(&arguments[at + 1..], "cnf", KUBECTL_OPTIONS));
    Inner::vector(rest.get(1..).unwrap_or_default())
}

/// The command in a container, its paths as they are called on the machine.
pub(super) fn docker(arguments: &[String]) -> Vec<Inner> {
    let mut rest = after_options(arguments, "HlcfpvewuamL", CONTAINER_OPTIONS);
    if matches!(rest.first().map(String::as_str), Some("compose" | "container")) {
        rest = after_options(&rest[1..], "fp", CONTAINER_OPTIONS);
    }
    let Some((verb, rest)) = rest.split_first() else { return Vec::new() };
    match verb.as_str() {
        "unshare" => Inner::vector(rest),
        "run" | "exec" | "create" => vec![Inner::Vector(in_container(rest))],
        _ => Vec::new(),
    }
}

fn in_container(arguments: &[String]) -> Vec<String> {
    let after = after_options(arguments, "vepwumlhac", CONTAINER_OPTIONS);
    let options = &arguments[..arguments.len() - after.len()];
    let mut command = after.get(1..).unwrap_or_default().to_vec();
    // The dashes between container and command.
    if command.first().is_some_and(|word| word == "--") {
        command.remove(0);
    }
    let entry = following(options, "--entrypoint");
    if let Some(entry) = entry.or_else(|| options.iter().find_map(|o| o.strip_prefix("--entrypoint="))) {
        command.insert(0, entry.to_owned());
    }
    for (from, to) in options.iter().filter_map(|option| mount(option)) {
        command = command.into_iter().map(|word| outside(word, &from, &to)).collect();
    }
    command
}

/// A folder of the machine and where it stands in the container: `-v FROM:TO`, `--mount source=FROM,target=TO`.
fn mount(option: &str) -> Option<(String, String)> {
    let option = option.strip_prefix("--volume=").or_else(|| option.strip_prefix("-v")).unwrap_or(option);
    let pair = option.split_once(":/").map(|(from, to)| (from, format!("/{to}")));
    let (from, to) = pair.or_else(|| {
        let part =
            |names: &[&str]| names.iter().find_map(|name| option.split(',').find_map(|part| part.strip_prefix(name)));
        Some((part(&["source=", "src="])?, part(&["target=", "dst=", "destination="])?.to_owned()))
    })?;
    let to = to.split(':').next().unwrap_or("").trim_end_matches('/').to_owned();
    let is_outside = from.starts_with('/') || from.starts_with(HOME);
    (is_outside && to.len() > 1).then(|| (from.trim_end_matches('/').to_owned(), to))
}

/// A path in the container as a path of the machine.
fn outside(word: String, from: &str, to: &str) -> String {
    let word = match word.strip_prefix(to) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{from}{rest}"),
        // In a script for a shell it stands somewhere.
        _ if word.contains(' ') => word.replace(to, from),
        _ => word,
    };
    if word.is_empty() { "/".to_owned() } else { word }
}
