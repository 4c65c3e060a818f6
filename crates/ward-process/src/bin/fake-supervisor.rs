//! A test double: a supervisor that starts `fake-child` and waits to be killed.
//!
//! `fake-supervisor CONTAINMENT LIFETIME ID PROGRAM SCRIPT` prints the tree's record, field by field.
#![expect(clippy::panic, clippy::print_stdout, reason = "a test double speaks to its test")]

use ward_process::{Containment, Lifetime, Order, Supervisor};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [containment, lifetime, id, program, script] = arguments.as_slice() else {
        panic!("CONTAINMENT LIFETIME ID PROGRAM SCRIPT");
    };
    let containment = Containment::ALL
        .into_iter()
        .find(|known| format!("{known:?}") == *containment)
        .unwrap_or_else(|| panic!("no containment {containment}"));
    let lifetime = match lifetime.as_str() {
        "dies" => Lifetime::DiesWithSupervisor,
        _ => Lifetime::Independent,
    };
    let supervisor = Supervisor::with(containment).unwrap_or_else(|error| panic!("{error}"));
    let order = Order::new(program).args([script]).lifetime(lifetime);
    let id = id.parse().unwrap_or_else(|error| panic!("{error}"));
    let tree = supervisor.spawn(id, order).unwrap_or_else(|error| panic!("{error:?}"));
    let record = tree.record();
    let cgroup = record.cgroup.unwrap_or(0);
    println!("{} {} {} {cgroup}", record.pid, record.start_time, record.boot);
    loop {
        std::thread::park();
    }
}
