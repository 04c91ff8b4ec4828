//! The registry of Windows.

use super::super::Verdict;
use super::super::judge::Violation;
use super::super::table::{PASSWORDS, REGISTRY};
use super::rows::Call;
use super::words::hive;
use super::{Piped, Reader};

/// `reg`.
pub(super) fn reg(_: &mut Reader<'_, '_>, call: &Call<'_>, _: &mut Piped) -> Verdict<()> {
    let verb = call.arguments.first().map_or(String::new(), |verb| verb.to_lowercase());
    let key = call.arguments.get(1).map_or(String::new(), |key| hive(key));
    let parts: Vec<&str> = key.split('\\').filter(|part| !part.is_empty()).collect();
    let is_machine = parts.first().is_some_and(|hive| hive != &"hkcu");
    let is_vault = parts.len() > 1 && parts[0] == "hklm" && matches!(parts[1], "sam" | "security");
    let is_loot = is_vault || parts.as_slice() == ["hklm", "system"] || parts.len() == 1;
    let rule = match verb.as_str() {
        "query" if is_vault => &PASSWORDS,
        "save" | "export" if is_loot => &PASSWORDS,
        "delete" | "restore" | "unload" | "load" if is_machine || parts.len() <= 2 && verb == "delete" => &REGISTRY,
        "add" if is_vault || key.contains("\\winlogon") || key.contains("image file execution") => &REGISTRY,
        _ => return Ok(()),
    };
    Err(Violation::new(rule, "reg", call.arguments))
}

/// `Remove-Item HKLM:\…`.
pub(super) fn removed_item(call: &Call<'_>) -> Verdict<()> {
    let is_hive = |argument: &String| {
        let key = hive(argument.trim_start_matches("Registry::").trim_start_matches("registry::"));
        let parts = key.split('\\').filter(|part| !part.is_empty()).count();
        ["hklm", "hkcr", "hku", "hkcc"].iter().any(|hive| key.starts_with(&format!("{hive}\\")) || key == *hive)
            || (key.starts_with("hkcu\\") || key == "hkcu") && parts <= 2
    };
    if call.arguments.iter().any(is_hive) { Err(call.violation(&REGISTRY)) } else { Ok(()) }
}
