//! Starts that are prepared while their approval is being written (S8.2).

use std::time::Duration;

use shepherd_host_api::{HostAdapter, HostEvent, HostSpawnRequest};
use shepherd_util::{ProfileId, SessionId};

use crate::harness::{
    MarkedScript, SHORT_GRACE, StartedProgram, TestHost, containments, new_session, wait_until,
};

/// Long enough for a program to start, if it were permitted to.
const WATCHED: Duration = Duration::from_millis(200);

fn prepare(test_host: &mut TestHost, marked: &MarkedScript) -> HostSpawnRequest {
    let (session_id, profile) = (new_session(), ProfileId::default());
    let request = HostSpawnRequest { session_id, entry: marked.entry("FOREVER"), profile, display: None };
    test_host.host.prepare(request.clone());
    request
}

/// Waits until the log of a session exists, which is opened right before the keeper is forked.
fn wait_until_prepared(test_host: &TestHost, session_id: &SessionId) {
    let log = test_host.state().join("logs").join(format!("{session_id}.log"));
    wait_until("the start is prepared", || log.exists());
}

fn await_spawned(test_host: &mut TestHost, expected: &SessionId) -> StartedProgram {
    match test_host.next_event() {
        HostEvent::Spawned { session_id, output, shortcomings, .. } => {
            assert_eq!(session_id, *expected);
            StartedProgram { session_id, output: output.unwrap(), shortcomings }
        }
        event => panic!("{event:?}"),
    }
}

/// Returns the children of this process that aren't zombies: keepers and recorders.
fn living_children() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let is_alive = |pid: &&str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
    };
    lists.map(|list| list.split_whitespace().filter(is_alive).count()).sum()
}

#[test]
fn a_prepared_program_runs_only_when_it_is_permitted() {
    for containment in containments() {
        let (mut test_host, marked) = (TestHost::new(containment), MarkedScript::new());
        let request = prepare(&mut test_host, &marked);
        wait_until_prepared(&test_host, &request.session_id);
        test_host.assert_no_event(WATCHED);
        assert_eq!(marked.survivors(), [0; 0]);
        assert_eq!(test_host.host.recorded_sessions(), []);
        test_host.host.spawn(request.clone());
        let program = await_spawned(&mut test_host, &request.session_id);
        assert_eq!(test_host.host.recorded_sessions(), [request.session_id]);
        wait_until("the program runs", || marked.survivors().len() == 1);
        test_host.stop(&program, SHORT_GRACE);
        assert_eq!(marked.survivors(), [0; 0]);
    }
}

#[test]
fn nothing_is_left_of_an_abandoned_start() {
    for containment in containments() {
        let (mut test_host, marked) = (TestHost::new(containment), MarkedScript::new());
        let before = living_children();
        let request = prepare(&mut test_host, &marked);
        wait_until_prepared(&test_host, &request.session_id);
        test_host.host.abandon(&request.session_id);
        wait_until("the keeper and the recorder are gone", || living_children() == before);
        test_host.assert_no_event(WATCHED);
        assert_eq!(marked.survivors(), [0; 0]);
        assert_eq!(test_host.host.recorded_sessions(), []);
    }
}

#[test]
fn a_start_that_waits_delays_no_other_start() {
    const ROUNDS: usize = 12;
    for containment in containments() {
        let (mut test_host, marked) = (TestHost::new(containment), MarkedScript::new());
        let mut waiting = Vec::new();
        for _ in 0..ROUNDS {
            waiting.push(prepare(&mut test_host, &marked).session_id);
            // If the waiting start held a pipe of this one, this would wait as well.
            let program = test_host.start(marked.entry("FOREVER"));
            test_host.stop(&program, SHORT_GRACE);
        }
        waiting.iter().for_each(|session_id| test_host.host.abandon(session_id));
        test_host.assert_no_event(WATCHED);
        assert_eq!(marked.survivors(), [0; 0]);
    }
}
