//! C17: every program of a judged tree is stopped before its first instruction, and the judge decides.

use std::ffi::OsString;
use std::io;
use std::sync::{Arc, Mutex};

use ward_process::{
    ExecDecision, ExecJudge, ExecutedImage, OutputTarget, ProcessExit, ProcessLabel, ProcessSpec,
    ProcessTree, StopLadder, TreeLifetime,
};

use crate::harness::{PATIENCE, TestRun, holding_containments, supervisor};

/// The calls of a judge: the label before, and the arguments.
type Calls = Arc<Mutex<Vec<(u8, Vec<OsString>)>>>;

/// Refuses programs with an argument `refused`, and the whole tree for `all-refused`. Every program gets the next label.
struct TestJudge(Calls);

impl ExecJudge for TestJudge {
    fn judge(&mut self, image: &ExecutedImage) -> ExecDecision {
        assert!(image.program.is_absolute() && image.folder.is_absolute());
        self.0.lock().unwrap().push((image.label.0, image.arguments.clone()));
        let has = |text: &str| image.arguments.iter().any(|argument| argument == text);
        if has("all-refused") {
            ExecDecision::KillTree
        } else if has("refused") {
            ExecDecision::KillProcess
        } else {
            ExecDecision::Run(ProcessLabel(image.label.0 + 1))
        }
    }

    fn judge_unreadable(&mut self, error: io::Error) -> ExecDecision {
        panic!("every program of these tests can be read: {error}");
    }
}

/// Runs a line of `sh` in a judged tree, and returns its exit, its output and the calls of the judge.
fn run(
    containment: ward_process::Containment,
    line: &str,
) -> (ProcessExit, String, Vec<(u8, Vec<OsString>)>) {
    let (calls, run) = (Calls::default(), TestRun::new());
    let spec = ProcessSpec::new("/bin/sh").args(["-c", line]).env("PATH", "/usr/bin:/bin");
    let spec =
        spec.stdout(OutputTarget::Capture { limit: 1 << 16 }).lifetime(TreeLifetime::DiesWithSupervisor);
    let mut tree = supervisor(containment)
        .spawn_judged(run.id.clone(), spec, Box::new(TestJudge(calls.clone())))
        .unwrap();
    let ended = tree.wait(Some(PATIENCE)).unwrap().expect("the tree ends");
    let output = captured(&mut tree);
    let calls = calls.lock().unwrap().clone();
    (ended.exit, output, calls)
}

fn captured(tree: &mut ProcessTree) -> String {
    String::from_utf8_lossy(tree.stdout().map(|capture| capture.bytes()).unwrap_or_default()).into_owned()
}

fn texts(calls: &[(u8, Vec<OsString>)]) -> Vec<(u8, String)> {
    let join = |arguments: &[OsString]| arguments.join(" ".as_ref()).to_string_lossy().into_owned();
    calls.iter().map(|(label, arguments)| (*label, join(arguments))).collect()
}

#[test]
fn programs_are_judged_with_their_arguments_and_the_label_of_their_creator() {
    for containment in holding_containments() {
        let line = "echo start; env true one; (/bin/true two); env env true three; exec env true four";
        let (exit, output, calls) = run(containment, line);
        assert_eq!((exit, output.as_str()), (ProcessExit::Code(0), "start\n"), "{containment}");
        let calls = texts(&calls);
        assert_eq!(calls[0], (0, format!("/bin/sh -c {line}")), "{containment}");
        let expected = [
            (1, "env true one"),
            (2, "true one"),
            (1, "/bin/true two"),
            (1, "env env true three"),
            (2, "env true three"),
            (3, "true three"),
            (1, "env true four"),
            (2, "true four"),
        ];
        assert_eq!(calls[1..], expected.map(|(label, text)| (label, text.to_owned())), "{containment}");
    }
}

#[test]
fn a_refused_program_runs_no_instruction() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    for containment in holding_containments() {
        let line = format!("touch {0} refused; echo $?; env touch {0} refused; echo $?", file.display());
        let (exit, output, _) = run(containment, &line);
        assert_eq!((exit, output.as_str()), (ProcessExit::Code(0), "137\n137\n"), "{containment}");
        assert!(!file.exists(), "{containment}");
        let line = format!("(sleep 600 &); touch {} all-refused; echo after", file.display());
        let (exit, output, _) = run(containment, &line);
        assert_eq!((exit, output.as_str()), (ProcessExit::Signal(9), ""), "{containment}");
        assert!(!file.exists(), "{containment}");
    }
}

