//! Addresses that a model chose (C7.5): where they lead, behind names and redirects too, and what comes back.

use std::cell::RefCell;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use collieclaw::cancel::{Cancel, Why};
use collieclaw::net::{
    Body, Fetch, FetchError, Fetched, Lookup, LookupError, Order, Patience, Stopped, SystemLookup,
};
use collieclaw_gate::{Autonomy, GatePolicy, Method};

use crate::http_server::{Act, Server, reply};
use crate::workshop::Workshop;

/// Says what it is told to, in turn; the last answer is repeated. Remembers what it was asked.
struct Names {
    answers: Vec<Vec<IpAddr>>,
    asked: RefCell<Vec<String>>,
}

impl Names {
    fn answering(answers: &[&[&str]]) -> Self {
        let answers = answers.iter().map(|numbers| numbers.iter().map(|it| it.parse().unwrap()).collect());
        Self { answers: answers.collect(), asked: RefCell::default() }
    }
}

impl Lookup for Names {
    fn numbers(&self, name: &str, _: &Patience) -> Result<Vec<IpAddr>, LookupError> {
        let mut asked = self.asked.borrow_mut();
        let answer = self.answers[asked.len().min(self.answers.len() - 1)].clone();
        asked.push(name.to_owned());
        Ok(answer)
    }
}

fn policy(autonomy: Autonomy, domains: &[String]) -> GatePolicy {
    GatePolicy { autonomy, allowed_domains: domains.to_vec(), ..Workshop::new().policy }
}

fn get(url: &str) -> Order<'_> {
    Order { method: Method::Get, url, body: None }
}

fn fetch(policy: &GatePolicy, lookup: &dyn Lookup, order: &Order<'_>) -> Result<Fetched, FetchError> {
    let cancel = Cancel::new().unwrap();
    let timeout = Duration::from_secs(20);
    Fetch { policy, lookup, cancel: &cancel, timeout, most_bytes: 100_000 }.run(order)
}

/// A server that the operator listed with its port, and the policy that lists it.
fn listed(acts: Vec<Act>) -> (Server, GatePolicy, String) {
    let server = Server::start(acts);
    let host = format!("first.example:{}", server.port());
    let policy = policy(Autonomy::Supervised, std::slice::from_ref(&host));
    (server, policy, format!("http://{host}/start"))
}

fn fetched(act: Act) -> Result<Fetched, FetchError> {
    let (_server, policy, url) = listed(vec![act]);
    fetch(&policy, &Names::answering(&[&["127.0.0.1"]]), &get(&url))
}

#[test]
fn this_machine_is_not_reached_in_any_notation() {
    let server = Server::start(vec![Act::Send(reply("200 OK", "text/plain", "secret"))]);
    let full = policy(Autonomy::Full, &[]);
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
        let refused = fetch(&full, &SystemLookup, &get(&url));
        assert!(
            matches!(&refused, Err(FetchError::Refused(why)) if why.contains("of this machine")),
            "{host}: {refused:?}"
        );
    }
    assert_eq!(server.received(), []);
}

#[test]
fn a_name_that_stands_for_this_machine_is_not_asked() {
    let server = Server::start(vec![Act::Send(reply("200 OK", "text/plain", "secret"))]);
    let full = policy(Autonomy::Full, &["*.example".to_owned(), "inside.example".to_owned()]);
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
        // One that is public does not excuse another.
        &["3000::1", "127.0.0.1"],
        &["3000::1", "::1"],
    ] {
        let names = Names::answering(&[numbers]);
        let url = format!("http://inside.example:{}/", server.port());
        let bad: IpAddr = numbers.last().unwrap().parse().unwrap();
        let refused = Err(FetchError::Private { host: "inside.example".to_owned(), number: bad });
        assert_eq!(fetch(&full, &names, &get(&url)), refused);
    }
    assert_eq!(server.received(), []);
}

/// Rebinding: the first answer is public, the second is this machine. Nobody asks twice.
#[test]
fn the_number_that_was_looked_at_is_the_one_that_is_connected_to() {
    let server = Server::start(vec![Act::Send(reply("200 OK", "text/plain", "secret"))]);
    let full = policy(Autonomy::Full, &[]);
    // A number that belongs to nobody.
    let names = Names::answering(&[&["3000::1"], &["127.0.0.1"]]);
    let url = format!("http://rebinding.example:{}/", server.port());
    let cancel = Cancel::new().unwrap();
    let timeout = Duration::from_millis(500);
    let ended =
        Fetch { policy: &full, lookup: &names, cancel: &cancel, timeout, most_bytes: 1000 }.run(&get(&url));
    assert!(
        matches!(ended, Err(FetchError::Network(_) | FetchError::Stopped(Stopped::TimedOut))),
        "{ended:?}"
    );
    assert_eq!(*names.asked.borrow(), ["rebinding.example"]);
    assert_eq!(server.received(), []);

    // The second page of the same name is looked up again, and looked at again.
    let (server, policy, url) = listed(vec![Act::Redirect(302, "http://first.example/".to_owned())]);
    let ended = fetch(&policy, &Names::answering(&[&["127.0.0.1"], &["127.0.0.1"]]), &get(&url));
    assert!(matches!(ended, Err(FetchError::Redirect { .. })), "{ended:?}");
    assert_eq!(server.received().len(), 1);
}

