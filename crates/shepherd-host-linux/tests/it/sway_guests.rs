//! Programs that a session has a Sway of ours start (`swaymsg exec`): they end with the session, and who was there
//! before stays (S6.2, S13.6).

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use shepherd_core::policy::{Compositor, Rules};
use shepherd_host_api::{Host, HostEvent};
use ward_process::Containment;

use crate::harness::{Ground, PATIENCE, containments, wait_until, write_script};
use crate::sway::{listener, own_socket};
use crate::sway_desktop::Desktop;

/// Living processes whose command line has this word.
fn with(word: &str) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_meant = |pid: &i32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
    };
    pids.filter(is_meant).collect()
}

/// Sleeps that no other run has: of the bar, and of what is smuggled out.
fn sleeps() -> (String, String) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    (format!("8{process:07}{number:04}"), format!("7{process:07}{number:04}"))
}

fn ground(desktop: &Desktop, containment: Containment) -> Ground {
    let mut ground = Ground::with(|options| {
        options.containment = Some(containment);
        options.socket_folder = desktop.home();
    });
    let start = Compositor::Start { argv: desktop.argv() };
    ground.apply(Rules { compositor: Some(start), ..Rules::default() });
    wait_until("a Sway", || ground.host.capabilities().can_force_fullscreen);
    ground
}

/// An entry that has Sway start something.
fn smuggler(desktop: &Desktop, program: &str) -> shepherd_core::policy::Entry {
    let socket = own_socket(desktop);
    let script = format!("swaymsg -s {} exec '{program}'; exec sleep 600", socket.display());
    desktop.entry(&["sh", "-c", &script])
}

#[test]
fn what_sway_was_made_to_start_ends_with_the_session_and_its_bar_stays() {
    // Sway is never inside a PID namespace.
    for containment in containments() {
        let desktop = Desktop::prepared();
        let (bar, game) = sleeps();
        desktop.configure(&format!("exec sleep {bar}\n"));
        let mut ground = ground(&desktop, containment);
        wait_until("the bar", || with(&bar).len() == 1);
        let (resident, sway) = (with(&bar), listener(&own_socket(&desktop)));
        for _ in 0..2 {
            let program = format!("setsid sleep {game} & setsid sleep {game}");
            let session = ground.start(smuggler(&desktop, &program));
            wait_until("what is smuggled", || with(&game).len() == 2);
            ground.stop(&session, PATIENCE);
            assert_eq!(with(&game), [0; 0], "{containment}");
            assert_eq!(with(&bar), resident, "{containment}");
            assert_eq!(listener(&own_socket(&desktop)), sway, "{containment}");
        }
    }
}

/// The cap keeps a failed test from running for ever.
#[test]
fn guests_who_are_never_the_same_for_long_end_too() {
    let desktop = Desktop::prepared();
    let mut ground = ground(&desktop, containments()[0]);
    let (_, token) = sleeps();
    let hopper = desktop.home().join("hopper");
    write_script(&hopper, "[ \"$1\" -gt 0 ] && \"$0\" $(($1 - 1)) \"$2\" & exit");
    let program = format!("{} 100000 {token}", hopper.display());
    let session = ground.start(smuggler(&desktop, &program));
    wait_until("what is smuggled", || !with(&token).is_empty());
    ground.stop(&session, PATIENCE);
    for _ in 0..20 {
        assert_eq!(with(&token), [0; 0]);
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Then nobody knows who was there before.
#[test]
fn a_sway_that_came_up_in_the_middle_of_a_session_is_started_afresh_after_it() {
    let desktop = Desktop::prepared();
    let (bar, game) = sleeps();
    desktop.configure(&format!("exec sleep {bar}\n"));
    let mut ground = ground(&desktop, containments()[0]);
    wait_until("the bar", || with(&bar).len() == 1);
    let session = ground.start(desktop.entry(&["sleep", "600"]));
    let first = (with(&bar), listener(&own_socket(&desktop)));
    Command::new("kill").args(["-9", &first.1.to_string()]).status().unwrap();
    await_another(&ground, &desktop, &bar, &first);
    let second = (with(&bar), listener(&own_socket(&desktop)));
    let exec = format!("exec setsid sleep {game}");
    Command::new("swaymsg").arg("-s").arg(own_socket(&desktop)).arg(exec).output().unwrap();
    wait_until("what is smuggled", || with(&game).len() == 1);
    ground.order_stop(&session, PATIENCE);
    // That Sway is gone for a moment is said as well.
    while !matches!(ground.next(), HostEvent::Exited { .. }) {}
    assert_eq!(with(&game), [0; 0]);
    await_another(&ground, &desktop, &bar, &second);
}

fn await_another(ground: &Ground, desktop: &Desktop, bar: &str, earlier: &(Vec<i32>, i32)) {
    wait_until("another Sway with its bar", || {
        let found = with(bar);
        found.len() == 1 && found != earlier.0 && ground.host.capabilities().can_force_fullscreen
    });
    assert_ne!(listener(&own_socket(desktop)), earlier.1);
}
