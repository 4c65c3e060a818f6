//! Destructive commands are told from ordinary ones, even if the operator allows the program (C7.2).

use std::collections::BTreeSet;

use collieclaw_gate::{AutonomyLevel, GatePolicy, GateReason, PathBounds, judge_shell};

use crate::test_machine::{GateTestMachine, policy};

/// Returns the damage that the gate sees in a line, on a machine where no command is forbidden.
fn damage(line: &str) -> Option<String> {
    let policy = GatePolicy {
        forbidden_commands: BTreeSet::new(),
        bounds: PathBounds::Anywhere,
        ..policy("rm chmod chown chgrp dd systemctl init telinit mkfs")
    };
    let verdict = judge_shell(line, AutonomyLevel::Full, &policy, &GateTestMachine::new()).verdict;
    verdict
        .reasons
        .iter()
        .find(|reason| matches!(reason, GateReason::Destructive { .. }))
        .map(GateReason::detail)
}

fn check(expected: Option<&str>, lines: &[&str]) {
    for line in lines {
        assert_eq!(damage(line).as_deref(), expected, "{line:?}");
    }
}

#[test]
fn deleting_everything_is_destructive() {
    check(
        Some("it deletes everything"),
        &[
            "rm -r /",
            "rm -R /",
            "rm -rf /*",
            "rm -fr ~",
            "rm -rf ~/",
            "rm -rf '$HOME'",
            "rm -rf /home",
            "rm -rf /root/",
            "rm -rf /usr/*",
            "rm -rf /etc /x",
            "rm -rf a /var",
            "rm -rf .",
            "rm -rf ./*",
            "rm -rf ..",
            "rm --recursive *",
            "rm --r *",
            "rm -rf -- *",
        ],
    );
    check(
        None,
        &[
            "rm a.txt",
            "rm -f /",
            "rm -rf src",
            "rm -rf src/*.rs",
            "rm -rf /usr/lib",
            "rm --force *",
            "rm -- -r *",
        ],
    );
}

#[test]
fn permissions_and_owners_of_everything_are_kept() {
    check(
        Some("it changes the permissions of everything"),
        &["chmod -R 777 /", "chmod --recursive a+w ~", "chmod 777 -R /usr/", "chmod -R 777 /*"],
    );
    check(None, &["chmod 777 /", "chmod -R 755 .", "chmod -R 755 ./*", "chmod -R 755 src", "chmod -r /"]);
    check(
        Some("it changes the owner of everything in a folder"),
        &["chown -R kim src", "chgrp kim -R src", "chown --recursive kim src"],
    );
    check(None, &["chown kim a.txt", "chown kim -- -R", "chgrp kim src"]);
}

#[test]
fn disks_and_the_power_switch_are_off_limits() {
    check(
        Some("it wipes a disk"),
        &["mkfs x", "mkfs.ext4 x", "mke2fs x", "mkswap x", "wipefs x", "blkdiscard x"],
    );
    check(Some("it overwrites a disk or a file"), &["dd if=a.txt", "dd of=x", "dd bs=1 of=x"]);
    check(None, &["dd", "dd bs=1 count=1", "mkfsx a", "mkf.s a"]);
    check(
        Some("it turns the machine off"),
        &[
            "shutdown",
            "reboot",
            "halt",
            "poweroff",
            "kexec",
            "init 0",
            "init 6",
            "telinit 0",
            "systemctl poweroff",
            "systemctl --now suspend",
            "systemctl rescue",
        ],
    );
    check(None, &["init 3", "init", "telinit q", "systemctl status", "systemctl restart x"]);
}

#[test]
fn a_function_that_multiplies_itself_is_a_fork_bomb() {
    check(
        Some("it starts itself again and again until nothing else can run"),
        &[
            ":(){ :|:& };:",
            "f() { f & }; f",
            "f() { f | ls; }",
            "f() { ls | f; }",
            "f() { ls && f & }",
            "f() { if ls; then f & fi; }",
            "f() { (f | f); }",
            "(f() { f | f; }; f)",
            "echo $(f() { f & }; f)",
            "ls; f() { f & }",
        ],
    );
    // A function may call itself and wait for the result, or run other commands beside it.
    check(
        None,
        &[
            "f() { f; }",
            "f() { ls | cat; f; }",
            "f() { ls & }; f",
            "f() { g | g; }; f",
            "g() { ls; }; f() { g | g & }; f",
            "f() { if ls; then f; fi; }",
            "f | f",
        ],
    );
}
