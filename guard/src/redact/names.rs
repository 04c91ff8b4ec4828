//! Which names hold secrets: by their segments, so that `KEYBOARD` and `TOKENIZERS` are words of their own.

use std::ops::Range;

use super::words::{Words, ends_with};

/// What a name promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// A password or the like.
    Password,
    /// A secret, credentials.
    Secret,
    /// A token.
    Token,
    /// A key that is known to be secret: `api_key`, `private_key`.
    Key,
    /// Some key: `stripe_key`, `DEPLOY_KEY`.
    AnyKey,
    /// A name that is used for secrets among others: `auth`, `pat`, `sig`.
    Perhaps,
}

/// A name that may hold a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// What it promises.
    pub(super) group: Group,
    /// Nothing follows that would make it the name of something else.
    pub(super) is_sure: bool,
}

/// Names that are remembered.
const MEMO_SIZE: usize = 16;
/// Segments at most; longer names are no names.
const MAX_SEGMENTS: usize = 16;

/// What follows a secret word and leaves it one.
static NEUTRAL: Words = Words::new(&[
    "data",
    "value",
    "val",
    "base64",
    "b64",
    "pem",
    "json",
    "string",
    "str",
    "text",
    "plain",
    "plaintext",
    "raw",
    "prod",
    "production",
    "dev",
    "staging",
    "test",
    "live",
    "sandbox",
    "old",
    "new",
    "current",
    "primary",
    "secondary",
    "backup",
    "main",
    "default",
    "hex",
    "env",
    "base",
]);

/// What follows a secret word and makes it the name of something about secrets.
static ABOUT: Words = Words::new(&[
    "name",
    "names",
    "id",
    "ids",
    "file",
    "files",
    "filename",
    "path",
    "paths",
    "dir",
    "folder",
    "url",
    "uri",
    "endpoint",
    "host",
    "port",
    "type",
    "types",
    "kind",
    "format",
    "length",
    "len",
    "size",
    "limit",
    "limits",
    "count",
    "counts",
    "min",
    "max",
    "ttl",
    "expiry",
    "expires",
    "expiration",
    "expire",
    "expired",
    "age",
    "timeout",
    "policy",
    "prompt",
    "hint",
    "field",
    "label",
    "header",
    "prefix",
    "suffix",
    "column",
    "ref",
    "refs",
    "arn",
    "version",
    "algorithm",
    "alg",
    "algo",
    "mode",
    "enabled",
    "disabled",
    "required",
    "provider",
    "store",
    "manager",
    "source",
    "command",
    "cmd",
    "helper",
    "usage",
    "budget",
    "rate",
    "var",
    "variable",
    "status",
    "state",
    "fingerprint",
    "layout",
    "map",
    "board",
    "ring",
    "server",
    "index",
    "order",
    "exists",
    "valid",
    "error",
    "changed",
    "rotation",
    "regex",
    "pattern",
    "attempts",
    "method",
    "class",
    "template",
    "placeholder",
    "description",
    "bits",
    "position",
    "backend",
    "used",
]);

/// What stands before `key` and makes it no secret.
static OPEN_KEYS: Words = Words::new(&[
    "public",
    "pub",
    "primary",
    "foreign",
    "sort",
    "partition",
    "cache",
    "hot",
    "short",
    "map",
    "dict",
    "object",
    "s3",
    "sub",
    "group",
    "unique",
    "index",
    "composite",
    "row",
    "range",
    "lookup",
    "i18n",
    "translation",
    "message",
    "route",
    "routing",
    "dedup",
    "idempotency",
    "json",
    "yaml",
    "host",
    "issue",
    "project",
    "ticket",
    "gpg",
    "pgp",
    "ctrl",
    "shift",
    "arrow",
    "any",
    "press",
    "known",
    "signed",
    "socket",
    "restore",
]);

