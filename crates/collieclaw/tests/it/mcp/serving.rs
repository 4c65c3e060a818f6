//! Our own tools for other agents, tested line by line.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::support::{
    ChildGuard, TestAgent, is_sleep_running, unique_sleep_seconds, wait_for_exit, wait_for_sleep, wait_until,
};

/// A client that sends exactly the given messages.
struct StdioMcpClient {
    child: ChildGuard,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    number: u64,
}

impl StdioMcpClient {
    fn new(test_agent: &TestAgent) -> Self {
        let mut child = test_agent.command(&["mcp", "serve"]).stdin(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = Self { child: ChildGuard(child), input, output, number: 0 };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "test", "version": "1" } });
        let answer = client.request("initialize", &hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "collieclaw", "{answer}");
        client.send_message(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send_message(&mut self, message: &Value) {
        writeln!(self.input.as_ref().unwrap(), "{message}").unwrap();
    }

    fn send_request(&mut self, method: &str, params: &Value) -> u64 {
        self.number += 1;
        let number = self.number;
        self.send_message(&json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": params }));
        number
    }

    /// Reads a message. Every line of standard output must be one.
    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        let number = self.send_request(method, params);
        loop {
            let message = self.receive();
            if message["id"] == number {
                return message;
            }
        }
    }

    fn call_tool(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))["result"].clone()
    }

    fn close(mut self) -> i32 {
        self.input = None;
        wait_for_exit(&mut self.child)
    }
}

fn result_text(result: &Value) -> (bool, &str) {
    (result["isError"] == true, result["content"][0]["text"].as_str().unwrap())
}

