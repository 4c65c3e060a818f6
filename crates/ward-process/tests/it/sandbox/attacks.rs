//! Each attack is refused in the sandbox, and succeeds without it, so that the test could fail.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::process::Child;

use ward_process::ProcessExit;
use ward_process::sandbox::{Sandbox, SandboxNetwork};

use super::{SOMEBODY, SandboxFixture, TestUser, run, text};

/// What becomes of an attack without a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnsandboxedOutcome {
    Succeeds,
    SucceedsForRoot,
    /// Kernels and containers differ (Yama, switched-off subsystems), but the attack gets an answer.
    DependsOnHost,
}

/// What the double's exit codes say; any other one means that the attack itself is broken.
const SUCCEEDED: i32 = 0;
const REFUSED: i32 = 10;
const UNSUPPORTED: i32 = 11;

fn check(site: &SandboxFixture, attack: &[&str], freely: UnsandboxedOutcome) {
    let words: Vec<String> = attack.iter().map(ToString::to_string).collect();
    let who = site.actor;
    let outcome = run(site.attack(&words));
    assert_eq!(outcome.exit, ProcessExit::Code(REFUSED), "{attack:?} in the sandbox by {who:?}: {outcome:?}");
    let free = who.command(site.hostile()).args(&words).current_dir(site.workspace()).output().unwrap();
    let expected: &[i32] = match freely {
        UnsandboxedOutcome::Succeeds => &[SUCCEEDED],
        UnsandboxedOutcome::SucceedsForRoot if who.is_root() => &[SUCCEEDED],
        UnsandboxedOutcome::SucceedsForRoot => &[REFUSED],
        UnsandboxedOutcome::DependsOnHost => &[SUCCEEDED, REFUSED, UNSUPPORTED],
    };
    let code = free.status.code().unwrap();
    assert!(expected.contains(&code), "{attack:?} without a sandbox by {who:?}: {free:?}");
}

/// Every attack is tried by whoever runs the tests and, if that is root, by somebody else too.
fn sites() -> impl Iterator<Item = SandboxFixture> {
    TestUser::all().iter().map(|actor| SandboxFixture::for_user(*actor))
}

/// A process outside, of the same user, with something in its environment.
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
    for site in sites() {
        let secret = text(&site.secret());
        symlink(site.secret(), site.path("workspace/link")).unwrap();
        symlink(site.outside(), site.path("workspace/folder")).unwrap();
        for path in
            [&secret, "link", "folder/secret", "../outside/secret", &format!("/proc/self/root{secret}")]
        {
            check(&site, &["read", path], UnsandboxedOutcome::Succeeds);
        }
        check(&site, &["list", &text(&site.outside())], UnsandboxedOutcome::Succeeds);
        check(&site, &["list", "folder"], UnsandboxedOutcome::Succeeds);
        check(&site, &["list", "/"], UnsandboxedOutcome::Succeeds);
        check(&site, &["read", "/etc/shadow"], UnsandboxedOutcome::SucceedsForRoot);
        check(&site, &["list", "/root"], UnsandboxedOutcome::SucceedsForRoot);
        check(&site, &["list", "/home"], UnsandboxedOutcome::Succeeds);
        check(&site, &["list", "/tmp"], UnsandboxedOutcome::Succeeds);
        check(&site, &["file-handle", &secret], UnsandboxedOutcome::SucceedsForRoot);
    }
}

#[test]
fn files_outside_can_not_be_changed() {
    for site in sites() {
        let secret = text(&site.secret());
        symlink(site.secret(), site.path("workspace/link")).unwrap();
        check(&site, &["write", &secret], UnsandboxedOutcome::Succeeds);
        check(&site, &["write", "link"], UnsandboxedOutcome::Succeeds);
        site.write("outside/long", "long");
        check(&site, &["truncate", &text(&site.path("outside/long"))], UnsandboxedOutcome::Succeeds);
        check(&site, &["create", "../outside/new"], UnsandboxedOutcome::Succeeds);
        check(&site, &["create", &text(&site.path("new"))], UnsandboxedOutcome::Succeeds);
        let shared = format!("/dev/shm/ward-hostile-{}-{:?}", std::process::id(), site.actor);
        check(&site, &["create", &shared], UnsandboxedOutcome::DependsOnHost);
        // Only the free attack made it, where there is such a folder.
        let _ = fs::remove_file(&shared);
        check(
            &site,
            &["write-through-link", &text(&site.path("outside/through")), "way-out"],
            UnsandboxedOutcome::Succeeds,
        );
        site.write("outside/doomed", "");
        check(&site, &["remove", "../outside/doomed"], UnsandboxedOutcome::Succeeds);
        assert_eq!(
            fs::read_to_string(site.secret()).unwrap(),
            "secret\nhostile\nhostile\n",
            "only the free attacks"
        );
    }
}

