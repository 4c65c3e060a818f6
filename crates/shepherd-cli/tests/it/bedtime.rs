//! Bedtime, one command that puts it off, and the questions that set it up (S19.4). The tests run between 12:00 and 13:00.

use crate::support::terminal::TmuxTerminal;
use crate::support::{CliTestDaemon, command, entry, policy, program, text};

const ASLEEP: &str = policy!(
    "[profiles.anna]\nlabel = \"Anna\"\nbedtime = \"12:00-01:00\"\n[profiles.ben]\nlabel = \"Ben\"\n\
     bedtime = \"23:00-06:00\"\n",
    entry!(
        "maths",
        "Maths",
        r#"["sleep", "600"]"#,
        "max_run = \"4h\"\nprofiles = [\"anna\"]\ncost = \"free\""
    )
);

#[test]
fn bedtime_closes_everything_until_a_parent_puts_it_off() {
    let daemon = CliTestDaemon::start(Some(ASLEEP));
    let refused = text(&daemon.run(&["launch", "maths", "--profile", "anna"]).stderr);
    assert!(refused.contains("Bedtime until tomorrow 01:00."), "{refused}");
    let command = "`shepherd grant 20m --bedtime --entry maths --for anna` opens it for 20 minutes";
    assert!(refused.contains(command), "{refused}");
    let listed = daemon.run_text(&["list", "--profile", "anna"]);
    assert!(listed.contains("Bedtime until tomorrow 01:00"), "{listed}");
    let why = daemon.run_text(&["why", "maths", "--profile", "anna"]);
    assert!(why.lines().any(|line| line.contains("bedtime")), "{why}");
    // Extra time doesn't open it, and the parent learns what does.
    let given = daemon.run_text(&["grant", "15m", "--for", "anna"]);
    let hint = "  It is bedtime until tomorrow 01:00, and extra time doesn't open it. To open it: `shepherd grant 15m \
                --bedtime --for anna`\n";
    assert!(given.ends_with(hint), "{given}");
    let given = daemon.run_text(&["grant", "20m", "--bedtime", "--for", "Anna"]);
    assert!(given.contains("everything for Anna: open until 1"), "{given}");
    let listed = daemon.json(&["list", "--profile", "anna"]);
    assert_eq!(listed["entries"][0]["enabled"], true);
    assert!(listed["entries"][0]["max_run_if_started_now"].as_u64().unwrap() <= 20 * 60 * 1000);
    let week = daemon.run_text(&["week", "maths", "--profile", "anna"]);
    assert!(week.contains("z bedtime") && week.contains("zzzz"), "{week}");
}

#[test]
fn each_child_has_a_bedtime_of_its_own_to_put_off() {
    let daemon = CliTestDaemon::start(Some(ASLEEP));
    let given = daemon.run_text(&["grant", "20m", "--bedtime"]);
    let lines: Vec<&str> = given.lines().collect();
    assert_eq!(lines.len(), 2, "{given}");
    assert!(lines[0].contains("everything for Anna: open until 1"), "{given}");
    assert!(lines[1].contains("everything for Ben: open until 23:20."), "{given}");
    // Ben's begins with his bedtime, so that nothing else opens before.
    let grants = daemon.json(&["grants"]);
    let ben = grants["grants"].as_array().unwrap().iter().find(|grant| grant["profile"] == "ben").unwrap();
    assert!(ben["valid_from"].as_str() > ben["given_at"].as_str(), "{ben}");
}

