//! Settings for running entries and for access (S6.5 to S6.7, S11.3), from text to compiled policy.

use std::time::Duration;

use shepherd_api::ClientRole;
use shepherd_config::{load, setting_keys};
use shepherd_core::policy::{
    CompositorConfig, LoginPolicy, Policy, ReloadOnChange, ResourceLimits, RunPolicy, SystemAccount,
    WindowDisplay,
};

fn policy(text: &str) -> Policy {
    let text = format!("config_version = 1\n{text}");
    load("policy.toml", &text).unwrap_or_else(|report| panic!("{report}")).policy
}

/// Returns the run settings of the only entry of a policy.
fn run(others: &str, lines: &str) -> RunPolicy {
    let text = format!("{others}\n[[entries]]\nid = \"x\"\nargv = [\"x\"]\nalways = true\n{lines}\n");
    policy(&text).entries()[0].run.clone()
}

fn user(name: &str) -> SystemAccount {
    SystemAccount::User(name.to_owned())
}

fn group(name: &str) -> SystemAccount {
    SystemAccount::Group(name.to_owned())
}

#[test]
fn an_entry_without_settings_runs_with_the_defaults() {
    assert_eq!(run("", ""), RunPolicy::default());
}

// S6.5: each limit comes from the entry or else from the defaults.
#[test]
fn missing_run_settings_come_from_the_defaults() {
    let defaults = "[compositor]\nsway = \"connect\"\n[defaults]\nuser = \"kid\"\nstop_grace = \"20s\"\n\
                    output_limit = \"64KiB\"\ndisplay = \"fullscreen\"\n\
                    resources = { memory = \"2GiB\", processes = 200, cpu = \"150%\" }";
    let of_defaults = RunPolicy {
        user: Some("kid".to_owned()),
        limits: ResourceLimits {
            memory: Some(2 << 30),
            processes: Some(200),
            cpu_percent: Some(150),
            open_files: None,
            file_size: None,
        },
        stop_grace: Some(Duration::from_secs(20)),
        output_limit: Some(64 << 10),
        display: WindowDisplay::Fullscreen,
        login: LoginPolicy::default(),
    };
    assert_eq!(run(defaults, ""), of_defaults);

    let own = "user = \"anna\"\nstop_grace = 0\noutput_limit = 4096\ndisplay = \"as-it-is\"\n\
               [entries.resources]\nmemory = \"512 MiB\"\nprocesses = \"unlimited\"\nopen_files = 64\nfile_size = \"1MiB\"";
    let of_entry = RunPolicy {
        user: Some("anna".to_owned()),
        limits: ResourceLimits {
            memory: Some(512 << 20),
            processes: None,
            cpu_percent: Some(150),
            open_files: Some(64),
            file_size: Some(1 << 20),
        },
        stop_grace: Some(Duration::ZERO),
        output_limit: Some(4096),
        display: WindowDisplay::Unchanged,
        login: LoginPolicy::default(),
    };
    assert_eq!(run(defaults, own), of_entry);
}

#[test]
fn sizes_are_read_to_the_byte() {
    for (written, bytes) in [
        ("1048576", 1 << 20),
        ("\"1024KiB\"", 1 << 20),
        ("\"1MiB\"", 1 << 20),
        ("\"3 GiB\"", 3 << 30),
        ("\"1048576GiB\"", 1 << 50),
        ("1048577", (1 << 20) + 1),
    ] {
        let limits = run("", &format!("resources = {{ memory = {written} }}")).limits;
        assert_eq!(limits.memory, Some(bytes), "{written}");
    }
}

