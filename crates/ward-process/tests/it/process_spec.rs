//! A program runs exactly as its spec says: without a shell, without inherited variables or descriptors
//! (S6.1, S6.5).

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;

use ward_process::{
    Containment, LimitEnforcement, OutputTarget, ProcessExit, ProcessGrouping, ProcessSpec, SpawnError,
    StdinSource, Supervisor, TreeLimits, UserIdentity,
};

use crate::harness::{
    PATIENCE, TestRun, containments, fake_child, is_root, kill, start_supervisor_process, supervisor,
};

/// Runs a program and returns its standard output.
fn output_of(supervisor: &Supervisor, spec: ProcessSpec) -> String {
    let run = TestRun::new();
    let spec = spec.stdout(OutputTarget::Capture { limit: 1 << 20 }).stderr_with_stdout();
    let mut tree = supervisor.spawn(run.id.clone(), spec).unwrap();
    tree.wait(Some(PATIENCE)).unwrap().expect("it ends");
    String::from_utf8_lossy(tree.stdout().unwrap().bytes()).into_owned()
}

fn shell(script: &str) -> ProcessSpec {
    ProcessSpec::new("/bin/sh").args(["-c", script])
}

#[test]
fn arguments_reach_the_program_byte_for_byte() {
    let weird = ["", " ", "$HOME", "`id`", "a\nb", "*", "'\"\\", "-n", "ü"].map(OsString::from);
    let invalid = OsString::from_vec(vec![0xff, 0xfe]);
    for containment in containments() {
        let supervisor = supervisor(containment);
        let spec =
            ProcessSpec::new("/usr/bin/printf").args(["<%s>"]).args(weird.clone()).args([invalid.clone()]);
        let expected = format!(
            "<><{}><\u{fffd}\u{fffd}>",
            weird[1..].iter().map(|s| s.to_string_lossy()).collect::<Vec<_>>().join("><")
        );
        assert_eq!(output_of(&supervisor, spec), expected, "{containment}");
    }
}

#[test]
fn the_environment_is_that_of_the_spec_plus_the_tree_marker() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let spec = ProcessSpec::new("/usr/bin/env").env("B", "2 3").env("A", "").env("WARD_TREE", "forged");
        let output = output_of(&supervisor, spec);
        let mut lines: Vec<_> = output.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines.len(), 3, "{containment}: {output}");
        assert_eq!(&lines[..2], ["A=", "B=2 3"]);
        assert!(lines[2].starts_with("WARD_TREE=test-"), "{containment}: the marker was forged");
    }
}

#[test]
fn the_program_starts_in_its_directory_in_a_session_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    // A PID namespace has its own pids, so the script itself checks that it leads its group and session.
    let script =
        "pwd; read -r stat < /proc/self/stat; set -- $stat; [ $1 = $5 ] && [ $1 = $6 ] && echo leads";
    for containment in containments() {
        let spec = shell(script).directory(directory.path());
        let expected = format!("{}\nleads\n", directory.path().display());
        assert_eq!(output_of(&supervisor(containment), spec), expected, "{containment}");
        let spec = shell(&script.replace("&& [ $1 = $6 ]", "&& [ $1 != $6 ]"))
            .directory(directory.path())
            .grouping(ProcessGrouping::Group);
        assert_eq!(output_of(&supervisor(containment), spec), expected, "{containment}");
    }
}

#[test]
fn no_descriptor_of_the_supervisor_is_inherited() {
    let (_reader, writer) = rustix::pipe::pipe().unwrap();
    // A descriptor without close-on-exec, as a careless library would open it.
    let leaked: OwnedFd = rustix::io::dup(&writer).unwrap();
    for containment in containments() {
        let spec = shell("ls /proc/self/fd | tr '\\n' ' '").env("PATH", "/usr/bin:/bin");
        // Descriptor 3 is that of `ls` on the directory that it lists.
        assert_eq!(output_of(&supervisor(containment), spec), "0 1 2 3 ", "{containment}");
    }
    drop(leaked);
}

