//! Addresses chosen by a model (C7.5): where they lead, also through names and redirects, and how responses are handled.

use std::cell::RefCell;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use collieclaw_gate::{AutonomyLevel, GatePolicy, HttpMethod};
use collieclaw_providers::cancel::{CancelFlag, CancelReason};
use collieclaw_providers::net::{
    CancellableDeadline, FetchContext, FetchError, FetchRequest, FetchResponse, FetchedBody, NameResolver,
    ResolveError, SystemResolver, WaitError,
};

use crate::http_server::{ServerAction, TestServer, http_reply};
use crate::test_workspace::TestWorkspace;

/// A resolver that returns the given answers in turn, repeats the last, and records the queries.
struct FakeResolver {
    answers: Vec<Vec<IpAddr>>,
    asked: RefCell<Vec<String>>,
}

impl FakeResolver {
    fn answering(answers: &[&[&str]]) -> Self {
        let answers = answers.iter().map(|numbers| numbers.iter().map(|it| it.parse().unwrap()).collect());
        Self { answers: answers.collect(), asked: RefCell::default() }
    }
}

impl NameResolver for FakeResolver {
    fn resolve(&self, name: &str, _: &CancellableDeadline) -> Result<Vec<IpAddr>, ResolveError> {
        let mut asked = self.asked.borrow_mut();
        let answer = self.answers[asked.len().min(self.answers.len() - 1)].clone();
        asked.push(name.to_owned());
        Ok(answer)
    }
}

fn policy(autonomy: AutonomyLevel, domains: &[String]) -> GatePolicy {
    GatePolicy { autonomy, allowed_domains: domains.to_vec(), ..TestWorkspace::new().policy }
}

fn get_request(url: &str) -> FetchRequest<'_> {
    FetchRequest { method: HttpMethod::Get, url, body: None }
}

fn fetch(
    policy: &GatePolicy,
    lookup: &dyn NameResolver,
    order: &FetchRequest<'_>,
) -> Result<FetchResponse, FetchError> {
    let cancel = CancelFlag::new().unwrap();
    let timeout = Duration::from_secs(20);
    FetchContext { policy, resolver: lookup, cancel: &cancel, timeout, max_bytes: 100_000 }.run(order)
}

/// Starts a server that the policy allows by address and port.
fn listed_server(acts: Vec<ServerAction>) -> (TestServer, GatePolicy, String) {
    let server = TestServer::start(acts);
    let host = format!("first.example:{}", server.port());
    let policy = policy(AutonomyLevel::Supervised, std::slice::from_ref(&host));
    (server, policy, format!("http://{host}/start"))
}

fn fetch_from(act: ServerAction) -> Result<FetchResponse, FetchError> {
    let (_server, policy, url) = listed_server(vec![act]);
    fetch(&policy, &FakeResolver::answering(&[&["127.0.0.1"]]), &get_request(&url))
}

#[test]
fn this_machine_is_not_reached_in_any_notation() {
    let server = TestServer::start(vec![ServerAction::Send(http_reply("200 OK", "text/plain", "secret"))]);
    let full = policy(AutonomyLevel::Full, &[]);
    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "0x7f.1",
        "0x7f000001",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "0",
        "0.0.0.0",
        "localhost",
        "LOCALHOST.",
        "x.localhost",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2001::1]",
        "[fe80::1]",
        "[fd00::1]",
        "[fec0::1]",
        "[ff02::1]",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "192.0.0.192",
        "metadata.google.internal",
        "printer.local",
        "router",
        "255.255.255.255",
        "224.0.0.1",
    ] {
        let url = format!("http://{host}:{}/", server.port());
        let refused = fetch(&full, &SystemResolver, &get_request(&url));
        assert!(
            matches!(&refused, Err(FetchError::Refused(why)) if why.contains("of this machine")),
            "{host}: {refused:?}"
        );
    }
    assert_eq!(server.received(), []);
}