/// What stands before `key` and makes it one.
static SECRET_KEYS: Words = Words::new(&[
    "api",
    "access",
    "secret",
    "private",
    "auth",
    "account",
    "shared",
    "preshared",
    "encryption",
    "encrypt",
    "decryption",
    "decrypt",
    "master",
    "signing",
    "session",
    "client",
    "service",
    "app",
    "application",
    "license",
    "deploy",
    "storage",
    "subscription",
    "admin",
    "write",
    "ingest",
    "webhook",
    "jwt",
    "hmac",
    "aes",
    "cookie",
    "root",
    "seed",
    "wallet",
    "consumer",
    "developer",
    "psk",
    "tls",
    "ssl",
    "ssh",
    "rsa",
    "host_private",
    "integration",
    "publishable",
    "instrumentation",
    "functions",
    "function",
    "bot",
]);

/// What stands before `token` and makes it no secret.
static OPEN_TOKENS: Words = Words::new(&[
    "next",
    "page",
    "continuation",
    "sync",
    "max",
    "min",
    "num",
    "total",
    "count",
    "prompt",
    "completion",
    "input",
    "output",
    "cancellation",
    "cancel",
    "eos",
    "bos",
    "pad",
    "unk",
    "sep",
    "cls",
    "mask",
    "stop",
    "start",
    "end",
    "special",
    "unexpected",
    "per",
    "used",
    "remaining",
    "cached",
    "reasoning",
    "context",
    "new",
    "of",
    "by",
    "design",
    "token",
    "invalid",
    "first",
    "last",
    "previous",
]);

/// What stands before `secret` and makes it a question of showing.
static SHOWN_SECRETS: Words = Words::new(&["allow", "with", "include", "omit"]);

/// Remembers what names were judged to be, by where they stand in the text.
#[derive(Debug, Default)]
pub(super) struct NameMemo([(Range<usize>, Option<Name>); MEMO_SIZE]);

impl NameMemo {
    /// Judges a name of the text.
    pub(super) fn judge(&mut self, text: &[u8], range: Range<usize>) -> Option<Name> {
        let name = &text[range.clone()];
        let (Some(first), Some(last)) = (name.first(), name.last()) else { return None };
        let place = usize::from(first ^ last.rotate_left(2)) ^ name.len();
        let (known, judged) = &mut self.0[place % MEMO_SIZE];
        if text[known.clone()] != *name {
            (*known, *judged) = (range, judge(name));
        }
        *judged
    }
}

/// Judges a name: letters, digits, `_`, `-`, `.`.
pub(super) fn judge(name: &[u8]) -> Option<Name> {
    let mut segments = [&name[..0]; MAX_SEGMENTS];
    let count = split(name, &mut segments)?;
    let segments = &segments[..count];
    let (at, group) = segments.iter().enumerate().rev().find_map(|(at, segment)| Some((at, word(segment)?)))?;
    let mut before = segments[..at].iter().rev();
    let nearest = before.next().copied().unwrap_or_default();
    let group = match group {
        Group::AnyKey if OPEN_KEYS.has(nearest) => return None,
        Group::AnyKey if SECRET_KEYS.has(nearest) => Group::Key,
        Group::AnyKey if at == 0 && count == 1 => Group::Perhaps,
        Group::Secret if SHOWN_SECRETS.has(nearest) => return None,
        Group::Token if OPEN_TOKENS.has(nearest) => return None,
        Group::Perhaps if count > 1 && at + 1 < count => return None,
        group => group,
    };
    let mut is_sure = true;
    for segment in &segments[at + 1..] {
        if ABOUT.has(segment) {
            return None;
        }
        is_sure &= segment.iter().all(u8::is_ascii_digit) || NEUTRAL.has(segment);
    }
    Some(Name { group, is_sure })
}

