//! Tools of plugins and MCP servers, at every level (C6.3, C7.1, C7.2).

use collieclaw_gate::Autonomy::{Full, ReadOnly, Supervised};
use collieclaw_gate::{
    Autonomy, Call, Decision, Foreign, GatePolicy, Reaches, Reason, Risk, Writes, judge, judge_unlisted,
};

use crate::world::{World, policy};

const LOOKS: (Writes, Reaches) = (Writes::Nothing, Reaches::Nothing);
const CHANGES: (Writes, Reaches) = (Writes::Workspace, Reaches::Nothing);
const SENDS: (Writes, Reaches) = (Writes::Nothing, Reaches::Network);

/// Risk, reach, and what follows at `readonly`, `supervised` and `full`.
const TABLE: &[(Risk, (Writes, Reaches), [Decision; 3])] = &[
    (Risk::Low, LOOKS, [Decision::Allow, Decision::Allow, Decision::Allow]),
    (Risk::Low, CHANGES, [Decision::Deny, Decision::Allow, Decision::Allow]),
    (Risk::Low, SENDS, [Decision::Deny, Decision::Allow, Decision::Allow]),
    (Risk::Medium, LOOKS, [Decision::Deny, Decision::Ask, Decision::Allow]),
    (Risk::Medium, CHANGES, [Decision::Deny, Decision::Ask, Decision::Allow]),
    (Risk::Medium, SENDS, [Decision::Deny, Decision::Ask, Decision::Allow]),
    (Risk::High, LOOKS, [Decision::Deny, Decision::Deny, Decision::Allow]),
    (Risk::High, CHANGES, [Decision::Deny, Decision::Deny, Decision::Allow]),
    (Risk::High, SENDS, [Decision::Deny, Decision::Deny, Decision::Allow]),
];

fn foreign(risk: Risk, (writes, network): (Writes, Reaches)) -> Call<'static> {
    Call::Foreign(Foreign { name: "weather_now", origin: "the plugin `weather`", risk, writes, network })
}

fn at(autonomy: Autonomy) -> GatePolicy {
    GatePolicy { autonomy, ..policy("") }
}

#[test]
fn a_foreign_tool_is_judged_by_its_configured_risk_and_its_reach() {
    for &(risk, reach, expected) in TABLE {
        for (autonomy, decision) in [ReadOnly, Supervised, Full].into_iter().zip(expected) {
            let ruling = judge(foreign(risk, reach), &at(autonomy), &World::new());
            let verdict = ruling.verdict();
            assert_eq!((verdict.decision, verdict.risk), (decision, risk), "{risk} {reach:?} {autonomy}");
        }
    }
}

#[test]
fn the_reasons_say_whose_it_is_and_what_it_reaches() {
    let reach = (Writes::Workspace, Reaches::Network);
    let ruling = judge(foreign(Risk::Medium, reach), &at(Supervised), &World::new());
    let told: Vec<_> =
        ruling.verdict().reasons.iter().map(|reason| (reason.code(), reason.detail())).collect();
    assert_eq!(
        told,
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
        (Risk::Low, Supervised, Decision::Ask),
        (Risk::Medium, Supervised, Decision::Ask),
        (Risk::High, Supervised, Decision::Deny),
        (Risk::Low, ReadOnly, Decision::Deny),
        (Risk::Low, Full, Decision::Deny),
    ] {
        let ruling = judge_unlisted("weather_now", foreign(risk, LOOKS), &at(autonomy), &World::new());
        assert_eq!(ruling.verdict().decision, decision, "{risk} {autonomy}");
        let first = ruling.verdict().reasons.first().map(Reason::code);
        let expected = match (autonomy, risk) {
            (Supervised, Risk::High) => "foreign-tool",
            (Supervised, _) => "unlisted-tool",
            _ => "tool-not-offered",
        };
        assert_eq!(first, Some(expected), "{risk} {autonomy}");
    }
}
