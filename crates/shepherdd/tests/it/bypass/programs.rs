//! What a program can do to outlive its session, and a child to have another.

use crate::clock::first_reason;
use crate::harness::Household;
use crate::programs::{check, deaf_to_signals};

pub(super) fn double_fork() {
    check("double-fork", 2);
}

pub(super) fn wrapper() {
    check("wrapper", 1);
}

pub(super) fn renaming() {
    check("renaming", 1);
}

pub(super) fn deafness() {
    deaf_to_signals();
}

pub(super) fn another_entry() {
    let household = Household::running(
        r#"
config_version = 1
budgets.games.daily = "500ms"

[defaults]
always = true
stop_grace = "300ms"

[[entries]]
id = "racing"
argv = ["sh", "-c", "trap '' TERM; exec sleep TOKEN"]
budgets = ["games"]

[[entries]]
id = "racing-in-a-window"
argv = ["sh", "-c", "trap '' TERM; exec sleep TOKEN"]
budgets = ["games"]

[[entries]]
id = "sums"
argv = ["sleep", "TOKEN"]
"#,
    );
    household.launch("racing");
    household.until_idle();
    assert_eq!(first_reason(&household, "racing"), "quota-exhausted");
    assert_eq!(first_reason(&household, "racing-in-a-window"), "quota-exhausted");
    household.launch("sums");
}
