//! Refused requests: other sites, other hosts, wrong tokens, garbage, floods and slow clients.

use std::io::{Read, Write};

use serde_json::json;

use super::support::{TestGateway, http_agent, read_reply};
use crate::support::TestAgent;

fn status_of(answer: &str) -> &str {
    answer.split_whitespace().nth(1).unwrap_or("nothing")
}

#[test]
fn requests_from_other_sites_and_with_other_host_names_are_refused() {
    let gateway = TestGateway::new();
    let host = format!("127.0.0.1:{}", gateway.port);
    let ours = format!("http://{host}");
    let check = |status: &str, headers: &[(&str, &str)]| {
        let answer = gateway.send_with_headers("GET", "/status", headers, "");
        assert_eq!(status_of(&answer), status, "{headers:?}: {answer}");
    };
    check("200", &[]);
    check("200", &[("Origin", &ours), ("Sec-Fetch-Site", "same-origin")]);
    check("200", &[("Host", &format!("localhost:{}", gateway.port))]);
    check("200", &[("Host", &format!("[::1]:{}", gateway.port))]);
    // The host name of an attacker, made to resolve to this machine.
    for host in ["evil.example", "127.0.0.1", "127.0.0.1:1", &format!("evil.example:{}", gateway.port), ""] {
        check("403", &[("Host", host)]);
    }
    check("403", &[("Host", &host), ("Host", "evil.example")]);
    let elsewhere = format!("http://localhost:{}", gateway.port);
    for origin in
        ["null", "http://evil.example", "https://127.0.0.1", &elsewhere, "file://", "", &format!("{ours}/")]
    {
        check("403", &[("Origin", origin)]);
    }
    check("403", &[("Origin", &ours), ("Origin", "http://evil.example")]);
    for site in ["cross-site", "same-site", "anything"] {
        check("403", &[("Sec-Fetch-Site", site)]);
    }
    // A link on another page may lead to the page, and to nothing else.
    let page = gateway.send_with_headers("GET", "/", &[("Sec-Fetch-Site", "cross-site")], "");
    assert_eq!(status_of(&page), "200");
    let health = gateway.send_with_headers("GET", "/health", &[("Sec-Fetch-Site", "cross-site")], "");
    assert_eq!(status_of(&health), "403");
    let absolute = gateway.send_with_headers("GET", "http://evil.example/status", &[], "");
    assert_eq!(status_of(&absolute), "403", "{absolute}");
    // No other origin is allowed, so no CORS headers are sent.
    let preflight = gateway.send_with_headers(
        "OPTIONS",
        "/chat",
        &[("Origin", "http://evil.example"), ("Access-Control-Request-Method", "POST")],
        "",
    );
    assert_eq!(status_of(&preflight), "403");
    assert!(!preflight.to_lowercase().contains("access-control"), "{preflight}");
}

#[test]
fn a_form_of_another_site_posts_nothing() {
    let gateway = TestGateway::new();
    for kind in ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", ""] {
        let answer =
            gateway.send_with_headers("POST", "/chat", &[("Content-Type", kind)], "{\"message\":\"hi\"}");
        assert_eq!(status_of(&answer), "415", "{kind}");
        let origin = [("Content-Type", kind), ("Origin", "http://evil.example")];
        assert_eq!(status_of(&gateway.send_with_headers("POST", "/estop", &origin, "")), "403");
    }
    assert_eq!(gateway.get("/status").json()["estop"], false);
    assert_eq!(gateway.test_agent.run(&["memory", "list", "--output", "json"]).json(), json!([]));
}

#[test]
fn without_the_token_only_the_page_and_the_health_check_are_served() {
    let gateway = TestGateway::new();
    let without = |path: &str| read_reply(http_agent().get(gateway.url(path)).call());
    for path in ["/health", "/", "/page.css", "/page.js"] {
        assert_eq!(without(path).status, 200, "{path}");
    }
    assert!(!without("/").body.contains(&gateway.token));
    for path in [
        "/status",
        "/tools",
        "/receipts",
        "/metrics",
        "/approvals",
        "/openapi.json",
        "/memory/search?q=a",
        "/no",
    ] {
        assert_eq!(without(path).error_code(), (401, "no-token".to_owned()), "{path}");
    }
    let check = |given: &str| {
        let answer = gateway.send_with_headers("GET", "/status", &[("Authorization", given)], "");
        assert_eq!(status_of(&answer), "401", "{given}");
        assert!(answer.contains("www-authenticate: Bearer"));
    };
    check("");
    check("Bearer ");
    check(&gateway.token);
    check(&format!("Basic {}", gateway.token));
    check(&format!("Bearer {}x", gateway.token));
    check(&format!("Bearer {}", &gateway.token[1..]));
    let in_address = without(&format!("/status?token={}", gateway.token));
    assert_eq!(in_address.status, 401);
    assert!(in_address.body.contains("never in the address"));
    // Wrong tokens are rate-limited; requests with the right token are not.
    let guesses: Vec<u16> = (0..40).map(|_| without("/status").status).collect();
    assert!(guesses.contains(&429), "{guesses:?}");
    assert_eq!(gateway.get("/status").status, 200);
    let log = std::fs::read_to_string(gateway.test_agent.path().join("gateway.err")).unwrap();
    assert!(!log.contains(&gateway.token), "the log contains the token: {log}");
}

#[test]
fn every_response_has_the_security_headers_for_browsers() {
    let gateway = TestGateway::new();
    for (method, path) in [("GET", "/"), ("GET", "/status"), ("GET", "/nothing"), ("PUT", "/chat")] {
        let answer = gateway.send_with_headers(method, path, &[], "").to_lowercase();
        for header in [
            "content-security-policy: default-src 'none'",
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
        ] {
            assert!(answer.contains(header), "{header} in {answer}");
        }
    }
}