#[test]
fn files_can_be_moved_or_linked_neither_in_nor_out() {
    for site in sites() {
        site.write("workspace/mine", "");
        check(&site, &["hard-link", "../outside/secret", "linked"], UnsandboxedOutcome::Succeeds);
        check(&site, &["hard-link", "mine", "../outside/linked"], UnsandboxedOutcome::Succeeds);
        check(&site, &["rename", "mine", "../outside/moved"], UnsandboxedOutcome::Succeeds);
        check(&site, &["rename", "../outside/secret", "moved"], UnsandboxedOutcome::Succeeds);
    }
}

#[test]
fn metadata_of_files_outside_stays_as_it_is() {
    for site in sites() {
        let secret = text(&site.secret());
        check(&site, &["change-mode", &secret], UnsandboxedOutcome::Succeeds);
        check(&site, &["change-times", &secret], UnsandboxedOutcome::Succeeds);
        check(&site, &["change-attribute", &secret], UnsandboxedOutcome::DependsOnHost);
        check(&site, &["change-mode", &text(&site.hostile())], UnsandboxedOutcome::Succeeds);
    }
}

#[test]
fn neither_devices_nor_sockets_can_be_made() {
    for site in sites() {
        check(&site, &["block-device", "disk"], UnsandboxedOutcome::SucceedsForRoot);
        check(&site, &["socket-file", "socket"], UnsandboxedOutcome::Succeeds);
    }
}

#[test]
fn only_listed_trees_can_be_executed() {
    for site in sites() {
        let program = site.path("workspace/program");
        fs::copy("/bin/true", &program).unwrap();
        let attack = |sandbox: Sandbox| {
            let order = site.order(site.hostile()).args(["execute".to_owned(), text(&program)]);
            run(order.sandbox(sandbox)).exit
        };
        let listed = site.sandbox();
        let mut unlisted = listed.clone();
        unlisted.execute.retain(|tree| *tree != site.workspace());
        assert_eq!(attack(unlisted), ProcessExit::Code(REFUSED));
        assert_eq!(attack(listed), ProcessExit::Code(SUCCEEDED));
        check(&site, &["execute-memory"], UnsandboxedOutcome::Succeeds);
    }
}

#[test]
fn no_file_lends_the_rights_of_its_owner() {
    for site in sites() {
        fs::copy(site.hostile(), site.path("workspace/own")).unwrap();
        site.actor.give_ownership(&site.path("workspace/own"));
        check(&site, &["make-privileged", "own"], UnsandboxedOutcome::Succeeds);
        check(&site, &["create-privileged", "new"], UnsandboxedOutcome::Succeeds);
        // It belongs to whoever runs the tests and only the actor can execute it: root's rights for
        // somebody else, unless the file system or the container forbids.
        let foreign = site.path("workspace/foreign");
        fs::copy(site.hostile(), &foreign).unwrap();
        if site.actor == TestUser::UnnamedUser {
            chown(&foreign, None, Some(SOMEBODY)).unwrap();
        }
        fs::set_permissions(&foreign, PermissionsExt::from_mode(0o4750)).unwrap();
        check(&site, &["execute-privileged", "./foreign"], UnsandboxedOutcome::DependsOnHost);
    }
}

#[test]
fn no_socket_leaves_the_sandbox() {
    for site in sites() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let path = site.path("workspace/service");
        let _service = UnixListener::bind(&path).unwrap();
        site.actor.give_ownership(&path);
        let name = format!("ward-hostile-{}-{:?}", std::process::id(), site.actor);
        let _hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        check(&site, &["tcp", &tcp.local_addr().unwrap().to_string()], UnsandboxedOutcome::Succeeds);
        check(&site, &["udp", &udp.local_addr().unwrap().to_string()], UnsandboxedOutcome::Succeeds);
        check(&site, &["unix", "service"], UnsandboxedOutcome::Succeeds);
        check(&site, &["abstract", &name], UnsandboxedOutcome::Succeeds);
        check(&site, &["netlink"], UnsandboxedOutcome::Succeeds);
        check(&site, &["packet"], UnsandboxedOutcome::SucceedsForRoot);
    }
}

#[test]
fn with_the_network_on_services_of_this_machine_stay_closed() {
    for site in sites() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let path = site.path("workspace/service");
        let _service = UnixListener::bind(&path).unwrap();
        site.actor.give_ownership(&path);
        let attack = |words: &[&str]| {
            let mut sandbox = site.sandbox();
            sandbox.network = SandboxNetwork::On;
            run(site.order(site.hostile()).args(words.iter().copied()).sandbox(sandbox)).exit
        };
        assert_eq!(attack(&["tcp", &tcp.local_addr().unwrap().to_string()]), ProcessExit::Code(SUCCEEDED));
        assert_eq!(attack(&["udp", &udp.local_addr().unwrap().to_string()]), ProcessExit::Code(SUCCEEDED));
        assert_eq!(attack(&["netlink"]), ProcessExit::Code(SUCCEEDED));
        assert_eq!(attack(&["unix", "service"]), ProcessExit::Code(REFUSED));
        assert_eq!(attack(&["packet"]), ProcessExit::Code(REFUSED));
    }
}

