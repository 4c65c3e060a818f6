//! What is ordered is what runs: no shell, nothing inherited, nothing left open (S6.1, S6.5).

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
fn output_of(supervisor: &Supervisor, order: ProcessSpec) -> String {
    let run = TestRun::new();
    let order = order.stdout(OutputTarget::Capture { limit: 1 << 20 }).stderr_with_stdout();
    let mut tree = supervisor.spawn(run.id.clone(), order).unwrap();
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
        let order =
            ProcessSpec::new("/usr/bin/printf").args(["<%s>"]).args(weird.clone()).args([invalid.clone()]);
        let expected = format!(
            "<><{}><\u{fffd}\u{fffd}>",
            weird[1..].iter().map(|s| s.to_string_lossy()).collect::<Vec<_>>().join("><")
        );
        assert_eq!(output_of(&supervisor, order), expected, "{containment}");
    }
}

#[test]
fn the_environment_is_what_was_ordered_and_the_mark_of_the_tree() {
    for containment in containments() {
        let supervisor = supervisor(containment);
        let order = ProcessSpec::new("/usr/bin/env").env("B", "2 3").env("A", "").env("WARD_TREE", "forged");
        let output = output_of(&supervisor, order);
        let mut lines: Vec<_> = output.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines.len(), 3, "{containment}: {output}");
        assert_eq!(&lines[..2], ["A=", "B=2 3"]);
        assert!(lines[2].starts_with("WARD_TREE=test-"), "{containment}: the mark can't be forged");
    }
}

#[test]
fn the_program_starts_in_its_directory_in_a_session_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    // A PID namespace numbers its processes itself; what leads is asked from inside.
    let script =
        "pwd; read -r stat < /proc/self/stat; set -- $stat; [ $1 = $5 ] && [ $1 = $6 ] && echo leads";
    for containment in containments() {
        let order = shell(script).directory(directory.path());
        let expected = format!("{}\nleads\n", directory.path().display());
        assert_eq!(output_of(&supervisor(containment), order), expected, "{containment}");
        let order = shell(&script.replace("&& [ $1 = $6 ]", "&& [ $1 != $6 ]"))
            .directory(directory.path())
            .grouping(ProcessGrouping::Group);
        assert_eq!(output_of(&supervisor(containment), order), expected, "{containment}");
    }
}

#[test]
fn no_descriptor_of_ours_is_inherited() {
    let (_reader, writer) = rustix::pipe::pipe().unwrap();
    // Without close-on-exec, as a careless library would have it.
    let leaked: OwnedFd = rustix::io::dup(&writer).unwrap();
    for containment in containments() {
        let order = shell("ls /proc/self/fd | tr '\\n' ' '").env("PATH", "/usr/bin:/bin");
        // 3 is the handle of `ls` on the directory that it lists.
        assert_eq!(output_of(&supervisor(containment), order), "0 1 2 3 ", "{containment}");
    }
    drop(leaked);
}

#[test]
fn new_privileges_are_given_up_and_signals_are_as_at_boot() {
    for containment in containments() {
        let order =
            shell("grep -E '^(NoNewPrivs|SigIgn|SigBlk):' /proc/self/status").env("PATH", "/usr/bin:/bin");
        let expected = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nNoNewPrivs:\t1\n";
        let mut lines: Vec<_> =
            output_of(&supervisor(containment), order).lines().map(str::to_owned).collect();
        lines.sort();
        let mut wanted: Vec<_> = expected.lines().map(str::to_owned).collect();
        wanted.sort();
        assert_eq!(lines, wanted, "{containment}");
    }
}

#[test]
fn standard_input_comes_from_where_it_was_ordered() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("in");
    std::fs::write(&path, "from a file").unwrap();
    for containment in containments() {
        let file = std::fs::File::open(&path).unwrap();
        let order = ProcessSpec::new("/bin/cat").stdin(StdinSource::FromFd(file.into()));
        assert_eq!(output_of(&supervisor(containment), order), "from a file", "{containment}");
        assert_eq!(output_of(&supervisor(containment), ProcessSpec::new("/bin/cat")), "", "{containment}");
    }
}

#[test]
fn what_can_not_start_says_why_and_leaves_nothing() {
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
        for (order, message) in cases {
            let run = TestRun::new();
            let error = supervisor.spawn(run.id.clone(), order).unwrap_err();
            assert!(error.to_string().starts_with(message), "{containment}: {error}");
            // The name is free again: nothing of the failed attempt is left.
            let mut tree = run.spawn(&supervisor, "exit 0");
            assert_eq!(tree.wait(Some(PATIENCE)).unwrap().unwrap().exit, ProcessExit::Code(0));
        }
    }
}

