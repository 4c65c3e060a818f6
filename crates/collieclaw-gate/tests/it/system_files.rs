//! Files of the system that commands may read outside of the workspace, and their neighbours (C7.2, C7.4).

use collieclaw_gate::{
    AutonomyLevel, GateDecision, GateOutcome, GatePolicy, GateRequest, PathBounds, judge, judge_shell,
};

use crate::judged_lines::JudgingMachine;
use crate::test_machine::{GateTestMachine, heaviest_reasons, policy};

const READABLE: &[&str] = &[
    "cat /proc/cpuinfo | grep processor | wc -l",
    "cat /proc/meminfo",
    "cat /proc/version /proc/uptime /proc/loadavg",
    "ls /usr/include/openssl",
    "ls -la /usr/share/doc /usr/lib /bin /lib64",
    "grep -rn 'define EOF' /usr/include/stdio.h",
    "head -c 16 /dev/urandom | md5sum",
    "head -c 1024 /dev/zero",
    "find /usr/include -name '*.h'",
    "cat /usr/lib/os-release",
    "diff /usr/share/x a.txt",
    "file /usr/bin/ls",
];

const REFUSED: &[(&str, &str)] = &[
    ("cat /etc/os-release", "forbidden-path"),
    ("cat /etc/passwd", "forbidden-path"),
    ("cat /etc/hosts", "forbidden-path"),
    ("cat /usr/../etc/passwd", "forbidden-path"),
    ("cat /proc/1/environ", "outside-workspace"),
    ("cat /proc/self/environ", "outside-workspace"),
    ("cat /proc/self/root/usr/include/stdio.h", "outside-workspace"),
    ("cat /proc/kcore", "outside-workspace"),
    ("cat /proc/cpuinfo/x", "outside-workspace"),
    ("ls /proc", "outside-workspace"),
    ("ls /", "outside-workspace"),
    ("find / -name x", "outside-workspace"),
    ("cat /var/log/syslog", "outside-workspace"),
    ("cat /home/kid/.bashrc", "outside-workspace"),
    ("ls /root", "outside-workspace"),
    ("cat /usrx", "outside-workspace"),
    ("head -c 16 /dev/sda", "outside-workspace"),
    ("cat /sys/class/net", "forbidden-path"),
    ("touch /usr/x", "outside-workspace"),
    ("echo x > /usr/share/x", "outside-workspace"),
    ("echo x > /dev/zero", "outside-workspace"),
    ("cp a.txt /usr/bin/x", "outside-workspace"),
    ("mv /usr/bin/ls .", "outside-workspace"),
    ("ln -s /usr/bin x", "outside-workspace"),
    ("sed -i s/a/b/ /usr/include/stdio.h", "outside-workspace"),
    ("cd /usr && touch x", "outside-workspace"),
];

#[test]
fn commands_may_read_files_that_describe_the_system() {
    for line in READABLE {
        let judged = judge_shell(line, AutonomyLevel::Supervised, &policy(""), &GateTestMachine::new());
        assert_eq!(judged.verdict.decision, GateDecision::Ask, "{line}: {:?}", judged.verdict.reasons);
        assert!(judged.plan.is_some(), "{line}");
        let at_readonly = judge_shell(line, AutonomyLevel::ReadOnly, &policy(""), &GateTestMachine::new());
        assert_eq!(at_readonly.verdict.decision, GateDecision::Allow, "{line}");
    }
}

#[test]
fn other_paths_outside_of_the_workspace_stay_closed_at_every_level() {
    for (line, code) in REFUSED {
        for autonomy in [AutonomyLevel::Supervised, AutonomyLevel::Full] {
            let judged = judge_shell(line, autonomy, &policy(""), &JudgingMachine::new());
            let (_, codes) = heaviest_reasons(&judged.verdict);
            assert_eq!(judged.verdict.decision, GateDecision::Deny, "{line}: {codes:?}");
            assert!(codes.contains(code), "{line}: {codes:?}");
        }
    }
}

/// A plan opens only files of the workspace, so a shell takes these lines.
#[test]
fn redirections_and_folders_of_the_system_need_a_shell() {
    for line in ["wc -l < /usr/include/stdio.h", "head -c 4 < /dev/urandom", "cd /usr && ls"] {
        let judged = judge_shell(line, AutonomyLevel::Supervised, &policy(""), &JudgingMachine::new());
        assert_eq!(judged.verdict.decision, GateDecision::Ask, "{line}: {:?}", judged.verdict.reasons);
        assert_eq!(judged.plan, None, "{line}");
        let unjudged = judge_shell(line, AutonomyLevel::Supervised, &policy(""), &GateTestMachine::new());
        assert_eq!(unjudged.verdict.decision, GateDecision::Deny, "{line}");
    }
}

/// C7.2: the file tools stay inside of the workspace.
#[test]
fn file_tools_do_not_read_the_system() {
    for path in ["/proc/cpuinfo", "/usr/include/stdio.h", "/dev/urandom", "/usr"] {
        let outcome = judge(GateRequest::FileRead(path), &policy(""), &GateTestMachine::new());
        assert!(matches!(outcome, GateOutcome::Denied(_)), "{path}: {outcome:?}");
    }
}

#[test]
fn the_operator_can_forbid_these_files() {
    let mut policy = GatePolicy { bounds: PathBounds::Anywhere, ..policy("") };
    policy.forbidden_paths.extend(["/usr/include", "/proc/cpuinfo"].map(Into::into));
    for line in ["ls /usr/include/openssl", "cat /proc/cpuinfo"] {
        let judged = judge_shell(line, AutonomyLevel::Full, &policy, &GateTestMachine::new());
        assert_eq!(judged.verdict.decision, GateDecision::Deny, "{line}");
        assert_eq!(judged.verdict.reasons[0].code(), "forbidden-path", "{line}");
    }
}

#[test]
fn a_refusal_names_the_file_with_the_name_of_the_system() {
    let judged =
        judge_shell("cat /etc/os-release", AutonomyLevel::Supervised, &policy(""), &GateTestMachine::new());
    assert!(judged.verdict.reasons[0].detail().contains("`/usr/lib/os-release`"), "{:?}", judged.verdict);
}
