//! Servers that crash, hang, lie, talk too much or ask for things: a failed call with a receipt, and nothing else.

use std::time::{Duration, Instant};

use super::house::echo;
use crate::support::{House, PATIENCE, own_sleep, sleeps, until_sleeps};

fn check(mode: &str, more: &str, expected: &str) {
    let house = House::new().with_server(mode, more).approved("fake");
    let done = house.fails("fake__echo", &words(&own_sleep(1)), expected);
    assert!(!done.err.contains("\u{1b}[2J"), "{}", done.err);
}

#[test]
fn one_that_crashes_has_failed_and_is_quoted() {
    check("crash", "", "the server has ended; it said: out of luck");
}

#[test]
fn one_that_hangs_is_ended_with_all_it_started() {
    check("hang", "timeout = \"2s\"", "took longer than 2 s");
    assert!(!sleeps(&own_sleep(1)));
}

fn words(words: &str) -> String {
    serde_json::json!({ "words": words }).to_string()
}

#[test]
fn one_that_talks_garbage_gives_no_answer() {
    check("garbage", "timeout = \"2s\"", "took longer than 2 s");
}

#[test]
fn one_that_sends_too_much_is_ended() {
    check("giant", "", "sent too much");
    check("unending", "", "sent too much");
    check("flood", "", "sent too much");
}

#[test]
fn one_whose_list_never_ends_is_not_approved() {
    let house = House::new().with_server("endless", "");
    let done = house.run(&["mcp", "approve", "--yes", "fake"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.err.contains("more than 32 pages"), "{}", done.err);
}

#[test]
fn one_that_is_not_there_or_says_nothing_is_told_of() {
    for missing in ["no-such-program-anywhere", "/nowhere/server"] {
        let house = House::new().configured("fake", &format!("command = \"{missing}\""));
        let done = house.run(&["mcp", "approve", "--yes", "fake"]);
        let expected = format!(
            "error: the MCP server `fake` can't be used: there is no program `{missing}` on this machine\n\
             help: install it, or correct `command` in `[mcp.servers.NAME]`\n"
        );
        assert_eq!((done.code, done.err), (1, expected));
    }

    let house = House::new().configured("fake", "command = \"true\"");
    let done = house.run(&["mcp", "approve", "--yes", "fake"]);
    assert!(done.code == 1 && done.err.contains("it ended before it had answered"), "{done:?}");

    // The usual slip: what it is made of lies where the sandbox does not let it look.
    let house = House::new().with_server("plain", "");
    let folder = house.path().join("server");
    let house = house.with(&format!("programs = [\"{}\"]", folder.display()), "");
    let done = house.run(&["mcp", "approve", "--yes", "fake"]);
    assert!(
        done.code == 1 && done.err.contains("help: of your home it sees only the folders that `programs`"),
        "{done:?}"
    );

    // It was approved once, and is mute now.
    let house = House::new().with_server("plain", "timeout = \"2s\"").approved("fake");
    let script = house.path().join("server/fake.py");
    let text = std::fs::read_to_string(&script).unwrap();
    std::fs::write(
        &script,
        text.replace("mode == \"mute\"", "mode == \"plain\"").replace("MUTE", &own_sleep(2)),
    )
    .unwrap();
    let done = house.call("fake__echo", "{}");
    assert!(done.code == 1 && done.err.contains("took longer than 2 s"), "{done:?}");
    assert!(!sleeps(&own_sleep(2)));
}

#[test]
fn what_it_asks_of_us_is_refused() {
    let house = House::new().with_server("asks", "").approved("fake");
    assert_eq!(house.output("fake__echo", "{}"), "[true, true, true]");
}

#[test]
fn one_that_turns_in_the_middle_of_a_turn_is_refused() {
    let call = "[[round]]\n[[round.call]]\ntool = \"fake__echo\"\nargs = { words = \"x\" }\n\n";
    let house = House::new()
        .with_server("turns", "")
        .approved("fake")
        .with("tools_allow = [", "tools_allow = [\"fake__echo\", ")
        .says(&format!("{call}{call}[[round]]\ntext = \"{{tool_result}}\"\n"));
    let done = house.run(&["agent", "-m", "say it"]);
    assert!(done.out.contains("are not as they were approved: `echo` is another now"), "{done:?}");
    let statuses: Vec<String> = house.receipt_words().into_iter().map(|[_, status, _]| status).collect();
    assert_eq!(statuses, ["allowed", "failed"]);
}

#[test]
fn the_emergency_stop_ends_a_server_and_its_tree_at_once() {
    let house = House::new().with_server("hang", "").approved("fake");
    let long = own_sleep(3);
    let child = house.command(&["tool", "run", "fake__echo", "--json", &words(&long)]).spawn().unwrap();
    until_sleeps(&long);
    assert_eq!(house.run(&["estop"]).code, 0);
    let done = crate::support::done(child.wait_with_output().unwrap());
    assert_eq!(done.code, 8, "{done:?}");
    assert!(!done.err.contains("speaks the protocol"), "{}", done.err);
    assert!(!sleeps(&long));
    assert_eq!(house.last_receipt()["reason_code"], "estop");
    house.lists(&echo());
    assert_eq!(house.call("fake__echo", "{}").code, 8);
}

#[test]
fn the_emergency_stop_also_ends_a_server_that_waits_for_the_next_call() {
    let long = own_sleep(4);
    let house = House::new()
        .with_server("company", "")
        .approved("fake")
        .with("tools_allow = [", "tools_allow = [\"fake__echo\", ")
        .says(&format!(
            "[[round]]\n[[round.call]]\ntool = \"fake__echo\"\nargs = {{ words = \"{long}\" }}\n\n[[round]]\ntext = \"said\"\n"
        ));
    let mut child = house.command(&["agent"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"say it\n").unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert!(lines.any(|line| line.unwrap().contains("said")), "the turn is over");
    assert!(sleeps(&long), "the server and what it started stay for the next call");
    assert_eq!(house.run(&["estop"]).code, 0);
    gone(&long);
    drop(input);
    crate::support::wait(&mut child);
}

#[test]
fn a_server_does_not_outlive_us_however_we_end() {
    let house = House::new().with_server("hang", "").approved("fake");
    let long = own_sleep(5);
    let mut child = house.command(&["tool", "run", "fake__echo", "--json", &words(&long)]).spawn().unwrap();
    until_sleeps(&long);
    child.kill().unwrap();
    child.wait().unwrap();
    gone(&long);
    // The attempt has its one receipt, once somebody looks.
    assert_eq!(house.call("time", "{}").code, 0);
    let tools: Vec<String> =
        house.receipt_words().into_iter().map(|[tool, status, _]| format!("{tool} {status}")).collect();
    assert_eq!(tools, ["fake__echo failed", "time allowed"]);
}

fn gone(long: &str) {
    let patience = Instant::now() + PATIENCE;
    while sleeps(long) {
        assert!(Instant::now() < patience, "it is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}
