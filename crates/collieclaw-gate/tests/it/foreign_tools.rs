//! The verdicts on tools of plugins and MCP servers, at every level (C6.3, C7.1, C7.2).

use collieclaw_gate::AutonomyLevel::{Full, ReadOnly, Supervised};
use collieclaw_gate::{
    AutonomyLevel, ForeignToolAccess, GateDecision, GatePolicy, GateReason, GateRequest, NetworkReach,
    RiskLevel, WriteAccess, judge, judge_unlisted,
};

use crate::test_machine::{GateTestMachine, policy};

const LOOKS: (WriteAccess, NetworkReach) = (WriteAccess::None, NetworkReach::None);
const CHANGES: (WriteAccess, NetworkReach) = (WriteAccess::Workspace, NetworkReach::None);
const SENDS: (WriteAccess, NetworkReach) = (WriteAccess::None, NetworkReach::Full);

/// Risk and access of a tool, with the decisions at `readonly`, `supervised` and `full`.
const TABLE: &[(RiskLevel, (WriteAccess, NetworkReach), [GateDecision; 3])] = &[
    (RiskLevel::Low, LOOKS, [GateDecision::Allow, GateDecision::Allow, GateDecision::Allow]),
    (RiskLevel::Low, CHANGES, [GateDecision::Deny, GateDecision::Allow, GateDecision::Allow]),
    (RiskLevel::Low, SENDS, [GateDecision::Deny, GateDecision::Allow, GateDecision::Allow]),
    (RiskLevel::Medium, LOOKS, [GateDecision::Deny, GateDecision::Ask, GateDecision::Allow]),
    (RiskLevel::Medium, CHANGES, [GateDecision::Deny, GateDecision::Ask, GateDecision::Allow]),
    (RiskLevel::Medium, SENDS, [GateDecision::Deny, GateDecision::Ask, GateDecision::Allow]),
    (RiskLevel::High, LOOKS, [GateDecision::Deny, GateDecision::Deny, GateDecision::Allow]),
    (RiskLevel::High, CHANGES, [GateDecision::Deny, GateDecision::Deny, GateDecision::Allow]),
    (RiskLevel::High, SENDS, [GateDecision::Deny, GateDecision::Deny, GateDecision::Allow]),
];

fn foreign(risk: RiskLevel, (writes, network): (WriteAccess, NetworkReach)) -> GateRequest<'static> {
    GateRequest::ForeignTool(ForeignToolAccess {
        name: "weather_now",
        origin: "the plugin `weather`",
        risk,
        writes,
        network,
    })
}

fn at(autonomy: AutonomyLevel) -> GatePolicy {
    GatePolicy { autonomy, ..policy("") }
}

#[test]
fn a_foreign_tool_is_judged_by_its_configured_risk_and_its_reach() {
    for &(risk, reach, expected) in TABLE {
        for (autonomy, decision) in [ReadOnly, Supervised, Full].into_iter().zip(expected) {
            let outcome = judge(foreign(risk, reach), &at(autonomy), &GateTestMachine::new());
            let verdict = outcome.verdict();
            assert_eq!((verdict.decision, verdict.risk), (decision, risk), "{risk} {reach:?} {autonomy}");
        }
    }
}

#[test]
fn the_reasons_name_the_owner_and_the_access_of_a_foreign_tool() {
    let reach = (WriteAccess::Workspace, NetworkReach::Full);
    let outcome = judge(foreign(RiskLevel::Medium, reach), &at(Supervised), &GateTestMachine::new());
    let reasons: Vec<_> =
        outcome.verdict().reasons.iter().map(|reason| (reason.code(), reason.detail())).collect();
    assert_eq!(
        reasons,
        [
            ("foreign-tool", "`weather_now` is a tool of the plugin `weather`".to_owned()),
            ("foreign-writes", "`weather_now` may change files in the workspace".to_owned()),
            ("foreign-network", "`weather_now` may reach the network".to_owned()),
        ]
    );
}

#[test]
fn an_unlisted_foreign_tool_is_at_most_asked_about() {
    for (risk, autonomy, decision) in [
        (RiskLevel::Low, Supervised, GateDecision::Ask),
        (RiskLevel::Medium, Supervised, GateDecision::Ask),
        (RiskLevel::High, Supervised, GateDecision::Deny),
        (RiskLevel::Low, ReadOnly, GateDecision::Deny),
        (RiskLevel::Low, Full, GateDecision::Deny),
    ] {
        let outcome =
            judge_unlisted("weather_now", foreign(risk, LOOKS), &at(autonomy), &GateTestMachine::new());
        assert_eq!(outcome.verdict().decision, decision, "{risk} {autonomy}");
        let first = outcome.verdict().reasons.first().map(GateReason::code);
        let expected = match (autonomy, risk) {
            (Supervised, RiskLevel::High) => "foreign-tool",
            (Supervised, _) => "unlisted-tool",
            _ => "tool-not-offered",
        };
        assert_eq!(first, Some(expected), "{risk} {autonomy}");
    }
}
