//! Each attack is refused inside of the sandbox. It is also tried without a sandbox, where it succeeds, which
//! shows that the test could fail.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::process::Child;

use ward_process::ProcessExit;
use ward_process::sandbox::{Sandbox, SandboxNetwork};

use super::{SandboxFixture, TestUser, UNNAMED_UID, run, text};

/// The expected outcome of an attack without a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnsandboxedOutcome {
    Succeeds,
    SucceedsForRoot,
    /// Succeeds or is refused, depending on the kernel and the container (Yama, disabled subsystems).
    DependsOnHost,
}

/// Exit codes of `fake-hostile`. Any other code means that the attack itself is broken.
const SUCCEEDED: i32 = 0;
const REFUSED: i32 = 10;
const UNSUPPORTED: i32 = 11;

fn check(fixture: &SandboxFixture, attack: &[&str], unsandboxed: UnsandboxedOutcome) {
    let words: Vec<String> = attack.iter().map(ToString::to_string).collect();
    let actor = fixture.actor;
    let outcome = run(fixture.attack(&words));
    assert_eq!(
        outcome.exit,
        ProcessExit::Code(REFUSED),
        "{attack:?} in the sandbox by {actor:?}: {outcome:?}"
    );
    let free =
        actor.command(fixture.hostile()).args(&words).current_dir(fixture.workspace()).output().unwrap();
    let expected: &[i32] = match unsandboxed {
        UnsandboxedOutcome::Succeeds => &[SUCCEEDED],
        UnsandboxedOutcome::SucceedsForRoot if actor.is_root() => &[SUCCEEDED],
        UnsandboxedOutcome::SucceedsForRoot => &[REFUSED],
        UnsandboxedOutcome::DependsOnHost => &[SUCCEEDED, REFUSED, UNSUPPORTED],
    };
    let code = free.status.code().unwrap();
    assert!(expected.contains(&code), "{attack:?} without a sandbox by {actor:?}: {free:?}");
}

/// Returns a fixture for the current user and, if that is root, one for an ordinary user too.
fn fixtures() -> impl Iterator<Item = SandboxFixture> {
    TestUser::all().iter().map(|actor| SandboxFixture::for_user(*actor))
}

/// Services of this machine outside of the sandbox. The Unix socket is `service` in the workspace.
struct LocalServices {
    tcp: TcpListener,
    udp: UdpSocket,
    _unix: UnixListener,
}

impl LocalServices {
    fn start(fixture: &SandboxFixture) -> Self {
        let path = fixture.path("workspace/service");
        let unix = UnixListener::bind(&path).unwrap();
        fixture.actor.give_ownership(&path);
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        Self { tcp, udp: UdpSocket::bind("127.0.0.1:0").unwrap(), _unix: unix }
    }

    fn tcp_address(&self) -> String {
        self.tcp.local_addr().unwrap().to_string()
    }

    fn udp_address(&self) -> String {
        self.udp.local_addr().unwrap().to_string()
    }
}

/// A process of the same user outside of the sandbox, with a secret in its environment.
struct TargetProcess(Child);

