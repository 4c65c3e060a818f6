//! The bypass suite (S13.6): each known way around Shepherd's limits, what Shepherd does, and what it can't do.
//!
//! The table below is the source of the tests, of `docs/bypass.md` and of the output of `cargo xtask bypass`.

mod daemon;
mod logins;
mod people;
mod programs;
mod time;

/// A way around the limits: what a child tries, what Shepherd does, and what it can't do.
struct BypassAttempt {
    name: &'static str,
    tries: &'static str,
    does: &'static str,
    cannot: &'static str,
}

/// Defines the table, and one test for each row, which calls the function of that name in the named module.
macro_rules! bypass_attempts {
    ($($module:ident::$name:ident { tries: $tries:literal, does: $does:literal, cannot: $cannot:literal })*) => {
        const BYPASS_ATTEMPTS: &[BypassAttempt] = &[$(BypassAttempt { name: stringify!($name), tries: $tries, does: $does, cannot: $cannot }),*];

        $(#[test]
        fn $name() {
            $module::$name();
        })*
    };
}

bypass_attempts! {
    time::clock_forward {
        tries: "sets the clock forward, to use tomorrow's time today",
        does: "A running session keeps its end. Time that is borrowed from tomorrow is missing tomorrow.",
        cannot: "Shepherd can't stop a child who may set the clock from borrowing."
    }
    time::clock_back {
        tries: "sets the clock back, to use today's time again",
        does: "Shepherd starts nothing until the clock is right, or an administrator or the system's time synchronisation confirms it.",
        cannot: "Shepherd doesn't notice a clock that is behind by less than the policy's `tolerance`."
    }
    time::time_zone {
        tries: "changes to a time zone where it is still yesterday",
        does: "Shepherd never charges time to a day before the latest day that it has charged. If the policy names a time zone, the hours follow that zone.",
        cannot: "Shepherd can't know where the computer really is."
    }
    time::suspend {
        tries: "closes the lid, to continue the session after its hours",
        does: "The hours end at the same time as without the pause. If they have ended when the computer wakes up, so has the session.",
        cannot: "Shepherd can't count time on another computer."
    }
    daemon::reboot {
        tries: "reboots or pulls the plug during a session",
        does: "Shepherd charges the used time, rounded up, and the pause after the session still applies.",
        cannot: "Shepherd can't protect a computer that is booted from a USB stick. Lock the firmware and encrypt the disk."
    }
    daemon::log_out {
        tries: "logs out, which sends SIGHUP and SIGTERM to every program of the session",
        does: "The session has ended and is charged, and its pause begins.",
        cannot: "Shepherd doesn't give back the time of a session that was ended by mistake. A parent can."
    }
    daemon::killing_the_daemon {
        tries: "kills the daemon",
        does: "The next daemon takes over the session with its original end, and charges the time in between.",
        cannot: "Nothing is ended while no daemon runs. If the daemon runs as the child's own user, the child can keep it from running."
    }
    daemon::crashing_the_daemon {
        tries: "sends messages that are meant to crash the daemon",
        does: "The daemon closes that connection and continues. The session ends on time.",
        cannot: "An unknown fault may still crash the daemon. systemd then starts it again."
    }
    daemon::filling_the_disk {
        tries: "fills the disk, so that nothing can be recorded",
        does: "Running sessions end on time. Shepherd grants nothing until it can record it.",
        cannot: "Shepherd can't free disk space."
    }
    programs::double_fork {
        tries: "makes the program start another program that leaves its parent, its process group and its terminal",
        does: "The other program still belongs to the session and ends with it.",
        cannot: "A program that an outside service (cron, a service manager) starts on request doesn't belong to the session."
    }
    programs::wrapper {
        tries: "starts the game through a wrapper that exits at once, so that the session seems to be over",
        does: "The session lasts until its last program has ended.",
        cannot: "If a program that runs outside any session starts the game, Shepherd doesn't see it."
    }
    programs::another_group {
        tries: "moves the program to another cgroup, through the user's service manager (`systemd-run --user --scope`, `flatpak run`)",
        does: "Shepherd still finds the program by its ancestry. The session continues and ends the program on time.",
        cannot: "A program that a service manager or a message bus starts on request doesn't belong to the session. Give the entries an account that nobody logs in to and that doesn't linger."
    }
    programs::compositor {
        tries: "makes the Sway that Shepherd started start the program (`swaymsg exec`), outside any session",
        does: "A Sway with a user of its own refuses the command. Otherwise, programs that Sway started during the session end with the session, whichever of several sessions they were started for. Older ones, such as a bar, continue.",
        cannot: "This doesn't work with a Sway that Shepherd only connects to. Keys that a program has bound in Sway stay bound until Sway is restarted."
    }
    programs::renaming {
        tries: "gives the program another name and another file",
        does: "Shepherd finds no program by its name. The program ends with its session.",
        cannot: "A child with a shell can start a copy of the program without Shepherd."
    }
    programs::ignored_signals {
        tries: "makes the program ignore every signal that can be ignored",
        does: "Shepherd kills the program after its grace period.",
        cannot: "Work that the program hasn't saved is lost."
    }
    programs::another_entry {
        tries: "plays the same game through another entry when the time of the first entry is used up",
        does: "Entries with the same budget share its time.",
        cannot: "Shepherd doesn't know that two entries are the same game, unless they have the same budget."
    }
    people::second_account {
        tries: "logs in with a second account, or with a brother's",
        does: "Accounts of the same profile share its time. Accounts that the policy doesn't name may do nothing.",
        cannot: "Shepherd can't tell who sits at the keyboard."
    }
    logins::own_desktop {
        tries: "starts games on an ordinary desktop, without Shepherd",
        does: "With an entry of `kind = \"login\"`, all time at the desktop counts. When it is used up, the child is logged out and can't log in again.",
        cannot: "Without such an entry, Shepherd doesn't limit what it didn't start."
    }
    logins::service_manager {
        tries: "has a service manager or `cron` run the game, outside of the login (`systemd-run --user`, lingering, `at`)",
        does: "The end of a login ends every process of the account, wherever it runs. Outside its hours, PAM also refuses the account to `cron`.",
        cannot: "What goes on while nobody of the account is logged in doesn't count."
    }
    logins::second_seat {
        tries: "logs in a second time, on another seat, a console or over SSH, and uses one while the other stands still",
        does: "All log-ins of an account are one session. It counts while one of them is in use.",
        cannot: "A desktop can claim to be locked or idle. Shepherd locks a screen that claims it, so its time doesn't count for nothing; `counts = \"active\"` believes no lock."
    }
    logins::idle_earning {
        tries: "lets a program that earns time run while nobody is there",
        does: "Time for which the child's desktop is idle or locked earns and unlocks nothing.",
        cannot: "Shepherd can't tell a child from a program that moves the pointer. A console and a program that runs without a desktop report no idle time."
    }
    people::talking_to_the_socket {
        tries: "asks the daemon directly for time, for another policy, or to remove the PIN",
        does: "The daemon refuses everything that the role may not do, and records it. The kernel tells the daemon which account asks.",
        cannot: "Shepherd can't tell a parent from a child who has the parent's session or PIN."
    }
    people::editing_the_files {
        tries: "edits the policy, the database or the audit log, or puts an older database back",
        does: "The child may not write these files. Shepherd notices an older database and grants nothing.",
        cannot: "Files are not protected from root, or from the user that the daemon runs as."
    }
}

/// Returns the table of the documentation.
fn table() -> String {
    let mut table =
        "| test | a child … | what Shepherd does | what it can't do |\n| --- | --- | --- | --- |\n"
            .to_owned();
    for BypassAttempt { name, tries, does, cannot } in BYPASS_ATTEMPTS {
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