#[test]
fn a_redirect_to_this_machine_is_not_followed() {
    let target = Server::start(vec![Act::Send(reply("200 OK", "text/plain", "secret"))]);
    let port = target.port();
    for autonomy in [Autonomy::ReadOnly, Autonomy::Supervised, Autonomy::Full] {
        for (location, reason) in [
            (format!("http://127.0.0.1:{port}/"), "`127.0.0.1` is an address of this machine"),
            (format!("http://0x7f.1:{port}/"), "`127.0.0.1` is an address of this machine"),
            (format!("http://[::ffff:127.0.0.1]:{port}/"), "`127.0.0.1` is an address of this machine"),
            (format!("//localhost:{port}/"), "`localhost` is an address of this machine"),
            (
                "http://169.254.169.254/latest/meta-data/".to_owned(),
                "`169.254.169.254` is an address of this machine",
            ),
            (format!("http://user@127.0.0.1:{port}/"), "must not hold a user name"),
            ("file:///etc/passwd".to_owned(), "only `https` and `http` are known"),
            ("gopher://127.0.0.1/".to_owned(), "only `https` and `http` are known"),
            (format!("http:\\\\127.0.0.1:{port}"), "no blanks, control characters or backslashes"),
        ] {
            for status in [301, 302, 303, 307, 308] {
                let (server, mut policy, url) = listed(vec![Act::Redirect(status, location.clone())]);
                policy.autonomy = autonomy;
                let ended = fetch(&policy, &Names::answering(&[&["127.0.0.1"]]), &get(&url));
                let Err(FetchError::Redirect { reason: told, .. }) = &ended else {
                    panic!("{location}: {ended:?}")
                };
                assert!(told.contains(reason), "{location}: {told}");
                assert_eq!(server.received().len(), 1);
            }
        }
    }
    // A name that the rules allow, and that stands for this machine all the same.
    let (_first, mut policy, url) = listed(vec![Act::Redirect(302, "http://second.example/".to_owned())]);
    policy.allowed_domains.push("second.example".to_owned());
    let ended = fetch(&policy, &Names::answering(&[&["127.0.0.1"]]), &get(&url));
    let number = IpAddr::from([127, 0, 0, 1]);
    assert_eq!(ended, Err(FetchError::Private { host: "second.example".to_owned(), number }));
    assert_eq!(target.received(), []);
}

#[test]
fn a_redirect_is_followed_only_where_the_rules_alone_would_go() {
    let elsewhere = "http://elsewhere.example/".to_owned();
    let (_server, policy, url) = listed(vec![Act::Redirect(302, elsewhere.clone())]);
    let names = Names::answering(&[&["127.0.0.1"]]);
    assert_eq!(
        fetch(&policy, &names, &get(&url)).unwrap_err().to_string(),
        "it redirects to http://elsewhere.example/, and that is not followed: `elsewhere.example` is not on the list of \
         allowed domains; ask for that address itself"
    );
    assert_eq!(*names.asked.borrow(), ["first.example"]);

    let long = format!("http://elsewhere.example/{}", "x".repeat(5000));
    let told = fetched(Act::Redirect(302, long)).unwrap_err().to_string();
    assert!(told.contains("x…, and that is not followed") && told.len() < 600, "{told}");

    // In `full` nothing is asked, but it is more than was allowed at first.
    let full = GatePolicy { autonomy: Autonomy::Full, ..policy };
    let ended = fetch(&full, &Names::answering(&[&["127.0.0.1"]]), &get(&url)).unwrap_err().to_string();
    assert!(ended.contains("`elsewhere.example` is not on the list"), "{ended}");
}