impl TargetProcess {
    fn start_as(actor: TestUser) -> Self {
        Self(actor.command("/bin/sleep").arg("60").env("SECRET", "secret").spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for TargetProcess {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn files_outside_can_be_neither_read_nor_listed() {
    for fixture in fixtures() {
        let secret = text(&fixture.secret());
        symlink(fixture.secret(), fixture.path("workspace/link")).unwrap();
        symlink(fixture.outside(), fixture.path("workspace/folder")).unwrap();
        for path in
            [&secret, "link", "folder/secret", "../outside/secret", &format!("/proc/self/root{secret}")]
        {
            check(&fixture, &["read", path], UnsandboxedOutcome::Succeeds);
        }
        check(&fixture, &["list", &text(&fixture.outside())], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["list", "folder"], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["list", "/"], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["read", "/etc/shadow"], UnsandboxedOutcome::SucceedsForRoot);
        check(&fixture, &["list", "/root"], UnsandboxedOutcome::SucceedsForRoot);
        check(&fixture, &["list", "/home"], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["list", "/tmp"], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["file-handle", &secret], UnsandboxedOutcome::SucceedsForRoot);
    }
}

#[test]
fn files_outside_can_not_be_changed() {
    for fixture in fixtures() {
        let secret = text(&fixture.secret());
        symlink(fixture.secret(), fixture.path("workspace/link")).unwrap();
        check(&fixture, &["write", &secret], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["write", "link"], UnsandboxedOutcome::Succeeds);
        fixture.write("outside/long", "long");
        check(&fixture, &["truncate", &text(&fixture.path("outside/long"))], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["create", "../outside/new"], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["create", &text(&fixture.path("new"))], UnsandboxedOutcome::Succeeds);
        let shared = format!("/dev/shm/ward-hostile-{}-{:?}", std::process::id(), fixture.actor);
        check(&fixture, &["create", &shared], UnsandboxedOutcome::DependsOnHost);
        // The attack without a sandbox has created the file, if the folder exists.
        let _ = fs::remove_file(&shared);
        check(
            &fixture,
            &["write-through-link", &text(&fixture.path("outside/through")), "way-out"],
            UnsandboxedOutcome::Succeeds,
        );
        fixture.write("outside/doomed", "");
        check(&fixture, &["remove", "../outside/doomed"], UnsandboxedOutcome::Succeeds);
        assert_eq!(
            fs::read_to_string(fixture.secret()).unwrap(),
            "secret\nhostile\nhostile\n",
            "only the attacks without a sandbox may write"
        );
    }
}

#[test]
fn files_can_not_be_moved_or_linked_into_or_out_of_the_workspace() {
    for fixture in fixtures() {
        fixture.write("workspace/mine", "");
        check(&fixture, &["hard-link", "../outside/secret", "linked"], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["hard-link", "mine", "../outside/linked"], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["rename", "mine", "../outside/moved"], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["rename", "../outside/secret", "moved"], UnsandboxedOutcome::Succeeds);
    }
}

#[test]
fn metadata_of_files_outside_can_not_be_changed() {
    for fixture in fixtures() {
        let secret = text(&fixture.secret());
        check(&fixture, &["change-mode", &secret], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["change-times", &secret], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["change-attribute", &secret], UnsandboxedOutcome::DependsOnHost);
        check(&fixture, &["change-mode", &text(&fixture.hostile())], UnsandboxedOutcome::Succeeds);
    }
}

#[test]
fn neither_devices_nor_sockets_can_be_created() {
    for fixture in fixtures() {
        check(&fixture, &["block-device", "disk"], UnsandboxedOutcome::SucceedsForRoot);
        check(&fixture, &["socket-file", "socket"], UnsandboxedOutcome::Succeeds);
    }
}

#[test]
fn only_listed_trees_can_be_executed() {
    for fixture in fixtures() {
        let program = fixture.path("workspace/program");
        fs::copy("/bin/true", &program).unwrap();
        let attack = |sandbox: Sandbox| {
            let spec = fixture.spec(fixture.hostile()).args(["execute".to_owned(), text(&program)]);
            run(spec.sandbox(sandbox)).exit
        };
        let listed = fixture.sandbox();
        let mut unlisted = listed.clone();
        unlisted.execute.retain(|tree| *tree != fixture.workspace());
        assert_eq!(attack(unlisted), ProcessExit::Code(REFUSED));
        assert_eq!(attack(listed), ProcessExit::Code(SUCCEEDED));
        check(&fixture, &["execute-memory"], UnsandboxedOutcome::Succeeds);
    }
}

#[test]
fn setuid_files_can_not_be_created_and_have_no_effect() {
    for fixture in fixtures() {
        fs::copy(fixture.hostile(), fixture.path("workspace/own")).unwrap();
        fixture.actor.give_ownership(&fixture.path("workspace/own"));
        check(&fixture, &["make-privileged", "own"], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["create-privileged", "new"], UnsandboxedOutcome::Succeeds);
        // This file belongs to the user that runs the tests, and only the actor's group can execute it. Run
        // as root, it gives root's privileges to another user, unless the file system or the container
        // forbids that.
        let foreign = fixture.path("workspace/foreign");
        fs::copy(fixture.hostile(), &foreign).unwrap();
        if fixture.actor == TestUser::UnnamedUser {
            chown(&foreign, None, Some(UNNAMED_UID)).unwrap();
        }
        fs::set_permissions(&foreign, PermissionsExt::from_mode(0o4750)).unwrap();
        check(&fixture, &["execute-privileged", "./foreign"], UnsandboxedOutcome::DependsOnHost);
    }
}

#[test]
fn no_socket_leaves_the_sandbox() {
    for fixture in fixtures() {
        let services = LocalServices::start(&fixture);
        let name = format!("ward-hostile-{}-{:?}", std::process::id(), fixture.actor);
        let _hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        check(&fixture, &["tcp", &services.tcp_address()], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["udp", &services.udp_address()], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["unix", "service"], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["abstract", &name], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["netlink"], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["packet"], UnsandboxedOutcome::SucceedsForRoot);
    }
}

#[test]
fn with_the_network_on_services_of_this_machine_stay_closed() {
    for fixture in fixtures() {
        let services = LocalServices::start(&fixture);
        let attack = |words: &[&str]| {
            let mut sandbox = fixture.sandbox();
            sandbox.network = SandboxNetwork::On;
            run(fixture.spec(fixture.hostile()).args(words.iter().copied()).sandbox(sandbox)).exit
        };
        assert_eq!(attack(&["tcp", &services.tcp_address()]), ProcessExit::Code(SUCCEEDED));
        assert_eq!(attack(&["udp", &services.udp_address()]), ProcessExit::Code(SUCCEEDED));
        assert_eq!(attack(&["netlink"]), ProcessExit::Code(SUCCEEDED));
        assert_eq!(attack(&["unix", "service"]), ProcessExit::Code(REFUSED));
        assert_eq!(attack(&["packet"]), ProcessExit::Code(REFUSED));
    }
}

#[test]
fn socket_pairs_can_not_be_connected_to_a_service() {
    for fixture in fixtures() {
        let path = fixture.path("workspace/service");
        let service = UnixDatagram::bind(&path).unwrap();
        service.set_nonblocking(true).unwrap();
        fixture.actor.give_ownership(&path);
        let mut received = [0; 64];
        for kind in ["datagram", "raw"] {
            check(&fixture, &["connect-pair", kind, "service"], UnsandboxedOutcome::Succeeds);
            for network in [SandboxNetwork::Off, SandboxNetwork::On] {
                let sandbox = Sandbox { network, ..fixture.sandbox() };
                let spec = fixture.spec(fixture.hostile()).args(["send-from-pair", kind, "service"]);
                assert_eq!(run(spec.sandbox(sandbox)).exit, ProcessExit::Code(REFUSED), "{kind} {network:?}");
            }
            check(&fixture, &["send-from-pair", kind, "service"], UnsandboxedOutcome::Succeeds);
            assert_eq!(
                service.recv(&mut received).unwrap(),
                7,
                "only the attack without a sandbox may arrive"
            );
            assert!(service.recv(&mut received).is_err());
        }
        // These pairs are allowed, because they stay connected to each other.
        let sandbox = Sandbox { network: SandboxNetwork::On, ..fixture.sandbox() };
        let attack = |words: &[&str]| {
            run(fixture.spec(fixture.hostile()).args(words.iter().copied()).sandbox(sandbox.clone())).exit
        };
        let _listener = UnixListener::bind(fixture.path("workspace/listener")).unwrap();
        fixture.actor.give_ownership(&fixture.path("workspace/listener"));
        assert_eq!(attack(&["connect-pair", "stream", "listener"]), ProcessExit::Code(REFUSED));
        for kind in ["stream", "packets"] {
            attack(&["send-from-pair", kind, "service"]);
        }
        assert_eq!(attack(&["send-from-internet", "service"]), ProcessExit::Code(REFUSED));
        assert!(service.recv(&mut received).is_err(), "a message arrived");
    }
}

#[test]
fn closed_folders_can_not_be_watched() {
    for fixture in fixtures() {
        check(&fixture, &["watch-folder", &text(&fixture.outside())], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["watch-files"], UnsandboxedOutcome::SucceedsForRoot);
        check(&fixture, &["list-mounts"], UnsandboxedOutcome::DependsOnHost);
    }
}

#[test]
fn processes_outside_can_not_be_read_signalled_or_changed() {
    for fixture in fixtures() {
        let target = TargetProcess::start_as(fixture.actor);
        let pid = target.pid();
        check(&fixture, &["signal", &pid], UnsandboxedOutcome::Succeeds);
        // The attack sends SIGCONT, which every process may send within its session.
        check(&fixture, &["signal", &std::process::id().to_string()], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["limit", &pid], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["renice", &pid], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["schedule", &pid], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["read", &format!("/proc/{pid}/environ")], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["read", &format!("/proc/{pid}/cmdline")], UnsandboxedOutcome::Succeeds);
        check(
            &fixture,
            &["read", &format!("/proc/{pid}/root{}", text(&fixture.secret()))],
            UnsandboxedOutcome::Succeeds,
        );
        check(&fixture, &["enter-namespace", &pid], UnsandboxedOutcome::SucceedsForRoot);
        check(&fixture, &["read-memory", &pid], UnsandboxedOutcome::DependsOnHost);
        check(&fixture, &["ptrace", &pid], UnsandboxedOutcome::DependsOnHost);
    }
}

#[test]
fn dangerous_system_calls_are_refused() {
    for fixture in fixtures() {
        fs::create_dir(fixture.path("workspace/mount")).unwrap();
        fixture.actor.give_ownership(&fixture.path("workspace/mount"));
        check(&fixture, &["mount", "mount"], UnsandboxedOutcome::SucceedsForRoot);
        check(&fixture, &["unshare"], UnsandboxedOutcome::DependsOnHost);
        check(&fixture, &["clone-namespace"], UnsandboxedOutcome::DependsOnHost);
        check(&fixture, &["keyring"], UnsandboxedOutcome::DependsOnHost);
        check(&fixture, &["bpf"], UnsandboxedOutcome::DependsOnHost);
        check(&fixture, &["io-uring"], UnsandboxedOutcome::DependsOnHost);
        check(&fixture, &["shared-memory"], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["personality"], UnsandboxedOutcome::Succeeds);
        check(&fixture, &["kernel-log"], UnsandboxedOutcome::SucceedsForRoot);
        check(&fixture, &["host-name"], UnsandboxedOutcome::SucceedsForRoot);
        check(&fixture, &["capabilities"], UnsandboxedOutcome::SucceedsForRoot);
        check(&fixture, &["type-on-terminal"], UnsandboxedOutcome::Succeeds);
    }
}
