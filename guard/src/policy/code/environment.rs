//! Variables of the environment in programs: a lookup becomes the value that the line gives.

/// How a program names a variable of its environment: what stands before and behind the name.
const ENVIRONMENT: [(&str, &str); 17] = [
    ("os.environ['", "']"),
    ("os.environ[\"", "\"]"),
    ("environ['", "']"),
    ("environ[\"", "\"]"),
    ("os.environ.get('", "')"),
    ("os.environ.get(\"", "\")"),
    ("os.getenv('", "')"),
    ("os.getenv(\"", "\")"),
    ("getenv('", "')"),
    ("getenv(\"", "\")"),
    ("process.env['", "']"),
    ("process.env[\"", "\"]"),
    ("ENV['", "']"),
    ("ENV[\"", "\"]"),
    ("ENV.fetch('", "')"),
    ("$ENV{'", "'}"),
    ("$ENV{", "}"),
];
/// Lookups that are resolved.
const MOST_LOOKUPS: usize = 64;

/// The code with the values of the variables that it looks up, where the line tells them; none where it looks up none.
pub(super) fn with_environment(code: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut code = node_lookups(code);
    let mut is_changed = false;
    for (open, close) in ENVIRONMENT {
        let mut from = 0;
        for _ in 0..MOST_LOOKUPS {
            let Some(at) = code[from..].find(open).map(|at| from + at) else { break };
            let rest = &code[at + open.len()..];
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
            let Some(value) = variable(name).filter(|_| rest[name.len()..].starts_with(close)) else {
                from = at + open.len();
                continue;
            };
            let end = at + open.len() + name.len() + close.len();
            // Within braces it is part of the literal around it.
            let braces = code[..at].ends_with('{') && code[end..].starts_with('}');
            let value = value.replace(['\'', '"', '\\'], " ");
            let (range, text) = if braces { (at - 1..end + 1, value) } else { (at..end, format!("'{value}'")) };
            from = range.start + text.len();
            code.replace_range(range, &text);
            is_changed = true;
        }
    }
    is_changed.then_some(code)
}

/// `process.env.NAME` as the form with brackets.
fn node_lookups(code: &str) -> String {
    let mut parts = code.split("process.env.");
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        out.push_str(&format!("process.env['{name}']{rest}"));
    }
    out
}