#[test]
fn another_agent_gets_our_tools_with_gate_and_receipts() {
    let test_agent = TestAgent::new();
    std::fs::write(test_agent.workspace().join("note.txt"), "a note").unwrap();
    let mut client = StdioMcpClient::new(&test_agent);
    let tools = client.request("tools/list", &json!({}));
    let names: Vec<_> =
        tools["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert!(names.contains(&json!("file_read")) && !names.contains(&json!("file_write")), "{names:?}");

    let read = client.call_tool("file_read", &json!({ "path": "note.txt" }));
    assert!(result_text(&read).1.contains("a note") && !result_text(&read).0, "{read}");
    let outside = client.call_tool("file_read", &json!({ "path": "/etc/passwd" }));
    assert!(result_text(&outside).0 && result_text(&outside).1.contains("denied"), "{outside}");
    let bad = client.call_tool("file_read", &json!({ "file": "note.txt" }));
    assert!(result_text(&bad).0 && result_text(&bad).1.contains("invalid arguments"), "{bad}");
    // The call needs an approval, and the client is not asked although it offers to be.
    let asks = client.call_tool("shell", &json!({ "command": "touch made" }));
    assert!(result_text(&asks).0 && result_text(&asks).1.contains("no operator is available"), "{asks}");
    let unlisted = client.call_tool("file_write", &json!({ "path": "x", "content": "x" }));
    assert!(result_text(&unlisted).0, "{unlisted}");
    let unknown = client.call_tool("no_such_tool", &json!({}));
    assert!(result_text(&unknown).0 && result_text(&unknown).1.contains("is not offered here"), "{unknown}");
    assert_eq!(client.close(), 0);

    let statuses: Vec<String> =
        test_agent.receipt_summaries().into_iter().map(|[_, status, _]| status).collect();
    assert_eq!(statuses, ["allowed", "denied", "failed", "denied", "denied", "denied"]);
    let receipts = test_agent.receipts();
    assert_eq!(read["_meta"]["collieclaw/receipt"], receipts[0]["id"]);
    assert!(receipts[0]["conversation_id"].as_str().unwrap().starts_with("mcp-"));
    assert!(!test_agent.workspace().join("made").exists());
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
}

#[test]
fn the_emergency_stop_holds_for_other_agents_too() {
    let test_agent = TestAgent::new();
    let mut client = StdioMcpClient::new(&test_agent);
    assert!(!result_text(&client.call_tool("time", &json!({}))).0);
    assert_eq!(test_agent.run(&["estop"]).code, 0);
    let stopped = client.call_tool("time", &json!({}));
    assert!(result_text(&stopped).0 && result_text(&stopped).1.contains("emergency stop"), "{stopped}");
    assert_eq!(test_agent.run(&["estop", "--clear"]).code, 0);
    assert!(!result_text(&client.call_tool("time", &json!({}))).0);
    assert_eq!(client.close(), 0);
}

#[test]
fn a_call_ends_with_the_request_and_with_the_client() {
    let test_agent = TestAgent::new().with_full_autonomy();
    let mut client = StdioMcpClient::new(&test_agent);
    let long = unique_sleep_seconds();
    let number = client.send_request(
        "tools/call",
        &json!({ "name": "shell", "arguments": { "command": format!("sleep {long}") } }),
    );
    wait_for_sleep(&long);
    client.send_message(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": number } }),
    );
    // The next call is answered, so the first one is finished.
    assert!(!result_text(&client.call_tool("time", &json!({}))).0);
    assert!(!is_sleep_running(&long));

    let long = unique_sleep_seconds();
    client.send_request(
        "tools/call",
        &json!({ "name": "shell", "arguments": { "command": format!("sleep {long}") } }),
    );
    wait_for_sleep(&long);
    client.close();
    assert!(!is_sleep_running(&long));
    let reasons: Vec<String> =
        test_agent.receipt_summaries().into_iter().map(|[_, _, reason]| reason).collect();
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    assert_eq!((reasons[0].as_str(), reasons[2].as_str()), ("cancelled", "cancelled"), "{reasons:?}");
}

/// C8.1: a call that is rejected because too many others wait has a receipt, too.
#[test]
fn calls_that_are_rejected_because_too_many_wait_have_receipts() {
    let test_agent = TestAgent::new().with_full_autonomy();
    let mut client = StdioMcpClient::new(&test_agent);
    let long = unique_sleep_seconds();
    let sleep = json!({ "name": "shell", "arguments": { "command": format!("sleep {long}") } });
    let first = client.send_request("tools/call", &sleep);
    wait_for_sleep(&long);
    let others = 300;
    for _ in 0..others {
        client.send_request("tools/call", &json!({ "name": "time", "arguments": {} }));
    }
    client.send_message(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": first } }),
    );
    let mut rejected = 0;
    for _ in 0..others {
        let answer = client.receive();
        let (failed, text) = result_text(&answer["result"]);
        assert!(!failed || text.contains("too many calls are waiting"), "{answer}");
        rejected += usize::from(failed);
    }
    assert_eq!(client.close(), 0);
    let reasons = test_agent.all_receipt_reasons();
    assert_eq!(reasons.len(), others + 1);
    assert_eq!(reasons.iter().filter(|reason| *reason == "too-many-calls").count(), rejected);
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
}

#[test]
fn invalid_protocol_messages_cause_an_error_and_no_panic() {
    let test_agent = TestAgent::new();
    for said in [
        "\n",
        "hello\n",
        "{}\n",
        "[1, 2]\n",
        "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/call\"}\n",
    ] {
        let mut child = test_agent.command(&["mcp", "serve"]).stdin(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(said.as_bytes()).unwrap();
        let done = crate::support::agent_output(child.wait_with_output().unwrap());
        assert!(!done.err.contains("panicked"), "{said:?}: {done:?}");
        for line in done.out.lines() {
            assert!(serde_json::from_str::<Value>(line).is_ok(), "{said:?}: {done:?}");
        }
    }
}

/// `mcp serve --http` on its own port; dropping it kills the process.
pub(super) struct HttpServeProcess {
    _child: ChildGuard,
    pub(super) host: String,
    pub(super) token: String,
}

impl HttpServeProcess {
    pub(super) fn new(test_agent: &TestAgent) -> Self {
        let mut child = test_agent.command(&["mcp", "serve", "--http", "0"]).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines
            .find_map(|line| Some(line.unwrap().strip_prefix("listening on http://")?.to_owned()))
            .unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        let token = std::fs::read_to_string(test_agent.home().join("mcp.token")).unwrap().trim().to_owned();
        Self { _child: ChildGuard(child), host: address.strip_suffix("/mcp").unwrap().to_owned(), token }
    }

    /// Sends a message with extra bytes after it.
    fn send(&self, session: &str, message: &Value, more: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(crate::support::TEST_TIMEOUT)).unwrap();
        let (message, host, token) = (message.to_string(), &self.host, &self.token);
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{session}\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {}\r\n\r\n{message}{more}",
            message.len()
        )
        .unwrap();
        stream
    }

    /// Starts a session, and returns its header.
    fn begin_session(&self) -> String {
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
        let lines = BufReader::new(self.send("", &hello, "")).lines();
        let head = lines.map_while(Result::ok).take_while(|line| !line.is_empty());
        let found = head.filter(|line| line.to_lowercase().starts_with("mcp-session-id:")).last();
        let session = format!("{}\r\n", found.unwrap());
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let mut line = String::new();
        BufReader::new(self.send(&session, &ready, "")).read_line(&mut line).unwrap();
        assert!(line.contains(" 202 "), "{line}");
        session
    }
}

