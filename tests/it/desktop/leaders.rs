//! Who leads is asked in the order that clients know.

use kpty::config::{Config, Identity};
use kpty::model::Owner;
use serde_json::json;

use super::fake::{Fake, Manner};
use super::register;
use crate::tools::Rig;

fn config(desk: &Fake, gateway: &Fake, session_id: &str, is_leader: bool) -> Config {
    let identity = Identity {
        agent_id: Some("me".to_owned()),
        session_id: Some(session_id.to_owned()),
        is_leader,
        ..Identity::default()
    };
    Config { desktop_url: desk.url(), gateway_url: Some(gateway.url()), identity, ..Config::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_desktops_word_comes_before_the_gateways() {
    let (desk, gateway) = (Fake::start(), Fake::start());
    desk.answers("/pty/is-leader", "", Manner::Answer(json!({ "ok": true, "is_leader": true })));
    gateway.answers("/v1/agents/leader", "", Manner::Answer(json!({ "agent_id": "other" })));
    let rig = Rig::with(config(&desk, &gateway, "pty_00000001", false));
    rig.tools.registry().register_leader("registered").expect("a good name");
    for (agent, leads) in [("registered", true), ("me", true), ("other", true), ("nobody", false)] {
        assert_eq!(rig.tools.is_leader(agent).await, leads, "{agent}");
        assert_eq!(rig.tools.is_leader(agent).await, leads, "{agent}, again");
    }
    assert_eq!((desk.calls("/pty/is-leader"), gateway.calls("/v1/agents/leader")), (1, 1), "answers hold a while");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_own_terminal_is_found_by_its_owner_and_silence_is_no() {
    let (desk, gateway) = (Fake::start(), Fake::start());
    // Nobody leads, says the one; the other does not know.
    desk.answers("/pty/is-leader", "", Manner::Answer(json!({ "ok": true, "is_leader": null })));
    gateway.answers("/v1/agents/leader", "", Manner::Status(404, "{\"detail\":\"No leader registered\"}"));
    let rig = Rig::with(config(&desk, &gateway, "session-of-mine", false));
    assert!(!rig.tools.is_leader("me").await);
    assert_eq!(desk.calls("/pty/is-leader"), 0, "no terminal is known to ask about");
    let owner = Owner { session_id: Some("session-of-mine".to_owned()), ..Owner::default() };
    register(&rig, "desk-1", &desk.url(), owner);
    assert!(!rig.tools.is_leader("me").await);
    assert_eq!(desk.calls("/pty/is-leader"), 1);
    rig.end().await;
    let rig = Rig::with(config(&desk, &gateway, "session-of-mine", true));
    let owner = Owner { agent_id: Some("me".to_owned()), ..Owner::default() };
    register(&rig, "desk-1", &desk.url(), owner);
    assert!(rig.tools.is_leader("me").await, "the settings say so");
    let list = rig.call(json!({ "action": "list" })).await;
    assert_eq!(list["sessions"][0]["is_leader"], true);
    rig.end().await;
}
