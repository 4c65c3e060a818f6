//! C19.4: the proxy with real sockets: a server on this machine that is listed with its port, and hostile clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Instant;

use collieclaw_gate::{AutonomyLevel, CommandNetwork, PathBounds};

use super::client_hello::tests::real_hello;
use super::*;
use crate::net::{CancellableDeadline, ResolveError};

const PATIENCE: Duration = Duration::from_secs(30);

/// Resolves names of the tests: `local.example` is on this machine, `public.example` on a documentation network
/// that counts as private too, and `name.example` is listed with its port.
struct TestResolver;

impl NameResolver for TestResolver {
    fn resolve(&self, name: &str, _: &CancellableDeadline) -> Result<Vec<IpAddr>, ResolveError> {
        match name {
            "local.example" | "name.example" => Ok(vec![Ipv4Addr::LOCALHOST.into()]),
            "mixed.example" => Ok(vec![Ipv4Addr::new(93, 184, 215, 14).into(), Ipv4Addr::LOCALHOST.into()]),
            "metadata.example" => Ok(vec![Ipv4Addr::new(169, 254, 169, 254).into()]),
            _ => Err(ResolveError::NotFound { name: name.to_owned(), detail: "unknown".to_owned() }),
        }
    }
}

fn policy(allowed: &[String]) -> GatePolicy {
    GatePolicy {
        autonomy: AutonomyLevel::Full,
        workspace: PathBuf::new(),
        bounds: PathBounds::Workspace,
        user_home: PathBuf::new(),
        own_home: PathBuf::new(),
        own_files: Vec::new(),
        forbidden_paths: Vec::new(),
        forbidden_commands: Default::default(),
        allowed_commands: Default::default(),
        allowed_domains: allowed.to_vec(),
        command_network: CommandNetwork::Listed,
        pinned_programs: Default::default(),
        allowed_scripts: Default::default(),
        project_programs: Default::default(),
        command_cache: None,
    }
}

struct TestProxy {
    proxy: CommandProxy,
    address: SocketAddr,
    cancel: CancelFlag,
}

impl TestProxy {
    fn start(allowed: &[&str]) -> Self {
        let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        let cancel = CancelFlag::new().unwrap();
        let settings =
            ProxySettings { policy: policy(&allowed), resolver: Arc::new(TestResolver), lifetime: PATIENCE };
        let proxy = CommandProxy::start(settings, &cancel).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        proxy.serve(listener.into(), None).unwrap();
        Self { proxy, address, cancel }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends text and returns everything that comes back.
    fn ask(&self, text: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // The proxy may reset a connection on which more than the request was sent.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Opens a tunnel and returns the connection after the reply.
    fn tunnel(&self, authority: &str) -> TcpStream {
        let mut stream = self.connect();
        write!(stream, "CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n").unwrap();
        let mut reply = [0; 39];
        stream.read_exact(&mut reply).unwrap();
        assert_eq!(&reply, b"HTTP/1.1 200 Connection established\r\n\r\n");
        stream
    }
}

/// A server that answers each request with a text and reports the head and the body that it got.
struct TestServer {
    address: SocketAddr,
    requests: mpsc::Receiver<String>,
}

impl TestServer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Some(request) = read_request(&stream) else { continue };
                let _ = (&stream).write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nserved");
                if sender.send(request).is_err() {
                    return;
                }
            }
        });
        Self { address, requests }
    }

    fn port(&self) -> u16 {
        self.address.port()
    }

    fn is_untouched(&self) -> bool {
        self.requests.try_recv().is_err()
    }
}

fn read_request(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        if reader.read_line(&mut text).ok()? == 0 {
            return None;
        }
    }
    let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(text + &String::from_utf8(body).unwrap())
}

/// A server that sends back everything it gets.
fn start_echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || io::copy(&mut &stream, &mut &stream));
        }
    });
    address
}

#[test]
fn a_listed_host_is_reached_and_recorded() {
    let server = TestServer::start();
    let listed = format!("127.0.0.1:{}", server.port());
    let test = TestProxy::start(&[&listed]);
    let request = format!(
        "POST http://{listed}/upload HTTP/1.1\r\nHost: {listed}\r\nProxy-Connection: keep-alive\r\nContent-Length: 4\r\n\r\nbody"
    );
    let answer = test.ask(&request);
    assert!(answer.ends_with("served"), "{answer}");
    let expected = format!(
        "POST /upload HTTP/1.1\r\nHost: {listed}\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"
    );
    assert_eq!(server.requests.recv_timeout(PATIENCE).unwrap(), expected);
    let report = test.proxy.finish();
    let record = ProxyRecord {
        host: "127.0.0.1".to_owned(),
        port: server.port(),
        verdict: "allowed",
        reason: None,
        connections: 1,
        bytes_sent: expected.len() as u64,
        bytes_received: 44,
    };
    assert_eq!(report, ProxyReport { connections: vec![record], unlisted: 0 });
}

