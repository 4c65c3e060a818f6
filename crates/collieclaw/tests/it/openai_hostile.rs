//! The provider for OpenAI-compatible servers (C4.3) against a server that floods, drips, hangs and breaks: a clear error
//! soon.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use collieclaw_providers::cancel::{CancelFlag, CancelReason};
use collieclaw_providers::{OpenAiProvider, OpenAiSettings, Provider, ProviderError};
use rustix::process::Pid;

use crate::http_server::{ServerAction, TestServer, http_reply};
use crate::openai::{chat_checking_key, chat_error, chat_with, request, settings};
use crate::support::wait_until_blocked;

#[test]
fn an_answer_that_is_too_long_ends_at_the_bound() {
    let start = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n".to_owned();
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
    let too_large = Err(ProviderError::TooLarge { provider: "remote".to_owned(), limit: 1_000_000 });
    assert_eq!(chat_with(ServerAction::Flood(start.clone(), " ".repeat(4096))), too_large);
    assert_eq!(
        chat_with(ServerAction::Flood(chunked, format!("1000\r\n{}\r\n", " ".repeat(4096)))),
        too_large
    );
    let long = http_reply("200 OK", "application/json", &" ".repeat(1_000_001));
    assert_eq!(chat_with(ServerAction::Send(long)), too_large);
    let endless_header =
        chat_error(ServerAction::Flood("HTTP/1.1 200 OK\r\n".to_owned(), "x: y\r\n".repeat(100)));
    assert!(endless_header.starts_with("the connection to provider `remote` failed: "), "{endless_header}");
    let said = chat_error(ServerAction::Flood("HTTP/1.1 500 No\r\n\r\n".to_owned(), "x".repeat(4096)));
    assert_eq!(said, format!("provider `remote` is overloaded: HTTP 500: {} …", "x".repeat(300)));
}

#[test]
fn the_time_is_for_the_whole_answer() {
    let start = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n".to_owned();
    for act in [
        ServerAction::Hang(String::new()),
        ServerAction::Hang(start.clone()),
        ServerAction::Hang("HTTP/1.1 20".to_owned()),
        ServerAction::Drip(start),
        ServerAction::Drip("HTTP/1.1 200 OK\r\nx: ".to_owned()),
    ] {
        let server = TestServer::start(vec![act.clone()]);
        let begun = Instant::now();
        let ended =
            chat_checking_key(OpenAiSettings { timeout: Duration::from_millis(300), ..settings(&server) });
        assert_eq!(
            ended,
            Err(ProviderError::Timeout { provider: "remote".to_owned(), seconds: 1 }),
            "{act:?}"
        );
        assert!(begun.elapsed() >= Duration::from_millis(300));
    }
}

#[test]
fn a_connection_that_breaks_says_so() {
    let start = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{";
    for act in [
        ServerAction::Send(String::new()),
        ServerAction::Send(start.to_owned()),
        ServerAction::Send("SSH-2.0-OpenSSH_9.2\r\n".to_owned()),
        ServerAction::Send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_owned()),
        ServerAction::Reset(String::new()),
        ServerAction::Reset(start.to_owned()),
        ServerAction::HalfClose,
    ] {
        let actual = chat_with(act.clone()).unwrap_err();
        assert!(matches!(actual, ProviderError::Network { .. }), "{act:?}: {actual}");
    }
    // A known status counts, even if its body never arrives.
    let actual =
        chat_error(ServerAction::Reset("HTTP/1.1 503 No\r\ncontent-length: 1000\r\n\r\n".to_owned()));
    assert_eq!(actual, "provider `remote` is overloaded: HTTP 503");
}