#[test]
fn a_name_that_stands_for_this_machine_is_not_asked() {
    let server = TestServer::start(vec![ServerAction::Send(http_reply("200 OK", "text/plain", "secret"))]);
    let full = policy(AutonomyLevel::Full, &["*.example".to_owned(), "inside.example".to_owned()]);
    for numbers in [
        &["127.0.0.1"][..],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::7f00:1"],
        &["2002:7f00:1::"],
        &["169.254.169.254"],
        &["10.1.2.3"],
        &["fe80::1"],
        &["fd00::1"],
        &["0.0.0.0"],
        &["::"],
        // A public address doesn't excuse a private one.
        &["3000::1", "127.0.0.1"],
        &["3000::1", "::1"],
    ] {
        let names = FakeResolver::answering(&[numbers]);
        let url = format!("http://inside.example:{}/", server.port());
        let bad: IpAddr = numbers.last().unwrap().parse().unwrap();
        let refused = Err(FetchError::Private { host: "inside.example".to_owned(), number: bad });
        assert_eq!(fetch(&full, &names, &get_request(&url)), refused);
    }
    assert_eq!(server.received(), []);
}

/// DNS rebinding: the first answer is public, the second is this machine. The name is resolved only once.
#[test]
fn the_checked_address_is_the_connected_address() {
    let server = TestServer::start(vec![ServerAction::Send(http_reply("200 OK", "text/plain", "secret"))]);
    let full = policy(AutonomyLevel::Full, &[]);
    // An address that belongs to nobody.
    let names = FakeResolver::answering(&[&["3000::1"], &["127.0.0.1"]]);
    let url = format!("http://rebinding.example:{}/", server.port());
    let cancel = CancelFlag::new().unwrap();
    let timeout = Duration::from_millis(500);
    let ended = FetchContext { policy: &full, resolver: &names, cancel: &cancel, timeout, max_bytes: 1000 }
        .run(&get_request(&url));
    assert!(
        matches!(ended, Err(FetchError::Network(_) | FetchError::Stopped(WaitError::TimedOut))),
        "{ended:?}"
    );
    assert_eq!(*names.asked.borrow(), ["rebinding.example"]);
    assert_eq!(server.received(), []);

    // A second page on the same host is resolved and checked again.
    let (server, policy, url) =
        listed_server(vec![ServerAction::Redirect(302, "http://first.example/".to_owned())]);
    let ended =
        fetch(&policy, &FakeResolver::answering(&[&["127.0.0.1"], &["127.0.0.1"]]), &get_request(&url));
    assert!(matches!(ended, Err(FetchError::Redirect { .. })), "{ended:?}");
    assert_eq!(server.received().len(), 1);
}

#[test]
fn a_redirect_to_this_machine_is_not_followed() {
    let target = TestServer::start(vec![ServerAction::Send(http_reply("200 OK", "text/plain", "secret"))]);
    let port = target.port();
    for autonomy in [AutonomyLevel::ReadOnly, AutonomyLevel::Supervised, AutonomyLevel::Full] {
        for (location, reason) in [
            (format!("http://127.0.0.1:{port}/"), "`127.0.0.1` is an address of this machine"),
            (format!("http://0x7f.1:{port}/"), "`127.0.0.1` is an address of this machine"),
            (format!("http://[::ffff:127.0.0.1]:{port}/"), "`127.0.0.1` is an address of this machine"),
            (format!("//localhost:{port}/"), "`localhost` is an address of this machine"),
            (
                "http://169.254.169.254/latest/meta-data/".to_owned(),
                "`169.254.169.254` is an address of this machine",
            ),
            (format!("http://user@127.0.0.1:{port}/"), "must not contain a user name"),
            ("file:///etc/passwd".to_owned(), "only `https` and `http` are supported"),
            ("gopher://127.0.0.1/".to_owned(), "only `https` and `http` are supported"),
            (format!("http:\\\\127.0.0.1:{port}"), "contain blanks, control characters or backslashes"),
        ] {
            for status in [301, 302, 303, 307, 308] {
                let (server, mut policy, url) =
                    listed_server(vec![ServerAction::Redirect(status, location.clone())]);
                policy.autonomy = autonomy;
                let ended = fetch(&policy, &FakeResolver::answering(&[&["127.0.0.1"]]), &get_request(&url));
                let Err(FetchError::Redirect { reason: actual, .. }) = &ended else {
                    panic!("{location}: {ended:?}")
                };
                assert!(actual.contains(reason), "{location}: {actual}");
                assert_eq!(server.received().len(), 1);
            }
        }
    }
    // A host that the rules allow, but that resolves to this machine.
    let (_first, mut policy, url) =
        listed_server(vec![ServerAction::Redirect(302, "http://second.example/".to_owned())]);
    policy.allowed_domains.push("second.example".to_owned());
    let ended = fetch(&policy, &FakeResolver::answering(&[&["127.0.0.1"]]), &get_request(&url));
    let number = IpAddr::from([127, 0, 0, 1]);
    assert_eq!(ended, Err(FetchError::Private { host: "second.example".to_owned(), number }));
    assert_eq!(target.received(), []);
}

