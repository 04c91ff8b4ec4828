//! The part of JSON Schema that the OpenAPI document uses. A keyword outside of that part is a fault of the document.

use serde_json::Value;

/// Where a value does not fit its schema, and how.
pub(super) fn violations(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Check { document, found: &mut found }.check(schema, value, "");
    found
}

struct Check<'a> {
    document: &'a Value,
    found: &'a mut Vec<String>,
}

impl Check<'_> {
    fn check(&mut self, schema: &Value, value: &Value, at: &str) {
        let rules = schema.as_object().unwrap_or_else(|| panic!("{at}: no schema: {schema}"));
        assert!(!rules.is_empty(), "{at}: an empty schema accepts everything");
        for (rule, wanted) in rules {
            match rule.as_str() {
                "description" | "additionalProperties" => {}
                "$ref" => self.check_reference(wanted, value, at),
                "type" => self.expect(has_type(wanted, value), at, || format!("{value} is not of type {wanted}")),
                "const" => self.expect(value == wanted, at, || format!("{value} is not {wanted}")),
                "enum" => {
                    let fits = wanted.as_array().expect("a list").contains(value);
                    self.expect(fits, at, || format!("{value} is none of {wanted}"));
                }
                "minimum" => self.expect(value.as_f64() >= wanted.as_f64(), at, || format!("{value} < {wanted}")),
                "maximum" => self.expect(value.as_f64() <= wanted.as_f64(), at, || format!("{value} > {wanted}")),
                "required" => {
                    for name in wanted.as_array().expect("a list") {
                        let name = name.as_str().expect("a name");
                        self.expect(value.get(name).is_some(), at, || format!("{name} is missing"));
                    }
                }
                "properties" => {}
                "items" => {
                    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(wanted, item, &format!("{at}/{index}"));
                    }
                }
                "anyOf" => {
                    let choices = wanted.as_array().expect("a list");
                    let fits = choices.iter().any(|choice| violations(self.document, choice, value).is_empty());
                    self.expect(fits, at, || format!("{value} fits none of {wanted}"));
                }
                other => panic!("{at}: the keyword {other:?} is not checked"),
            }
        }
        self.check_members(schema, value, at);
    }

    fn check_reference(&mut self, reference: &Value, value: &Value, at: &str) {
        let pointer = reference.as_str().and_then(|reference| reference.strip_prefix('#')).expect("a local reference");
        let schema = self.document.pointer(pointer).unwrap_or_else(|| panic!("{at}: no {pointer}")).clone();
        self.check(&schema, value, at);
    }

    /// Members of an object, by their own schema or by that of all others.
    fn check_members(&mut self, schema: &Value, value: &Value, at: &str) {
        for (name, member) in value.as_object().into_iter().flatten() {
            let place = format!("{at}/{name}");
            match (schema["properties"].get(name), schema.get("additionalProperties")) {
                (Some(own), _) => self.check(own, member, &place),
                (None, Some(Value::Bool(false))) => self.found.push(format!("{place}: is not described")),
                (None, Some(others @ Value::Object(_))) => self.check(others, member, &place),
                (None, _) => {}
            }
        }
    }

    fn expect(&mut self, fits: bool, at: &str, problem: impl FnOnce() -> String) {
        if !fits {
            self.found.push(format!("{at}: {}", problem()));
        }
    }
}

fn has_type(wanted: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("no type {other:?}"),
    };
    match wanted {
        Value::String(name) => is(name),
        names => names.as_array().expect("a list").iter().any(|name| is(name.as_str().expect("a name"))),
    }
}

#[test]
fn what_does_not_fit_is_found() {
    let document = serde_json::json!({ "named": { "type": "string" } });
    for (schema, value, fits) in [
        (r#"{"type":"integer"}"#, "1", true),
        (r#"{"type":"integer"}"#, "1.5", false),
        (r#"{"type":["string","null"]}"#, "null", true),
        (r#"{"const":true}"#, "false", false),
        (r#"{"enum":["a",null]}"#, "\"b\"", false),
        (r#"{"type":"integer","minimum":1,"maximum":3}"#, "4", false),
        (r#"{"type":"object","required":["a"]}"#, "{}", false),
        (r#"{"type":"object","properties":{"a":{"type":"string"}}}"#, r#"{"a":1}"#, false),
        (r#"{"type":"object","properties":{},"additionalProperties":false}"#, r#"{"a":1}"#, false),
        (r#"{"type":"object","additionalProperties":{"type":"integer"}}"#, r#"{"a":"x"}"#, false),
        (r#"{"type":"array","items":{"type":"string"}}"#, "[\"a\",1]", false),
        (r##"{"$ref":"#/named"}"##, "1", false),
        (r##"{"anyOf":[{"$ref":"#/named"},{"type":"null"}]}"##, "null", true),
    ] {
        let schema: Value = serde_json::from_str(schema).expect("JSON");
        let value: Value = serde_json::from_str(value).expect("JSON");
        assert_eq!(violations(&document, &schema, &value).is_empty(), fits, "{schema} {value}");
    }
}
