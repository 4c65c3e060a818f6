//! A test double: a supervisor that starts `fake-child` and waits to be killed.
//!
//! `fake-supervisor CONTAINMENT HOW ID PROGRAM SCRIPT` prints the tree's record, field by field. `HOW`:
//!
//! | word | effect |
//! | --- | --- |
//! | `independent`, `dies` | spawns a tree of that lifetime |
//! | `held` | spawns an independent tree that holds its escapees |
//! | `hesitate` | prints the record while it is being stored, and never runs the program |
//! | `exhaust-descriptors` | spawns with 0, 1, 2, … free descriptors until it succeeds; prints the last number |
#![expect(clippy::panic, clippy::print_stdout, reason = "a test double reports to its test")]

use std::fs::File;

use ward_process::{
    Containment, EscapeePolicy, ProcessIdentity, ProcessSpec, StopLadder, Supervisor, TreeId, TreeLifetime,
    TreeRecord,
};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [containment, how, id, program, script] = arguments.as_slice() else {
        panic!("CONTAINMENT HOW ID PROGRAM SCRIPT");
    };
    let containment = Containment::ALL
        .into_iter()
        .find(|known| format!("{known:?}") == *containment)
        .unwrap_or_else(|| panic!("no containment {containment}"));
    let supervisor = Supervisor::with_containment(containment).unwrap_or_else(|error| panic!("{error}"));
    let id: TreeId = id.parse().unwrap_or_else(|error| panic!("{error}"));
    let order = || ProcessSpec::new(program).args([script]);
    let tree = match how.as_str() {
        "independent" => supervisor.spawn(id, order()),
        "dies" => supervisor.spawn(id, order().lifetime(TreeLifetime::DiesWithSupervisor)),
        "held" => supervisor.spawn(id, order().escapees(EscapeePolicy::Held)),
        "hesitate" => supervisor.spawn_recorded(id, order(), |record| {
            print(record);
            wait_to_be_killed()
        }),
        "exhaust-descriptors" => return exhaust_descriptors(&supervisor, &id, order),
        _ => panic!("unknown word `{how}`"),
    };
    let tree = tree.unwrap_or_else(|error| panic!("{error:?}"));
    print(&tree.record());
    wait_to_be_killed()
}

fn print(record: &TreeRecord) {
    let ProcessIdentity { pid, start_time } =
        record.root.unwrap_or(ProcessIdentity { pid: 0, start_time: 0 });
    let keeper = if record.escapees == EscapeePolicy::Held { "keeper" } else { "program" };
    println!("{pid} {start_time} {} {} {keeper}", record.boot, record.cgroup.unwrap_or(0));
}

fn wait_to_be_killed() -> ! {
    loop {
        std::thread::park();
    }
}

fn exhaust_descriptors(supervisor: &Supervisor, id: &TreeId, order: impl Fn() -> ProcessSpec) {
    const FEW: u64 = 64;
    let limit = rustix::process::Rlimit { current: Some(FEW), maximum: Some(FEW) };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit)
        .unwrap_or_else(|error| panic!("{error}"));
    for free in 0.. {
        let mut held: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        held.truncate(held.len().saturating_sub(free));
        if let Ok(mut tree) = supervisor.spawn(id.clone(), order()) {
            supervisor.stop(&mut tree, StopLadder::force()).unwrap_or_else(|error| panic!("{error}"));
            println!("{free}");
            // The test looks for processes that failed attempts have left behind, so this process stays alive.
            wait_to_be_killed();
        }
    }
}
