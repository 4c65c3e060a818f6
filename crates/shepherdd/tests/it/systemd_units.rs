//! The systemd units, as far as they can be judged without running them. `cargo xtask test --only units` runs them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::harness::program;

/// The highest exposure in tenths; systemd calls everything below 5.0 "OK". The unit says why games, browsers and
/// virtual machines need the rest.
const MOST_EXPOSED: u32 = 49;

fn packaging() -> PathBuf {
    let manifest =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&manifest).join("../../packaging/systemd")
}

fn unit(of: &str) -> String {
    std::fs::read_to_string(packaging().join(of).join("shepherdd.service")).unwrap()
}

/// Returns the settings of a unit, without comments and sections.
fn settings(of: &str) -> Vec<(String, String)> {
    let text = unit(of);
    let lines = text.lines().filter(|line| !line.starts_with(['#', '[']));
    lines
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn systemd_analyze(arguments: &[&str], unit: &Path) -> Output {
    let mut command = Command::new("systemd-analyze");
    // The manager of a user needs the variable, though it writes no files here.
    command.args(arguments).arg(unit).env("XDG_RUNTIME_DIR", unit.parent().unwrap());
    let done = command.output();
    done.expect("systemd-analyze is missing: run `cargo xtask setup`")
}

/// Writes a copy of the unit that starts the daemon of this build, because systemd checks that the program exists.
fn installed(of: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::with_prefix("shepherdd-unit-").unwrap();
    let daemon = program("shepherdd", env!("CARGO_BIN_EXE_shepherdd"));
    let text = unit(of).replace("/usr/bin/shepherdd", daemon.to_str().unwrap());
    let path = folder.path().join("shepherdd.service");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

#[test]
fn systemd_finds_no_fault_in_either_unit() {
    for (of, manager) in [("system", "--system"), ("user", "--user")] {
        let (_folder, path) = installed(of);
        let done = systemd_analyze(&["verify", manager, "--man=no"], &path);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        // Messages about other units don't matter. systemd before 254 ignores the unknown subgroup.
        let ours = said.lines().filter(|line| line.contains("shepherdd"));
        let faults: Vec<_> = ours.filter(|line| !line.contains("DelegateSubgroup")).collect();
        assert!(faults.is_empty(), "{of}: {faults:?}");
        assert!(done.status.success(), "{of}: {said}");
    }
}

#[test]
fn the_system_unit_is_not_more_exposed_than_we_say() {
    let path = packaging().join("system/shepherdd.service");
    let threshold = format!("--threshold={MOST_EXPOSED}");
    let done = systemd_analyze(&["security", "--offline=yes", "--no-pager", &threshold], &path);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

/// S6.5: a session inherits these settings, and each of them would break some program.
#[test]
fn nothing_is_forbidden_that_games_browsers_and_virtual_machines_need() {
    let forbidden = [
        ("ProtectKernelTunables", "covers parts of /proc: no sandbox could mount one"),
        ("ProtectKernelLogs", "covers parts of /proc: no sandbox could mount one"),
        ("ProtectHostname", "covers parts of /proc: no sandbox could mount one"),
        ("ProcSubset", "programs count processors and memory"),
        ("RestrictNamespaces", "browsers and Flatpak make sandboxes"),
        ("MemoryDenyWriteExecute", "browsers and emulators translate code"),
        ("PrivateDevices", "graphics, sound, controllers, /dev/kvm"),
        ("PrivateNetwork", "games with others"),
        ("PrivateTmp", "the sockets of displays"),
        ("PrivateUsers", "the daemon becomes the user of an entry"),
        ("ProtectHome", "games are saved at home"),
        ("OOMScoreAdjust", "would protect every game from the kernel"),
    ];
    let settings = settings("system");
    for (key, reason) in forbidden {
        assert!(settings.iter().all(|(known, _)| known != key), "{key}: {reason}");
    }
    let filter =
        settings.iter().find(|(key, _)| key == "SystemCallFilter").map(|(_, value)| value.as_str()).unwrap();
    for group in ["@mount", "@debug", "@cpu-emulation", "@resources", "@privileged", "@sandbox"] {
        assert!(!filter.contains(group), "{group}");
    }
    let has = |key: &str, value: &str| settings.contains(&(key.to_owned(), value.to_owned()));
    assert!(has("SystemCallArchitectures", "native x86"), "32-bit games");
    // `ptraceable` hides programs of other users from the daemon as well.
    assert!(has("ProtectProc", "invisible"));
    // `ProtectClock=` allows one device, and that forbids all others.
    assert!(!has("ProtectClock", "yes") || has("DeviceAllow", "char-* rw"));
}

/// S9.1: threads of a session count for the service. A session that fills the service's share of them must not keep systemd
/// from starting a crashed daemon again.
#[test]
fn sessions_cannot_use_up_the_threads_of_the_service() {
    let settings = settings("system");
    let value = |wanted: &str| {
        let found = settings.iter().find(|(key, _)| key == wanted);
        found.map(|(_, value)| value.as_str()).unwrap_or_else(|| panic!("{wanted} is not set"))
    };
    assert_eq!(value("TasksMax"), "infinity");
    // The kernel allows about 7,800 threads in 1 GB of memory.
    let per_user: u32 = value("LimitNPROC").parse().unwrap();
    assert!((1_024..7_000).contains(&per_user), "{per_user}");
}

/// Shows why the first three of the list above must not be set.
#[test]
fn where_a_part_of_proc_is_covered_no_sandbox_can_mount_its_own() {
    let sandbox = "unshare --map-root-user --pid --fork --mount-proc true";
    let covered = format!("mount --bind /proc/sys /proc/sys && ! {sandbox}");
    for script in [sandbox, &covered] {
        let done = Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", script])
            .output()
            .unwrap();
        assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

/// S9, S13.4: systemd restarts the daemon, and leaves its sessions alone.
#[test]
fn both_units_bring_the_daemon_back_and_leave_its_sessions_alone() {
    let expected = [
        ("Type", "notify"),
        ("NotifyAccess", "main"),
        ("Restart", "always"),
        ("StartLimitIntervalSec", "0"),
        ("KillMode", "process"),
        ("Delegate", "yes"),
        ("WatchdogSec", "60s"),
        ("TimeoutStopSec", "320s"),
        ("TimeoutAbortSec", "5s"),
        ("OOMPolicy", "continue"),
        ("NoNewPrivileges", "yes"),
    ];
    for of in ["system", "user"] {
        let settings = settings(of);
        for (key, value) in expected {
            let found: Vec<_> = settings.iter().filter(|(known, _)| known == key).collect();
            assert!(matches!(found[..], [(_, known)] if known == value), "{of}: {key} is {found:?}");
        }
    }
}
