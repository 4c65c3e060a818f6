//! Clients that name a display, honest and hostile ones (S6.8), with real users if the tests run as root.

use std::os::unix::fs::PermissionsExt;

use rustix::process::geteuid;
use shepherd_api::{ClientDisplay, Command, CommandReply, ErrorCode};
use shepherd_ipc::{BlockingClient, CallError};

use crate::harness::{ShepherddFixture, call_at_allowed_rate, wait_until};
use crate::roles::as_user;

const NOBODY: u32 = 65_534;

/// Root's daemon runs the program as `nobody`, who launches it; an ordinary user's runs it as that user.
fn fixture() -> ShepherddFixture {
    let accounts = if geteuid().is_root() { "accounts = [\"nobody\"]" } else { "" };
    let policy = format!(
        r#"
config_version = 1

[profiles.anna]
{accounts}

[[entries]]
id = "env"
argv = ["sh", "-c", "env; echo END"]
always = true
"#
    );
    let mut fixture = ShepherddFixture::new(&policy)
        .with_variable("XDG_RUNTIME_DIR", "/run/of-the-daemon")
        .with_wrapper(&["env", "--unset=DISPLAY", "--unset=WAYLAND_DISPLAY", "--unset=XAUTHORITY"]);
    std::fs::set_permissions(fixture.folder(), std::fs::Permissions::from_mode(0o755)).unwrap();
    fixture.start();
    fixture
}

fn child_uid() -> u32 {
    if geteuid().is_root() { NOBODY } else { geteuid().as_raw() }
}

fn launch(display: ClientDisplay) -> Command {
    Command::Launch {
        entry_id: "env".parse().unwrap(),
        profile: Some("anna".parse().unwrap()),
        display: Some(display),
    }
}

/// Launches the entry, waits for its end, and returns the variables that name a display.
fn displays_in(
    fixture: &ShepherddFixture,
    client: &mut BlockingClient,
    display: &ClientDisplay,
) -> Vec<String> {
    let reply = call_at_allowed_rate(client, &launch(display.clone()));
    let Ok(CommandReply::Launched { session }) = reply else { panic!("{display:?}: {reply:?}") };
    let log = Command::ReadSessionLog { session: Some(session.session_id.to_string()), profile: None };
    let mut text = String::new();
    wait_until("the program writes its environment", || {
        if let Ok(CommandReply::SessionLog { log }) = call_at_allowed_rate(client, &log) {
            text = log.text.unwrap_or_default();
        }
        text.ends_with("END\n")
    });
    fixture.wait_until_idle();
    let names = ["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "LD_PRELOAD", "DBUS_SESSION_BUS_ADDRESS"];
    let is_watched = |line: &&str| line.split_once('=').is_some_and(|(name, _)| names.contains(&name));
    let mut found: Vec<String> = text.lines().filter(is_watched).map(str::to_owned).collect();
    found.sort();
    found
}

/// Talks as the child.
fn as_child<T: Send>(fixture: &ShepherddFixture, talk: impl FnOnce(BlockingClient) -> T + Send) -> T {
    if geteuid().is_root() {
        as_user(fixture, NOBODY, |client| talk(client.unwrap()))
    } else {
        talk(fixture.client())
    }
}

fn display(wayland: &str, x11: &str, authority: &str) -> ClientDisplay {
    let [wayland, x11, x11_authority] = [wayland, x11, authority].map(|value| Some(value.to_owned()));
    ClientDisplay { wayland, x11, x11_authority }
}

#[test]
fn the_programs_of_a_child_get_the_display_that_the_child_names() {
    let fixture = fixture();
    let wayland = format!("/run/user/{}/wayland-0", child_uid());
    as_child(&fixture, |mut client| {
        let found = displays_in(&fixture, &mut client, &display(&wayland, ":0", "/tmp/xauth_1"));
        assert_eq!(found, ["DISPLAY=:0", "WAYLAND_DISPLAY=wayland-0", "XAUTHORITY=/tmp/xauth_1"]);
        let found = displays_in(&fixture, &mut client, &ClientDisplay::default());
        assert_eq!(found, [""; 0]);
    });
}

#[test]
fn hostile_values_are_ignored_and_the_program_starts() {
    let fixture = fixture();
    let other = format!("/run/user/{}/wayland-0", child_uid() + 1);
    let newline = ":0\nLD_PRELOAD=/tmp/evil.so";
    let long = "9".repeat(5_000);
    let hostile = [
        display(&other, "evil.example:0", "../keys"),
        display("../wayland-0", newline, newline),
        display("/tmp/wayland-0", &format!(":{long}"), &long),
    ];
    as_child(&fixture, |mut client| {
        for display in &hostile {
            assert_eq!(displays_in(&fixture, &mut client, display), [""; 0], "{display:?}");
        }
        // One wrong value doesn't spoil the others.
        let found = displays_in(&fixture, &mut client, &display("../wayland-0", ":1.0", newline));
        assert_eq!(found, ["DISPLAY=:1.0"]);
    });
}

#[test]
fn the_display_of_another_user_is_ignored() {
    if !geteuid().is_root() {
        return;
    }
    let fixture = fixture();
    // Root may launch Anna's programs, which run as `nobody` and not as root.
    let named = display("wayland-0", ":0", "/root/.Xauthority");
    assert_eq!(displays_in(&fixture, &mut fixture.client(), &named), [""; 0]);
}

#[test]
fn other_variables_can_not_be_named() {
    use std::io::{BufRead, BufReader, Write};
    let fixture = fixture();
    let mut stream = std::os::unix::net::UnixStream::connect(fixture.socket()).unwrap();
    let hello = r#"{"type":"hello","api_version":1,"client":"evil"}"#;
    let display = r#"{"x11":":0","LD_PRELOAD":"/tmp/evil.so"}"#;
    let command = format!(r#"{{"type":"launch","entry_id":"env","profile":"anna","display":{display}}}"#);
    writeln!(stream, "{hello}\n{{\"type\":\"request\",\"id\":1,\"command\":{command}}}").unwrap();
    let reply = BufReader::new(stream).lines().nth(1).unwrap().unwrap();
    assert!(reply.contains("invalid-command") && reply.contains("LD_PRELOAD"), "{reply}");
    // A value that is longer than a line may be ends the connection, and nothing starts.
    let mut client = fixture.client();
    let long = display_of_length(300_000);
    let error = client.call(launch(long)).unwrap_err();
    assert!(
        !matches!(&error, CallError::Refused(error) if error.code == ErrorCode::InvalidCommand),
        "{error:?}"
    );
    assert_eq!(fixture.state().session, None);
}

fn display_of_length(length: usize) -> ClientDisplay {
    ClientDisplay { x11: Some("1".repeat(length)), ..ClientDisplay::default() }
}