#[test]
fn a_redirect_is_followed_only_where_the_rules_alone_would_go() {
    let elsewhere = "http://elsewhere.example/".to_owned();
    let (_server, policy, url) = listed_server(vec![ServerAction::Redirect(302, elsewhere.clone())]);
    let names = FakeResolver::answering(&[&["127.0.0.1"]]);
    assert_eq!(
        fetch(&policy, &names, &get_request(&url)).unwrap_err().to_string(),
        "could not follow the redirect to http://elsewhere.example/: `elsewhere.example` is not on the list of \
         allowed domains; request that address directly"
    );
    assert_eq!(*names.asked.borrow(), ["first.example"]);

    let long = format!("http://elsewhere.example/{}", "x".repeat(5000));
    let actual = fetch_from(ServerAction::Redirect(302, long)).unwrap_err().to_string();
    assert!(actual.contains("x…: `elsewhere.example` is not on the list") && actual.len() < 600, "{actual}");

    // At `full` nothing is asked, but a redirect to an unlisted place is still more than was allowed.
    let full = GatePolicy { autonomy: AutonomyLevel::Full, ..policy };
    let ended = fetch(&full, &FakeResolver::answering(&[&["127.0.0.1"]]), &get_request(&url))
        .unwrap_err()
        .to_string();
    assert!(ended.contains("`elsewhere.example` is not on the list"), "{ended}");
}

#[test]
fn redirects_to_allowed_places_are_followed() {
    let (server, policy, url) = listed_server(vec![
        ServerAction::Send(
            "HTTP/1.1 301 Moved\r\nlocation: ../next?x=1\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n"
                .to_owned(),
        ),
        ServerAction::Redirect(308, "http://first.example:{port}/last#part".to_owned()),
        ServerAction::Send(http_reply("200 OK", "text/plain", "here")),
    ]);
    let found = fetch(&policy, &FakeResolver::answering(&[&["127.0.0.1"]]), &get_request(&url)).unwrap();
    assert_eq!(
        found,
        FetchResponse {
            url: format!("http://first.example:{}/last", server.port()),
            status: 200,
            content_type: Some("text/plain".to_owned()),
            body: FetchedBody::Whole("here".to_owned()),
        }
    );
    let received = server.received();
    let lines: Vec<_> = received.iter().map(|received| received.line.as_str()).collect();
    assert_eq!(lines, ["GET /start HTTP/1.1", "GET /next?x=1 HTTP/1.1", "GET /last HTTP/1.1"]);
    for request in &received {
        assert_eq!(request.header("host"), Some(format!("first.example:{}", server.port()).as_str()));
        for never in ["cookie", "authorization", "referer"] {
            assert_eq!(request.header(never), None);
        }
    }
}

#[test]
fn redirects_without_an_end_end() {
    let (server, policy, url) = listed_server(vec![ServerAction::Redirect(302, "/again".to_owned())]);
    let ended = fetch(&policy, &FakeResolver::answering(&[&["127.0.0.1"]]), &get_request(&url));
    assert_eq!(ended, Err(FetchError::TooManyRedirects));
    assert_eq!(server.received().len(), 6);
}

/// Sending has a medium risk even to a listed host, so it was approved; a redirect within the host is covered.
#[test]
fn a_request_is_repeated_only_if_the_server_asks_for_it() {
    for (status, again) in [(301, "GET "), (302, "GET "), (303, "GET "), (307, "POST {}"), (308, "POST {}")] {
        let (server, policy, url) = listed_server(vec![
            ServerAction::Redirect(status, "/next".to_owned()),
            ServerAction::Send(http_reply("200 OK", "text/plain", "")),
        ]);
        let order =
            FetchRequest { method: HttpMethod::Post, url: &url, body: Some(("{}", "application/json")) };
        fetch(&policy, &FakeResolver::answering(&[&["127.0.0.1"]]), &order).unwrap();
        let received = server.received();
        let second = &received[1];
        assert_eq!(received[0].header("content-type"), Some("application/json"));
        assert_eq!(
            format!("{}{}", second.line.trim_end_matches("/next HTTP/1.1"), second.body),
            again,
            "{status}"
        );
    }
    let (server, policy, url) =
        listed_server(vec![ServerAction::Redirect(307, "http://other.example/".to_owned())]);
    let order = FetchRequest { method: HttpMethod::Post, url: &url, body: Some(("{}", "application/json")) };
    let ended = fetch(&policy, &FakeResolver::answering(&[&["127.0.0.1"]]), &order).unwrap_err().to_string();
    assert!(ended.contains("it sends data to `other.example`"), "{ended}");
    assert_eq!(server.received().len(), 1);
}

