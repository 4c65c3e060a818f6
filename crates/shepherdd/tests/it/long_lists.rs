//! Lists of many entries, which another thread than the loop makes (S3.2, S13.3b).

use shepherd_api::{Command, CommandReply, EntryView, ReasonCode, StopMode};

use crate::harness::{ShepherddFixture, policy, sleep_entry};

/// More than the loop lists itself.
const ENTRIES: usize = 300;

const POLICY: &str = policy!(sleep_entry!("nap", "max_run = \"10m\""));

fn long_policy() -> String {
    let more = (1..ENTRIES)
        .map(|number| format!("\n[[entries]]\nid = \"more-{number}\"\nargv = [\"true\"]\nalways = true\n"));
    [POLICY.to_owned()].into_iter().chain(more).collect()
}

fn list(fixture: &ShepherddFixture) -> Vec<EntryView> {
    match fixture.call(Command::ListEntries { at_time: None, profile: None }) {
        Ok(CommandReply::Entries { entries, .. }) => entries,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_long_list_has_every_entry_in_its_present_state() {
    let fixture = ShepherddFixture::running(&long_policy());
    let free = list(&fixture);
    let more = (1..ENTRIES).map(|number| format!("more-{number}"));
    let expected: Vec<String> = ["nap".to_owned()].into_iter().chain(more).collect();
    assert_eq!(free.iter().map(|view| view.entry_id.as_str()).collect::<Vec<_>>(), expected);
    assert!(free.iter().all(|view| view.enabled));
    fixture.launch("nap");
    let is_busy = |view: &EntryView| {
        view.reasons.iter().any(|reason| matches!(reason, ReasonCode::SessionActive { .. }))
    };
    assert!(list(&fixture).iter().all(is_busy));
    fixture.stop(StopMode::Force).unwrap();
    fixture.wait_until_idle();
    assert_eq!(list(&fixture).len(), ENTRIES);
}

#[test]
fn long_lists_of_several_clients_at_once_are_all_made() {
    const CLIENTS: usize = 6;
    let fixture = ShepherddFixture::running(&long_policy());
    let lengths: Vec<usize> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| list(&fixture).len())).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert_eq!(lengths, [ENTRIES; CLIENTS]);
}