// S11.3
#[test]
fn accounts_are_users_or_groups_by_name_or_number() {
    let policy = policy(
        "[access]\nadmins = [\"anna\", \"@parents\", \"anna@example\"]\nshells = [1000, \"@100\"]\n\
         observers = [\"1001\"]\nothers = \"observe\"",
    );
    let access = &policy.rules().access;
    assert_eq!(
        access.rules,
        [
            (user("anna"), ClientRole::Admin),
            (group("parents"), ClientRole::Admin),
            (user("anna@example"), ClientRole::Admin),
            (SystemAccount::Uid(1000), ClientRole::Shell),
            (SystemAccount::Gid(100), ClientRole::Shell),
            (SystemAccount::Uid(1001), ClientRole::Observer),
        ]
    );
    assert_eq!(access.others, Some(ClientRole::Observer));
}

// S11.3: no permission without a setting.
#[test]
fn without_settings_nobody_else_may_do_anything() {
    for text in ["", "[access]", "[access]\nothers = \"nothing\"\nadmins = []"] {
        let access = policy(text).rules().access.clone();
        assert_eq!((access.rules, access.others), (Vec::new(), None), "{text}");
    }
    assert_eq!(policy("[access]\nothers = \"shell\"").rules().access.others, Some(ClientRole::Shell));
}

// S11.3
#[test]
fn accounts_of_a_profile_may_launch_unless_another_role_is_set() {
    let policy = policy(
        "[profiles.anna]\naccounts = [\"anna\", 1000]\n[profiles.ben]\naccounts = [\"ben\"]\n[profiles.guest]\n\
         [access]\nobservers = [\"ben\"]",
    );
    let rules = policy.rules();
    assert_eq!(
        rules.access.rules,
        [
            (user("ben"), ClientRole::Observer),
            (user("anna"), ClientRole::Shell),
            (SystemAccount::Uid(1000), ClientRole::Shell)
        ]
    );
    let accounts: Vec<&[SystemAccount]> =
        rules.profiles.values().map(|profile| profile.accounts.as_slice()).collect();
    assert_eq!(accounts, [&[user("anna"), SystemAccount::Uid(1000)][..], &[user("ben")], &[]]);
}

// S6.7
#[test]
fn a_compositor_is_connected_to_or_started() {
    let compositor = |text: &str| policy(text).rules().compositor.clone();
    assert_eq!(compositor(""), None);
    assert_eq!(
        compositor("[compositor]\nsway = \"connect\""),
        Some(CompositorConfig::Connect { socket: None })
    );
    assert_eq!(
        compositor("[compositor]\nsway = \"connect\"\nsocket = \"/run/sway.sock\""),
        Some(CompositorConfig::Connect { socket: Some("/run/sway.sock".into()) })
    );
    assert_eq!(
        compositor("[compositor]\nstart = [\"sway\", \"-c\", \"/etc/sway\"]"),
        Some(CompositorConfig::Start {
            argv: ["sway", "-c", "/etc/sway"].map(str::to_owned).to_vec(),
            user: None
        })
    );
    assert_eq!(
        compositor("[compositor]\nstart = [\"sway\"]\nuser = \"screen\""),
        Some(CompositorConfig::Start { argv: vec!["sway".to_owned()], user: Some("screen".to_owned()) })
    );
}

// S7.3
#[test]
fn a_changed_file_is_read_again_only_on_request() {
    assert_eq!(policy("").rules().reload_on_change, ReloadOnChange::No);
    assert_eq!(policy("reload_on_change = false").rules().reload_on_change, ReloadOnChange::No);
    assert_eq!(policy("reload_on_change = true").rules().reload_on_change, ReloadOnChange::Yes);
}

// S6.6: hosts rely on these keys.
#[test]
fn the_settings_of_every_built_in_driver_are_known() {
    let qemu = [
        "memory", "cpus", "disk", "cdrom", "snapshot", "kernel", "initrd", "append", "machine", "accel",
        "display", "network", "serial", "program", "extra",
    ];
    assert_eq!(setting_keys("qemu"), Some(qemu.to_vec()));
    assert_eq!(setting_keys("command"), Some(vec!["argv", "cwd", "stop"]));
    for app in ["flatpak", "snap", "steam"] {
        assert_eq!(setting_keys(app), Some(vec!["app", "args"]), "{app}");
    }
    assert_eq!(setting_keys("trains"), None);
}