#[test]
fn a_tunnel_passes_a_handshake_for_its_own_host_only() {
    let echo = start_echo();
    let authority = format!("name.example:{}", echo.port());
    let test = TestProxy::start(&[&authority]);
    let hello = real_hello("name.example");
    let mut stream = test.tunnel(&authority);
    // The handshake is judged as a whole, however slowly it arrives.
    let (first, rest) = hello.split_at(10);
    stream.write_all(first).unwrap();
    stream.write_all(rest).unwrap();
    let mut returned = vec![0; hello.len()];
    stream.read_exact(&mut returned).unwrap();
    assert_eq!(returned, hello);
    drop(stream);
    let mut fronted = test.tunnel(&authority);
    fronted.write_all(&real_hello("other.example")).unwrap();
    assert_eq!(fronted.read(&mut [0; 16]).unwrap_or(0), 0, "the handshake was passed on");
    let records = test.proxy.finish().connections;
    let refused = records.iter().find(|record| record.verdict == "refused").unwrap();
    let reason = "the TLS handshake is for `other.example`, not for `name.example`";
    assert_eq!((refused.reason.as_deref(), refused.bytes_sent), (Some(reason), 0));
}

#[test]
fn a_listed_host_and_port_may_speak_any_protocol_and_a_listed_domain_only_tls() {
    let echo = start_echo();
    let authority = format!("127.0.0.1:{}", echo.port());
    let test = TestProxy::start(&[&authority]);
    let mut stream = test.tunnel(&authority);
    stream.write_all(b"hello").unwrap();
    let mut returned = [0; 5];
    stream.read_exact(&mut returned).unwrap();
    assert_eq!(&returned, b"hello");
    // The domain rule can't be tested with a connection, because its addresses must be public.
    let by_domain =
        target::JudgedTarget::of_tunnel("a.example:443", &policy(&["a.example".to_owned()])).unwrap();
    assert_eq!(by_domain.listed_by, target::ListedBy::Domain);
}

#[test]
fn targets_that_are_not_listed_are_refused_in_every_notation() {
    let server = TestServer::start();
    let port = server.port();
    let test = TestProxy::start(&[
        "a.example",
        "*.b.example",
        "local.example",
        "mixed.example",
        "metadata.example",
        "name.example:9",
    ]);
    let hosts = [
        "127.0.0.1",
        "127.1",
        "0x7f.1",
        "0177.0.0.1",
        "2130706433",
        "0x7f000001",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "localhost",
        "169.254.169.254",
        "[fe80::1]",
        "10.0.0.1",
        "192.168.0.1",
        "0.0.0.0",
        "other.example",
        "b.example",
        "xa.example",
        "a.example.other.example",
        "name.example",
    ];
    let mut targets: Vec<String> =
        hosts.iter().flat_map(|host| [format!("{host}:{port}"), format!("{host}:443")]).collect();
    // Listed domains on other ports, and listed names that lead to this machine or its network.
    targets.extend(
        [
            "a.example:25",
            "a.example:22",
            "a.example:80",
            "local.example:443",
            "mixed.example:443",
            "metadata.example:443",
        ]
        .map(str::to_owned),
    );
    for target in &targets {
        let answer = test.ask(&format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 "), "CONNECT {target}: {answer}");
    }
    for host in hosts.iter().chain(&["local.example", "mixed.example", "metadata.example"]) {
        for target in [format!("http://{host}:{port}/"), format!("http://{host}/")] {
            let answer = test.ask(&format!("GET {target} HTTP/1.1\r\n\r\n"));
            assert!(answer.starts_with("HTTP/1.1 403 "), "GET {target}: {answer}");
        }
    }
    assert!(server.is_untouched());
    assert!(test.proxy.finish().connections.iter().all(|record| record.verdict == "refused"));
}

#[test]
fn requests_that_could_be_read_differently_never_reach_the_server() {
    let server = TestServer::start();
    let listed = format!("127.0.0.1:{}", server.port());
    let test = TestProxy::start(&[&listed]);
    for head in [
        format!("GET http://{listed}/ HTTP/1.1\r\nHost: other.example"),
        format!("GET http://{listed}/ HTTP/1.1\r\nHost: {listed}\r\nTransfer-Encoding: chunked"),
        format!("GET http://user@{listed}/ HTTP/1.1"),
        format!("GET http://{listed}/\r\nX: HTTP/1.1"),
        format!("GET http://{listed}\n/ HTTP/1.1"),
        format!("CONNECT {listed}\r HTTP/1.1"),
        format!("CONNECT user@{listed} HTTP/1.1"),
        "GET / HTTP/1.1".to_owned(),
        "\u{16}\u{3}\u{1}".to_owned(),
    ] {
        let answer = test.ask(&format!("{head}\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 4"), "{head:?}: {answer}");
    }
    let answer = test.ask(&format!("GET http://{listed}/ HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(40_000)));
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert!(server.is_untouched());
}

#[test]
fn a_second_request_on_the_same_connection_is_not_passed_on() {
    let server = TestServer::start();
    let listed = format!("127.0.0.1:{}", server.port());
    let test = TestProxy::start(&[&listed]);
    let request = format!("GET http://{listed}/first HTTP/1.1\r\n\r\n");
    test.ask(&format!("{request}GET http://{listed}/second HTTP/1.1\r\nHost: other.example\r\n\r\n"));
    assert!(server.is_untouched());
    assert!(test.ask(&request).ends_with("served"));
    assert!(server.requests.recv_timeout(PATIENCE).unwrap().starts_with("GET /first "));
}

#[test]
fn redirects_are_left_to_the_client_and_judged_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let listed = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_request(&stream).unwrap();
        stream
            .write_all(
                b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nConnection: close\r\n\r\n",
            )
            .unwrap();
    });
    let test = TestProxy::start(&[&listed]);
    let answer = test.ask(&format!("GET http://{listed}/ HTTP/1.1\r\n\r\n"));
    server.join().unwrap();
    assert!(answer.contains("Location: http://169.254.169.254/"), "{answer}");
    let answer = test.ask("GET http://169.254.169.254/ HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
}

#[test]
fn a_thousand_connections_are_served_a_few_at_a_time() {
    let test = TestProxy::start(&[]);
    let idle: Vec<TcpStream> = (0..MAX_CONNECTIONS).map(|_| test.connect()).collect();
    let waiting = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let answers = (0..125).map(|_| test.ask("CONNECT a.example:443 HTTP/1.1\r\n\r\n"));
                    answers.filter(|answer| answer.starts_with("HTTP/1.1 403 ")).count()
                })
            })
            .collect();
        drop(idle);
        clients.into_iter().map(|client| client.join().unwrap()).sum::<usize>()
    });
    assert_eq!(waiting, 1_000);
    let report = test.proxy.finish();
    assert_eq!((report.connections.len(), report.connections[0].connections), (1, 1_000));
}