#[test]
fn no_new_privs_is_set_and_signals_have_their_defaults() {
    for containment in containments() {
        let spec =
            shell("grep -E '^(NoNewPrivs|SigIgn|SigBlk):' /proc/self/status").env("PATH", "/usr/bin:/bin");
        let expected = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nNoNewPrivs:\t1\n";
        let mut lines: Vec<_> =
            output_of(&supervisor(containment), spec).lines().map(str::to_owned).collect();
        lines.sort();
        let mut wanted: Vec<_> = expected.lines().map(str::to_owned).collect();
        wanted.sort();
        assert_eq!(lines, wanted, "{containment}");
    }
}

#[test]
fn standard_input_comes_from_the_source_in_the_spec() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in");
    std::fs::write(&path, "from a file").unwrap();
    for containment in containments() {
        let file = std::fs::File::open(&path).unwrap();
        let spec = ProcessSpec::new("/bin/cat").stdin(StdinSource::FromFd(file.into()));
        assert_eq!(output_of(&supervisor(containment), spec), "from a file", "{containment}");
        assert_eq!(output_of(&supervisor(containment), ProcessSpec::new("/bin/cat")), "", "{containment}");
    }
}

#[test]
fn a_failed_start_has_a_reason_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("text");
    std::fs::write(&text, "no program").unwrap();
    let nowhere = directory.path().join("nowhere");
    for containment in containments() {
        let supervisor = supervisor(containment);
        let cases = [
            (ProcessSpec::new(&nowhere), "could not execute the program"),
            (ProcessSpec::new(&text), "could not execute the program"),
            (ProcessSpec::new(fake_child()).directory(&nowhere), "could not enter the working directory"),
            (ProcessSpec::new("relative"), "`relative` is not an absolute path"),
            (ProcessSpec::new(fake_child()).args(["a\0b"]), "an argument contains a NUL character"),
            (
                ProcessSpec::new(fake_child())
                    .stdout(OutputTarget::Record { path: nowhere.join("log"), limit: 1 }),
                "could not open standard output",
            ),
        ];
        for (spec, message) in cases {
            let run = TestRun::new();
            let error = supervisor.spawn(run.id.clone(), spec).unwrap_err();
            assert!(error.to_string().starts_with(message), "{containment}: {error}");
            // The name can be used again, because nothing of the failed attempt is left.
            let mut tree = run.spawn(&supervisor, "exit 0");
            assert_eq!(tree.wait(Some(PATIENCE)).unwrap().unwrap().exit, ProcessExit::Code(0));
        }
    }
}

#[test]
fn limits_are_enforced_or_reported_as_unenforced() {
    let limits = TreeLimits {
        open_files: Some(32),
        file_size: Some(1024),
        memory: Some(256 << 20),
        watched_memory: None,
        processes: Some(20),
        processor_percent: Some(50),
        processor_seconds: Some(60),
    };
    for containment in containments() {
        let supervisor = supervisor(containment);
        let spec = shell("ulimit -n; ulimit -f; ulimit -t; ulimit -c").limits(limits.clone());
        // The shell counts file sizes in blocks of 512 bytes.
        assert_eq!(output_of(&supervisor, spec), "32\n2\n60\n0\n", "{containment}");
        let run = TestRun::new();
        let mut tree = supervisor.spawn(run.id.clone(), run.spec("exit 0").limits(limits.clone())).unwrap();
        tree.wait(Some(PATIENCE)).unwrap();
        assert_eq!(tree.limit_reports().len(), 6);
        for report in tree.limit_reports() {
            if let LimitEnforcement::Not { reason } = &report.kept {
                assert!(matches!(report.limit, "processes" | "processor_percent"), "{}", report.limit);
                assert!(reason.contains("Delegate=yes"), "no cure: {reason}");
            }
        }
    }
}