#[test]
fn a_call_over_http_ends_when_its_client_leaves() {
    let test_agent = TestAgent::new().with_full_autonomy();
    let listening = HttpServeProcess::new(&test_agent);
    let session = listening.begin_session();
    for (number, more) in [(3_usize, ""), (4, "x")] {
        let long = unique_sleep_seconds();
        let call = json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call",
            "params": { "name": "shell", "arguments": { "command": format!("sleep {long}") } } });
        let stream = listening.send(&session, &call, more);
        wait_for_sleep(&long);
        drop(stream);
        wait_until("the call has its receipt", || test_agent.receipts().len() == number - 2);
        assert!(!is_sleep_running(&long));
        assert_eq!(test_agent.receipt_summaries().last().unwrap(), &["shell", "failed", "cancelled"]);
    }
    // The session continues for a client that reconnects.
    let call = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": { "name": "time" } });
    let answer = BufReader::new(listening.send(&session, &call, "")).lines();
    let answer = answer.map_while(Result::ok).find(|line| line.contains("\"result\"")).unwrap();
    assert!(answer.contains("collieclaw/receipt"), "{answer}");
}

#[test]
fn over_http_only_the_token_on_a_loopback_name_opens() {
    let test_agent = TestAgent::new();
    let listening = HttpServeProcess::new(&test_agent);
    let (host, token) = (&listening.host, &listening.token);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } })
    .to_string();
    let status = |path: &str, headers: &str| {
        let mut stream = TcpStream::connect(host).unwrap();
        let length = body.len();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.split(' ').nth(1).unwrap().to_owned()
    };
    let right = format!("Authorization: Bearer {token}\r\n");
    let own = format!("Host: {host}\r\n");
    assert_eq!(status("/mcp", &format!("{own}{right}")), "200");
    assert_eq!(status("/mcp", &own), "401");
    assert_eq!(status("/mcp", &format!("{own}Authorization: Bearer x{token}\r\n")), "401");
    assert_eq!(status("/", &format!("{own}{right}")), "404");
    assert_eq!(status("/mcp", &format!("Host: evil.example\r\n{right}")), "403");
    assert_eq!(status("/mcp", &format!("{own}{right}Origin: http://evil.example\r\n")), "403");
    assert_eq!(status("/mcp", &format!("{own}{right}Origin: null\r\n")), "403");
    let mode = std::fs::metadata(test_agent.home().join("mcp.token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