#[test]
fn an_unreachable_server_is_named_with_a_cure() {
    let server = TestServer::start(vec![ServerAction::Send(String::new())]);
    let gone = settings(&server);
    let port = server.port();
    drop(server);
    assert_eq!(
        chat_checking_key(gone.clone()).unwrap_err().to_string(),
        format!(
            "the connection to provider `remote` failed: connection refused at http://127.0.0.1:{port}/v1; is the server running, \
             and is `base_url` right?"
        )
    );
    for (base_url, what) in [
        ("localhost:1234/v1", "`base_url` is invalid: an address must start with `https://` or `http://`"),
        ("http://user:secret@localhost/v1", "must not contain a user name or a password"),
        ("http://localhost/v1?key=secret", "must not contain `?` or `#`"),
        ("http://no-such-host.invalid/v1", "could not resolve `no-such-host.invalid`"),
    ] {
        let actual = chat_checking_key(OpenAiSettings { base_url: base_url.to_owned(), ..gone.clone() })
            .unwrap_err()
            .to_string();
        assert!(actual.contains(what) && !actual.contains("secret"), "{actual}");
    }
}

#[test]
fn https_to_a_plain_http_server_is_an_error() {
    let server = TestServer::start(vec![ServerAction::HalfClose]);
    let base_url = format!("https://127.0.0.1:{}/v1", server.port());
    let actual = chat_checking_key(OpenAiSettings { base_url, ..settings(&server) }).unwrap_err();
    assert!(matches!(actual, ProviderError::Network { .. }), "{actual}");
}

#[test]
fn a_request_ends_when_it_is_cancelled() {
    let start = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n".to_owned();
    let busy = "HTTP/1.1 429 No\r\nretry-after: 5\r\ncontent-length: 0\r\n\r\n".to_owned();
    for act in [ServerAction::Hang(String::new()), ServerAction::Drip(start), ServerAction::Send(busy)] {
        let server = TestServer::start(vec![act.clone()]);
        assert_cancelled(settings(&server), |thread| {
            server.wait_until_reply_is_read();
            wait_until_blocked(thread);
        });
    }
}

#[test]
fn a_request_ends_while_the_connection_is_still_being_made() {
    let silent = SilentPort::open();
    let server = TestServer::start(vec![ServerAction::HalfClose]);
    let base_url = format!("http://127.0.0.1:{}/v1", silent.port);
    assert_cancelled(OpenAiSettings { base_url: base_url.clone(), ..settings(&server) }, wait_until_blocked);

    let begun = Instant::now();
    let timeout = Duration::from_millis(300);
    let ended = chat_checking_key(OpenAiSettings { base_url, timeout, ..settings(&server) });
    assert_eq!(ended, Err(ProviderError::Timeout { provider: "remote".to_owned(), seconds: 1 }));
    assert!(begun.elapsed() >= timeout);
}

/// A port with a full queue: connections get no answer at all.
struct SilentPort {
    port: u16,
    _listener: rustix::fd::OwnedFd,
    _waiting: Vec<rustix::fd::OwnedFd>,
}

impl SilentPort {
    fn open() -> Self {
        use rustix::net::{
            AddressFamily, SocketFlags, SocketType, bind, connect, getsockname, listen, socket_with,
        };
        let socket =
            || socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::NONBLOCK, None).unwrap();
        let listener = socket();
        bind(&listener, &std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
        listen(&listener, 0).unwrap();
        let address = std::net::SocketAddr::try_from(getsockname(&listener).unwrap()).unwrap();
        let waiting: Vec<_> = (0..4).map(|_| socket()).collect();
        for socket in &waiting {
            // The connection stays in progress for ever.
            let _ = connect(socket, &address);
        }
        Self { port: address.port(), _listener: listener, _waiting: waiting }
    }
}

/// Checks that a cancel ends a request. `wait` gets the thread of the request, and returns when the request has got far
/// enough.
fn assert_cancelled(settings: OpenAiSettings, wait: impl FnOnce(Pid)) {
    let cancel = CancelFlag::new().unwrap();
    // Longer than a test may take, so only the cancel can end the request.
    let provider = OpenAiProvider::new(OpenAiSettings { timeout: Duration::from_secs(600), ..settings });
    let (started, thread) = channel();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            started.send(rustix::thread::gettid()).unwrap();
            provider.chat(&request(), &mut |_| {}, &cancel)
        });
        wait(thread.recv().unwrap());
        cancel.raise(CancelReason::Operator);
        assert_eq!(asking.join().unwrap(), Err(ProviderError::Cancelled { provider: "remote".to_owned() }));
    });
}
