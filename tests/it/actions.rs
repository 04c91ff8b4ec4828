//! The specs of tools and actions are sound, and the pages that are generated from them are current.

use std::collections::HashSet;
use std::fs;

use kpty::tools::{Action, CATALOGUE, Offer, Param, Preset, Selector, actions_page};
use serde_json::{Map, Value};

use crate::support::repository;

/// How the page is renewed.
const BLESS: &str = "KPTY_BLESS=1 cargo nextest run -p kpty --test it actions::";

/// `KPTY_BLESS=1` writes the page instead of comparing it.
#[test]
#[expect(clippy::disallowed_methods, reason = "a switch of this test, not a setting of the program")]
fn the_actions_page_is_current() {
    let path = repository().join("docs/src/actions.md");
    let page = actions_page();
    if std::env::var_os("KPTY_BLESS").is_some() {
        fs::write(&path, &page).expect("docs/src/actions.md can be written");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    let differs = kept.lines().zip(page.lines()).find(|(kept, made)| kept != made);
    assert!(kept == page, "docs/src/actions.md is stale; renew it with: {BLESS}. First difference: {differs:?}");
}

fn actions() -> impl Iterator<Item = &'static Action> {
    CATALOGUE.iter().flat_map(|tool| tool.actions).copied()
}

#[test]
fn names_are_unique() {
    let mut offers = HashSet::new();
    assert!(Offer::all().all(|offer| offers.insert(offer.name())));
    for tool in CATALOGUE {
        let names = tool.action_names();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len(), "{names:?}");
    }
    for action in actions() {
        let names: HashSet<_> = action.params.iter().map(|param| param.name).collect();
        assert_eq!(names.len(), action.params.len(), "{}", action.name);
    }
}

#[test]
fn a_parameter_has_one_type_in_all_actions_of_a_tool() {
    for tool in CATALOGUE {
        let params: Vec<&Param> = tool.actions.iter().flat_map(|action| action.params).collect();
        for param in &params {
            let same = params.iter().filter(|other| other.name == param.name);
            assert!(same.into_iter().all(|other| other.kind.json_type() == param.kind.json_type()), "{}", param.name);
        }
    }
}

#[test]
fn examples_are_calls_of_their_action() {
    for (tool, action) in CATALOGUE.iter().flat_map(|tool| tool.actions.iter().map(move |action| (tool, action))) {
        let example: Map<String, Value> = serde_json::from_str(action.example).expect(action.name);
        assert_eq!(tool.selected(&example).expect("a name").as_deref(), Some(action.name));
        let selects = |name: &str| matches!(tool.selector, Selector::Param(param) if param == name);
        let is_declared = |name: &str| selects(name) || action.params.iter().any(|param| param.name == name);
        assert!(example.keys().all(|name| is_declared(name)), "{}", action.name);
        let missing = action.params.iter().find(|param| param.required && !example.contains_key(param.name));
        assert!(missing.is_none(), "{}: {:?}", action.name, missing.map(|param| param.name));
    }
}

#[test]
fn texts_are_lines() {
    for action in actions() {
        assert!(!action.summary.is_empty() && !action.summary.ends_with('.'), "{}", action.name);
        assert!(action.notes.is_empty() || action.notes.ends_with('.'), "{}", action.name);
        assert!(!action.summary.contains('\n') && !action.notes.contains('\n'), "{}", action.name);
    }
}

#[test]
fn a_choice_names_its_words() {
    for param in actions().flat_map(|action| action.params) {
        let Some(choices) = param.choices else { continue };
        let (words, meaning) = (choices.words(), param.meaning());
        assert!(words.iter().any(|word| meaning.contains(word)), "{}: {meaning}", param.name);
        if let Preset::Word(word) = param.preset {
            assert!(words.contains(&word), "{}: {word}", param.name);
        }
    }
}
