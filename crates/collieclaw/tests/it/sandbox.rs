//! C7.6: malicious programs try to break out of the sandbox. They run at the level where the gate stops the least, from
//! scripts that the gate can't analyse.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::time::Duration;

use collieclaw_gate::AutonomyLevel;
use serde_json::{Value, json};

use crate::support::unique_sleep_seconds;
use crate::test_workspace::{SECRET, TestCallResult, TestToolGateway, TestWorkspace};

fn intruder() -> PathBuf {
    // The test binaries may run in another place than they were built in.
    std::env::var_os("NEXTEST_BIN_EXE_fake-intruder")
        .map_or_else(|| env!("CARGO_BIN_EXE_fake-intruder").into(), PathBuf::from)
}

fn open_workspace() -> TestWorkspace {
    let mut test_workspace = TestWorkspace::new();
    test_workspace.policy.autonomy = AutonomyLevel::Full;
    std::fs::copy(intruder(), test_workspace.path.join("intruder")).unwrap();
    test_workspace
}

/// Runs a bash script; `HOME` in it is the user's real home.
fn run_intruder(test_workspace: &TestWorkspace, gateway: &TestToolGateway, script: &str) -> TestCallResult {
    let script = script.replace("HOME", test_workspace.home.to_str().unwrap());
    test_workspace.write("attack.sh", &script);
    gateway.shell("bash attack.sh")
}

/// Returns running processes whose command line contains a text.
pub(crate) fn living_processes(token: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let read = |pid: i32, file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    pids.map(|pid| (pid, String::from_utf8_lossy(&read(pid, "cmdline")).into_owned()))
        .filter(|(pid, line)| line.contains(token) && !is_dead(&read(*pid, "stat")))
        .map(|(_, line)| line)
        .collect()
}

fn is_dead(stat: &[u8]) -> bool {
    let stat = String::from_utf8_lossy(stat).into_owned();
    !stat.rsplit(") ").next().is_some_and(|rest| !rest.starts_with(['Z', 'X']) && !rest.is_empty())
}

#[test]
fn nothing_outside_is_read() {
    let test_workspace = open_workspace();
    let gateway = test_workspace.gateway();
    std::os::unix::fs::symlink("../.ssh", test_workspace.path.join("keys")).unwrap();
    let own = std::process::id();
    let script = format!(
        "for f in HOME/.ssh/id HOME/secret HOME/other/diary HOME/.collieclaw/config.toml keys/id ../secret \
         /proc/self/root/HOME/secret /proc/1/root/HOME/secret /proc/{own}/environ /proc/{own}/cmdline \
         /proc/{own}/cwd/Cargo.toml /proc/$PPID/environ /proc/self/environ /etc/shadow; do\n\
         cat \"$f\" && echo \"READ $f\"; done; ls HOME HOME/other /tmp /root /home && echo LISTED; true"
    );
    let outcome = run_intruder(&test_workspace, &gateway, &script);
    assert_eq!(outcome.exit_code(), 0, "{outcome:?}");
    for leak in ["READ", "LISTED", SECRET, "root:"] {
        assert!(!outcome.output().contains(leak), "{leak}: {}", outcome.output());
    }
    assert!(outcome.output().contains("Permission denied"), "{}", outcome.output());
}