#[test]
fn redirects_to_allowed_places_are_followed() {
    let (server, policy, url) = listed(vec![
        Act::Send(
            "HTTP/1.1 301 Moved\r\nlocation: ../next?x=1\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n"
                .to_owned(),
        ),
        Act::Redirect(308, "http://first.example:{port}/last#part".to_owned()),
        Act::Send(reply("200 OK", "text/plain", "here")),
    ]);
    let found = fetch(&policy, &Names::answering(&[&["127.0.0.1"]]), &get(&url)).unwrap();
    assert_eq!(
        found,
        Fetched {
            url: format!("http://first.example:{}/last", server.port()),
            status: 200,
            content_type: Some("text/plain".to_owned()),
            body: Body::Whole("here".to_owned()),
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
    let (server, policy, url) = listed(vec![Act::Redirect(302, "/again".to_owned())]);
    let ended = fetch(&policy, &Names::answering(&[&["127.0.0.1"]]), &get(&url));
    assert_eq!(ended, Err(FetchError::TooManyRedirects));
    assert_eq!(server.received().len(), 6);
}

/// Sending is a medium risk even to a listed place, so it was approved; within the same host it is the same.
#[test]
fn what_is_sent_is_sent_again_only_if_the_server_says_so_outright() {
    for (status, again) in [(301, "GET "), (302, "GET "), (303, "GET "), (307, "POST {}"), (308, "POST {}")] {
        let (server, policy, url) = listed(vec![
            Act::Redirect(status, "/next".to_owned()),
            Act::Send(reply("200 OK", "text/plain", "")),
        ]);
        let order = Order { method: Method::Post, url: &url, body: Some(("{}", "application/json")) };
        fetch(&policy, &Names::answering(&[&["127.0.0.1"]]), &order).unwrap();
        let received = server.received();
        let second = &received[1];
        assert_eq!(received[0].header("content-type"), Some("application/json"));
        assert_eq!(
            format!("{}{}", second.line.trim_end_matches("/next HTTP/1.1"), second.body),
            again,
            "{status}"
        );
    }
    let (server, policy, url) = listed(vec![Act::Redirect(307, "http://other.example/".to_owned())]);
    let order = Order { method: Method::Post, url: &url, body: Some(("{}", "application/json")) };
    let ended = fetch(&policy, &Names::answering(&[&["127.0.0.1"]]), &order).unwrap_err().to_string();
    assert!(ended.contains("something is sent to `other.example`"), "{ended}");
    assert_eq!(server.received().len(), 1);
}

#[test]
fn text_comes_back_as_text_and_the_rest_as_a_note() {
    let body = |content_type: &str, body: &str| {
        fetched(Act::Send(reply("200 OK", content_type, body))).unwrap().body
    };
    let whole = |text: &str| Body::Whole(text.to_owned());
    assert_eq!(body("text/html; charset=utf-8", "<p>é\u{1b}[0m"), whole("<p>é\u{1b}[0m"));
    assert_eq!(body("Application/JSON", "{}"), whole("{}"));
    assert_eq!(body("application/problem+json", "{}"), whole("{}"));
    assert_eq!(body("image/svg+xml", "<svg/>"), whole("<svg/>"));
    let long = format!("text/{}", "x".repeat(300));
    assert_eq!(fetched(Act::Send(reply("200 OK", &long, "abc"))).unwrap().content_type, None);
    for other in ["image/png", "application/octet-stream", "application/zip", "video/mp4", "nonsense"] {
        assert_eq!(body(other, "abc"), Body::Other { length: Some(3) }, "{other}");
    }
    let unnamed = |bytes: &str| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{bytes}", bytes.len());
        fetched(Act::Send(head)).unwrap()
    };
    assert_eq!(unnamed("plain").body, whole("plain"));
    assert_eq!(unnamed("plain").content_type, None);
    assert_eq!(unnamed("\0x").body, Body::Other { length: Some(2) });
    assert_eq!(fetched(Act::Send(reply("404 No", "text/plain", "gone"))).unwrap().status, 404);
    assert_eq!(fetched(Act::Send("HTTP/1.1 204 No\r\n\r\n".to_owned())).unwrap().body, whole(""));
    assert_eq!(
        fetched(Act::Send("HTTP/1.1 302 No\r\ncontent-length: 0\r\n\r\n".to_owned())).unwrap().status,
        302
    );
}

#[test]
fn a_long_text_is_cut_at_the_bound_and_no_letter_in_two() {
    let text = format!("x{}", "é".repeat(60_000));
    let cut = fetched(Act::Send(reply("200 OK", "text/plain", &text))).unwrap().body;
    assert_eq!(cut, Body::Cut(format!("x{}", "é".repeat(49_999))));
    let whole = "é".repeat(50_000);
    assert_eq!(fetched(Act::Send(reply("200 OK", "text/plain", &whole))).unwrap().body, Body::Whole(whole));
    let start = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n".to_owned();
    let Body::Cut(flood) = fetched(Act::Flood(start, "x".repeat(5000))).unwrap().body else { panic!() };
    assert_eq!(flood.len(), 100_000);
    // Nobody downloads a film to say that it is one.
    let film = "HTTP/1.1 200 OK\r\ncontent-type: video/mp4\r\n\r\n".to_owned();
    assert_eq!(fetched(Act::Flood(film, "x".repeat(5000))).unwrap().body, Body::Other { length: None });
    let lossy = fetched(Act::Send(reply("200 OK", "text/plain", "a\u{fffd}"))).unwrap().body;
    assert_eq!(lossy, Body::Whole("a\u{fffd}".to_owned()));
}

#[test]
fn a_connection_that_breaks_says_so() {
    for act in [
        Act::Send(String::new()),
        Act::Send("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nx".to_owned()),
        Act::Send("220 mail.example ESMTP\r\n".to_owned()),
        Act::Reset(String::new()),
        Act::HalfClose,
        Act::Flood("HTTP/1.1 200 OK\r\n".to_owned(), "x: y\r\n".repeat(100)),
    ] {
        let ended = fetched(act.clone());
        assert!(matches!(ended, Err(FetchError::Network(_))), "{act:?}: {ended:?}");
    }
    let (server, policy, url) = listed(vec![Act::HalfClose]);
    let port = server.port();
    drop(server);
    std::thread::sleep(Duration::from_millis(100));
    let ended = fetch(&policy, &Names::answering(&[&["127.0.0.1"]]), &get(&url));
    assert_eq!(ended, Err(FetchError::Network(format!("nobody listens at http://first.example:{port}"))));
    assert_eq!(
        fetch(&policy, &Names::answering(&[&[]]), &get(&url)).unwrap_err().to_string(),
        "`first.example` can't be found: it has no number"
    );
}

/// The time is for all redirects together, too: each of these takes a little.
#[test]
fn the_time_is_for_everything_together() {
    let start = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n".to_owned();
    for act in [Act::Hang(String::new()), Act::Hang(start.clone()), Act::Drip(start)] {
        let (_server, policy, url) = listed(vec![Act::Redirect(302, "/next".to_owned()), act]);
        let cancel = Cancel::new().unwrap();
        let begun = Instant::now();
        let timeout = Duration::from_millis(300);
        let names = Names::answering(&[&["127.0.0.1"]]);
        let ended = Fetch { policy: &policy, lookup: &names, cancel: &cancel, timeout, most_bytes: 100_000 }
            .run(&get(&url));
        assert_eq!(ended, Err(FetchError::Stopped(Stopped::TimedOut)));
        assert!(begun.elapsed() >= timeout && begun.elapsed() < Duration::from_secs(20));
    }
}

#[test]
fn it_ends_when_somebody_says_stop() {
    let start = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n".to_owned();
    for act in [Act::Hang(String::new()), Act::Drip(start)] {
        let (_server, policy, url) = listed(vec![act]);
        let cancel = Cancel::new().unwrap();
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                let names = Names::answering(&[&["127.0.0.1"]]);
                let timeout = Duration::from_secs(600);
                Fetch { policy: &policy, lookup: &names, cancel: &cancel, timeout, most_bytes: 100_000 }
                    .run(&get(&url))
            });
            std::thread::sleep(Duration::from_millis(100));
            cancel.raise(Why::Estop);
            assert_eq!(asking.join().unwrap(), Err(FetchError::Stopped(Stopped::Cancelled)));
        });
    }
}