#[test]
fn limits_are_kept_or_reported_as_not_kept() {
    let limits = TreeLimits {
        open_files: Some(32),
        file_size: Some(1024),
        memory: Some(256 << 20),
        processes: Some(20),
        processor_percent: Some(50),
        processor_seconds: Some(60),
    };
    for containment in containments() {
        let supervisor = supervisor(containment);
        let order = shell("ulimit -n; ulimit -f; ulimit -t; ulimit -c").limits(limits.clone());
        // The shell counts file sizes in blocks of 512 bytes.
        assert_eq!(output_of(&supervisor, order), "32\n2\n60\n0\n", "{containment}");
        let run = TestRun::new();
        let mut tree = supervisor.spawn(run.id.clone(), run.order("exit 0").limits(limits.clone())).unwrap();
        tree.wait(Some(PATIENCE)).unwrap();
        assert_eq!(tree.limit_reports().len(), 6);
        for report in tree.limit_reports() {
            if let LimitEnforcement::Not { reason } = &report.kept {
                assert!(matches!(report.limit, "processes" | "processor_percent"), "{}", report.limit);
                assert!(reason.contains("Delegate=yes"), "a cure is named: {reason}");
            }
        }
    }
}

#[test]
fn a_limit_on_processes_binds_the_tree_alone_where_it_is_kept() {
    for containment in containments() {
        let run = TestRun::new();
        let limits = TreeLimits { processes: Some(10), ..TreeLimits::default() };
        let order = run.order("fork 50 [ FOREVER ]; FOREVER").limits(limits);
        let supervisor = supervisor(containment);
        let mut tree = supervisor.spawn(run.id.clone(), order).unwrap();
        let kept = !matches!(tree.limit_reports()[0].kept, LimitEnforcement::Not { .. });
        if kept {
            // The program comes last, when it has tried them all; its keeper does not count.
            run.wait_until_sleeping(10);
            assert_eq!(run.survivors().len(), 10, "{containment}");
        } else {
            run.wait_until_sleeping(51);
        }
        supervisor.stop(&mut tree, ward_process::StopLadder::force()).unwrap();
    }
}

#[test]
fn only_root_can_order_another_identity() {
    let nobody = UserIdentity::new(65_534, 65_534, &[65_534]);
    for containment in containments() {
        let run = TestRun::new();
        let script = "id -u; id -g; id -G; touch /root/x 2>/dev/null || echo refused";
        let order = shell(script).env("PATH", "/usr/bin:/bin").identity(nobody.clone());
        if is_root() {
            let expected = "65534\n65534\n65534\nrefused\n";
            assert_eq!(output_of(&supervisor(containment), order), expected, "{containment}");
        } else {
            let error = supervisor(containment).spawn(run.id.clone(), order).unwrap_err();
            assert!(
                matches!(&error, SpawnError::Start { step, .. } if *step == "become the ordered user"),
                "{containment}: {error}"
            );
        }
    }
}

#[test]
fn a_host_without_a_containment_says_why() {
    for offer in ward_process::probe().offers {
        match offer.missing {
            None => assert_eq!(supervisor(offer.containment).containment(), offer.containment),
            Some(reason) => {
                assert!(reason.len() > 20, "a sentence: {reason}");
                let error = Supervisor::with_containment(offer.containment).unwrap_err();
                assert!(error.to_string().contains(&reason));
            }
        }
    }
    assert_eq!(Supervisor::new().unwrap().containment(), containments()[0]);
    assert!(containments().contains(&Containment::ProcessGroup));
}

#[test]
fn a_bound_that_lets_nothing_run_is_refused() {
    let run = TestRun::new();
    let limits = TreeLimits { processor_percent: Some(0), ..TreeLimits::default() };
    let error = supervisor(Containment::ProcessGroup)
        .spawn(run.id.clone(), run.order("exit 0").limits(limits))
        .unwrap_err();
    assert_eq!(error.to_string(), "nothing can run with `processor_percent` limited to zero");
}

#[test]
fn only_root_gets_a_cgroup_because_others_could_leave_it() {
    let offers = ward_process::probe().offers;
    let missing = offers.first().and_then(|offer| offer.missing.clone());
    assert_eq!(missing.is_none(), is_root(), "{missing:?}");
    assert!(is_root() || missing.unwrap().contains("leave it"));
}

#[test]
fn probes_of_many_threads_do_not_get_in_each_others_way() {
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
fn a_shortage_of_descriptors_never_leaves_a_program_that_nobody_holds() {
    for containment in containments() {
        let run = TestRun::new();
        let (process, line) = start_supervisor_process(&run, containment, "starve", "FOREVER");
        let needed: u32 = line.trim().parse().unwrap();
        assert!(needed > 3, "{containment}: {needed}");
        // The supervisor has the script on its own command line.
        assert_eq!(run.survivors(), [process.id().cast_signed()], "{containment}");
        kill(process);
    }
}