#[test]
fn nothing_outside_is_written() {
    let test_workspace = open_workspace();
    let before = std::fs::metadata(test_workspace.home.join("secret")).unwrap();
    let script = "echo x > HOME/new; echo x >> HOME/secret; echo x > HOME/.ssh/authorized_keys; mkdir HOME/folder; \
                  mv attack.sh HOME/moved; mv HOME/secret stolen; rm -f HOME/other/diary; rmdir HOME/other; \
                  ln -s HOME/secret link; echo x > link; touch HOME/secret; echo x > /tmp/collieclaw-was-here; \
                  ./intruder link HOME/secret twin link HOME/secret HOME/twin chmod HOME/secret truncate HOME/secret \
                  chmod HOME/.ssh; echo finished";
    let outcome = run_intruder(&test_workspace, &test_workspace.gateway(), script);
    assert!(outcome.output().contains("finished"), "{outcome:?}");
    let mut names: Vec<_> =
        std::fs::read_dir(&test_workspace.home).unwrap().flatten().map(|entry| entry.file_name()).collect();
    names.sort_unstable();
    assert_eq!(names, [".collieclaw", ".ssh", "other", "secret", "workspace"]);
    assert_eq!(std::fs::read_to_string(test_workspace.home.join("secret")).unwrap(), SECRET);
    assert!(
        test_workspace.home.join("other/diary").exists()
            && !test_workspace.home.join(".ssh/authorized_keys").exists()
    );
    let after = std::fs::metadata(test_workspace.home.join("secret")).unwrap();
    assert_eq!(after.permissions().mode(), before.permissions().mode());
    assert_eq!(after.modified().unwrap(), before.modified().unwrap());
    for inside in ["stolen", "twin"] {
        assert!(!test_workspace.path.join(inside).exists(), "{inside}");
    }
}

#[test]
fn no_connection_leaves_it() {
    let test_workspace = open_workspace();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let unix = UnixListener::bind(test_workspace.path.join("socket")).unwrap();
    let name = format!("collieclaw-test-{}", std::process::id());
    let hidden = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    unix.set_nonblocking(true).unwrap();
    hidden.set_nonblocking(true).unwrap();
    let script = format!(
        "./intruder tcp {0} udp {1} unix socket abstract {name}; echo x > /dev/tcp/127.0.0.1/{0}; \
         echo x > /dev/udp/127.0.0.1/{1}; echo finished",
        tcp.local_addr().unwrap().port(),
        udp.local_addr().unwrap().port(),
    );
    let outcome = run_intruder(&test_workspace, &test_workspace.gateway(), &script);
    assert!(outcome.output().contains("finished"), "{outcome:?}");
    for attack in ["tcp", "unix", "abstract"] {
        assert!(!outcome.output().contains(&format!("{attack}: done")), "{outcome:?}");
    }
    // A message over UDP goes to the loopback interface of the sandbox, where nobody receives it.
    assert!(tcp.accept().is_err() && unix.accept().is_err());
    assert!(udp.recv(&mut [0; 8]).is_err() && hidden.recv(&mut [0; 8]).is_err());
}

#[test]
fn no_process_outside_is_reached() {
    let test_workspace = open_workspace();
    let mut victim = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let script = format!(
        "./intruder kill {0} kill {1} kill $PPID; kill -9 {0} {1} && echo KILLED; kill -9 -1; echo finished",
        victim.id(),
        std::process::id(),
    );
    let outcome = run_intruder(&test_workspace, &test_workspace.gateway(), &script);
    let outlived = victim.try_wait().unwrap().is_none();
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(
        outlived && !outcome.output().contains("done") && !outcome.output().contains("KILLED"),
        "{outcome:?}"
    );
}

#[test]
fn background_processes_end_with_the_line() {
    let test_workspace = open_workspace();
    let token = unique_sleep_seconds();
    let script = format!(
        "sleep {token} & (sleep {token} & ) ; setsid sleep {token} & nohup setsid bash -c 'setsid sleep {token} & disown' \
         >/dev/null 2>&1 & sleep 0.3; echo finished"
    );
    // Waiting for the sleeps would end in the timeout of the shell, without an exit code.
    let outcome = run_intruder(&test_workspace, &test_workspace.gateway(), &script);
    assert_eq!((outcome.output(), outcome.exit_code()), ("finished\n", 0), "{outcome:?}");
    assert_eq!(living_processes(&token), Vec::<String>::new());
}