#[test]
fn malformed_and_oversized_requests_are_refused_and_the_next_one_is_served() {
    let gateway = TestGateway::new();
    for garbage in [
        &b"\0\x01\x02\xff\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost\r\n\r\n",
    ] {
        let answer = gateway.send_raw(garbage);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{garbage:?}: {answer}");
    }
    let long = "x".repeat(20_000);
    assert_eq!(status_of(&gateway.send_with_headers("GET", "/status", &[("X-Long", &long)], "")), "431");
    let many: Vec<(String, &str)> = (0..100).map(|number| (format!("X-{number}"), "y")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    assert_eq!(status_of(&gateway.send_with_headers("GET", "/status", &many, "")), "431");

    let json = [("Content-Type", "application/json")];
    let check = |status: &str, body: &str| {
        let answer = gateway.send_with_headers("POST", "/chat", &json, body);
        assert_eq!(status_of(&answer), status, "{answer}");
    };
    check("413", &format!("{{\"message\":\"{}\"}}", "a".repeat(2 << 20)));
    check("400", "");
    check("400", "{\"message\":");
    check("400", "{\"message\":\"\"}");
    check("400", "{\"message\":\"a\",\"conversation_id\":\"\\u0000\"}");
    check("400", "{\"message\":\"a\",\"other\":1}");
    check("400", &"[".repeat(100_000));
    for path in [
        "/memory/search",
        "/memory/search?q=a&limit=many",
        "/memory/search?q=a&q=b",
        "/receipts?limit=x",
        "/receipts?limit=-1",
        "/receipts?before=-1",
    ] {
        let refused = gateway.get(path);
        assert_eq!(refused.error_code(), (400, "bad-address".to_owned()), "{path}");
        let (message, wanted) = (&refused.body, if path.starts_with("/memory") { "`q`" } else { "`before`" });
        assert!(message.contains(wanted) && !message.contains("deserialize"), "{message}");
    }
    let no_text = gateway.post("/approvals/%ff", &json!({ "approve": false }));
    assert_eq!(no_text.error_code(), (400, "bad-address".to_owned()));
    assert_eq!(gateway.get("/approvals/../status").status, 404);
    assert_eq!(gateway.get("/status").status, 200);
    assert_eq!(gateway.get("/receipts").json()["chain"]["detail"], "no receipts yet");
}

#[test]
fn several_requests_on_one_connection_are_answered_in_order() {
    let gateway = TestGateway::new();
    let request = |path: &str, connection: &str| {
        let port = gateway.port;
        let bearer = gateway.bearer();
        format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: {bearer}\r\nConnection: {connection}\r\n\r\n"
        )
    };
    let all =
        [request("/health", "keep-alive"), request("/nothing", "keep-alive"), request("/tools", "close")]
            .concat();
    let answer = gateway.send_raw(all.as_bytes());
    let statuses: Vec<&str> =
        answer.split("HTTP/1.1 ").skip(1).map(|response| response.split(' ').next().unwrap()).collect();
    assert_eq!(statuses, ["200", "404", "200"], "{answer}");
}

#[test]
fn silent_and_incomplete_clients_are_disconnected_and_delay_nobody() {
    let gateway = TestGateway::new();
    let mut slow: Vec<_> = (0..100)
        .map(|number| {
            let mut stream = gateway.connect();
            let head = format!("POST /chat HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", gateway.port);
            let sent: &str = match number % 3 {
                0 => "",
                1 => &head,
                _ => &format!(
                    "{head}Authorization: {}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
                    gateway.bearer()
                ),
            };
            stream.write_all(sent.as_bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(gateway.get("/status").status, 200, "others are served meanwhile");
    for stream in &mut slow {
        let mut answer = String::new();
        // The gateway closes the connection, with or without a response.
        let _ = stream.read_to_string(&mut answer);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
    assert_eq!(gateway.get("/status").json()["turns"]["open"], 0);
}

#[test]
fn turns_beyond_the_limit_are_refused_and_a_conversation_has_one_turn() {
    let fixture = "[[round]]\n[[round.call]]\ntool = \"file_write\"\nargs = { path = \"x\", content = \"\" }\n[[round]]\ntext = \"so\"\n";
    let test_agent =
        TestAgent::new().with_mock_fixture(fixture).with_config_change("max_chats = 4", "max_chats = 1");
    let gateway = TestGateway::start_in(test_agent);
    let mut events = gateway.stream_chat(&json!({ "message": "write", "conversation_id": "mine" }));
    events.wait_for("approval");
    let again = json!({ "message": "write", "conversation_id": "mine" });
    assert_eq!(gateway.post("/chat", &again).error_code(), (409, "turn-open".to_owned()));
    let other = gateway.send_with_headers(
        "POST",
        "/chat",
        &[("Content-Type", "application/json")],
        "{\"message\":\"hi\"}",
    );
    assert_eq!(status_of(&other), "503");
    assert!(other.contains("retry-after: "), "{other}");
    drop(events);
    gateway.wait_for_end_of_turns();

    let test_agent = TestAgent::new()
        .with_mock_fixture("[[round]]\ntext = \"so\"\n")
        .with_config_change("chats_per_minute = 60", "chats_per_minute = 2");
    let gateway = TestGateway::start_in(test_agent);
    let chat = || gateway.post("/chat", &json!({ "message": "hi" })).status;
    assert_eq!([chat(), chat(), chat()], [200, 200, 429]);
    assert_eq!(gateway.get("/status").status, 200);
}