#[test]
fn without_a_bedtime_there_is_nothing_to_put_off() {
    let rules = policy!("[profiles.anna]\n", entry!("maths", "Maths", r#"["true"]"#, ""));
    let daemon = CliTestDaemon::start(Some(rules));
    let refused = daemon.run(&["grant", "20m", "--bedtime"]);
    assert_eq!(refused.status.code(), Some(1));
    let refused = text(&refused.stderr);
    assert!(refused.contains("no bedtime begins within a day"), "{refused}");
    assert!(refused.contains("help: `shepherd grant --open-until 20:00`"), "{refused}");
    assert_eq!(daemon.run(&["grant", "--bedtime"]).status.code(), Some(2));
}

/// Runs the program in a terminal of 80 columns. Ctrl-C ends the program, but not the shell around it.
fn terminal(arguments: &str) -> TmuxTerminal {
    TmuxTerminal::run(80, 50, &format!("trap : INT; {} {arguments}", program().display()))
}

/// Types an answer, and waits for the next question.
fn answer(terminal: &TmuxTerminal, line: &str, next: &str) {
    if !line.is_empty() {
        terminal.press(line);
    }
    terminal.press("Enter");
    terminal.wait_for_text(next);
}

#[test]
fn eight_answers_at_a_terminal_replace_the_rules_and_set_a_pin() {
    let daemon = CliTestDaemon::start(Some(ASLEEP));
    let (file, socket) = (daemon.path("policy.toml"), daemon.socket());
    let before = std::fs::read_to_string(&file).unwrap();
    let questions =
        terminal(&format!("--socket {} policy init --interactive {}", socket.display(), file.display()));
    questions.wait_for_text("Write new rules? [y/N]");
    answer(&questions, "y", "1/8 Children");
    answer(&questions, "Zoe", "Zoe's login [");
    answer(&questions, "zoe-no-such-login", "Use this name?");
    answer(&questions, "y", "3/8 Bedtime");
    answer(&questions, "", "weekends (Friday and Saturday) [21:30-08:00]");
    answer(&questions, "none", "4/8 Minutes a day");
    answer(&questions, "", "Saturday and Sunday [90]");
    answer(&questions, "", "5/8 Programs");
    answer(&questions, "sleep", "1 sleep");
    answer(&questions, "", "6/8 Parents");
    answer(&questions, "mum-of-zoe", "no login `mum-of-zoe`");
    answer(&questions, "y", "New PIN:");
    answer(&questions, "246810", "The same PIN again:");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before, "nothing is written before the last answer");
    answer(&questions, "246810", "8/8 Notifications");
    answer(&questions, "", "EXIT 0");
    let screen = questions.screen();
    assert!(!screen.contains("246810"), "{screen}");
    assert!(screen.contains("administrators need the PIN from now on"), "{screen}");
    let written = std::fs::read_to_string(&file).unwrap();
    let bedtime = "bedtime = { school_nights = \"20:00-07:00\", weekends = \"none\" }";
    assert!(written.contains(bedtime) && !written.contains("246810"), "{written}");
    assert_eq!(std::fs::read_to_string(daemon.path("policy.toml.old")).unwrap(), before);
    let checked = command(&["policy", "check"]).arg(&file).output().unwrap();
    assert!(checked.status.success(), "{}", text(&checked.stderr));
}

#[test]
fn interrupted_questions_write_nothing() {
    let folder = tempfile::Builder::new().prefix("sh-").tempdir_in("/tmp").unwrap();
    let file = folder.path().join("policy.toml");
    for (key, end) in [("C-c", "EXIT 130"), ("C-d", "EXIT 1")] {
        let questions = terminal(&format!("policy init --interactive {}", file.display()));
        questions.wait_for_text("1/8 Children");
        answer(&questions, "Anna", "Anna's login");
        questions.press(key);
        questions.wait_for_text(end);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{key}");
    }
}

#[test]
fn without_a_terminal_no_question_is_asked() {
    let file = "/tmp/no-such-folder/policy.toml";
    let refused = command(&["policy", "init", "--interactive", file]).output().unwrap();
    let shown = text(&refused.stderr);
    assert!(shown.contains("could not ask the questions: no terminal"), "{shown}");
    assert!(shown.contains("help: type it in a terminal; `shepherd policy init` writes"), "{shown}");
    assert!(!std::path::Path::new("/tmp/no-such-folder").exists());
}
