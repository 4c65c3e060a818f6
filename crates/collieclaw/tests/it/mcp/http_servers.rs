//! MCP servers that already run, on a loopback address.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use super::server_fixture::installed_peers;
use super::serving::HttpServeProcess;
use crate::support::{ChildGuard, TestAgent, agent_output, program, wait_until};

#[test]
fn one_with_a_token_is_used_and_one_without_is_refused() {
    let offering = TestAgent::new();
    let server = HttpServeProcess::new(&offering);
    let (url, token) = (format!("http://{}/mcp", server.host), &server.token);

    let test_agent = TestAgent::new()
        .with_full_autonomy()
        .with_server_settings("other", &format!("url = \"{url}\"\ntoken_env = \"OTHER_TOKEN\""));
    let run = |arguments: &[&str], token: &str| {
        agent_output(test_agent.command(arguments).env("OTHER_TOKEN", token).output().unwrap())
    };
    let refused = run(&["mcp", "approve", "--yes", "other"], "wrong");
    assert!(refused.code == 1 && !refused.err.contains(token), "{refused:?}");
    assert!(
        refused.err.contains("the server denied access (status 401): `token_env` names the variable"),
        "{refused:?}"
    );
    // As the token is read from its file.
    let approved = run(&["mcp", "approve", "--yes", "other"], &format!(" {token}\n"));
    assert_eq!(approved.code, 0, "{approved:?}");
    let called = run(&["tool", "run", "other__time"], token);
    assert!(called.code == 0 && called.out.contains("\"utc\":"), "{called:?}");
    // Both sides have a receipt.
    assert_eq!((test_agent.receipt_summaries().len(), offering.receipt_summaries().len()), (1, 1));
    assert_eq!(test_agent.last_receipt()["sandbox"], "none");

    // A server outside of the sandbox may do anything, so it is not called at `readonly`.
    let test_agent = test_agent.with_config_change("autonomy = \"full\"", "autonomy = \"readonly\"");
    assert_eq!(test_agent.call_tool("other__time", "{}").code, 4);
}

#[test]
fn the_everything_server_works_over_http() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let bin = installed_peers().join("node_modules/.bin");
    let mut server = Command::new(bin.join("node"));
    server.arg(bin.join("mcp-server-everything")).arg("streamableHttp").env("PORT", port.to_string());
    let _server =
        ChildGuard(server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    wait_until("the server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let test_agent = TestAgent::new()
        .with_full_autonomy()
        .with_server_settings("every", &format!("url = \"http://localhost:{port}/mcp\""))
        .with_approved_server("every");
    assert!(test_agent.call_output("every__get-sum", r#"{"a": 4, "b": 38}"#).contains("42"));
    assert!(test_agent.call_output("every__echo", r#"{"message": "hello"}"#).contains("hello"));
}

#[test]
fn the_official_suite_sees_a_proper_client() {
    let test_agent = TestAgent::new().with_full_autonomy();
    let config = test_agent.home().join("config.toml");
    let before = std::fs::read_to_string(&config).unwrap();
    let script = format!(
        "#!/bin/sh\nset -e\n{{ cat '{plain}'; printf '[mcp.servers.suite]\\nurl = \"%s\"\\n' \"$1\"; }} > '{config}'\n\
         '{program}' mcp approve --yes suite\n\
         case $MCP_CONFORMANCE_SCENARIO in tools_call) '{program}' tool run suite__add_numbers --json '{{\"a\": 5, \"b\": 3}}';; esac\n",
        plain = test_agent.path().join("plain.toml").display(),
        config = config.display(),
        program = program().display(),
    );
    std::fs::write(test_agent.path().join("plain.toml"), before).unwrap();
    let client = test_agent.path().join("client.sh");
    std::fs::write(&client, script).unwrap();
    std::fs::set_permissions(&client, std::fs::Permissions::from_mode(0o755)).unwrap();
    let bin = installed_peers().join("node_modules/.bin");
    for scenario in ["initialize", "tools_call"] {
        let mut suite = Command::new(bin.join("node"));
        suite.arg(bin.join("conformance")).args(["client", "--scenario", scenario, "--command"]).arg(&client);
        suite
            .env_clear()
            .env("HOME", test_agent.path())
            .env("PATH", "/usr/bin:/bin")
            .current_dir(test_agent.path());
        let ran = agent_output(suite.stdin(Stdio::null()).output().unwrap());
        assert_eq!(ran.code, 0, "{scenario}: {}{}", ran.out, ran.err);
    }
}

/// Starts a server that answers every request with `first`, then repeats `then` for ever.
fn serve_fixed_bytes(first: &'static str, then: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let mut stream = stream.unwrap();
                let mut asked = [0; 4096];
                let _ = stream.read(&mut asked);
                let mut next = first.as_bytes().to_vec();
                while !next.is_empty() && stream.write_all(&next).is_ok() {
                    next = then.repeat(1000).into_bytes();
                }
            });
        }
    });
    port
}

#[test]
fn a_redirecting_or_endless_server_is_reported() {
    let check = |first, then, expected: &str| {
        let port = serve_fixed_bytes(first, then);
        let test_agent =
            TestAgent::new().with_server_settings("bad", &format!("url = \"http://127.0.0.1:{port}/mcp\""));
        let done = test_agent.run(&["mcp", "approve", "--yes", "bad"]);
        assert!(done.code == 1 && done.err.contains(expected), "{expected}: {done:?}");
    };
    check(
        "HTTP/1.1 302 Found\r\nLocation: http://example.org/\r\nContent-Length: 0\r\n\r\n",
        "",
        "status 302",
    );
    check(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n",
        "{\"a\": \"0123456789012345678901234567890123456789\",",
        "sent too much",
    );
    check(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: ",
        "0123456789012345678901234567890123456789",
        "sent too much",
    );
    check("SSH-2.0-OpenSSH_9.9\r\n", "", "does not speak MCP: its answer is not HTTP");
    let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi";
    check(html, "", "does not speak MCP: it answers with text/html");
    check(
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "",
        "no MCP server at this path (status 404)",
    );
}

#[test]
fn an_unreachable_server_is_reported_in_plain_words() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let test_agent =
        TestAgent::new().with_server_settings("gone", &format!("url = \"http://127.0.0.1:{port}/mcp\""));
    let done = test_agent.run(&["mcp", "approve", "--yes", "gone"]);
    assert_eq!(done.code, 1, "{done:?}");
    let expected = format!(
        "error: the MCP server `gone` can't be used: nothing listens at http://127.0.0.1:{port}/mcp\n\
         help: start the server first, or correct `url` in `[mcp.servers.NAME]`\n"
    );
    assert_eq!(done.err, expected);
}