/// The secret word that a segment is, or ends with where it was written together.
fn word(segment: &[u8]) -> Option<Group> {
    static PASSWORDS: Words = Words::new(&[
        "passwords",
        "pwd",
        "pass",
        "pw",
        "psw",
        "userpwd",
        "sshpass",
        "dbpass",
        "userpass",
        "mypass",
        "rootpass",
        "adminpass",
        "keypass",
        "storepass",
        "rootpw",
        "psk",
    ]);
    static SECRETS: Words = Words::new(&["secrets", "credential", "credentials", "creds", "cred"]);
    static PERHAPS: Words =
        Words::new(&["auth", "pat", "sas", "sig", "signature", "salt", "tokens", "keys", "bearer", "dsn", "otp"]);
    const KEYS: [&str; 11] = [
        "apikey",
        "accesskey",
        "secretkey",
        "privatekey",
        "authkey",
        "signingkey",
        "masterkey",
        "accountkey",
        "sharedkey",
        "encryptionkey",
        "presharedkey",
    ];
    let ends = |words: &[&str]| words.iter().any(|word| ends_with(segment, word));
    // What a word ends with decides which lists it may be in; most segments end with something else.
    let group = match segment.last()?.to_ascii_lowercase() {
        b'd' if ends(&["password", "passwd"]) => Group::Password,
        b'e' if ends(&["passphrase", "passcode"]) => Group::Password,
        b't' if ends(&["passwort", "kennwort"]) => Group::Password,
        b't' if ends(&["secret"]) => Group::Secret,
        b't' if segment.eq_ignore_ascii_case(b"jwt") => Group::Token,
        b'n' if ends(&["token"]) => Group::Token,
        b's' if ends(&["authkeys"]) => Group::Key,
        b'y' if segment.eq_ignore_ascii_case(b"key") => Group::AnyKey,
        b'y' if ends(&["key"]) && ends(&KEYS) => Group::Key,
        b'd' | b'k' | b's' | b'w' if PASSWORDS.has(segment) => Group::Password,
        b'd' | b's' | b'l' if SECRETS.has(segment) => Group::Secret,
        _ if PERHAPS.has(segment) => Group::Perhaps,
        _ => return None,
    };
    Some(group)
}

/// Cuts a name at its separators and where capitals begin a word. `None` when there are too many pieces.
fn split<'a>(name: &'a [u8], segments: &mut [&'a [u8]; MAX_SEGMENTS]) -> Option<usize> {
    let (mut count, mut start) = (0, 0);
    let mut cut = |from: usize, until: usize| {
        if from < until {
            *segments.get_mut(count)? = &name[from..until];
            count += 1;
        }
        Some(())
    };
    for at in 0..name.len() {
        let byte = name[at];
        if !byte.is_ascii_alphanumeric() {
            cut(start, at)?;
            start = at + 1;
        } else if at > start && byte.is_ascii_uppercase() {
            let after_lower = name[at - 1].is_ascii_lowercase() || name[at - 1].is_ascii_digit();
            let before_lower =
                name[at - 1].is_ascii_uppercase() && name.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            if after_lower || before_lower {
                cut(start, at)?;
                start = at;
            }
        }
    }
    cut(start, name.len())?;
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_by_whole_segments() {
        let groups = [
            (Group::Password, "DB_PASSWORD PGPASSWORD MYSQL_PWD spring.datasource.password adminPassword SSHPASS"),
            (Group::Secret, "CLIENT_SECRET clientSecret app-secret AWS_SECRET"),
            (Group::Token, "NPM_TOKEN _authToken accessToken MY_TOKEN_2 GITHUB_TOKEN X-Auth-Token"),
            (
                Group::Key,
                "API_KEY apiKey APIKey AWS_SECRET_ACCESS_KEY aws_secret_access_key PrivateKey client-key-data",
            ),
            (Group::AnyKey, "STRIPE_KEY deepl_key"),
        ];
        for (group, names) in groups {
            for name in names.split(' ') {
                assert_eq!(judge(name.as_bytes()), Some(Name { group, is_sure: true }), "{name}");
            }
        }
        let others = "KEYBOARD_LAYOUT TOKENIZERS_PATH MAX_OUTPUT_TOKEN monkey hotkey secretName SECRET_NAME TOKEN_URL \
                      public_key PublicKey primary_key AWS_ACCESS_KEY_ID passwordless PASSWORD_MIN_LENGTH KEY_FILE \
                      secretary private_key_id next_token bypass author";
        for name in others.split_whitespace() {
            assert_eq!(judge(name.as_bytes()), None, "{name}");
        }
        assert!(!judge(b"TOKEN_FOR_GITHUB").expect("perhaps").is_sure);
    }
}
