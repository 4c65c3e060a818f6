//! Logins that are created or removed while the daemon runs (S5.1).

use std::fs;
use std::path::Path;

use shepherd_api::{Command, CommandReply, ReasonCode};

use crate::harness::{ShepherddFixture, in_mount_namespace, wait_until};

const POLICY: &str = r#"
config_version = 1

[profiles.anna]
accounts = ["anna"]

[[entries]]
id = "own"
argv = ["sleep", "TOKEN"]
user = "grandma"
always = true

[[entries]]
id = "shared"
argv = ["sleep", "TOKEN"]
always = true
"#;

/// Returns the entries with the logins that they lack.
fn missing_logins(fixture: &ShepherddFixture) -> Vec<(String, Vec<String>)> {
    let list = Command::ListEntries { at_time: None, profile: Some("anna".parse().unwrap()) };
    let Ok(CommandReply::Entries { entries, .. }) = fixture.call(list) else { panic!("another reply") };
    let login = |reason: &ReasonCode| match reason {
        ReasonCode::LoginNotFound { login } => login.clone(),
        other => panic!("{other:?}"),
    };
    entries
        .iter()
        .map(|entry| (entry.entry_id.to_string(), entry.reasons.iter().map(login).collect()))
        .collect()
}

/// Replaces the users of the daemon as `useradd` does.
fn replace_users(etc: &Path, logins: &[&str]) {
    let users: String =
        logins.iter().map(|name| format!("{name}:x:54321:54321::/home/{name}:/bin/sh\n")).collect();
    fs::write(etc.join("passwd-new"), format!("root:x:0:0:root:/root:/bin/sh\n{users}")).unwrap();
    fs::rename(etc.join("passwd-new"), etc.join("passwd")).unwrap();
}

#[test]
fn an_entry_without_its_login_is_refused_until_the_login_is_created() {
    let fixture = ShepherddFixture::new(POLICY);
    let etc = fixture.folder().join("etc");
    let own = etc.display();
    // The daemon sees a copy of `/etc` with only the files that it needs, so the test can change the users.
    let script = format!(
        "mkdir {own} && cp /etc/passwd /etc/group {own} && mount --bind {own} /etc && exec \"$0\" \"$@\""
    );
    let mut fixture = fixture.with_wrapper(&in_mount_namespace(&["sh", "-c", &script]));
    fixture.start();
    let expect = |own: &[&str], shared: &[&str]| {
        let all = [("own", own), ("shared", shared)];
        all.map(|(id, logins)| {
            (id.to_owned(), logins.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        })
    };
    let both = expect(&["grandma"], &["anna"]);
    assert_eq!(missing_logins(&fixture), both);
    let names = |login: &str| {
        let start = format!("no such user `{login}` on this machine; ");
        fixture.health().limitations.iter().filter(|sentence| sentence.starts_with(&start)).count()
    };
    assert_eq!((names("anna"), names("grandma")), (1, 1));
    assert_eq!(fixture.refusal("own").reasons[0].code(), "login-not-found");
    replace_users(&etc, &["grandma"]);
    wait_until("grandma's login is noticed", || missing_logins(&fixture) == expect(&[], &["anna"]));
    assert_eq!((names("anna"), names("grandma")), (1, 0));
    replace_users(&etc, &["anna", "grandma"]);
    wait_until("anna's login is noticed", || missing_logins(&fixture) == expect(&[], &[]));
    replace_users(&etc, &[]);
    wait_until("the end of both logins is noticed", || missing_logins(&fixture) == both);
}
