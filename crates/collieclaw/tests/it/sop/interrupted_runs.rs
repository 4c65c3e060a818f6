//! Runs that died, and how they are resumed: no step is silently run again.

use std::fs;
use std::process::Stdio;

use super::{SUNNY, TOOL, agent_with_sop, run_command_on_run, single_run};
use crate::support::{TestAgent, wait_for_exit, wait_until};

pub(super) const STEPS: usize = 6;

/// Steps that each leave a mark.
pub(super) fn marking_steps(line: &str) -> String {
    (0..STEPS)
        .map(|number| {
            format!("[[steps]]\nid = \"s{number}\"\nkind = \"tool\"\ntool = \"shell\"\nargs = {{ command = \"{line} s{number} >> marks\" }}\n")
        })
        .collect()
}

pub(super) fn marks(test_agent: &TestAgent) -> Vec<String> {
    let text = fs::read_to_string(test_agent.workspace().join("marks")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Counts the started steps in the journals.
pub(super) fn steps_begun(test_agent: &TestAgent) -> usize {
    let journals = fs::read_dir(test_agent.home().join("sop-runs")).into_iter().flatten().flatten();
    let texts = journals.filter_map(|journal| fs::read_to_string(journal.path()).ok());
    texts.map(|text| text.lines().filter(|line| line.starts_with("{\"began\"")).count()).sum()
}

#[test]
fn a_step_that_only_looks_runs_once_more_by_itself() {
    let test_agent = agent_with_sop(
        "look",
        "[[steps]]\nid = \"look\"\nkind = \"tool\"\ntool = \"file_list\"\nargs = { path = \".\" }\n",
    );
    assert_eq!(test_agent.run(&["sop", "run", "look"]).code, 0);
    tear_last_journal_line(&test_agent);
    assert_eq!(single_run(&test_agent)["state"], "interrupted");
    assert_eq!(run_command_on_run(&test_agent, &["resume"]).code, 0);
    assert_eq!(test_agent.receipts().len(), 2, "both attempts are on record");
}

#[test]
fn a_tool_of_someone_else_runs_once_more_by_itself_only_if_it_can_leave_nothing_behind() {
    for (asks, code) in [("workspace = \"write\"", 1), ("network = true", 1), ("workspace = \"read\"", 0)] {
        let trusted = "[plugins.weather]\nrisks = { weather_now = \"low\" }\nnetwork = true\n\n[limits]";
        let test_agent = TestAgent::new()
            .with_full_autonomy()
            .with_plugin("weather", &format!("{TOOL}{asks}"), SUNNY)
            .with_config_change("[limits]", trusted);
        let step = "[[steps]]\nid = \"ask\"\nkind = \"tool\"\ntool = \"weather_now\"\n";
        super::write(&test_agent, "ask", &format!("name = \"ask\"\ndescription = \"for a test\"\n{step}"));
        let run = test_agent.run(&["sop", "run", "ask"]);
        assert_eq!(run.code, 0, "{run:?}");
        tear_last_journal_line(&test_agent);
        let resumed = run_command_on_run(&test_agent, &["resume"]);
        assert_eq!(resumed.code, code, "{asks}: {resumed:?}");
        assert_eq!(test_agent.receipts().len(), if code == 0 { 2 } else { 1 }, "{asks}");
        if code == 1 {
            assert!(resumed.err.contains("--rerun-interrupted"), "{resumed:?}");
            assert_eq!(run_command_on_run(&test_agent, &["resume", "--rerun-interrupted"]).code, 0);
        }
    }
}

/// Restores the state after a kill between the receipt and the journal.
fn tear_last_journal_line(test_agent: &TestAgent) {
    let run = single_run(test_agent)["run"].as_str().unwrap().to_owned();
    let journal = test_agent.home().join("sop-runs").join(format!("{run}.jsonl"));
    let text = fs::read_to_string(&journal).unwrap();
    let whole: Vec<&str> = text.lines().collect();
    fs::write(&journal, whole[..whole.len() - 1].join("\n") + "\n{\"ended\":{\"st").unwrap();
}

/// Restores the state when the run had just started.
fn truncate_journal_to_header(test_agent: &TestAgent) {
    let run = single_run(test_agent)["run"].as_str().unwrap().to_owned();
    let journal = test_agent.home().join("sop-runs").join(format!("{run}.jsonl"));
    let header = fs::read_to_string(&journal).unwrap().lines().next().unwrap().to_owned();
    fs::write(&journal, header + "\n").unwrap();
}

#[test]
fn a_step_whose_start_was_lost_is_known_by_its_receipt() {
    let test_agent = agent_with_sop(
        "mark",
        "[[steps]]\nid = \"mark\"\nkind = \"tool\"\ntool = \"shell\"\nargs = { command = \"echo x >> marks\" }\n",
    );
    assert_eq!(test_agent.run(&["sop", "run", "mark"]).code, 0);
    truncate_journal_to_header(&test_agent);
    let resumed = run_command_on_run(&test_agent, &["resume"]);
    assert!(resumed.code == 1 && resumed.err.contains("its receipt: receipt-"), "{resumed:?}");
    assert_eq!(marks(&test_agent), ["x"]);
}

#[test]
fn a_journal_that_was_put_back_makes_no_finished_step_run_again() {
    let steps = "[[steps]]\nid = \"look\"\nkind = \"tool\"\ntool = \"time\"\n\
                 [[steps]]\nid = \"mark\"\nkind = \"tool\"\ntool = \"shell\"\nargs = { command = \"echo once >> marks\" }\n\
                 [[steps]]\nid = \"wait\"\nkind = \"approval\"\nprompt = \"Go on?\"\n";
    let test_agent = agent_with_sop("two", steps);
    test_agent.run(&["sop", "run", "two"]);
    assert_eq!(marks(&test_agent), ["once"]);
    truncate_journal_to_header(&test_agent);
    let asked = run_command_on_run(&test_agent, &["resume"]);
    assert!(asked.code == 1 && asked.err.contains("but no lines in the journal"), "{asked:?}");
    assert_eq!(marks(&test_agent), ["once"], "it has its receipt");
}

#[test]
fn a_model_that_was_cut_off_is_not_asked_again_by_itself() {
    let test_agent =
        agent_with_sop("ask", "[[steps]]\nid = \"think\"\nkind = \"agent\"\nprompt = \"Well?\"\n")
            .with_mock_fixture("[[round]]\ndelay = \"30s\"\ntext = \"at last\"\n");
    let mut command = test_agent.command(&["sop", "run", "ask"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the step has begun", || steps_begun(&test_agent) == 1);
    assert_eq!(single_run(&test_agent)["state"], "running");
    let busy = run_command_on_run(&test_agent, &["resume"]);
    assert!(busy.code == 1 && busy.err.contains("another process"), "{busy:?}");
    assert_eq!(run_command_on_run(&test_agent, &["cancel"]).code, 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let test_agent = test_agent.with_mock_fixture("[[round]]\ntext = \"at last\"\n");
    assert_eq!(run_command_on_run(&test_agent, &["resume"]).code, 1);
    let resumed = run_command_on_run(&test_agent, &["resume", "--rerun-interrupted"]);
    assert_eq!((resumed.code, resumed.out.as_str()), (0, "at last\n"), "{resumed:?}");
}

#[test]
fn a_step_that_was_stopped_while_running_is_not_repeated_automatically() {
    let test_agent = agent_with_sop(
        "slow",
        "[[steps]]\nid = \"slow\"\nkind = \"tool\"\ntool = \"shell\"\nargs = { command = \"echo x >> marks; sleep 14\" }\n\
         [[steps]]\nid = \"next\"\nkind = \"tool\"\ntool = \"time\"\n\
         [[steps]]\nid = \"keep\"\nkind = \"tool\"\ntool = \"file_write\"\nargs = { path = \"x\" }\ncontent_from = \"slow\"\n",
    );
    let mut command = test_agent.command(&["sop", "run", "slow"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the step has begun", || !marks(&test_agent).is_empty());
    test_agent.run(&["estop"]);
    assert_eq!(wait_for_exit(&mut child), 8);
    test_agent.run(&["estop", "--clear"]);
    assert_eq!(single_run(&test_agent)["state"], "interrupted");
    assert_eq!(run_command_on_run(&test_agent, &["resume"]).code, 1);
    let skipped = run_command_on_run(&test_agent, &["resume", "--skip-interrupted", "--output", "json"]);
    assert_eq!(skipped.code, 1, "what it gave is not known, so the next one has nothing: {skipped:?}");
    assert_eq!((&skipped.json()["state"], &skipped.json()["step"]), (&"failed".into(), &"keep".into()));
    assert_eq!(marks(&test_agent), ["x"]);
}

#[test]
fn concurrent_resumes_run_each_step_once() {
    let test_agent = agent_with_sop("mark", &marking_steps("sleep 0.05; echo"));
    test_agent.run(&["estop"]);
    assert_eq!(test_agent.run(&["sop", "run", "mark"]).code, 8);
    test_agent.run(&["estop", "--clear"]);
    let run = single_run(&test_agent)["run"].as_str().unwrap().to_owned();
    let mut children: Vec<_> =
        (0..5).map(|_| test_agent.command(&["sop", "resume", &run]).spawn().unwrap()).collect();
    let codes: Vec<i32> = children.iter_mut().map(wait_for_exit).collect();
    assert!(codes.contains(&0) && codes.iter().all(|code| [0, 1].contains(code)), "{codes:?}");
    let all: Vec<String> = (0..STEPS).map(|number| format!("s{number}")).collect();
    assert_eq!(marks(&test_agent), all);
}
