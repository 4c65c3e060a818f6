//! The service (C13), as far as it can be tested without a service manager. `cargo xtask test --only units` runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use collieclaw::service::{GatewayService, ServiceManager};

use crate::support::{TestAgent, agent_output, program};

/// The exposure in tenths. The rest comes from features that the sandbox of the tools needs; the unit explains each.
const MOST_EXPOSED: u32 = 50;

fn run_systemd_analyze(arguments: &[&str], unit: &Path) -> Output {
    let mut command = Command::new("systemd-analyze");
    // A user manager needs to know where it could put its files, though it writes none.
    command.args(arguments).arg(unit).env("XDG_RUNTIME_DIR", unit.parent().unwrap());
    command.output().expect("systemd-analyze is missing: run `cargo xtask setup`")
}

fn write_unit(test_agent: &TestAgent) -> PathBuf {
    let printed = test_agent.run(&["service", "install", "--print", "--manager", "systemd"]);
    assert_eq!(printed.code, 0, "{printed:?}");
    let path = test_agent.path().join("collieclaw-gateway.service");
    std::fs::write(&path, printed.out).unwrap();
    path
}

#[test]
fn systemd_finds_no_fault_in_the_unit() {
    let test_agent = TestAgent::new();
    let path = write_unit(&test_agent);
    let done = run_systemd_analyze(&["verify", "--user", "--man=no"], &path);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("collieclaw")).collect();
    assert!(ours.is_empty() && done.status.success(), "{said}");
    let threshold = format!("--threshold={MOST_EXPOSED}");
    let text = std::fs::read_to_string(&path).unwrap();
    // The analysis assumes a service started by root; a user service has none of root's rights.
    let of_a_user = text
        .replace("\nNoNewPrivileges=yes\n", "\nNoNewPrivileges=yes\nUser=daemon\nCapabilityBoundingSet=\n");
    std::fs::write(&path, of_a_user).unwrap();
    let done = run_systemd_analyze(&["security", "--offline=yes", "--no-pager", &threshold], &path);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    assert!(text.contains(&format!("ExecStart=\"{}\" gateway\n", program().display())), "{text}");
    // Each of these would break the sandbox of the tools, or keep the service from starting.
    for forbidden in [
        "RestrictSUIDSGID=",
        "CapabilityBoundingSet=",
        "RestrictNamespaces=",
        "ProtectKernelTunables=",
        "ProtectProc=",
        "PrivateUsers=",
        "MemoryDeny",
    ] {
        assert!(!text.lines().any(|line| line.starts_with(forbidden)), "{forbidden}");
    }
}

#[test]
fn odd_paths_are_written_so_that_managers_read_them_as_they_are() {
    let service = GatewayService { program: "/odd $HOME/100% \"<a>&\\b".into(), home: "/h %h&".into() };
    let unit = ServiceManager::Systemd.render(&service);
    assert!(unit.contains("ExecStart=\"/odd $$HOME/100%% \\\"<a>&\\\\b\" gateway\n"), "{unit}");
    assert!(unit.contains("Environment=\"COLLIECLAW_HOME=/h %%h&\"\n"), "{unit}");
    assert!(unit.contains("EnvironmentFile=-/h %%h&/service.env\n"), "{unit}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.plist");
    std::fs::write(&path, ServiceManager::Launchd.render(&service)).unwrap();
    let read = "import plistlib, sys; l = plistlib.load(open(sys.argv[1], 'rb')); \
                print('|'.join(l['ProgramArguments']), l['EnvironmentVariables']['COLLIECLAW_HOME'], sep='\\n', end='')";
    let output = Command::new("python3").args(["-c", read]).arg(&path).output();
    let read = agent_output(output.expect("python3 is missing: run `cargo xtask setup`"));
    assert_eq!(read.out, "/odd $HOME/100% \"<a>&\\b|gateway\n/h %h&", "{read:?}");
}

#[test]
fn without_a_service_manager_every_command_fails_and_writes_nothing() {
    let test_agent = TestAgent::new();
    for command in ["install", "start", "stop", "status", "uninstall"] {
        let refused = test_agent.run(&["service", command]);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.err.contains("could not reach the service manager"), "{refused:?}");
        assert!(refused.err.contains("run `collieclaw gateway`"), "{refused:?}");
    }
    assert!(!test_agent.path().join(".config").exists());
}
