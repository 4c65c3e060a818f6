//! The bypass suite (S13.6): each way round that children are known to try, what Shepherd does, and what it can't do.
//!
//! One table is the source of the tests, of `docs/bypass.md` and of what `cargo xtask bypass` prints.

mod daemon;
mod people;
mod programs;
mod time;

/// One way round.
struct Way {
    name: &'static str,
    tries: &'static str,
    does: &'static str,
    cannot: &'static str,
}

/// Each row has its test, of the same name, in the module named.
macro_rules! ways {
    ($($module:ident::$name:ident { tries: $tries:literal, does: $does:literal, cannot: $cannot:literal })*) => {
        const WAYS: &[Way] = &[$(Way { name: stringify!($name), tries: $tries, does: $does, cannot: $cannot }),*];

        $(#[test]
        fn $name() {
            $module::$name();
        })*
    };
}

ways! {
    time::clock_forward {
        tries: "sets the clock forward, to play tomorrow's time today",
        does: "a running session keeps its end; what is borrowed from tomorrow is gone tomorrow",
        cannot: "keep whoever may set the clock from borrowing"
    }
    time::clock_back {
        tries: "sets the clock back, to play today's time again",
        does: "launches nothing until the clock is right or an administrator vouches for it",
        cannot: "tell a wrong clock that is less than the policy's tolerance behind"
    }
    time::time_zone {
        tries: "moves to a time zone where it is still yesterday",
        does: "charges no day before the latest that was charged; a zone named in the policy counts for its hours",
        cannot: "know where the machine really is"
    }
    time::suspend {
        tries: "closes the lid, to carry a session past the end of its hours",
        does: "the end of the hours stands: on waking nothing runs, and nothing was won",
        cannot: "count what is played on another machine meanwhile"
    }
    daemon::reboot {
        tries: "reboots or pulls the plug in the middle of a session",
        does: "charges what was used, rounded against the child, and keeps the pause after a session",
        cannot: "guard a machine that is booted from a stick: lock the firmware and encrypt the disk"
    }
    daemon::log_out {
        tries: "logs out, so that every program of the session gets SIGHUP and SIGTERM",
        does: "the session has ended and is charged; its pause begins",
        cannot: "give back the time of a session that was lost by mistake; a parent can"
    }
    daemon::killing_the_daemon {
        tries: "kills the daemon",
        does: "the next one takes the session back with its original end, and charges the time between",
        cannot: "end anything while no daemon runs; where it runs as the child's own user, the child can keep it from running"
    }
    daemon::crashing_the_daemon {
        tries: "sends messages that are meant to crash the daemon",
        does: "closes that connection and goes on; the session ends on time",
        cannot: "rule out a fault that nobody has found; systemd starts a crashed daemon again"
    }
    daemon::filling_the_disk {
        tries: "fills the disk, so that nothing can be recorded",
        does: "ends what runs on time, and grants nothing until it can be recorded",
        cannot: "make room"
    }
    programs::double_fork {
        tries: "has the program start another that leaves its parents, its group and its terminal",
        does: "it is a member of the session and ends with it",
        cannot: "hold what asks a service that is not part of the session (cron, a service manager) to start it"
    }
    programs::wrapper {
        tries: "starts a wrapper that hands over and exits, so that the session seems to be over",
        does: "the session lasts until its last program has ended",
        cannot: "see what a program that ran before, outside of any session, does for it"
    }
    programs::another_group {
        tries: "has the program moved to another group, as a user's service manager does on request (`systemd-run --user --scope`, `flatpak run`)",
        does: "it keeps its ancestry, by which it is held: the session goes on, and ends it",
        cannot: "hold what a service manager or a message bus starts on request: give the entries an account that is neither logged in nor lingers"
    }
    programs::compositor {
        tries: "has the Sway that Shepherd started start the program (`swaymsg exec`), which is then in no session",
        does: "a Sway with a user of its own refuses the command; without one, what the compositor has started since the session began ends with the session; its bar stays",
        cannot: "do so with a compositor that it only connects to; unbind keys that a program has bound in Sway, until Sway is started again"
    }
    programs::renaming {
        tries: "gives the program another name and another file",
        does: "nothing is found by its name: it ends with its session",
        cannot: "keep a child who has a shell from starting a copy without Shepherd"
    }
    programs::deafness {
        tries: "has the program ignore every signal that can be ignored",
        does: "kills it after its grace",
        cannot: "save what the program did not save"
    }
    programs::another_entry {
        tries: "plays the same through another entry when the time of the first is used up",
        does: "entries of one budget share it",
        cannot: "know that two entries are the same game unless the policy puts them into one budget"
    }
    people::second_account {
        tries: "logs in with a second account, or with a brother's",
        does: "accounts of one profile share its time; an account that nobody named may do nothing",
        cannot: "tell who sits at the keyboard"
    }
    people::talking_to_the_socket {
        tries: "asks the daemon itself for time, for another policy, for no PIN",
        does: "refuses what the role may not do, and records it; the kernel says who asks",
        cannot: "tell a parent from a child who has the parent's session or PIN"
    }
    people::editing_the_files {
        tries: "edits the policy, the database or the record, or puts an older database back",
        does: "they are not the child's to write; an older database is noticed, and nothing is granted",
        cannot: "protect files from root, or from the user that the daemon runs as"
    }
}

/// The table as it stands in the documentation.
fn table() -> String {
    let mut table = "| way | a child | Shepherd | can't |\n| --- | --- | --- | --- |\n".to_owned();
    for Way { name, tries, does, cannot } in WAYS {
        table.push_str(&format!("| `{name}` | {tries} | {does} | {cannot} |\n"));
    }
    table
}

#[test]
fn the_documented_table_is_this_one() {
    let manifest =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let page = std::path::Path::new(&manifest).join("../../docs/bypass.md");
    let text = std::fs::read_to_string(page).unwrap();
    let table = table();
    assert!(text.contains(&table), "docs/bypass.md must contain:\n\n{table}");
}
