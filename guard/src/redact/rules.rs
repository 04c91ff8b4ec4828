//! The rules: what is looked for, and what is shown in its place.
//!
//! Each has a keyword that stands in everything it hides, and examples of what it hides and what it leaves; a test
//! tries them all. Tokens by their vendors are in the tables beside; here are those that places and names give away.
//!
//! In examples `{36}` stands for as many letters and digits, `{h40}` for hexadecimal digits, `{d12}` for decimal ones,
//! `{u16}` for capitals and digits, `{l20}` for small letters and digits, `{b64}` for base64, `{w35}` for letters,
//! digits, `_` and `-`; so nothing in the repository looks like a token.

use std::ops::Range;
use std::sync::LazyLock;

use super::scan::Scan;
use super::{assign, blocks, places, vendors_cloud, vendors_code, vendors_services};

/// How a rule finds what it hides. An expression is tried at the keyword; its first group is hidden, or all of it.
#[derive(Clone, Copy)]
pub(super) enum Find {
    /// Anywhere.
    At(&'static str),
    /// Where no word goes on.
    Token(&'static str),
    /// Where no word and no encoded data go on: for prefixes that come by chance.
    Strict(&'static str),
    /// The same for a token whose first part is letters, digits, `_` and `-`, and ends with a dot or with padding.
    Dotted(&'static str),
    /// Not at the keyword, but as many token characters before it, at most.
    Back(usize, &'static str),
    /// By its own grammar.
    Code(fn(&mut Scan<'_>, Range<usize>)),
}

impl Find {
    /// The expression has a group that is not only for counting: a bracket that no question mark follows.
    const fn has_group(&self) -> bool {
        let regex = match self {
            Self::At(regex) | Self::Token(regex) | Self::Strict(regex) | Self::Dotted(regex) | Self::Back(_, regex) => {
                regex.as_bytes()
            }
            Self::Code(_) => return false,
        };
        let mut at = 0;
        while at + 1 < regex.len() {
            match regex[at] {
                b'\\' => at += 1,
                b'(' if regex[at + 1] != b'?' => return true,
                _ => {}
            }
            at += 1;
        }
        false
    }

    /// The keyword counts only as it is written.
    pub(super) fn respects_case(self) -> bool {
        match self {
            Self::At(regex) | Self::Token(regex) | Self::Strict(regex) | Self::Dotted(regex) | Self::Back(_, regex) => {
                !regex.contains("(?i")
            }
            Self::Code(_) => false,
        }
    }
}

/// One rule.
pub(super) struct Rule {
    /// Its name.
    pub(super) id: &'static str,
    /// What is shown.
    pub(super) mask: &'static str,
    /// One of them stands where it is tried, in capitals or not.
    pub(super) keywords: &'static [&'static str],
    /// What it hides.
    pub(super) find: Find,
    /// Only the groups of its expression are hidden.
    pub(super) has_group: bool,
    /// What is found may still be a placeholder or a reference.
    pub(super) is_judged: bool,
    /// Texts in which it hides something.
    #[cfg_attr(not(test), expect(dead_code, reason = "examples are for the tests and the reader"))]
    pub(super) hides: &'static [&'static str],
    /// Texts in which nothing is hidden.
    #[cfg_attr(not(test), expect(dead_code, reason = "examples are for the tests and the reader"))]
    pub(super) leaves: &'static [&'static str],
}

type Texts = &'static [&'static str];

/// A rule of a table.
pub(super) const fn rule(
    id: &'static str,
    mask: &'static str,
    keywords: Texts,
    find: Find,
    hides: Texts,
    leaves: Texts,
) -> Rule {
    Rule { id, mask, keywords, find, has_group: find.has_group(), is_judged: false, hides, leaves }
}

/// The same, whose finds are judged once more.
const fn judged(
    id: &'static str,
    mask: &'static str,
    keywords: Texts,
    find: Find,
    hides: Texts,
    leaves: Texts,
) -> Rule {
    Rule { id, mask, keywords, find, has_group: find.has_group(), is_judged: true, hides, leaves }
}

/// All rules.
pub(super) static RULES: LazyLock<Vec<&'static Rule>> = LazyLock::new(|| {
    let tables = [PLACES, vendors_code::RULES, vendors_cloud::RULES, vendors_services::RULES];
    tables.into_iter().flatten().collect()
});

const KEY: &str = "[REDACTED_PRIVATE_KEY]";
const PASSWORD: &str = "[REDACTED_PASSWORD]";

static PLACES: &[Rule] = &[
    rule(
        "private-key",
        KEY,
        &["PRIVATE KEY", "OpenVPN Static key V"],
        Find::Code(blocks::find_frame),
        &[
            "-----BEGIN RSA PRIVATE KEY-----\n{b64}\n{b64}\n{b20}==\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN OPENSSH PRIVATE KEY-----\n{b70}\n{b70}\n{b30}\n-----END OPENSSH PRIVATE KEY-----",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n{b64}\n{b30}\n=ab12\n-----END PGP PRIVATE KEY BLOCK-----",
            "\"private_key\": \"-----BEGIN PRIVATE KEY-----\\n{b64}\\n{b64}\\n-----END PRIVATE KEY-----\\n\"",
            "{b64}\n{b64}\n{b12}\n-----END EC PRIVATE KEY-----",
            "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{b70}\n{b70}\n---- END SSH2 ENCRYPTED PRIVATE KEY ----",
            "-----BEGIN OpenVPN Static key V1-----\n{h32}\n{h32}\n-----END OpenVPN Static key V1-----",
        ],
        &[
            "-----BEGIN CERTIFICATE-----\n{b64}\n{b64}\n-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----\n{b64}\n{b20}\n-----END PUBLIC KEY-----",
            "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{b64}\n=ab12\n-----END PGP PUBLIC KEY BLOCK-----",
            "the PRIVATE KEY is kept in a safe\nand nowhere else",
            "grep -r 'BEGIN RSA PRIVATE KEY' .\nsrc/main.rs",
            "-----BEGIN PRIVATE KEY-----\n$ ls\nREADME",
        ],
    ),
    rule(
        "key-file",
        KEY,
        &["Private-Lines: ", "secret key"],
        Find::Code(blocks::find_heading),
        &["Private-Lines: 2\n{b64}\n{b40}\nPrivate-MAC: x", "untrusted comment: minisign encrypted secret key\n{b90}"],
        &[
            "Public-Lines: 2\n{b64}\n{b40}",
            "untrusted comment: minisign public key\n{b56}",
            "the secret key\nis hidden",
        ],
    ),
    rule(
        "encoded-private-key",
        KEY,
        &["LS0tLS1CRUdJTi", "LS0tLSBCRUdJTi"],
        Find::Code(blocks::find_encoded),
        &["data LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo{b64}"],
        &["certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk{b64}"],
    ),
    rule(
        "json-web-key",
        KEY,
        &["\"kty\""],
        Find::Code(places::find_web_key),
        &["{\"kty\":\"RSA\",\"n\":\"{w40}\",\"e\":\"AQAB\",\"d\":\"{w43}\"}", "{\"kty\": \"oct\", \"k\": \"{w43}\"}"],
        &["{\"kty\":\"RSA\",\"n\":\"{w40}\",\"e\":\"AQAB\"}"],
    ),
    rule(
        "url-password",
        PASSWORD,
        &["://"],
        Find::Code(places::find_url),
        &[
            "postgres://app:{16}@db.example:5432/app",
            "https://user:{8}/{8}@git.example/r.git",
            "redis://:{12}@cache.example:6379/0",
            "https://{40}@git.example/org/repo.git",
            "amqp://guest:tiger7@mq.example",
            "http://u:123456@h.example/",
        ],
        &[
            "http://localhost:3000/@me",
            "https://registry.example/@types/node/-/node-1.2.3.tgz",
            "ssh://git@git.example:22/org/repo.git",
            "postgres://app:$DB_PASSWORD@db/app",
            "postgres://app:***@db/app",
            "https://user:<password>@host/",
            "redis://localhost:6379/0",
            "https://user@host.example/x",
            "https://user:password@host.example/",
        ],
    ),
    rule(
        "driver-password",
        PASSWORD,
        &["@tcp(", "@unix("],
        Find::Code(places::find_driver),
        &["dsn: app:{14}@tcp(db.example:3306)/app"],
        &["dsn: app:$PASS@tcp(db:3306)/app", "root@tcp(localhost:3306)/"],
    ),
    judged(
        "oracle-password",
        PASSWORD,
        &["jdbc:oracle:thin:"],
        Find::At(r#"jdbc:oracle:thin:[^/\s"']{1,64}/([^@\s"']{1,128})@"#),
        &["jdbc:oracle:thin:app/{12}@db.example:1521/x"],
        &["jdbc:oracle:thin:@db.example:1521/x"],
    ),
    judged(
        "password-file",
        PASSWORD,
        &[":5432:", ":3306:", ":1433:", ":*:*:"],
        Find::Back(64, r#"[\w.*-]+:(?:\d{2,5}|\*):[\w*.-]{1,64}:[\w*.-]{1,64}:([^\s:"']{4,})"#),
        &["db.example:5432:app:appuser:{16}"],
        &["docker run -p 127.0.0.1:5432:5432 postgres"],
    ),
    rule(
        "authorization-header",
        "[REDACTED_TOKEN]",
        &["authorization"],
        Find::Code(places::find_authorization),
        &[
            "Authorization: Basic {b24}",
            "authorization: token {40}",
            "-H 'Authorization: ApiKey {30}'",
            "\"Authorization\": \"{32}\"",
            "Proxy-Authorization: Basic {b20}",
            "Authorization: Bearer abc123",
            "curl -H 'authorization: bearer {40}'",
            "Authorization: AWS4-HMAC-SHA256 Credential=x/20260101/r/s3/aws4_request, Signature={h64}",
        ],
        &[
            "Authorization: Bearer $TOKEN",
            "Authorization: Bearer <token>",
            "authorization: required for this call",
            "Authorization: Basic realm",
            "authorization code flow",
        ],
    ),
    rule(
        "bearer",
        "[REDACTED]",
        &["bearer "],
        Find::Code(places::find_bearer),
        &["Bearer {40}", "with bearer {40}"],
        &[
            "the Bearer of this card",
            "Bearer realm=\"x\"",
            "Bearer $TOKEN",
            "Bearer <token>",
            "bearer authentication",
            "Bearer YOUR_TOKEN",
        ],
    ),
    rule(
        "basic-login",
        "[REDACTED_TOKEN]",
        &["basic "],
        Find::Code(places::find_basic),
        &["Basic YXBwOmFiYzEyM3h5eg=="],
        &["Basic usage", "Basic introduction to shells", "basic YWJjZGVmZ2g="],
    ),
    rule(
        "container-login",
        "[REDACTED_TOKEN]",
        &["\"auth\""],
        Find::Code(places::find_container_login),
        &["\"auth\": \"YXBwOmFiYzEyM3h5eg==\""],
        &["\"auth\": \"basic\"", "\"auth\": {}", "\"auth\": \"required\""],
    ),
    rule(
        "cookie",
        "[REDACTED_COOKIE]",
        &["cookie"],
        Find::Code(places::find_cookies),
        &["Cookie: theme=dark; session={32}", "set-cookie: sid={24}; Path=/; HttpOnly", "--cookie 'id={20}'"],
        &["Cookie: theme=dark; lang=en", "Set-Cookie: a=b; Path=/; Max-Age=3600", "cookie: yes", "cookies are good"],
    ),
    judged(
        "session-cookie",
        "[REDACTED_COOKIE]",
        &["sessid=", "sessionid=", "_session=", "connect.sid=", "csrftoken=", "xsrf-token=", "remember_token="],
        Find::Back(40, r"(?i)[\w.-]+=([\w%.~+/=-]{16,})"),
        &["PHPSESSID={26}", "JSESSIONID={u32}", "_app_session={40}"],
        &["sessionid=none", "JSESSIONID=$ID"],
    ),
    judged(
        "session-value",
        "[REDACTED_COOKIE]",
        &["session=", "sess="],
        Find::Token(r"(?i)sess(?:ion)?=([\w%.~+/=-]{24,})"),
        &["curl -b 'session={32}' https://x.example"],
        &["session=pty_{h12}", "session=$SESSION"],
    ),
    judged(
        "secret-set",
        "[REDACTED_SECRET]",
        &["secret set "],
        Find::Token(r#"secret set (?:[^\n|;]{0,120} )?(?:--body|-b)[ =]['"]?([^\s'"]{4,})"#),
        &["gh secret set X --body {20}"],
        &["gh secret set X < file", "gh secret set X --body \"$X\""],
    ),
    rule(
        "user-option",
        PASSWORD,
        &[" -u ", " --user ", " --user=", " --proxy-user ", " -U "],
        Find::Code(places::find_user_option),
        &["curl -u admin:{12} https://x.example", "curl --user 'app:hunter' https://x.example", "tool -u app:{10}"],
        &[
            "docker run -u 1000:1000 x",
            "curl -u admin https://x.example",
            "curl -u app:$PASS https://x",
            "id -u www-data:www-data",
        ],
    ),
    judged(
        "command-password",
        PASSWORD,
        &[
            "sshpass -",
            "redis-cli -",
            "docker login",
            "zip -P",
            "7z ",
            "ldapsearch",
            "ldapwhoami",
            "requirepass ",
            "masterauth ",
            "az login",
            "smbclient",
            "snmp",
        ],
        Find::Token(
            r#"(?:sshpass -p ?|redis-cli (?:[^\n|;]{0,80} )?-a |docker login (?:[^\n|;]{0,120} )?-p |(?:un)?zip -P ?|7z \w (?:[^\n|;]{0,80} )?-p|ldap\w+ (?:[^\n|;]{0,160} )?-w |requirepass |masterauth |az login (?:[^\n|;]{0,120} )?-p |smbclient (?:[^\n|;]{0,120} )?-U ['"]?[\w.\\/-]+%|snmp\w{1,12} (?:[^\n|;]{0,120} )?-[AX] )['"]?([^\s'"]{3,})"#,
        ),
        &[
            "sshpass -p {10} ssh x",
            "docker login -u app -p {14} r.example",
            "redis-cli -h x -a {12} ping",
            "zip -P {9} a.zip b",
            "snmpwalk -v3 -u app -A {12} host",
        ],
        &[
            "sshpass -p $PASS ssh x",
            "docker login -u app --password-stdin",
            "redis-cli -p 6379",
            "docker login r.example",
        ],
    ),
    judged(
        "mysql-password",
        PASSWORD,
        &["mysql", "mariadb"],
        Find::Token(r#"(?:mysql|mariadb)\w{0,12} (?:[^\n|;]{0,160}? )?-p['"]?([^\s'"]{3,})"#),
        &["mysql -u root -p{12} app", "mysqldump -h db -uroot -p'{10}' app"],
        &["mysql -u root -p app", "mysql -p", "mysql -u root -p$PASS app"],
    ),
    judged(
        "told-secret",
        "[REDACTED_SECRET]",
        &["unseal key ", "recovery key ", "x-honeycomb-team", "stats auth ", "convertto-securestring "],
        Find::At(
            r#"(?i)(?:(?:unseal|recovery) key \d{1,2}: |x-honeycomb-team['"]?[:=] {0,4}['"]?|stats auth [^\s:]{1,64}:|convertto-securestring (?:-string )?['"])([^\s'"]{6,})"#,
        ),
        &[
            "Unseal Key 1: {b44}",
            "X-Honeycomb-Team: {22}",
            "    stats auth admin:{12}",
            "$x = ConvertTo-SecureString '{12}' -AsPlainText",
        ],
        &[
            "the unseal key is kept elsewhere",
            "stats auth admin:$PASS",
            "ConvertTo-SecureString $plain -AsPlainText",
            "'x-honeycomb-team': process.env.KEY",
        ],
    ),
    judged(
        "openssl-password",
        PASSWORD,
        &["-pass", "-passin", "-passout"],
        Find::At(r#"-pass(?:in|out)?[ =]['"]?pass:([^\s'"]{3,})"#),
        &["openssl enc -aes-256-cbc -pass pass:{12} -in x", "openssl rsa -passin pass:hunter2 -in k"],
        &["openssl enc -pass file:x", "openssl rsa -passin pass:$PASS", "openssl enc -pass env:PASS"],
    ),
    judged(
        "piped-password",
        PASSWORD,
        &["echo "],
        Find::Token(
            r#"echo (?:-n )?['"]?(?:[\w.-]+:)?([^\s'"|]{4,})['"]? ?\| ?(?:sudo -S|(?:sudo )?chpasswd|(?:sudo )?passwd|docker login|helm registry login|podman login)"#,
        ),
        &["echo 'app:{10}' | chpasswd", "echo {12} | sudo -S ls", "echo {20} | docker login --password-stdin"],
        &["echo $PASS | docker login --password-stdin", "echo done | tee log"],
    ),
    judged(
        "sql-password",
        PASSWORD,
        &["identified by", "password '", "with password"],
        Find::Token(r#"(?i)(?:identified (?:with \w+ )?by|(?:with )?password) (?:password )?['"]([^'"\n]{4,})['"]"#),
        &["CREATE USER a IDENTIFIED BY '{10}';", "ALTER ROLE a WITH PASSWORD '{12}';"],
        &["ALTER ROLE a WITH PASSWORD NULL;", "password 'xxxx'", "IDENTIFIED BY '<password>'"],
    ),
    judged(
        "netrc",
        PASSWORD,
        &["login "],
        Find::Token(r"login \S{1,128}\s{1,8}password (\S{3,})"),
        &["machine h.example login app password {10}", "login app password hunter2"],
        &["login with your password first", "machine h login app password $PASS"],
    ),
    rule(
        "password-hash",
        "[REDACTED_PASSWORD_HASH]",
        &["$2a$", "$2b$", "$2y$", "$6$", "$5$", "$1$", "$y$", "$argon2", "$apr1$", "$7$"],
        Find::At(
            r"\$(?:2[aby]\$\d\d\$[./A-Za-z0-9]{53}|[567]\$(?:rounds=\d+\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43,86}|(?:1|apr1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}|y\$[./A-Za-z0-9]+\$[./A-Za-z0-9]+\$[./A-Za-z0-9]{43}|argon2\w{1,2}\$v=\d+\$[\w=,]+\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+)",
        ),
        &["root:$6${8}${86}:19000:0:99999:7:::", "app:$2y$10${53}"],
        &["echo $1$2", "awk '{print $1$6}'", "cost $5$ or $6$"],
    ),
    rule(
        "named-value",
        "[REDACTED_SECRET]",
        &["value"],
        Find::Code(places::find_pair),
        &[
            "{\"name\":\"DB_PASSWORD\",\"value\":\"{20}\"}",
            "- name: API_TOKEN\n  value: {24}",
            "<add key=\"ApiKey\" value=\"{24}\"/>",
        ],
        &[
            "{\"name\":\"DB_HOST\",\"value\":\"db1x2y3z4w\"}",
            "the value: 1234",
            "- name: KEYBOARD\n  value: a1b2c3d4e5",
        ],
    ),
    rule(
        "assignment",
        "[REDACTED_SECRET]",
        &[
            "pass",
            "psk",
            "pwd",
            "pw=",
            "secret",
            "token",
            "key",
            "cred",
            "auth",
            "jwt",
            "_pat",
            "sas=",
            "sig=",
            "signature",
            "salt",
            "bearer",
            "dsn",
            "kennwort",
            "psw",
        ],
        Find::Code(assign::find),
        &[
            "export MY_SERVICE_TOKEN=\"{32}\"",
            "export SECRET_KEY={28} && npm start",
            "declare -x AWS_SECRET_ACCESS_KEY=\"{b40}\"",
            "DB_PASSWORD={24}",
            "DB_PASSWORD=hunter2",
            "ANTHROPIC_API_KEY={30} claude",
            "aws_secret_access_key = {b40}",
            "\"password\": \"{12}\"",
            "{\\\"api_key\\\":\\\"{24}\\\"}",
            "password: {16}",
            "const apiKey: string = \"{24}\";",
            "$env:API_TOKEN = '{24}'",
            "set API_TOKEN={24}",
            "setx API_TOKEN {24}",
            "set -gx API_TOKEN {24}",
            "--password {12}",
            "--api-key={24}",
            "curl 'https://x.example/?access_token={32}&a=1'",
            "<password>{12}</password>",
            "AccountKey={b86}==;EndpointSuffix=core.example",
            "Server=db;User Id=app;Password={14};",
            "PrivateKey = {b43}=",
            "client-key-data: {b80}",
            "//registry.example/:_authToken={36}",
            "define('AUTH_KEY', '{40}');",
            "X-Api-Key: {32}",
            "| SecretAccessKey | {b40} |",
            "API_TOKEN                      {32}",
            "password    {16}",
            "The temporary password for root@localhost: {14}",
            "Your API key is {32}",
            "Use the following password to go on:\n\n{h32}\n",
            "Password for the app user (reset with `tool`):\n  {20}\n",
            "wpa-psk={h64}",
            "secret_key_base: {h128}",
            "password: |\n  {24}",
            "helm install x --set auth.password={14}",
            "MYSQL_PWD={12} mysql",
            "Environment=\"API_SECRET={24}\"",
            "token={24}\\nnext",
        ],
        &[
            "export KEYBOARD_LAYOUT=fr",
            "export TOKENIZERS_PATH=models",
            "MAX_OUTPUT_TOKENS=512",
            "Password for dev: ",
            "password: &str,",
            "password: string",
            "fn login(password: String, token: Token)",
            "let token = parser.next_token();",
            "token = tokens[index]",
            "export TOKEN=$OTHER_TOKEN",
            "export API_KEY=",
            "API_KEY=<your-api-key>",
            "API_KEY=xxxxxxxxxxxx",
            "SSH_AUTH_SOCK=/tmp/ssh-x/agent.1",
            "secretName: my-tls-secret",
            "--- PASS: TestSha256Hex2Bin (0.00s)",
            "PASS: 12",
            "key: value",
            "\"key\": \"name\"",
            "primary_key=True",
            "public_key = \"{b43}=\"",
            "cache key: linux-{h64}",
            "GPG_KEY={h40}",
            "KEY_FILE=/etc/ssl/server.key",
            "passwd: password updated successfully",
            "docker login --password-stdin",
            "usage: tool [--token TOKEN] [--password PASSWORD]",
            "  --password string   the password",
            "max_tokens: 4096",
            "\"next_token\": \"{24}\"",
            "token: EOF",
            "unexpected token: {12}",
            "password = input('Password: ')",
            "token = os.environ[\"TOKEN\"]",
            "secret: true",
            "monkey=a1b2c3d4e5f6",
            "author=a1b2c3d4e5f6",
            "PWD=/srv/project",
            "PWD=/srv/a+b%20c/d@e",
            "export OLDPWD=/srv/x#1%2",
            "password=$PASSWORD",
            "key fingerprint is SHA256:{b43}",
            "restore-key: cargo-{h40}",
            "docker build --secret id=npmrc,src=.npmrc .",
            "Password:\n{h40}",
            "type the password for your account:\nok then",
            "token: ${{ secrets.GITHUB_TOKEN }}",
            "DB_PASSWORD=[REDACTED_PASSWORD]",
        ],
    ),
];