#[test]
fn the_interpreter_of_a_script_is_judged() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "#!/bin/sh -e\ntrue inner\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for containment in holding_containments() {
        let (_, _, calls) = run(containment, &format!("{} argument", script.display()));
        let calls = texts(&calls);
        let expected = format!("/bin/sh -e {} argument", script.display());
        assert!(calls.contains(&(1, expected)), "{containment}: {calls:?}");
    }
}

#[test]
fn a_judged_tree_stops_and_is_killed_like_any_other() {
    for containment in holding_containments() {
        let (run, calls) = (TestRun::new(), Calls::default());
        let supervisor = supervisor(containment);
        let spec = run.spec("fork 2 [ fork 2 [ ignore term; FOREVER ]; FOREVER ]; stop");
        let spec = spec.lifetime(TreeLifetime::DiesWithSupervisor);
        let mut tree = supervisor.spawn_judged(run.id.clone(), spec, Box::new(TestJudge(calls))).unwrap();
        run.wait_until_sleeping(6);
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        run.assert_none_left();
    }
}

#[test]
fn many_programs_at_once_are_all_judged() {
    let line = "i=0; while [ $i -lt 100 ]; do env true & i=$((i + 1)); done; wait; echo done";
    for containment in holding_containments() {
        let (exit, output, calls) = run(containment, line);
        assert_eq!((exit, output.as_str()), (ProcessExit::Code(0), "done\n"), "{containment}");
        assert_eq!(calls.len(), 201, "{containment}");
    }
}

/// Lets a program with an argument `later` wait until a program with an argument `other` has run.
struct PatientJudge {
    other_ran: bool,
    questions: Arc<Mutex<usize>>,
}

impl ExecJudge for PatientJudge {
    fn judge(&mut self, image: &ExecutedImage) -> ExecDecision {
        let has = |text: &str| image.arguments.iter().any(|argument| argument == text);
        self.other_ran |= has("other");
        if has("later") && !self.other_ran {
            *self.questions.lock().unwrap() += 1;
            return ExecDecision::AskAgain;
        }
        ExecDecision::Run(image.label)
    }

    fn judge_unreadable(&mut self, error: io::Error) -> ExecDecision {
        panic!("every program of this test can be read: {error}");
    }
}

#[test]
fn other_processes_go_on_while_a_program_waits_for_its_judge() {
    // The first program runs only after the last one.
    let line = "/bin/echo first later & env true; env true other; wait; echo end";
    for containment in holding_containments() {
        let (run, questions) = (TestRun::new(), Arc::default());
        let judge = PatientJudge { other_ran: false, questions: Arc::clone(&questions) };
        let spec = ProcessSpec::new("/bin/sh").args(["-c", line]).env("PATH", "/usr/bin:/bin");
        let spec =
            spec.stdout(OutputTarget::Capture { limit: 1 << 16 }).lifetime(TreeLifetime::DiesWithSupervisor);
        let mut tree = supervisor(containment).spawn_judged(run.id.clone(), spec, Box::new(judge)).unwrap();
        tree.wait(Some(PATIENCE)).unwrap().expect("the tree ends");
        assert_eq!(captured(&mut tree), "first later\nend\n", "{containment}");
    }
}

#[test]
fn a_program_that_waits_for_its_judge_is_killed_with_its_tree() {
    for containment in holding_containments() {
        let (run, questions) = (TestRun::new(), Arc::new(Mutex::new(0)));
        let judge = PatientJudge { other_ran: false, questions: Arc::clone(&questions) };
        let spec = ProcessSpec::new("/bin/sh").args(["-c", "/bin/echo later; true"]);
        let supervisor = supervisor(containment);
        let spec = spec.lifetime(TreeLifetime::DiesWithSupervisor);
        let mut tree = supervisor.spawn_judged(run.id.clone(), spec, Box::new(judge)).unwrap();
        crate::harness::wait_until("the judge is asked again", || *questions.lock().unwrap() > 1);
        supervisor.stop(&mut tree, StopLadder::force()).unwrap();
        assert!(tree.wait(Some(PATIENCE)).unwrap().is_some(), "{containment}");
    }
}

#[test]
fn stopped_processes_continue() {
    // The signal to continue is repeated, because the first one may come before the process has stopped.
    let line = "sh -c 'kill -STOP $$; echo woken' & p=$!; \
                (for i in $(seq 25); do kill -CONT $p; sleep 0.04; done) 2> /dev/null & \
                wait $p; echo end";
    for containment in holding_containments() {
        let (_, output, _) = run(containment, line);
        assert_eq!(output, "woken\nend\n", "{containment}");
    }
}