#[test]
fn no_signal_is_ignored_when_the_time_is_up() {
    let test_workspace = open_workspace();
    let gateway = test_workspace.gateway_with_shell_limits(Duration::from_millis(600), 1 << 16);
    let token = unique_sleep_seconds();
    let script = format!(
        "trap '' TERM INT HUP; (trap '' TERM; setsid sleep {token}) & kill -STOP $$; sleep {token}; echo never"
    );
    let outcome = run_intruder(&test_workspace, &gateway, &script);
    assert_eq!((outcome.status, outcome.metadata("timed_out")), ("failed", json!(true)), "{outcome:?}");
    assert_eq!(living_processes(&token), Vec::<String>::new());
}

/// Built-in steps are interrupted as well: a stop or a timeout takes effect before the next step.
#[test]
fn a_line_does_nothing_after_its_timeout() {
    let test_workspace = open_workspace();
    let outcome =
        test_workspace.gateway_with_shell_limits(Duration::ZERO, 1 << 16).shell(": > made; : > also");
    assert_eq!((outcome.status, outcome.metadata("timed_out")), ("failed", json!(true)), "{outcome:?}");
    assert!(!test_workspace.path.join("made").exists() && !test_workspace.path.join("also").exists());
}

/// Limited from two sides, so that a failure of the sandbox doesn't take down the machine. A loaded machine needs seconds to
/// start 512 processes.
#[test]
fn a_fork_bomb_is_bounded_and_ended() {
    let test_workspace = open_workspace();
    let gateway = test_workspace.gateway_with_shell_limits(Duration::from_secs(20), 1 << 16);
    let token = unique_sleep_seconds();
    let script = format!("for i in $(seq 4000); do sleep {token} & done; echo made all; wait");
    let outcome = run_intruder(&test_workspace, &gateway, &script);
    // Either the kernel refuses more processes, so that bash gives up after some time, or we have counted too many.
    assert_ne!(outcome.metadata("exit_code"), json!(0), "{outcome:?}");
    let is_refused = outcome.output().contains("Resource temporarily unavailable");
    let is_ended = outcome.status == "failed" && outcome.metadata("exit_code") == Value::Null;
    assert!(is_refused || is_ended && outcome.text.contains("more than 512 processes"), "{outcome:?}");
    assert!(!outcome.output().contains("made all"), "{outcome:?}");
    assert_eq!(living_processes(&token), Vec::<String>::new());
}

#[test]
fn no_file_grows_without_bound_and_address_space_is_not_limited() {
    let test_workspace = open_workspace();
    let gateway = test_workspace.gateway();
    let outcome = gateway.shell("truncate -s 900M small && truncate -s 1100M large");
    assert!(outcome.metadata("exit_code") != json!(0), "{outcome:?}");
    assert!(std::fs::metadata(test_workspace.path.join("large")).map_or(0, |file| file.len()) <= 1 << 30);
    assert_eq!(std::fs::metadata(test_workspace.path.join("small")).unwrap().len(), 900 << 20);
    // Runtimes reserve much more address space than memory. `memory_watch` tests the limit on memory.
    let outcome = run_intruder(&test_workspace, &gateway, "ulimit -v");
    assert_eq!(outcome.output(), "unlimited\n", "{outcome:?}");
}

#[test]
fn a_gigabyte_is_read_to_its_end_and_only_its_beginning_kept() {
    let test_workspace = open_workspace();
    let gateway = test_workspace.gateway_with_shell_limits(Duration::from_secs(60), 10_000);
    let outcome = gateway.shell("yes | head -c 1G");
    assert_eq!(outcome.exit_code(), 0, "{outcome:?}");
    assert_eq!(
        (outcome.metadata("stdout_bytes"), outcome.metadata("truncated")),
        (json!(1 << 30), json!(true))
    );
    assert!(
        outcome.output().len() <= 10_000 && outcome.output().starts_with("y\ny\n"),
        "{}",
        outcome.output().len()
    );
    let both = gateway.shell("bash -c 'yes | head -c 1M; yes n | head -c 1M >&2'");
    assert!(both.output().len() <= 10_000, "{}", both.output().len());
    assert!(both.output().contains("[stderr]\nn\nn\n"), "standard error is in the output");
}

