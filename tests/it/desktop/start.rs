//! What a restart brings back is compared with what desktops still have.

use std::time::SystemTime;

use kpty::ids::SessionId;
use kpty::model::{Role, SessionRecord, Source, iso_time};
use serde_json::json;

use super::fake::{Fake, Manner};
use crate::tools::Rig;

fn record(id: &str, url: &str, owner_role: Option<Role>) -> SessionRecord {
    let then = iso_time(SystemTime::now() - std::time::Duration::from_secs(3_600));
    SessionRecord {
        session_id: id.to_owned(),
        source: Source::Desktop,
        desktop_url: Some(url.to_owned()),
        cli_type: "shell".to_owned(),
        pid: 0,
        created_at: then.clone(),
        last_heartbeat: then,
        owner_agent_id: None,
        owner_session_id: None,
        owner_role,
        label: None,
        claude_code_session_id: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_their_desktop_lost_are_forgotten_and_nothing_else() {
    let (rig, desk, broken) = (Rig::new(), Fake::start(), Fake::start());
    let listed = json!([
        { "session_id": "here" }, { "session_id": "9ccd99b1bdd8710e" }, { "session_id": "ended", "alive": false },
    ]);
    desk.answers("/pty/list", "", Manner::Answer(json!({ "ok": true, "sessions": listed })));
    broken.answers("/health", "", Manner::Status(500, "{}"));
    let (url, bad, nobody) = (desk.url(), broken.url(), "http://127.0.0.1:9");
    let records = vec![
        record("here", &url, None),
        record("9ccd99b1-bdd8-710e-aaaa", &url, None),
        record("ended", &url, None),
        record("lost", &url, None),
        record("lost-leader", &url, Some(Role::Leader)),
        record("unknown", &bad, None),
        record("unreachable", nobody, None),
    ];
    let registry = rig.tools.registry();
    assert_eq!(registry.restore(records), 7);
    rig.tools.verify_desktops().await;
    let left: Vec<_> = registry.desktop_sessions();
    let names: Vec<_> = left.iter().map(|listed| (listed.record.session_id.as_str(), listed.is_stale)).collect();
    let expected = [
        ("here", false),
        ("9ccd99b1-bdd8-710e-aaaa", false),
        ("lost-leader", true),
        ("unknown", true),
        ("unreachable", true),
    ];
    assert_eq!(names, expected);
    assert_eq!((desk.calls("/health"), desk.calls("/pty/list")), (1, 1), "each desktop is asked once");
    assert!(registry.locate(&SessionId::named("lost")).is_err());
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_desktop_that_hangs_keeps_its_sessions() {
    let (rig, desk) = (Rig::new(), Fake::start());
    desk.answers("/health", "", Manner::Hang);
    assert_eq!(rig.tools.registry().restore(vec![record("a", &desk.url(), None)]), 1);
    let began = std::time::Instant::now();
    rig.tools.verify_desktops().await;
    assert!(began.elapsed() < std::time::Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(rig.tools.registry().desktop_sessions().len(), 1);
    rig.end().await;
}