#[test]
fn names_are_looked_up_by_the_system() {
    let cancel = Cancel::new().unwrap();
    let patience = Patience::new(&cancel, Duration::from_secs(20));
    let numbers = SystemLookup.numbers("localhost", &patience).unwrap();
    assert!(numbers.iter().all(IpAddr::is_loopback) && !numbers.is_empty(), "{numbers:?}");
    let missing = SystemLookup.numbers("no-such-host.invalid", &patience);
    assert!(matches!(missing, Err(LookupError::NotFound { .. })), "{missing:?}");
    cancel.raise(Why::Operator);
    assert_eq!(SystemLookup.numbers("localhost", &patience), Err(LookupError::Stopped(Stopped::Cancelled)));
}

/// Runs itself again with a proxy in the environment, which must not be used.
#[test]
fn a_proxy_of_the_environment_is_not_used() {
    const CHILD: &str = "COLLIECLAW_TEST_BEHIND_PROXY";
    if let Ok(port) = std::env::var(CHILD) {
        let host = format!("first.example:{port}");
        let policy = policy(Autonomy::Supervised, std::slice::from_ref(&host));
        let found =
            fetch(&policy, &Names::answering(&[&["127.0.0.1"]]), &get(&format!("http://{host}/"))).unwrap();
        assert_eq!(found.body, Body::Whole("direct".to_owned()));
        return;
    }
    let server = Server::start(vec![Act::Send(reply("200 OK", "text/plain", "direct"))]);
    let proxy = Server::start(vec![Act::Send(reply("200 OK", "text/plain", "through a proxy"))]);
    let address = format!("http://127.0.0.1:{}", proxy.port());
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "http::a_proxy_of_the_environment_is_not_used"])
        .env(CHILD, server.port().to_string());
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"] {
        child.env(variable, &address);
    }
    let output = child.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!((server.received().len(), proxy.received().len()), (1, 0));
}