#[test]
fn a_cancel_ends_open_tunnels_at_once() {
    let echo = start_echo();
    let authority = format!("127.0.0.1:{}", echo.port());
    let test = TestProxy::start(&[&authority]);
    let mut tunnel = test.tunnel(&authority);
    let mut slow = test.connect();
    slow.write_all(b"CONNECT ").unwrap();
    test.cancel.raise(CancelReason::Estop);
    assert_eq!(tunnel.read(&mut [0; 8]).unwrap_or(0), 0);
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest);
    // The socket is closed, or nobody accepts on it any more.
    let late = TcpStream::connect(test.address).and_then(|mut late| {
        late.write_all(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")?;
        late.read(&mut [0; 8])
    });
    assert!(matches!(late, Err(_) | Ok(0)), "{late:?}");
}

#[test]
fn the_socket_is_closed_when_its_programs_have_ended() {
    let test = TestProxy::start(&[]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let ended = CancelFlag::new().unwrap();
    test.proxy.serve(listener.into(), Some(ended.as_fd().try_clone_to_owned().unwrap())).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    ended.raise(CancelReason::Operator);
    drop(test.proxy.finish());
    assert!(TcpStream::connect(address).is_err());
}

/// Returns how often the threads with a name have gone to sleep.
fn count_sleeps(thread_name: &str) -> u64 {
    let mut sleeps = 0;
    for thread in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        if field("Name:") == Some(thread_name) {
            sleeps += field("voluntary_ctxt_switches:").map_or(0, |count| count.parse::<u64>().unwrap());
        }
    }
    sleeps
}

/// A proxy that tries again at once would never sleep. The processor time says less, because a busy machine gives such a
/// proxy little of it.
#[test]
fn a_proxy_sleeps_between_failed_attempts_to_accept() {
    const SLEEPS: u64 = 20;
    let TestProxy { proxy, .. } = TestProxy::start(&[]);
    // A pipe with data is always ready, and `accept` always fails, as without free descriptors.
    let (reader, mut writer) = io::pipe().unwrap();
    writer.write_all(b"data").unwrap();
    let begun = Instant::now();
    proxy.serve(reader.into(), None).unwrap();
    while count_sleeps("proxy-accept") < SLEEPS {
        assert!(begun.elapsed() < Duration::from_secs(30), "{} sleeps", count_sleeps("proxy-accept"));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(begun.elapsed() >= RETRY_INTERVAL * 10, "it slept too briefly: {:?}", begun.elapsed());
    // It still ends at once.
    let _ = proxy.finish();
}
