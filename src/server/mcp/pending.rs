//! Notices for a client session: a file with its id is delivered with the next reply, once.
//!
//! The writer and the meaning of the files are out of scope. A session id becomes a path only if it is safe, links are
//! not followed, and the content is truncated and stripped of control characters.
//! harmless, links are not followed, and what a file says is shortened and freed of control characters.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::file_name;

/// Maximum size of a file.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// Maximum characters of a field.
const MAX_FIELD_CHARS: usize = 500;

/// Folder of notices, named `<client session id>.json`.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    folder: PathBuf,
}

impl Pending {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Takes the notice for a session as Markdown and deletes its file.
    pub(super) async fn take(&self, session: &str) -> Option<String> {
        let path = self.folder.join(file_name(session)?);
        match tokio::task::spawn_blocking(move || take(&path)).await {
            Ok(notice) => notice,
            Err(error) => {
                tracing::warn!("a notice could not be read: {error}");
                None
            }
        }
    }
}

fn take(path: &Path) -> Option<String> {
    let metadata = fs::symlink_metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES {
        return None;
    }
    let mut text = String::new();
    fs::File::open(path).ok()?.take(MAX_FILE_BYTES).read_to_string(&mut text).ok()?;
    // A file that is still being written is delivered next time.
    let task: Value = serde_json::from_str(&text).ok()?;
    // Of two concurrent calls, the one that deletes the file delivers it.
    fs::remove_file(path).ok()?;
    Some(notice(&task))
}

fn notice(task: &Value) -> String {
    let field = |name: &str, otherwise: &str| match task.get(name) {
        Some(Value::String(text)) if !text.is_empty() => sanitized(text),
        Some(Value::Number(number)) => number.to_string(),
        _ => otherwise.to_owned(),
    };
    let (id, title) = (field("task_id", "unknown"), field("title", "no title"));
    let message = field("message_id", "");
    let mut notice = format!("## A task was assigned to you\n\n- Task: {id}\n- Title: {title}\n");
    if let Some(Value::String(time)) = task.get("created_at") {
        notice.push_str(&format!("- Since: {}\n", sanitized(time)));
    }
    if !message.is_empty() {
        notice.push_str(&format!("\nClaim it first: `k_inbox(action='claim', id='{message}')`\n"));
    }
    notice
}

/// Returns one line of limited length, without quotes that would end the surrounding text.
fn sanitized(text: &str) -> String {
    let harmless = text.chars().map(|c| if c.is_control() || c == '`' || c == '\'' { ' ' } else { c });
    harmless.take(MAX_FIELD_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn a_notice_is_told_once() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pending = Pending::new(folder.path().to_owned());
        let task = json!({ "task_id": "T049", "title": "Fix\n it", "message_id": "m1", "created_at": "2026-01-01" });
        fs::write(folder.path().join("s-1.json"), task.to_string()).expect("a file");
        assert_eq!(pending.take("s-2").await, None);
        let notice = pending.take("s-1").await.expect("a notice");
        assert!(notice.contains("T049") && notice.contains("Fix  it") && notice.contains("id='m1'"), "{notice}");
        assert_eq!(pending.take("s-1").await, None);
        assert!(!folder.path().join("s-1.json").exists());
    }

    #[tokio::test]
    async fn half_a_file_and_paths_elsewhere_are_left_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).expect("a folder");
        let pending = Pending::new(inner.clone());
        fs::write(folder.path().join("x.json"), "{}").expect("a file");
        fs::write(inner.join("half.json"), "{\"task_id\":").expect("a file");
        fs::write(inner.join("long.json"), format!("{{}}{}", " ".repeat(70_000))).expect("a file");
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path().join("x.json"), inner.join("link.json")).expect("a link");
        for id in ["../x", "half", "long", "link", "none"] {
            assert_eq!(pending.take(id).await, None, "{id}");
        }
        assert!(folder.path().join("x.json").exists() && inner.join("half.json").exists());
    }
}