#[test]
fn bytes_that_are_no_text_and_escape_sequences_stay_data() {
    let test_workspace = open_workspace();
    let gateway = test_workspace.gateway_with_shell_limits(Duration::from_secs(60), 1_000);
    let outcome = gateway.shell("printf '\\377\\376ok\\033[2J'");
    assert_eq!(outcome.output(), "\u{fffd}\u{fffd}ok\u{1b}[2J");
    assert!(gateway.shell("bash -c 'yes | head -c 5000 | tr y \"\\377\"'").output().len() <= 1_000);
}

#[test]
fn forbidden_paths_inside_the_workspace_are_blocked_and_others_are_not() {
    let mut test_workspace = open_workspace();
    test_workspace.write("vault/deep/key", SECRET);
    test_workspace.write("token", SECRET);
    test_workspace.write("open/file", "readable");
    for path in ["vault", "vault/deep", "token"] {
        test_workspace.policy.forbidden_paths.push(test_workspace.path.join(path));
    }
    let script = "cat va*/deep/key; cat vault/deep/key token ./token; ls -R vault; echo x > vault/new; mv vault moved; \
                  mv token stolen; rm -rf vault token; umount vault; cp -r vault copy; cat copy/deep/key; \
                  cat open/file; echo made > beside; true";
    let outcome = run_intruder(&test_workspace, &test_workspace.gateway(), script);
    assert!(!outcome.text.contains(SECRET) && outcome.output().contains("readable"), "{outcome:?}");
    assert_eq!((outcome.exit_code(), test_workspace.text("beside").as_str()), (0, "made\n"));
    assert_eq!(
        (test_workspace.text("vault/deep/key"), test_workspace.text("token")),
        (SECRET.into(), SECRET.into())
    );
    assert!(!test_workspace.path.join("moved").exists() && !test_workspace.path.join("vault/new").exists());
    // The same applies at `readonly`.
    test_workspace.policy.autonomy = AutonomyLevel::ReadOnly;
    let outcome = test_workspace.gateway().shell("grep -r the . | sort");
    assert!(outcome.exit_code() == 0 && !outcome.text.contains(SECRET), "{outcome:?}");
}

// `git status` obeys these files, in the operator's own shell too.
#[test]
fn git_configuration_can_be_read_but_not_changed() {
    let test_workspace = open_workspace();
    let steering = [".git/config", ".git/hooks/pre-commit", ".hg/hgrc"];
    for path in steering {
        test_workspace.write(path, "as it was\n");
    }
    let script = "cat .git/config; echo x > .git/config; echo x > .git/hooks/pre-commit; echo x > .git/hooks/new; \
                  echo x > .hg/hgrc; mv .git away; mv .hg away; rm -rf .git/hooks .git/config .hg; \
                  mkdir -p .git .hg; echo x > .git/config; echo x > mine; mv mine .git/config; echo ref > .git/HEAD";
    let outcome = run_intruder(&test_workspace, &test_workspace.gateway(), script);
    assert!(outcome.output().starts_with("as it was\n"), "{outcome:?}");
    for path in steering {
        assert_eq!(test_workspace.text(path), "as it was\n", "{path}: {outcome:?}");
    }
    assert!(!test_workspace.path.join(".git/hooks/new").exists());
    assert_eq!(test_workspace.text(".git/HEAD"), "ref\n", "a commit still can be made");
}

