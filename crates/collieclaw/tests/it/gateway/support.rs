//! A running gateway, and clients for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::Value;
use ureq::Agent;

use crate::support::{ChildGuard, TEST_TIMEOUT, TestAgent, wait_for_exit, wait_for_value, wait_until};

/// A gateway on its own port; dropping it kills the process.
pub(crate) struct TestGateway {
    pub(crate) test_agent: TestAgent,
    pub(crate) child: ChildGuard,
    pub(crate) port: u16,
    pub(crate) token: String,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl HttpReply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// Returns the status and the code of an error.
    pub(crate) fn error_code(&self) -> (u16, String) {
        let code = self.json()["error"]["code"].as_str().unwrap_or_else(|| panic!("{self:?}")).to_owned();
        (self.status, code)
    }
}

impl TestGateway {
    pub(crate) fn new() -> Self {
        Self::start_in(TestAgent::new())
    }

    pub(crate) fn start_in(test_agent: TestAgent) -> Self {
        let (child, port) = spawn_gateway(&test_agent);
        let token =
            std::fs::read_to_string(test_agent.home().join("gateway.token")).unwrap().trim().to_owned();
        Self { test_agent, child, port, token }
    }

    /// Starts another gateway in the same home, after the first has ended.
    pub(crate) fn restart(&mut self) {
        (self.child, self.port) = spawn_gateway(&self.test_agent);
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn get(&self, path: &str) -> HttpReply {
        read_reply(http_agent().get(self.url(path)).header("Authorization", self.bearer()).call())
    }

    pub(crate) fn delete(&self, path: &str) -> HttpReply {
        read_reply(http_agent().delete(self.url(path)).header("Authorization", self.bearer()).call())
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> HttpReply {
        let request = http_agent().post(self.url(path)).header("Authorization", self.bearer());
        read_reply(request.header("Content-Type", "application/json").send(body.to_string()))
    }

    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// Opens a connection without sending anything.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream
    }

    /// Sends these bytes, and reads until the gateway closes.
    pub(crate) fn send_raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // The gateway may close before everything is sent.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Sends a request with these headers. Token and host are added unless the headers contain them.
    pub(crate) fn send_with_headers(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> String {
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        let host = format!("127.0.0.1:{}", self.port);
        for (name, value) in [("Host", &*host), ("Authorization", &self.bearer())] {
            if !headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.send_raw(format!("{head}\r\n{body}").as_bytes())
    }

    /// Starts a turn and reads its events as they arrive.
    pub(crate) fn stream_chat(&self, body: &Value) -> SseReader {
        let body = body.to_string();
        let mut stream = self.connect();
        let head = format!(
            "POST /chat HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: {}\r\nAccept: text/event-stream\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            self.bearer(),
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        SseReader { lines: BufReader::new(stream) }
    }

    /// Waits until no turn is open.
    pub(crate) fn wait_for_end_of_turns(&self) {
        wait_until("no turn is open", || self.get("/status").json()["turns"]["open"] == 0);
    }

    /// Waits for an open approval or question.
    pub(crate) fn wait_for_question(&self) -> Value {
        wait_for_value("a question is open", || self.get("/approvals").json().get(0).cloned())
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, signal).unwrap();
    }

    /// Ends the gateway with a signal, and returns its exit code.
    pub(crate) fn terminate(&mut self) -> i32 {
        self.signal(rustix::process::Signal::TERM);
        wait_for_exit(&mut self.child)
    }
}

fn spawn_gateway(test_agent: &TestAgent) -> (ChildGuard, u16) {
    let mut command = test_agent.command(&["gateway", "--port", "0", "--output", "json"]);
    let log = std::fs::File::create(test_agent.path().join("gateway.err")).unwrap();
    let mut child = ChildGuard(command.stdout(Stdio::piped()).stderr(log).spawn().unwrap());
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let port = lines.map_while(Result::ok).find_map(|line| {
        let (_, rest) = line.split_once("http://127.0.0.1:")?;
        rest.split('/').next()?.parse().ok()
    });
    let said = || std::fs::read_to_string(test_agent.path().join("gateway.err"));
    (child, port.unwrap_or_else(|| panic!("it does not say where it listens: {:?}", said())))
}

/// The events of a turn.
pub(crate) struct SseReader {
    lines: BufReader<TcpStream>,
}

impl SseReader {
    /// Returns the next event, or `None` after the last.
    pub(crate) fn next(&mut self) -> Option<(String, Value)> {
        let mut name = None;
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            if let Some(event) = line.strip_prefix("event: ") {
                name = Some(event.trim().to_owned());
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((name.take()?, serde_json::from_str(data.trim()).unwrap()));
            } else if line.trim_end() == "0" {
                return None;
            }
        }
    }

    /// Reads events up to one with this name.
    pub(crate) fn wait_for(&mut self, wanted: &str) -> Value {
        loop {
            let (name, value) = self.next().unwrap_or_else(|| panic!("`{wanted}` never came"));
            if name == wanted {
                return value;
            }
        }
    }
}

/// Returns a client that treats every status as a response.
pub(crate) fn http_agent() -> Agent {
    Agent::config_builder().http_status_as_error(false).timeout_global(Some(TEST_TIMEOUT)).build().new_agent()
}

pub(crate) fn read_reply(response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> HttpReply {
    let mut response = response.unwrap();
    let body = response.body_mut().read_to_string().unwrap();
    HttpReply { status: response.status().as_u16(), body }
}
