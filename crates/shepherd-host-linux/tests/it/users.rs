//! Entries that run as another user (S6.5).

use shepherd_core::policy::{PolicyEntry, RunPolicy};
use shepherd_host_api::ExitStatus;

use crate::harness::{TestHost, containments, entry, is_root, process};

fn as_user(name: &str, argv: &[&str]) -> PolicyEntry {
    let run = RunPolicy { user: Some(name.to_owned()), ..RunPolicy::default() };
    PolicyEntry { run, ..entry(process(argv)) }
}

#[test]
fn only_root_runs_something_as_another_user_with_its_groups_and_its_home() {
    for containment in containments() {
        let mut test_host = TestHost::new(containment);
        let script = "id -u; id -g; id -G; echo $USER $LOGNAME $HOME";
        let entry = as_user("nobody", &["sh", "-c", script]);
        if !is_root() {
            let failure = test_host.spawn_failure(entry);
            assert_eq!(
                failure,
                "entry `game`: only root can run it as user `nobody`; run the daemon as root, or remove `user`"
            );
            continue;
        }
        let session = test_host.start(entry);
        assert_eq!(test_host.wait_for_exit(&session), ExitStatus { code: Some(0), signal: None });
        test_host.wait_for_cleanup();
        assert_eq!(session.output(), "65534\n65534\n65534\nnobody nobody /nonexistent\n", "{containment}");
        let says_root = session.shortcomings.iter().any(|sentence| sentence.contains("runs as root"));
        assert!(!says_root, "{:?}", session.shortcomings);
    }
}

#[test]
fn a_user_that_does_not_exist_is_reported() {
    let mut test_host = TestHost::new(containments()[0]);
    assert_eq!(
        test_host.spawn_failure(as_user("grandma", &["true"])),
        "entry `game`: no such user `grandma` on this machine; create the login with `sudo adduser grandma`, or correct the \
         name in the policy"
    );
}

#[test]
fn a_program_that_runs_as_root_comes_with_a_warning() {
    let mut test_host = TestHost::new(containments()[0]);
    let session = test_host.start(entry(process(&["true"])));
    let warned = session.shortcomings.iter().any(|sentence| sentence.contains("It runs as root"));
    assert_eq!(warned, is_root());
    test_host.wait_for_exit(&session);
}
