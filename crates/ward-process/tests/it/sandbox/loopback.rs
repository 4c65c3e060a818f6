//! The loopback interface of a sandbox, and the socket on it that the supervisor serves.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use ward_process::sandbox::{Sandbox, SandboxNetwork};
use ward_process::{Containment, ProcessExit, ProcessSpec};

use super::{PROGRAM_TIMEOUT, SandboxFixture, TestUser, run, spawn, wait_for_output};

const REFUSED: i32 = 10;

/// Exit code of `fake-hostile` for an attack that the kernel answered with an error other than a refusal.
const BROKEN: i32 = 12;

const PORT: u16 = 3128;

fn with_network(fixture: &SandboxFixture, network: SandboxNetwork, spec: ProcessSpec) -> ProcessSpec {
    spec.sandbox(Sandbox { network, ..fixture.sandbox() })
}

#[test]
fn a_server_and_its_client_reach_each_other_inside_of_one_sandbox() {
    let program = "
import http.client, http.server, socket, threading
for family, host in ((socket.AF_INET, '127.0.0.1'), (socket.AF_INET6, '::1')):
    class Server(http.server.ThreadingHTTPServer):
        address_family = family
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200); self.end_headers(); self.wfile.write(b'served')
        def log_message(self, *ignored): pass
    server = Server((host, 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = http.client.HTTPConnection(host, server.server_port)
    client.request('GET', '/')
    print(client.getresponse().read().decode())
";
    for actor in TestUser::all() {
        let fixture = SandboxFixture::for_user(*actor);
        let spec = fixture.spec("/usr/bin/python3").args(["-c", program]);
        let outcome = run(with_network(&fixture, SandboxNetwork::Loopback, spec));
        assert_eq!(outcome.stdout, "served\nserved\n", "{actor:?}: {outcome:?}");
    }
}

#[test]
fn the_loopback_interface_leads_neither_to_this_machine_nor_out_of_it() {
    for actor in TestUser::all() {
        let fixture = SandboxFixture::for_user(*actor);
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        let name = format!("ward-loopback-{}-{actor:?}", std::process::id());
        let _hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let _service = UnixListener::bind(fixture.path("workspace/service")).unwrap();
        actor.give_ownership(&fixture.path("workspace/service"));
        let [tcp_address, udp_address] =
            [tcp.local_addr(), udp.local_addr()].map(|address| address.unwrap().to_string());
        for (attack, expected) in [
            // Nobody listens on the sandbox's own interface (`ECONNREFUSED`), and other networks have no route
            // (`ENETUNREACH`).
            (["tcp", tcp_address.as_str()], BROKEN),
            (["tcp", "192.0.2.1:80"], BROKEN),
            (["udp", "192.0.2.1:53"], BROKEN),
            (["unix", "service"], REFUSED),
            (["abstract", &name], REFUSED),
        ] {
            let spec = fixture.spec(fixture.hostile()).args(attack);
            let outcome = run(with_network(&fixture, SandboxNetwork::Loopback, spec));
            assert_eq!(outcome.exit, ProcessExit::Code(expected), "{attack:?} by {actor:?}: {outcome:?}");
        }
        let spec = fixture.spec(fixture.hostile()).args(["udp", udp_address.as_str()]);
        run(with_network(&fixture, SandboxNetwork::Loopback, spec));
        assert!(tcp.accept().is_err(), "a connection arrived");
        assert!(udp.recv(&mut [0; 8]).is_err(), "a message arrived");
    }
}

#[test]
fn packets_and_the_interface_itself_stay_out_of_reach() {
    let program = "
import fcntl, socket, struct
def refused(attempt):
    try:
        attempt()
    except OSError as error:
        return error.errno in (1, 13)
    return False
def interface_down():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, 0x8914, struct.pack('16sH14x', b'lo', 0))
print(refused(interface_down))
print(refused(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)))
print(refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)))
print(refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_SEQPACKET, 132)))
print(refused(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)))
print(refused(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)))
print(refused(lambda: socket.socket(40, socket.SOCK_STREAM)))
";
    for actor in TestUser::all() {
        let fixture = SandboxFixture::for_user(*actor);
        let spec = fixture.spec("/usr/bin/python3").args(["-c", program]);
        let outcome = run(with_network(&fixture, SandboxNetwork::Loopback, spec));
        assert_eq!(outcome.stdout, "True\n".repeat(7), "{actor:?}: {outcome:?}");
    }
}

#[test]
fn the_supervisor_serves_a_socket_inside_of_the_sandbox() {
    let program = "
import socket
with socket.create_connection(('127.0.0.1', 3128)) as s:
    s.sendall(b'question')
    print(s.recv(16).decode())
";
    for containment in ward_process::probe().available().collect::<Vec<_>>() {
        let fixture = SandboxFixture::new();
        let spec = fixture.spec("/usr/bin/python3").args(["-c", program]);
        let network = SandboxNetwork::LoopbackWithListener { port: PORT };
        let mut tree = spawn(containment, with_network(&fixture, network, spec));
        let listener = TcpListener::from(tree.take_loopback_listener().unwrap());
        assert!(tree.take_loopback_listener().is_none());
        assert_eq!(listener.local_addr().unwrap().to_string(), format!("127.0.0.1:{PORT}"));
        let timeout = Timespec::try_from(PROGRAM_TIMEOUT).unwrap();
        poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&timeout)).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nonblocking(false).unwrap();
        let mut question = [0; 8];
        stream.read_exact(&mut question).unwrap();
        stream.write_all(b"answer").unwrap();
        let outcome = wait_for_output(tree);
        assert_eq!(outcome.stdout, "answer\n", "{containment}: {outcome:?}");
    }
}

#[test]
fn a_sandbox_without_a_listener_hands_none_over() {
    let fixture = SandboxFixture::new();
    for network in [SandboxNetwork::Off, SandboxNetwork::Loopback, SandboxNetwork::On] {
        let spec = with_network(&fixture, network, fixture.spec("/bin/true"));
        let mut tree = spawn(Containment::ProcessGroup, spec);
        assert!(tree.take_loopback_listener().is_none());
        assert_eq!(wait_for_output(tree).exit, ProcessExit::Code(0));
    }
}
