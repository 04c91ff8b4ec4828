//! The OpenAPI document is true: the server serves it, each operation answers as described, and each route is described.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::read;
use super::schema::violations;
use crate::server::Server;
use crate::support::repository;

/// The session of the examples; a real one takes its place.
const EXAMPLE_SESSION: &str = "pty_0123abcd";
/// The event of the examples.
const EXAMPLE_EVENT: &str = "pty_20260101_000000_01234567";
/// Operations that others depend on, in this order.
const FIRST: [&str; 6] = ["desktopAuth", "registerSession", "registerLeader", "registerAgent", "talk", "emit"];
/// Operations that take something away.
const LAST: [&str; 3] = ["deregisterLeader", "unregisterSession", "reset"];
/// Routes for browsers and sockets, which are no JSON over HTTP.
const NOT_DESCRIBED: [&str; 3] = ["/ui", "/ws/", "/mcp"];

/// An operation with its place in the document.
struct Operation<'a> {
    path: &'a str,
    method: String,
    described: &'a Value,
}

fn operations(document: &Value) -> Vec<Operation<'_>> {
    let paths = document["paths"].as_object().expect("paths");
    let mut all: Vec<_> = paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("methods");
            methods.iter().map(move |(method, described)| Operation { path, method: method.to_uppercase(), described })
        })
        .collect();
    all.sort_by_key(|operation| {
        let id = operation.described["operationId"].as_str().expect("an operationId");
        let first = FIRST.iter().position(|first| *first == id).map_or(0, |at| at as i32 - 100);
        LAST.iter().position(|last| *last == id).map_or(first, |at| at as i32 + 100)
    });
    assert!(all.len() > 30, "only {} operations", all.len());
    all
}

fn document() -> Value {
    let text = read(&repository().join("src/server/openapi.json"));
    serde_json::from_str(&text).expect("the document is JSON")
}

/// The parameters of a place (`path`, `query`, `header`) that have an example.
fn parameters<'a>(operation: &'a Operation<'_>, place: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let all = operation.described["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter()
        .filter(move |parameter| parameter["in"] == place)
        .filter_map(|parameter| Some((parameter["name"].as_str().expect("a name"), parameter.get("example")?)))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn every_operation_answers_as_described() {
    let document = document();
    let server = Server::start();
    assert_eq!(server.get("/openapi.json").json(), document, "the server serves the document");
    let (session, _) = server.create();
    let mut event = String::new();
    let mut secrets = BTreeMap::new();
    for operation in operations(&document) {
        let name = format!("{} {}", operation.method, operation.path);
        let real = |text: &str| text.replace(EXAMPLE_SESSION, &session).replace(EXAMPLE_EVENT, &event);
        let mut path = real(operation.path);
        for (parameter, example) in parameters(&operation, "path") {
            path = path.replace(&format!("{{{parameter}}}"), &real(&plain(example)));
        }
        let query: Vec<_> =
            parameters(&operation, "query").map(|(name, value)| format!("{name}={}", real(&plain(value)))).collect();
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        let mut headers: Vec<(&str, String)> =
            parameters(&operation, "header").map(|(name, value)| (name, plain(value))).collect();
        if operation.described["operationId"] == "desktopAuth" {
            secrets.insert("desktopSecret", headers[0].1.clone());
        }
        if operation.described["security"].as_array().is_some_and(|kinds| kinds[0].get("desktopSecret").is_some()) {
            headers.push(("X-Kuroryuu-Desktop-Secret", secrets["desktopSecret"].clone()));
        }
        let request = &operation.described["requestBody"]["content"]["application/json"];
        let body = request.get("example").map(|example| real(&example.to_string())).unwrap_or_default();
        if !body.is_empty() {
            let problems = violations(&document, &request["schema"], &request["example"]);
            assert!(problems.is_empty(), "{name}: the example of a request: {problems:?}");
            headers.push(("Content-Type", "application/json".to_owned()));
        }
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let response = server.http(&operation.method, &path, &headers, body.as_bytes());
        assert_eq!(response.status, 200, "{name}: {}", response.body);
        assert_eq!(response.header("content-type"), Some("application/json"), "{name}");
        let schema = &operation.described["responses"]["200"]["content"]["application/json"]["schema"];
        let answer = response.json();
        let problems = violations(&document, schema, &answer);
        assert!(problems.is_empty(), "{name}: {problems:?} in {answer}");
        assert_ne!(answer["ok"], json!(false), "{name}: the example is refused: {answer}");
        if operation.described["operationId"] == "emit" {
            event = answer["id"].as_str().expect("an id").to_owned();
        }
    }
}

/// Refusals have the described statuses and shapes.
#[test]
fn refusals_answer_as_described() {
    let document = document();
    let server = Server::start();
    let (session, _) = server.create();
    let dangerous = ["rm -rf ", "/"].concat();
    let blocked = json!({ "session_id": session, "command": dangerous }).to_string();
    for (method, path, body, status) in [
        ("get", "/v1/agents/leader", "", 404),
        ("get", "/v1/pty-traffic/events/{id}", "", 404),
        ("get", "/v1/pty-traffic/sessions/{id}", "", 404),
        ("get", "/pty/is-leader", "", 400),
        ("delete", "/v1/pty/reset", "", 403),
        ("post", "/v1/pty/register", "{}", 403),
        ("post", "/_x9k_desktop_auth", "", 422),
        ("post", "/v1/agents/register", "{}", 422),
        ("post", "/v1/pty-traffic/emit", "{}", 400),
        ("post", "/v1/pty-traffic/emit", "[]", 422),
        ("post", "/pty/talk", "{}", 400),
        ("post", "/pty/talk", r#"{"session_id":"nope","command":"ls"}"#, 404),
        ("post", "/pty/talk", &blocked, 403),
    ] {
        let described = &document["paths"][path][method]["responses"][status.to_string()];
        assert!(described.is_object(), "{method} {path} does not describe {status}");
        let headers: &[_] = if body.is_empty() { &[] } else { &[("Content-Type", "application/json")] };
        let real = path.replace("{id}", "nope");
        let response = server.http(&method.to_uppercase(), &real, headers, body.as_bytes());
        assert_eq!(response.status, status, "{method} {path}: {}", response.body);
        let schema = &described["content"]["application/json"]["schema"];
        let problems = violations(&document, schema, &response.json());
        assert!(problems.is_empty(), "{method} {path}: {problems:?} in {}", response.body);
    }
}

/// The routes of the sources and those of the document are the same.
#[test]
fn every_route_is_described() {
    let mut routes = BTreeSet::new();
    let folder = repository().join("src/server");
    for entry in std::fs::read_dir(folder).expect("src/server") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let text = read(&path);
            let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
            routes.extend(shipped.split(".route(\"").skip(1).filter_map(|rest| {
                let (path, rest) = rest.split_once('"')?;
                let method = rest.trim_start_matches([',', ' ']).split(['(', '.']).next()?;
                let method = if ["get", "post", "delete", "put"].contains(&method) { method } else { "get" };
                Some((path.to_owned(), method.to_uppercase()))
            }));
        }
    }
    routes.retain(|(path, _)| !NOT_DESCRIBED.iter().any(|prefix| path.starts_with(prefix)));
    let document = document();
    let described: BTreeSet<_> =
        operations(&document).into_iter().map(|operation| (operation.path.to_owned(), operation.method)).collect();
    assert_eq!(routes, described);
}

#[test]
fn the_document_has_the_version_of_the_program() {
    assert_eq!(document()["info"]["version"], env!("CARGO_PKG_VERSION"));
}
