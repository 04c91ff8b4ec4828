//! `kpty completions`: what a shell needs to complete the arguments of `kpty`.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{Arguments, Failure, Outcome, print};

#[derive(Args)]
#[command(after_help = "\
Examples:
  kpty completions bash > ~/.local/share/bash-completion/completions/kpty
  kpty completions zsh > \"${fpath[1]}/_kpty\"
  kpty completions fish > ~/.config/fish/completions/kpty.fish")]
pub(super) struct CompletionsArguments {
    /// Shell to complete in
    shell: Shell,
}

pub(super) fn run(arguments: &CompletionsArguments) -> Result<Outcome, Failure> {
    print::text(&script(arguments.shell))?;
    Ok(Outcome::Done)
}

/// The script; names of actions and parameters are in it as `kpty call` takes them.
fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "kpty", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::config::Config;
    use crate::server::{Block, Engine, ToolCall};
    use crate::tools::{Caller, Offer, Tools, actions_page};
    use crate::traffic::{Event, Retention, TrafficOptions};

    async fn called(tools: &Tools, tool: &str, arguments: Value) -> Value {
        let offer = Offer::named(tool).expect("a tool");
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let answer = Engine::call(tools, ToolCall { offer, arguments, caller: Caller::named("tester") }).await;
        match answer.blocks.as_slice() {
            [Block::Text { text }] => serde_json::from_str(text).expect("JSON"),
            other => panic!("{other:?}"),
        }
    }

    /// The tool of `src/tools/sample.rs` has a file and a line in the catalogue, and nothing else knows it.
    #[tokio::test]
    async fn a_tool_declared_in_one_file_is_everywhere() {
        // Listed for clients.
        let [sample, view] = ["k_sample", "k_sample_view"].map(|name| Offer::named(name).expect(name).schema());
        assert_eq!(sample["properties"]["action"]["enum"], json!(["count", "put", "set"]));
        let up_to = json!({ "type": "integer", "minimum": 0, "description": "count: where to stop" });
        assert_eq!(sample["properties"]["up_to"], up_to);
        assert_eq!(sample["properties"]["place"]["description"], "put: shelf or drawer");
        assert_eq!(view["properties"]["action"]["enum"], json!(["count"]));
        assert!(view["properties"].get("note").is_none());

        // Called: parameters are read as they are declared, in the state that the tool names.
        let tools = Tools::new(Config::default());
        let retention = Retention { age: Duration::from_secs(60), rows: 100 };
        tools.traffic().start(TrafficOptions {
            folder: None,
            retention,
            journal: None,
            gateway: None,
            own_address: None,
        });
        let mut recorded = tools.traffic().subscribe();
        let counted = called(&tools, "k_sample_view", json!({ "action": "count", "up_to": "99", "x": 1 })).await;
        assert_eq!(counted["counted"], json!([1, 2, 3, 4, 5, 6, 7, 8, 9]));
        assert_eq!((&counted["ignored_params"], &counted["is_recorded"]), (&json!(["x"]), &json!(true)));
        assert_eq!(counted["clamped"]["up_to"], json!({ "given": "99", "used": 9 }));
        assert_eq!(
            called(&tools, "k_sample", json!({ "action": "count" })).await["counted"],
            json!([1, 2, 3, 4, 5, 6, 7])
        );
        let put = json!({ "action": "set", "note": "for you", "key": "under the mat" });
        assert_eq!(called(&tools, "k_sample", put.clone()).await, json!({ "ok": true, "chars": 7, "place": 2 }));
        let refused = called(&tools, "k_sample_view", put).await;
        assert_eq!(refused["error_code"], "INVALID_PARAM");
        let unknown = called(&tools, "k_sample", json!({ "action": "talk" })).await;
        assert_eq!(unknown["details"]["available_actions"], json!(["count", "put", "set"]));

        // Recorded: what is typed is the command, and what opens it is omitted.
        let mut events: Vec<Event> = Vec::new();
        while events.len() < 3 {
            let event = tokio::time::timeout(Duration::from_secs(60), recorded.recv()).await;
            events.push(event.expect("an event").expect("the record goes on").as_ref().clone());
        }
        let commands: Vec<_> =
            events.iter().map(|event| event.command.as_ref().map(|text| text.kept.as_str())).collect();
        assert_eq!(commands, [Some("up_to=99 x=1"), None, Some("for you")]);
        tools.traffic().finish();

        // Explained, documented, completed.
        let help = Offer::named("k_sample").expect("a tool").tool.help();
        let put = "Put a note somewhere: note, place? shelf|drawer, key?. Nobody reads it.";
        assert_eq!((&help["put"], &help["set"]), (&json!(put), &json!("The same as put.")));
        let page = actions_page();
        for text in [
            "## k_sample",
            "Read-only twin: `k_sample_view`.",
            "| `put`, `set` | type | Put a note somewhere |",
            "| `up_to` | integer | 7 | 9 | where to stop |",
            "| `place` | `shelf`, `drawer` | `drawer` |",
        ] {
            assert!(page.contains(text), "{text}");
        }
        let script = script(Shell::Bash);
        for word in ["k_sample.put", "k_sample.set", "up_to=", "note="] {
            assert!(script.contains(word), "{word}");
        }
    }
}
