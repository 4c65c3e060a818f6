//! Addresses that commands connect to: the loopback interface of a command is its sandbox's own (C7.5, C19.4).

use collieclaw_gate::{
    AutonomyLevel, GateDecision, GateOutcome, GateReason, GateRequest, HttpMethod, judge, judge_shell,
};

use crate::judged_lines::JudgingMachine;
use crate::test_machine::{heaviest_reasons, policy};

#[test]
fn a_line_may_talk_to_its_own_server() {
    for line in [
        "curl localhost:8000",
        "curl -s http://localhost:3000/health | head",
        "curl -sS -X POST -d '{\"a\": 1}' http://127.0.0.1:5000/api",
        "curl -f 'http://[::1]:8000/'",
        "wget -qO- localhost:8000/page",
        "python3 -m http.server 8000 & sleep 1; curl -s localhost:8000; kill %1",
    ] {
        let judged = judge_shell(
            line,
            AutonomyLevel::Supervised,
            &policy("curl wget python3 sleep"),
            &JudgingMachine::new(),
        );
        assert_eq!(judged.verdict.decision, GateDecision::Ask, "{line}: {:?}", judged.verdict.reasons);
        let codes: Vec<_> = judged.verdict.reasons.iter().map(GateReason::code).collect();
        assert!(codes.contains(&"own-loopback"), "{line}: {codes:?}");
    }
}

#[test]
fn other_addresses_of_the_machine_and_its_network_are_refused() {
    for (line, code) in [
        ("curl http://192.168.1.1/", "private-address"),
        ("curl 10.0.0.1:8000", "private-address"),
        ("curl http://169.254.169.254/latest/meta-data/", "private-address"),
        ("curl http://127.0.0.2:8000/", "private-address"),
        ("curl http://a.localhost:8000/", "private-address"),
        ("curl printer.local", "private-address"),
        ("curl router", "private-address"),
        ("curl 'http://[fe80::1]/'", "private-address"),
        ("curl file:///etc/passwd", "not-an-address"),
        ("curl file:/etc/passwd", "not-an-address"),
        ("curl /etc/passwd", "not-an-address"),
        ("curl ftp://localhost/x", "not-an-address"),
        ("curl user@localhost:8000", "not-an-address"),
        ("curl -x http://localhost:3128 https://example.org/", "argument"),
        ("curl --unix-socket /var/run/docker.sock http://localhost/", "argument"),
        ("curl localhost:8000/x | sh", "destructive"),
        ("curl localhost:8000 -o /etc/x", "forbidden-path"),
        ("curl -d @/etc/passwd localhost:8000", "forbidden-path"),
    ] {
        let judged = judge_shell(line, AutonomyLevel::Supervised, &policy("curl"), &JudgingMachine::new());
        let (_, codes) = heaviest_reasons(&judged.verdict);
        assert_eq!(judged.verdict.decision, GateDecision::Deny, "{line}: {codes:?}");
        assert!(codes.contains(&code), "{line}: {codes:?}");
    }
}

/// Unlike commands, the tool `http` uses the network of the machine.
#[test]
fn the_tool_for_web_pages_still_refuses_loopback_addresses() {
    for address in ["http://localhost:8000/", "http://127.0.0.1:8000/", "http://[::1]:8000/"] {
        let outcome = judge(GateRequest::Http(HttpMethod::Get, address), &policy(""), &JudgingMachine::new());
        assert!(matches!(outcome, GateOutcome::Denied(_)), "{address}: {outcome:?}");
    }
}

/// A service of this machine that is listed with its port is reached through the proxy, as before.
#[test]
fn a_listed_port_of_this_machine_is_an_allowed_domain() {
    let judged = judge_shell(
        "curl http://127.0.0.1:8080/health",
        AutonomyLevel::Supervised,
        &policy("curl"),
        &JudgingMachine::new(),
    );
    let codes: Vec<_> = judged.verdict.reasons.iter().map(GateReason::code).collect();
    assert!(codes.contains(&"allowed-domain") && !codes.contains(&"own-loopback"), "{codes:?}");
}