#[test]
fn text_comes_back_as_text_and_the_rest_as_a_note() {
    let body = |content_type: &str, body: &str| {
        fetch_from(ServerAction::Send(http_reply("200 OK", content_type, body))).unwrap().body
    };
    let whole = |text: &str| FetchedBody::Whole(text.to_owned());
    assert_eq!(body("text/html; charset=utf-8", "<p>é\u{1b}[0m"), whole("<p>é\u{1b}[0m"));
    assert_eq!(body("Application/JSON", "{}"), whole("{}"));
    assert_eq!(body("application/problem+json", "{}"), whole("{}"));
    assert_eq!(body("image/svg+xml", "<svg/>"), whole("<svg/>"));
    let long = format!("text/{}", "x".repeat(300));
    assert_eq!(
        fetch_from(ServerAction::Send(http_reply("200 OK", &long, "abc"))).unwrap().content_type,
        None
    );
    for other in ["image/png", "application/octet-stream", "application/zip", "video/mp4", "nonsense"] {
        assert_eq!(body(other, "abc"), FetchedBody::NotText { length: Some(3) }, "{other}");
    }
    let unnamed = |bytes: &str| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{bytes}", bytes.len());
        fetch_from(ServerAction::Send(head)).unwrap()
    };
    assert_eq!(unnamed("plain").body, whole("plain"));
    assert_eq!(unnamed("plain").content_type, None);
    assert_eq!(unnamed("\0x").body, FetchedBody::NotText { length: Some(2) });
    assert_eq!(
        fetch_from(ServerAction::Send(http_reply("404 No", "text/plain", "gone"))).unwrap().status,
        404
    );
    assert_eq!(fetch_from(ServerAction::Send("HTTP/1.1 204 No\r\n\r\n".to_owned())).unwrap().body, whole(""));
    assert_eq!(
        fetch_from(ServerAction::Send("HTTP/1.1 302 No\r\ncontent-length: 0\r\n\r\n".to_owned()))
            .unwrap()
            .status,
        302
    );
}

#[test]
fn a_long_text_is_cut_at_the_bound_and_no_letter_in_two() {
    let text = format!("x{}", "é".repeat(60_000));
    let cut = fetch_from(ServerAction::Send(http_reply("200 OK", "text/plain", &text))).unwrap().body;
    assert_eq!(cut, FetchedBody::Truncated(format!("x{}", "é".repeat(49_999))));
    let whole = "é".repeat(50_000);
    assert_eq!(
        fetch_from(ServerAction::Send(http_reply("200 OK", "text/plain", &whole))).unwrap().body,
        FetchedBody::Whole(whole)
    );
    let start = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n".to_owned();
    let FetchedBody::Truncated(flood) =
        fetch_from(ServerAction::Flood(start, "x".repeat(5000))).unwrap().body
    else {
        panic!()
    };
    assert_eq!(flood.len(), 100_000);
    // Media files are rejected before the download.
    let film = "HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\n\r\n".to_owned();
    assert_eq!(
        fetch_from(ServerAction::Flood(film, "x".repeat(5000))).unwrap().body,
        FetchedBody::NotText { length: None }
    );
    let lossy = fetch_from(ServerAction::Send(http_reply("200 OK", "text/plain", "a\u{fffd}"))).unwrap().body;
    assert_eq!(lossy, FetchedBody::Whole("a\u{fffd}".to_owned()));
}

