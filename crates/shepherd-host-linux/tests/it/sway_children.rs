//! Programs that the daemon's Sway starts for a session (`swaymsg exec`): they end with the session, and processes from
//! before the session stay (S6.2, S13.6).

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use shepherd_core::policy::{CompositorConfig, PolicyRules};
use shepherd_host_api::{HostAdapter, HostEvent};
use ward_process::Containment;

use crate::harness::{TEST_TIMEOUT, TestHost, containments, wait_until, write_script};
use crate::sway::{listener_pid, own_socket};
use crate::sway_desktop::SwayDesktop;

/// Returns the living processes that have this argument.
pub(crate) fn processes_with_argument(word: &str) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has_argument = |pid: &i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
    };
    pids.filter(has_argument).collect()
}

/// Returns two lengths of sleep that no other run has: for the bar, and for programs that Sway starts for a session.
pub(crate) fn unique_sleeps() -> (String, String) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    (format!("8{process:07}{number:04}"), format!("7{process:07}{number:04}"))
}

pub(crate) fn host_with_own_sway(desktop: &SwayDesktop, containment: Containment) -> TestHost {
    let mut test_host = TestHost::with_options(|options| {
        options.containment = Some(containment);
        options.socket_folder = desktop.home();
    });
    let start = CompositorConfig::Start { argv: desktop.argv(), user: None };
    test_host.apply_rules(PolicyRules { compositor: Some(start), ..PolicyRules::default() });
    wait_until("a Sway", || test_host.host.capabilities().can_force_fullscreen);
    test_host
}

/// Returns an entry that asks Sway to start a program.
pub(crate) fn exec_entry(desktop: &SwayDesktop, program: &str) -> shepherd_core::policy::PolicyEntry {
    let socket = own_socket(desktop);
    let script = format!("swaymsg -s {} exec '{program}'; exec sleep 600", socket.display());
    desktop.entry(&["sh", "-c", &script])
}

#[test]
fn programs_that_sway_started_for_a_session_end_with_it() {
    // Sway itself is never inside a PID namespace, whatever the containment.
    for containment in containments() {
        let desktop = SwayDesktop::prepare();
        let (bar, game) = unique_sleeps();
        desktop.configure(&format!("exec sleep {bar}\n"));
        let mut test_host = host_with_own_sway(&desktop, containment);
        wait_until("the bar", || processes_with_argument(&bar).len() == 1);
        let (bar_processes, sway) = (processes_with_argument(&bar), listener_pid(&own_socket(&desktop)));
        for _ in 0..2 {
            let program = format!("setsid sleep {game} & setsid sleep {game}");
            let session = test_host.start(exec_entry(&desktop, &program));
            wait_until("the programs of Sway", || processes_with_argument(&game).len() == 2);
            test_host.stop(&session, TEST_TIMEOUT);
            assert_eq!(processes_with_argument(&game), [0; 0], "{containment}");
            assert_eq!(processes_with_argument(&bar), bar_processes, "{containment}");
            assert_eq!(listener_pid(&own_socket(&desktop)), sway, "{containment}");
        }
    }
}

/// The script starts itself again and again; the number of rounds keeps a failed test from running for ever.
#[test]
fn short_lived_sway_children_end_with_the_session() {
    let desktop = SwayDesktop::prepare();
    let mut test_host = host_with_own_sway(&desktop, containments()[0]);
    let (_, token) = unique_sleeps();
    let respawner = desktop.home().join("respawner");
    write_script(&respawner, "[ \"$1\" -gt 0 ] && \"$0\" $(($1 - 1)) \"$2\" & exit");
    let program = format!("{} 100000 {token}", respawner.display());
    let session = test_host.start(exec_entry(&desktop, &program));
    wait_until("the programs of Sway", || !processes_with_argument(&token).is_empty());
    test_host.request_stop(&session, TEST_TIMEOUT);
    // If the script is faster than the kills, Sway ends with it, and the host reports that too.
    while !matches!(test_host.next_event(), HostEvent::Exited { .. }) {}
    // One look may come between the end of one process and the start of the next.
    for _ in 0..20 {
        assert_eq!(processes_with_argument(&token), [0; 0]);
    }
}

/// The processes from before the session are not known then, so the whole Sway is replaced.
#[test]
fn a_sway_that_started_during_a_session_is_replaced_after_it() {
    let desktop = SwayDesktop::prepare();
    let (bar, game) = unique_sleeps();
    desktop.configure(&format!("exec sleep {bar}\n"));
    let mut test_host = host_with_own_sway(&desktop, containments()[0]);
    wait_until("the bar", || processes_with_argument(&bar).len() == 1);
    let session = test_host.start(desktop.entry(&["sleep", "600"]));
    let first = (processes_with_argument(&bar), listener_pid(&own_socket(&desktop)));
    Command::new("kill").args(["-9", &first.1.to_string()]).status().unwrap();
    wait_for_another_sway(&test_host, &desktop, &bar, &first);
    let second = (processes_with_argument(&bar), listener_pid(&own_socket(&desktop)));
    let exec = format!("exec setsid sleep {game}");
    Command::new("swaymsg").arg("-s").arg(own_socket(&desktop)).arg(exec).output().unwrap();
    wait_until("the programs of Sway", || processes_with_argument(&game).len() == 1);
    test_host.request_stop(&session, TEST_TIMEOUT);
    // The host also reports that Sway is missing for a moment.
    while !matches!(test_host.next_event(), HostEvent::Exited { .. }) {}
    assert_eq!(processes_with_argument(&game), [0; 0]);
    wait_for_another_sway(&test_host, &desktop, &bar, &second);
}

fn wait_for_another_sway(test_host: &TestHost, desktop: &SwayDesktop, bar: &str, earlier: &(Vec<i32>, i32)) {
    wait_until("another Sway with its bar", || {
        let found = processes_with_argument(bar);
        found.len() == 1 && found != earlier.0 && test_host.host.capabilities().can_force_fullscreen
    });
    assert_ne!(listener_pid(&own_socket(desktop)), earlier.1);
}
