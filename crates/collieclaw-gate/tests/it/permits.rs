//! Permits, questions and verdicts: what they carry, and how they are shown.

use collieclaw_gate::{
    ApprovalSource, AutonomyLevel, GateDecision, GateFindings, GateOutcome, GatePolicy, GateReason,
    GateRequest, ReasonWeight, RiskLevel, judge, judge_unlisted,
};

use crate::test_machine::{GateTestMachine, policy};

fn outcome(call: GateRequest<'_>, autonomy: AutonomyLevel) -> GateOutcome {
    judge(call, &GatePolicy { autonomy, ..policy("") }, &GateTestMachine::new())
}

#[test]
fn a_permit_carries_the_plan_and_says_who_approved_it() {
    let GateOutcome::Allowed(permit) = outcome(GateRequest::Shell("touch x"), AutonomyLevel::Full) else {
        panic!("`touch` runs at `full`");
    };
    assert_eq!(permit.approved_by(), ApprovalSource::Rules);
    assert_eq!(permit.plan().map(|plan| plan.lists().len()), Some(1));
    assert_eq!(permit.verdict().risk, RiskLevel::Medium);

    let question = || match outcome(GateRequest::Shell("touch x"), AutonomyLevel::Supervised) {
        GateOutcome::NeedsApproval(question) => question,
        other => panic!("{other:?}"),
    };
    assert_eq!(question().plan().map(|plan| plan.lists().len()), Some(1));
    assert_eq!(question().verdict().decision, GateDecision::Ask);
    assert_eq!(question().refuse().decision, GateDecision::Ask);
    let approved = question().approve();
    assert_eq!((approved.approved_by(), approved.plan().is_some()), (ApprovalSource::Operator, true));
    let remembered = question().approve_remembered();
    assert_eq!((remembered.approved_by(), remembered.plan().is_some()), (ApprovalSource::Remembered, true));
}

#[test]
fn tools_without_a_shell_line_have_no_plan() {
    for call in [GateRequest::FileRead("a.txt"), GateRequest::ReadOnly, GateRequest::WebSearch] {
        let GateOutcome::Allowed(permit) = outcome(call, AutonomyLevel::Supervised) else {
            panic!("{call:?} is allowed");
        };
        assert_eq!(permit.plan(), None, "{call:?}");
        assert_eq!(permit.verdict().risk, RiskLevel::Low, "{call:?}");
    }
    let GateOutcome::Denied(verdict) = outcome(GateRequest::NotOffered("x"), AutonomyLevel::Full) else {
        panic!("a tool that isn't offered is denied");
    };
    assert_eq!(verdict.reasons, [GateReason::ToolNotOffered { name: "x".to_owned() }]);
}

#[test]
fn an_unlisted_tool_has_at_least_medium_risk() {
    for (call, risk) in [
        (GateRequest::FileRead("a.txt"), RiskLevel::Medium),
        (GateRequest::FileWrite("a.txt"), RiskLevel::Medium),
        (GateRequest::Shell("ls"), RiskLevel::Medium),
    ] {
        let outcome = judge_unlisted("tool", call, &policy(""), &GateTestMachine::new());
        assert_eq!(
            (outcome.verdict().decision, outcome.verdict().risk),
            (GateDecision::Ask, risk),
            "{call:?}"
        );
    }
}

#[test]
fn a_call_without_a_finding_is_refused() {
    let verdict = GateFindings::default().decide(AutonomyLevel::Full);
    assert_eq!((verdict.decision, verdict.risk), (GateDecision::Deny, RiskLevel::High));
    assert_eq!(verdict.reasons, [GateReason::NotJudged]);
    assert_eq!(GateFindings::default().heaviest(), ReasonWeight::Low);
}

#[test]
fn decisions_risks_and_levels_are_shown_in_lower_case() {
    let shown = [GateDecision::Allow, GateDecision::Ask, GateDecision::Deny].map(|shown| shown.to_string());
    assert_eq!(shown, ["allow", "ask", "deny"]);
    let shown = [RiskLevel::Low, RiskLevel::Medium, RiskLevel::High].map(|shown| shown.to_string());
    assert_eq!(shown, ["low", "medium", "high"]);
    let levels = [AutonomyLevel::ReadOnly, AutonomyLevel::Supervised, AutonomyLevel::Full];
    assert_eq!(levels.map(|shown| shown.to_string()), ["readonly", "supervised", "full"]);
}

#[test]
fn missing_programs_are_named_if_nothing_else_is_wrong() {
    let missing = |line: &str, autonomy| {
        let outcome = outcome(GateRequest::Shell(line), autonomy);
        outcome.verdict().missing_programs().map(|names| names.join(" "))
    };
    let supervised = |line: &str| missing(line, AutonomyLevel::Supervised);
    assert_eq!(supervised("gcc x.c; make; gcc y.c").as_deref(), Some("gcc make"));
    assert_eq!(supervised("gcc x.c | cat").as_deref(), Some("gcc"));
    // A file of the workspace is refused by its path and by its name, and named once.
    assert_eq!(supervised("./run.sh; gcc x.c").as_deref(), Some("./run.sh gcc"));
    assert_eq!(supervised("ls"), None);
    assert_eq!(supervised("gcc $x"), None);
    assert_eq!(supervised("gcc /etc/passwd"), None);
    assert_eq!(supervised("rm x"), None);
    // At `full` the line runs, so nothing is missing.
    assert_eq!(missing("gcc x.c", AutonomyLevel::Full), None);
}