#[test]
fn a_connection_that_breaks_says_so() {
    for act in [
        ServerAction::Send(String::new()),
        ServerAction::Send("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nx".to_owned()),
        ServerAction::Send("220 mail.example ESMTP\r\n".to_owned()),
        ServerAction::Reset(String::new()),
        ServerAction::HalfClose,
        ServerAction::Flood("HTTP/1.1 200 OK\r\n".to_owned(), "x: y\r\n".repeat(100)),
    ] {
        let ended = fetch_from(act.clone());
        assert!(matches!(ended, Err(FetchError::Network(_))), "{act:?}: {ended:?}");
    }
    let (server, policy, url) = listed_server(vec![ServerAction::HalfClose]);
    let port = server.port();
    drop(server);
    let ended = fetch(&policy, &FakeResolver::answering(&[&["127.0.0.1"]]), &get_request(&url));
    assert_eq!(ended, Err(FetchError::Network(format!("connection refused at http://first.example:{port}"))));
    assert_eq!(
        fetch(&policy, &FakeResolver::answering(&[&[]]), &get_request(&url)).unwrap_err().to_string(),
        "could not resolve `first.example`: it has no IP address"
    );
}

/// The timeout covers all redirects together.
#[test]
fn the_time_is_for_everything_together() {
    let start = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n".to_owned();
    for act in
        [ServerAction::Hang(String::new()), ServerAction::Hang(start.clone()), ServerAction::Drip(start)]
    {
        let (_server, policy, url) =
            listed_server(vec![ServerAction::Redirect(302, "/next".to_owned()), act]);
        let cancel = CancelFlag::new().unwrap();
        let begun = Instant::now();
        let timeout = Duration::from_millis(300);
        let names = FakeResolver::answering(&[&["127.0.0.1"]]);
        let ended =
            FetchContext { policy: &policy, resolver: &names, cancel: &cancel, timeout, max_bytes: 100_000 }
                .run(&get_request(&url));
        assert_eq!(ended, Err(FetchError::Stopped(WaitError::TimedOut)));
        assert!(begun.elapsed() >= timeout);
    }
}

#[test]
fn a_fetch_ends_when_it_is_cancelled() {
    let start = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n".to_owned();
    for act in [ServerAction::Hang(String::new()), ServerAction::Drip(start)] {
        let (server, policy, url) = listed_server(vec![act]);
        let cancel = CancelFlag::new().unwrap();
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let names = FakeResolver::answering(&[&["127.0.0.1"]]);
                let timeout = Duration::from_secs(600);
                FetchContext {
                    policy: &policy,
                    resolver: &names,
                    cancel: &cancel,
                    timeout,
                    max_bytes: 100_000,
                }
                .run(&get_request(&url))
            });
            server.wait_until_reply_is_read();
            cancel.raise(CancelReason::Estop);
            assert_eq!(asking.join().unwrap(), Err(FetchError::Stopped(WaitError::Cancelled)));
        });
    }
}

#[test]
fn names_are_looked_up_by_the_system() {
    let cancel = CancelFlag::new().unwrap();
    let patience = CancellableDeadline::new(&cancel, Duration::from_secs(20));
    let numbers = SystemResolver.resolve("localhost", &patience).unwrap();
    assert!(numbers.iter().all(IpAddr::is_loopback) && !numbers.is_empty(), "{numbers:?}");
    let missing = SystemResolver.resolve("no-such-host.invalid", &patience);
    assert!(matches!(missing, Err(ResolveError::NotFound { .. })), "{missing:?}");
    cancel.raise(CancelReason::Operator);
    assert_eq!(
        SystemResolver.resolve("localhost", &patience),
        Err(ResolveError::Stopped(WaitError::Cancelled))
    );
}

/// Runs this test again with a proxy in the environment, which must not be used.
#[test]
fn a_proxy_of_the_environment_is_not_used() {
    const CHILD: &str = "COLLIECLAW_TEST_BEHIND_PROXY";
    if let Ok(port) = std::env::var(CHILD) {
        let host = format!("first.example:{port}");
        let policy = policy(AutonomyLevel::Supervised, std::slice::from_ref(&host));
        let found = fetch(
            &policy,
            &FakeResolver::answering(&[&["127.0.0.1"]]),
            &get_request(&format!("http://{host}/")),
        )
        .unwrap();
        assert_eq!(found.body, FetchedBody::Whole("direct".to_owned()));
        return;
    }
    let server = TestServer::start(vec![ServerAction::Send(http_reply("200 OK", "text/plain", "direct"))]);
    let proxy =
        TestServer::start(vec![ServerAction::Send(http_reply("200 OK", "text/plain", "through a proxy"))]);
    let address = format!("http://127.0.0.1:{}", proxy.port());
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "http_fetch::a_proxy_of_the_environment_is_not_used"])
        .env(CHILD, server.port().to_string());
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"] {
        child.env(variable, &address);
    }
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!((server.received().len(), proxy.received().len()), (1, 0));
}