#[test]
fn no_pair_of_sockets_can_be_turned_to_a_service() {
    for site in sites() {
        let path = site.path("workspace/service");
        let service = UnixDatagram::bind(&path).unwrap();
        service.set_nonblocking(true).unwrap();
        site.actor.give_ownership(&path);
        let mut received = [0; 64];
        for kind in ["datagram", "raw"] {
            check(&site, &["connect-pair", kind, "service"], UnsandboxedOutcome::Succeeds);
            for network in [SandboxNetwork::Off, SandboxNetwork::On] {
                let sandbox = Sandbox { network, ..site.sandbox() };
                let order = site.order(site.hostile()).args(["send-from-pair", kind, "service"]);
                assert_eq!(
                    run(order.sandbox(sandbox)).exit,
                    ProcessExit::Code(REFUSED),
                    "{kind} {network:?}"
                );
            }
            check(&site, &["send-from-pair", kind, "service"], UnsandboxedOutcome::Succeeds);
            assert_eq!(service.recv(&mut received).unwrap(), 7, "only the free attack");
            assert!(service.recv(&mut received).is_err());
        }
        // These are allowed, because they go nowhere but to each other.
        let sandbox = Sandbox { network: SandboxNetwork::On, ..site.sandbox() };
        let attack = |words: &[&str]| {
            run(site.order(site.hostile()).args(words.iter().copied()).sandbox(sandbox.clone())).exit
        };
        let _listener = UnixListener::bind(site.path("workspace/listener")).unwrap();
        site.actor.give_ownership(&site.path("workspace/listener"));
        assert_eq!(attack(&["connect-pair", "stream", "listener"]), ProcessExit::Code(REFUSED));
        for kind in ["stream", "packets"] {
            attack(&["send-from-pair", kind, "service"]);
        }
        assert_eq!(attack(&["send-from-internet", "service"]), ProcessExit::Code(REFUSED));
        assert!(service.recv(&mut received).is_err(), "nothing arrived");
    }
}

#[test]
fn names_in_closed_folders_are_told_to_nobody() {
    for site in sites() {
        check(&site, &["watch-folder", &text(&site.outside())], UnsandboxedOutcome::Succeeds);
        check(&site, &["watch-files"], UnsandboxedOutcome::SucceedsForRoot);
        check(&site, &["list-mounts"], UnsandboxedOutcome::DependsOnHost);
    }
}

#[test]
fn processes_outside_are_out_of_reach() {
    for site in sites() {
        let victim = TargetProcess::start_as(site.actor);
        let pid = victim.pid();
        check(&site, &["signal", &pid], UnsandboxedOutcome::Succeeds);
        // The double sends SIGCONT, which anybody may send within a session.
        check(&site, &["signal", &std::process::id().to_string()], UnsandboxedOutcome::Succeeds);
        check(&site, &["limit", &pid], UnsandboxedOutcome::Succeeds);
        check(&site, &["renice", &pid], UnsandboxedOutcome::Succeeds);
        check(&site, &["schedule", &pid], UnsandboxedOutcome::Succeeds);
        check(&site, &["read", &format!("/proc/{pid}/environ")], UnsandboxedOutcome::Succeeds);
        check(&site, &["read", &format!("/proc/{pid}/cmdline")], UnsandboxedOutcome::Succeeds);
        check(
            &site,
            &["read", &format!("/proc/{pid}/root{}", text(&site.secret()))],
            UnsandboxedOutcome::Succeeds,
        );
        check(&site, &["enter-namespace", &pid], UnsandboxedOutcome::SucceedsForRoot);
        check(&site, &["read-memory", &pid], UnsandboxedOutcome::DependsOnHost);
        check(&site, &["ptrace", &pid], UnsandboxedOutcome::DependsOnHost);
    }
}

#[test]
fn the_kernel_offers_only_what_tools_need() {
    for site in sites() {
        fs::create_dir(site.path("workspace/mount")).unwrap();
        site.actor.give_ownership(&site.path("workspace/mount"));
        check(&site, &["mount", "mount"], UnsandboxedOutcome::SucceedsForRoot);
        check(&site, &["unshare"], UnsandboxedOutcome::DependsOnHost);
        check(&site, &["clone-namespace"], UnsandboxedOutcome::DependsOnHost);
        check(&site, &["keyring"], UnsandboxedOutcome::DependsOnHost);
        check(&site, &["bpf"], UnsandboxedOutcome::DependsOnHost);
        check(&site, &["io-uring"], UnsandboxedOutcome::DependsOnHost);
        check(&site, &["shared-memory"], UnsandboxedOutcome::Succeeds);
        check(&site, &["personality"], UnsandboxedOutcome::Succeeds);
        check(&site, &["kernel-log"], UnsandboxedOutcome::SucceedsForRoot);
        check(&site, &["host-name"], UnsandboxedOutcome::SucceedsForRoot);
        check(&site, &["capabilities"], UnsandboxedOutcome::SucceedsForRoot);
        check(&site, &["type-on-terminal"], UnsandboxedOutcome::Succeeds);
    }
}
