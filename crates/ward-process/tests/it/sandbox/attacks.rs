//! Each attack is refused in the sandbox, and succeeds without it, so that the test could fail.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Child, Command};

use ward_process::Exit;
use ward_process::sandbox::{Network, Sandbox};

use super::{Site, attack_freely, is_root, run, text};

/// What becomes of an attack without a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Freely {
    Succeeds,
    SucceedsForRoot,
    /// Kernels and containers differ (Yama, switched-off subsystems).
    DependsOnHost,
}

const REFUSED: Exit = Exit::Code(10);

fn check(site: &Site, attack: &[&str], freely: Freely) {
    let words: Vec<String> = attack.iter().map(ToString::to_string).collect();
    let outcome = run(site.attack(&words));
    assert_eq!(outcome.exit, REFUSED, "{attack:?} in the sandbox: {outcome:?}");
    let expected = match freely {
        Freely::Succeeds => true,
        Freely::SucceedsForRoot => is_root(),
        Freely::DependsOnHost => return,
    };
    assert_eq!(attack_freely(site, &words), expected, "{attack:?} without a sandbox");
}

/// A process outside, of the same user, with something in its environment.
struct Victim(Child);

impl Victim {
    fn new() -> Self {
        Self(Command::new("/bin/sleep").arg("60").env("SECRET", "secret").spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn files_outside_can_be_neither_read_nor_listed() {
    let site = Site::new();
    let secret = text(&site.secret());
    symlink(site.secret(), site.path("workspace/link")).unwrap();
    symlink(site.outside(), site.path("workspace/folder")).unwrap();
    for path in [&secret, "link", "folder/secret", "../outside/secret", &format!("/proc/self/root{secret}")] {
        check(&site, &["read", path], Freely::Succeeds);
    }
    check(&site, &["list", &text(&site.outside())], Freely::Succeeds);
    check(&site, &["list", "folder"], Freely::Succeeds);
    check(&site, &["list", "/"], Freely::Succeeds);
    check(&site, &["read", "/etc/shadow"], Freely::SucceedsForRoot);
    check(&site, &["list", "/root"], Freely::SucceedsForRoot);
    check(&site, &["list", "/home"], Freely::Succeeds);
    check(&site, &["list", "/tmp"], Freely::Succeeds);
    check(&site, &["file-handle", &secret], Freely::SucceedsForRoot);
}

#[test]
fn files_outside_can_not_be_changed() {
    let site = Site::new();
    let secret = text(&site.secret());
    symlink(site.secret(), site.path("workspace/link")).unwrap();
    check(&site, &["write", &secret], Freely::Succeeds);
    check(&site, &["write", "link"], Freely::Succeeds);
    fs::write(site.path("outside/long"), "long").unwrap();
    check(&site, &["truncate", &text(&site.path("outside/long"))], Freely::Succeeds);
    check(&site, &["create", "../outside/new"], Freely::Succeeds);
    check(&site, &["create", &text(&site.path("new"))], Freely::Succeeds);
    check(&site, &["create", "/dev/shm/ward-hostile"], Freely::DependsOnHost);
    check(&site, &["write-through-link", &text(&site.path("outside/through")), "way-out"], Freely::Succeeds);
    fs::write(site.path("outside/doomed"), "").unwrap();
    check(&site, &["remove", "../outside/doomed"], Freely::Succeeds);
    assert_eq!(
        fs::read_to_string(site.secret()).unwrap(),
        "secret\nhostile\nhostile\n",
        "only the free attacks"
    );
}

#[test]
fn files_can_be_moved_or_linked_neither_in_nor_out() {
    let site = Site::new();
    fs::write(site.path("workspace/mine"), "").unwrap();
    check(&site, &["hard-link", "../outside/secret", "linked"], Freely::Succeeds);
    check(&site, &["hard-link", "mine", "../outside/linked"], Freely::Succeeds);
    check(&site, &["rename", "mine", "../outside/moved"], Freely::Succeeds);
    check(&site, &["rename", "../outside/secret", "moved"], Freely::Succeeds);
}

#[test]
fn metadata_of_files_outside_stays_as_it_is() {
    let site = Site::new();
    let secret = text(&site.secret());
    check(&site, &["change-mode", &secret], Freely::Succeeds);
    check(&site, &["change-times", &secret], Freely::Succeeds);
    check(&site, &["change-attribute", &secret], Freely::DependsOnHost);
    check(&site, &["change-mode", &text(&site.hostile())], Freely::Succeeds);
}

#[test]
fn neither_devices_nor_sockets_can_be_made() {
    let site = Site::new();
    check(&site, &["block-device", "disk"], Freely::SucceedsForRoot);
    check(&site, &["socket-file", "socket"], Freely::Succeeds);
}

#[test]
fn only_listed_trees_can_be_executed() {
    let site = Site::new();
    let program = site.path("workspace/program");
    fs::copy("/bin/true", &program).unwrap();
    let attack = |sandbox: Sandbox| {
        let order = site.order(site.hostile()).args(["execute".to_owned(), text(&program)]);
        run(order.sandbox(sandbox)).exit
    };
    let listed = site.sandbox();
    let mut unlisted = listed.clone();
    unlisted.execute.retain(|tree| *tree != site.workspace());
    assert_eq!(attack(unlisted), REFUSED);
    assert_eq!(attack(listed), Exit::Code(0));
    check(&site, &["execute-memory"], Freely::Succeeds);
}

#[test]
fn no_socket_leaves_the_sandbox() {
    let site = Site::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let path = site.path("workspace/service");
    let _service = UnixListener::bind(&path).unwrap();
    let name = format!("ward-hostile-{}", std::process::id());
    let _hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    check(&site, &["tcp", &tcp.local_addr().unwrap().to_string()], Freely::Succeeds);
    check(&site, &["udp", &udp.local_addr().unwrap().to_string()], Freely::Succeeds);
    check(&site, &["unix", "service"], Freely::Succeeds);
    check(&site, &["abstract", &name], Freely::Succeeds);
    check(&site, &["netlink"], Freely::Succeeds);
    check(&site, &["packet"], Freely::SucceedsForRoot);
}

#[test]
fn with_the_network_on_services_of_this_machine_stay_closed() {
    let site = Site::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let path = site.path("workspace/service");
    let _service = UnixListener::bind(&path).unwrap();
    let attack = |words: &[&str]| {
        let mut sandbox = site.sandbox();
        sandbox.network = Network::On;
        run(site.order(site.hostile()).args(words.iter().copied()).sandbox(sandbox)).exit
    };
    assert_eq!(attack(&["tcp", &tcp.local_addr().unwrap().to_string()]), Exit::Code(0));
    assert_eq!(attack(&["udp", &udp.local_addr().unwrap().to_string()]), Exit::Code(0));
    assert_eq!(attack(&["netlink"]), Exit::Code(0));
    assert_eq!(attack(&["unix", "service"]), REFUSED);
    assert_eq!(attack(&["packet"]), REFUSED);
}

#[test]
fn processes_outside_are_out_of_reach() {
    let site = Site::new();
    let victim = Victim::new();
    let pid = victim.pid();
    check(&site, &["signal", &pid], Freely::Succeeds);
    check(&site, &["signal", &std::process::id().to_string()], Freely::Succeeds);
    check(&site, &["limit", &pid], Freely::Succeeds);
    check(&site, &["renice", &pid], Freely::Succeeds);
    check(&site, &["schedule", &pid], Freely::Succeeds);
    check(&site, &["read", &format!("/proc/{pid}/environ")], Freely::Succeeds);
    check(&site, &["read", &format!("/proc/{pid}/cmdline")], Freely::Succeeds);
    check(&site, &["read", &format!("/proc/{pid}/root{}", text(&site.secret()))], Freely::Succeeds);
    check(&site, &["enter-namespace", &pid], Freely::SucceedsForRoot);
    check(&site, &["read-memory", &pid], Freely::DependsOnHost);
    check(&site, &["ptrace", &pid], Freely::DependsOnHost);
}

#[test]
fn the_kernel_offers_only_what_tools_need() {
    let site = Site::new();
    fs::create_dir(site.path("workspace/mount")).unwrap();
    check(&site, &["mount", "mount"], Freely::SucceedsForRoot);
    check(&site, &["unshare"], Freely::DependsOnHost);
    check(&site, &["clone-namespace"], Freely::DependsOnHost);
    check(&site, &["keyring"], Freely::DependsOnHost);
    check(&site, &["bpf"], Freely::DependsOnHost);
    check(&site, &["io-uring"], Freely::DependsOnHost);
    check(&site, &["shared-memory"], Freely::Succeeds);
    check(&site, &["personality"], Freely::Succeeds);
    check(&site, &["kernel-log"], Freely::SucceedsForRoot);
    check(&site, &["host-name"], Freely::SucceedsForRoot);
    check(&site, &["capabilities"], Freely::SucceedsForRoot);
    check(&site, &["type-on-terminal"], Freely::Succeeds);
}