#[test]
fn a_limit_on_processes_counts_only_the_tree() {
    for containment in containments() {
        let run = TestRun::new();
        let limits = TreeLimits { processes: Some(10), ..TreeLimits::default() };
        let spec = run.spec("fork 50 [ FOREVER ]; FOREVER").limits(limits);
        let supervisor = supervisor(containment);
        let mut tree = supervisor.spawn(run.id.clone(), spec).unwrap();
        let is_enforced = !matches!(tree.limit_reports()[0].kept, LimitEnforcement::Not { .. });
        if is_enforced {
            // The program itself arrives last, after it has tried all forks. The keeper isn't counted.
            run.wait_until_sleeping(10);
            assert_eq!(run.survivors().len(), 10, "{containment}");
        } else {
            run.wait_until_sleeping(51);
        }
        supervisor.stop(&mut tree, ward_process::StopLadder::force()).unwrap();
    }
}

#[test]
fn only_root_can_spawn_as_another_user() {
    let nobody = UserIdentity::new(65_534, 65_534, &[65_534]);
    for containment in containments() {
        let run = TestRun::new();
        let script = "id -u; id -g; id -G; touch /root/x 2>/dev/null || echo refused";
        let spec = shell(script).env("PATH", "/usr/bin:/bin").identity(nobody.clone());
        if is_root() {
            let expected = "65534\n65534\n65534\nrefused\n";
            assert_eq!(output_of(&supervisor(containment), spec), expected, "{containment}");
        } else {
            let error = supervisor(containment).spawn(run.id.clone(), spec).unwrap_err();
            assert!(
                matches!(&error, SpawnError::Start { step, .. } if *step == "switch to the requested user"),
                "{containment}: {error}"
            );
        }
    }
}

#[test]
fn an_unavailable_containment_has_a_reason() {
    for status in ward_process::probe().offers {
        match status.missing {
            None => assert_eq!(supervisor(status.containment).containment(), status.containment),
            Some(reason) => {
                assert!(reason.len() > 20, "too short: {reason}");
                let error = Supervisor::with_containment(status.containment).unwrap_err();
                assert!(error.to_string().contains(&reason));
            }
        }
    }
    assert_eq!(Supervisor::new().unwrap().containment(), containments()[0]);
    assert!(containments().contains(&Containment::ProcessGroup));
}

#[test]
fn a_limit_that_lets_nothing_run_is_refused() {
    let run = TestRun::new();
    let limits = TreeLimits { processor_percent: Some(0), ..TreeLimits::default() };
    let error = supervisor(Containment::ProcessGroup)
        .spawn(run.id.clone(), run.spec("exit 0").limits(limits))
        .unwrap_err();
    assert_eq!(error.to_string(), "nothing can run with `processor_percent` limited to zero");
}

#[test]
fn only_root_gets_a_cgroup_because_others_could_leave_it() {
    let offers = ward_process::probe().offers;
    let missing = offers.first().and_then(|status| status.missing.clone());
    assert_eq!(missing.is_none(), is_root(), "{missing:?}");
    assert!(is_root() || missing.unwrap().contains("can leave every group"));
}

#[test]
fn probes_can_run_on_many_threads_at_once() {
    let first = ward_process::probe();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..10 {
                    assert_eq!(ward_process::probe(), first);
                }
            });
        }
    });
}

#[test]
fn a_lack_of_descriptors_never_leaves_an_unsupervised_program() {
    for containment in containments() {
        let run = TestRun::new();
        let (process, line) = start_supervisor_process(&run, containment, "exhaust-descriptors", "FOREVER");
        let needed: u32 = line.trim().parse().unwrap();
        assert!(needed > 3, "{containment}: {needed}");
        // Only the supervisor process is found, because the script is on its own command line too.
        assert_eq!(run.survivors(), [process.id().cast_signed()], "{containment}");
        kill(process);
    }
}
