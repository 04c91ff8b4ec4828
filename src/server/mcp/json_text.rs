//! JSON serialization of replies. A screen is serialized twice: in the action's reply, and as a string inside a
//! message, where its quotes are escaped again. Escaping dominates the cost, so it uses SIMD.

use std::io::Write as _;

use serde_json::{Map, Value};

use crate::model::digits;
use crate::tools::{Field, Screen, lines_of};

/// Appends a value.
pub(super) fn push(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => match number.as_u64() {
            Some(whole) => push_number(whole, out),
            // Writing to a vector cannot fail.
            None => drop(write!(out, "{number}")),
        },
        Value::String(text) => push_text(text, out),
        Value::Array(values) => push_all(b'[', values, b']', out, push),
        Value::Object(fields) => push_fields(fields, None, out),
    }
}

/// Appends an object: fields, and those of a screen.
pub(super) fn push_fields(fields: &Map<String, Value>, screen: Option<&Screen>, out: &mut Vec<u8>) {
    out.push(b'{');
    let first = out.len();
    let push_name = |name: &str, out: &mut Vec<u8>| {
        if out.len() > first {
            out.push(b',');
        }
        push_text(name, out);
        out.push(b':');
    };
    for (name, value) in fields {
        push_name(name, out);
        push(value, out);
    }
    if let Some(screen) = screen {
        screen.each_field(|name, field| {
            push_name(name, out);
            push_field(field, out);
        });
    }
    out.push(b'}');
}

fn push_field(field: Field<'_>, out: &mut Vec<u8>) {
    match field {
        Field::Number(None) | Field::Cell(None) => out.extend_from_slice(b"null"),
        Field::Number(Some(number)) => push_number(number, out),
        Field::Flag(flag) => out.extend_from_slice(if flag { b"true" } else { b"false" }),
        Field::Text(text) => push_text(text, out),
        Field::Lines(text, count) => push_all(b'[', lines_of(text, count), b']', out, push_text),
        Field::Numbers(numbers) => push_all(b'[', numbers, b']', out, |number, out| push_number(*number, out)),
        Field::Cell(Some(cell)) => {
            out.extend_from_slice(b"{\"row\":");
            push_number(cell.row.into(), out);
            out.extend_from_slice(b",\"col\":");
            push_number(cell.col.into(), out);
            out.push(b'}');
        }
    }
}

fn push_number(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(digits(number, 1, &mut [0; 20]));
}

/// Appends a quoted string.
pub(super) fn push_text(text: &str, out: &mut Vec<u8>) {
    json_escape_simd::escape_into(text, out);
}

/// Appends items between two brackets.
pub(super) fn push_all<T>(
    open: u8,
    things: impl IntoIterator<Item = T>,
    close: u8,
    out: &mut Vec<u8>,
    push: impl Fn(T, &mut Vec<u8>),
) {
    out.push(open);
    for (index, thing) in things.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        push(thing, out);
    }
    out.push(close);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_the_library_does() {
        let controls: String =
            (0..=0x20).chain([0x7f, 0x80, 0x9f, 0x2028, 0x1f389]).filter_map(char::from_u32).collect();
        for value in [
            json!(null),
            json!([true, false, null, 0, 9, 10, 1_234_567_890, -1, u64::MAX, i64::MIN, 1.5, 1e300, -0.0]),
            json!({ "a": [], "b": {}, "c": [[{}], [""]], "\"\\/": "\"quoted\" \\ / 漢字" }),
            json!(controls),
            json!({ "twice": json!({ "x": controls }).to_string() }),
        ] {
            let mut written = Vec::new();
            push(&value, &mut written);
            assert_eq!(String::from_utf8(written).expect("text"), value.to_string());
        }
        for screen in [Screen::sample(), Screen::sample_of_nothing()] {
            for besides in [json!({}), json!({ "ok": true, "clamped": { "max_lines": 200 } })] {
                let mut expected = besides.as_object().cloned().expect("an object");
                let mut written = Vec::new();
                push_fields(&expected, Some(&screen), &mut written);
                screen.each_field(|name, field| {
                    expected.insert(name.to_owned(), field.into());
                });
                let read: Value = serde_json::from_slice(&written).expect("JSON");
                assert_eq!(read, Value::Object(expected));
            }
        }
        // The odd character at every position of a text.
        for length in 0..70 {
            for at in 0..=length {
                let text = format!("{}\"\n{}", "x".repeat(at), "é".repeat(length - at));
                let mut written = Vec::new();
                push_text(&text, &mut written);
                assert_eq!(String::from_utf8(written).expect("text"), json!(text).to_string());
            }
        }
    }
}
