//! Many sessions one after the other.

use std::time::Duration;

use shepherd_host_api::{HostAdapter, HostEvent, HostStopRequest};

use crate::harness::{TestHost, containments, entry, process};

/// S6.2b: a session is stopped and the next one is started at once, a thousand times, and no event is mixed up.
#[test]
fn heavy_a_thousand_sessions_stopped_and_started_at_once_are_never_mixed_up() {
    let mut test_host = TestHost::new(containments()[0]);
    let sleeper = || entry(process(&["/bin/sleep", "600"]));
    let mut session = test_host.start(sleeper()).session_id;
    for _ in 0..1_000 {
        test_host.host.stop(HostStopRequest { session_id: session.clone(), grace: Duration::from_secs(600) });
        let next = test_host.spawn(sleeper());
        let (mut ended, mut started) = (0, 0);
        while (ended, started) != (1, 1) {
            match test_host.events.blocking_recv().unwrap() {
                HostEvent::Exited { session_id, .. } if session_id == session => ended += 1,
                HostEvent::Spawned { session_id, .. } if session_id == next => started += 1,
                event => panic!("{event:?} between {session} and {next}"),
            }
        }
        session = next;
    }
    test_host.host.stop(HostStopRequest { session_id: session.clone(), grace: Duration::ZERO });
    assert!(matches!(test_host.next_event(), HostEvent::Exited { session_id, .. } if session_id == session));
}