/// Files that CollieClaw opens itself, for a redirection or `file_write`, are outside of the sandbox.
#[test]
fn git_configuration_is_not_written_under_another_name() {
    let test_workspace = open_workspace();
    test_workspace.write(".git/config", "as it was\n");
    test_workspace.write("folder/file", "");
    let gateway = test_workspace.gateway();
    test_workspace.link("../.git", "folder/there");
    for line in [
        "cp -s .git/config link && echo x >> link",
        "cp -r folder copy && echo x >> copy/there/config",
        "cp -r folder second && echo x > second/there/new",
    ] {
        let outcome = gateway.shell(line);
        assert_ne!(
            (outcome.status, outcome.metadata("exit_code")),
            ("done", json!(0)),
            "{line}: {outcome:?}"
        );
        assert_eq!(test_workspace.text(".git/config"), "as it was\n", "{line}: {outcome:?}");
    }
    assert!(!test_workspace.path.join(".git/new").exists());
    let write = json!({ "path": "copy/there/config", "content": "x" });
    assert_ne!(gateway.call("file_write", &write).status, "done");
    assert_eq!(test_workspace.text(".git/config"), "as it was\n");
}

#[test]
fn new_git_configuration_is_moved_aside() {
    let test_workspace = open_workspace();
    test_workspace.write(".git/config", "");
    let script = "echo ../evil > .git/commondir; mkdir .git/hooks; echo x > .git/hooks/pre-commit; echo made";
    let outcome = run_intruder(&test_workspace, &test_workspace.gateway(), script);
    assert!(outcome.output().starts_with("made\n"), "{outcome:?}");
    for (name, aside) in [
        (".git/commondir", ".git/commondir.set-aside-1"),
        (".git/hooks", ".git/hooks.set-aside-1/pre-commit"),
    ] {
        assert!(
            outcome.output().contains(&format!("{name}` could make other programs run commands")),
            "{outcome:?}"
        );
        assert!(
            !test_workspace.path.join(name).exists() && test_workspace.path.join(aside).exists(),
            "{name}"
        );
    }
    // A new repository belongs to the command, and is reported.
    let outcome =
        run_intruder(&test_workspace, &test_workspace.gateway(), "mkdir -p .hg && echo x > .hg/hgrc");
    assert!(test_workspace.path.join(".hg/hgrc").exists(), "{outcome:?}");
    assert!(outcome.output().contains(".hg` is new"), "{outcome:?}");
}

#[test]
fn a_repository_elsewhere_is_not_mentioned() {
    let test_workspace = open_workspace();
    test_workspace.write(".git", "gitdir: ../elsewhere\n");
    test_workspace.link("../elsewhere", ".hg");
    let outcome = test_workspace.gateway().shell("echo made > x");
    assert!(outcome.exit_code() == 0 && !outcome.output().contains("collieclaw:"), "{outcome:?}");
}

/// Files are set aside within the original folder, not through a symlink that a command has created.
#[test]
fn nothing_outside_is_set_aside() {
    let test_workspace = open_workspace();
    std::fs::create_dir(test_workspace.path.join(".hg")).unwrap();
    std::fs::create_dir(test_workspace.home.join("settings")).unwrap();
    std::fs::write(test_workspace.home.join("settings/hgrc"), "mine").unwrap();
    let outcome = run_intruder(
        &test_workspace,
        &test_workspace.gateway(),
        "mv .hg old; ln -s ../settings .hg; echo made",
    );
    assert!(outcome.output().contains(".hg` was replaced"), "{outcome:?}");
    assert_eq!(std::fs::read_to_string(test_workspace.home.join("settings/hgrc")).unwrap(), "mine");
}

#[test]
fn the_receipt_names_the_enforced_parts_of_the_sandbox() {
    let test_workspace = open_workspace();
    let outcome = test_workspace.gateway().shell("true");
    let level = outcome.result.unwrap().sandbox.unwrap();
    // Without a cgroup, only we count the processes of root.
    let known =
        level == "full" || (rustix::process::geteuid().is_root() && level == "without limit of processes");
    assert!(known, "{level}");
}
