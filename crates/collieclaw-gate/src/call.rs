//! The entry point of the gate: [`judge`] takes a tool call and returns a permit, a question for the
//! operator, or a denial. A call runs only with a [`Permit`], and only this module makes permits.

use serde::Serialize;

use crate::address::{self, HttpMethod};
use crate::evaluation::judge_shell;
use crate::facts::MachineFacts;
use crate::foreign::ForeignToolAccess;
use crate::path::{self, PathAccess};
use crate::plan::ShellPlan;
use crate::policy::GatePolicy;
use crate::reason::GateReason;
use crate::recheck::absolute_tool_path;
use crate::verdict::{AutonomyLevel, GateDecision, GateFindings, GateVerdict, RiskLevel};

/// A request to run a tool, reduced to the parts that the gate judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateRequest<'a> {
    /// A tool that changes nothing and takes neither a path nor an address, such as `time`.
    ReadOnly,
    /// Lists a folder.
    FileList(&'a str),
    FileRead(&'a str),
    /// Creates or replaces a file.
    FileWrite(&'a str),
    /// Gives a file, a folder or a symlink another path.
    FileMove {
        from: &'a str,
        to: &'a str,
    },
    /// Moves a file, a folder or a symlink into the trash.
    FileDelete(&'a str),
    /// Runs a shell line in the workspace.
    Shell(&'a str),
    Http(HttpMethod, &'a str),
    /// Queries the search service from the configuration.
    WebSearch,
    /// Runs a tool of a plugin or of an MCP server.
    ForeignTool(ForeignToolAccess<'a>),
    /// Names a tool that doesn't exist or isn't available to the caller.
    NotOffered(&'a str),
}

/// The result of judging a call.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an outcome has no effect until the caller obeys it"]
pub enum GateOutcome {
    Allowed(Permit),
    NeedsApproval(ApprovalQuestion),
    Denied(GateVerdict),
}

/// The right to run one call, once. Only the gate can create a permit.
#[derive(Debug, PartialEq, Eq)]
pub struct Permit {
    verdict: GateVerdict,
    plan: Option<ShellPlan>,
    approved_by: ApprovalSource,
}

/// The origin of a permit's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalSource {
    /// The rules allow the call without a question.
    Rules,
    /// The operator approved this call now.
    Operator,
    /// The operator approved exactly this call earlier, for as long as nothing about it changes.
    Remembered,
}

/// A call that may run only after the operator's approval.
#[derive(Debug, PartialEq, Eq)]
pub struct ApprovalQuestion {
    verdict: GateVerdict,
    plan: Option<ShellPlan>,
}

impl Permit {
    pub fn verdict(&self) -> &GateVerdict {
        &self.verdict
    }

    /// Returns the plan of a shell line. `None` for other tools, and for lines that only a real shell can
    /// run.
    #[must_use]
    pub fn plan(&self) -> Option<&ShellPlan> {
        self.plan.as_ref()
    }

    #[must_use]
    pub fn approved_by(&self) -> ApprovalSource {
        self.approved_by
    }
}

impl ApprovalQuestion {
    pub fn verdict(&self) -> &GateVerdict {
        &self.verdict
    }

    /// Turns the question into a permit, after the operator approved the call.
    #[must_use]
    pub fn approve(self) -> Permit {
        Permit { verdict: self.verdict, plan: self.plan, approved_by: ApprovalSource::Operator }
    }

    /// Returns the plan of a shell line. The same line can have another plan later, for example when a
    /// pattern matches other files; that is a different question.
    #[must_use]
    pub fn plan(&self) -> Option<&ShellPlan> {
        self.plan.as_ref()
    }

    /// Turns the question into a permit, because the operator approved exactly this call for good earlier.
    #[must_use]
    pub fn approve_remembered(self) -> Permit {
        Permit { approved_by: ApprovalSource::Remembered, ..self.approve() }
    }

    /// Drops the question, after the operator refused or didn't answer.
    pub fn refuse(self) -> GateVerdict {
        self.verdict
    }
}

impl GateOutcome {
    pub fn verdict(&self) -> &GateVerdict {
        match self {
            Self::Allowed(permit) => &permit.verdict,
            Self::NeedsApproval(question) => &question.verdict,
            Self::Denied(verdict) => verdict,
        }
    }
}

/// Judges a tool call by the policy, and by the state of the machine at this moment.
pub fn judge(call: GateRequest<'_>, policy: &GatePolicy, facts: &dyn MachineFacts) -> GateOutcome {
    let (verdict, plan) = match call {
        GateRequest::Shell(line) => {
            let judged = judge_shell(line, policy.autonomy, policy, facts);
            (judged.verdict, judged.plan)
        }
        call => (collect_findings(call, policy, facts).decide(policy.autonomy), None),
    };
    match verdict.decision {
        GateDecision::Allow => {
            GateOutcome::Allowed(Permit { verdict, plan, approved_by: ApprovalSource::Rules })
        }
        GateDecision::Ask => GateOutcome::NeedsApproval(ApprovalQuestion { verdict, plan }),
        GateDecision::Deny => GateOutcome::Denied(verdict),
    }
}

/// Judges a call of a tool that is not on the channel's list of tools. Such a call needs the operator's
/// approval at least; at levels that never ask, the tool is not offered at all.
pub fn judge_unlisted(
    tool: &str,
    call: GateRequest<'_>,
    policy: &GatePolicy,
    facts: &dyn MachineFacts,
) -> GateOutcome {
    if policy.autonomy != AutonomyLevel::Supervised {
        return judge(GateRequest::NotOffered(tool), policy, facts);
    }
    let (mut verdict, plan) = match judge(call, policy, facts) {
        GateOutcome::Denied(verdict) => return GateOutcome::Denied(verdict),
        GateOutcome::Allowed(Permit { verdict, plan, .. })
        | GateOutcome::NeedsApproval(ApprovalQuestion { verdict, plan }) => (verdict, plan),
    };
    verdict.decision = GateDecision::Ask;
    verdict.risk = verdict.risk.max(RiskLevel::Medium);
    verdict.reasons.insert(0, GateReason::UnlistedTool { name: tool.to_owned() });
    GateOutcome::NeedsApproval(ApprovalQuestion { verdict, plan })
}

fn collect_findings(call: GateRequest<'_>, policy: &GatePolicy, facts: &dyn MachineFacts) -> GateFindings {
    let mut findings = GateFindings::default();
    let mut path =
        |text: &str, access| judge_tool_path(text, access, path::judge, (policy, facts), &mut findings);
    match call {
        GateRequest::FileList(text) | GateRequest::FileRead(text) => path(text, PathAccess::Read),
        GateRequest::FileWrite(text) => path(text, PathAccess::Write),
        GateRequest::FileMove { from, to } => {
            let judge = path::judge_entry;
            judge_tool_path(from, PathAccess::Move, judge, (policy, facts), &mut findings);
            judge_tool_path(to, PathAccess::Write, path::judge, (policy, facts), &mut findings);
        }
        GateRequest::FileDelete(text) => {
            let judge = path::judge_entry;
            judge_tool_path(text, PathAccess::Remove, judge, (policy, facts), &mut findings);
        }
        GateRequest::ReadOnly => findings.add(GateReason::LooksOnly),
        GateRequest::Http(method, text) => address::judge(text, method, policy, &mut findings),
        GateRequest::WebSearch => findings.add(GateReason::ConfiguredService),
        GateRequest::ForeignTool(tool) => tool.add_findings(&mut findings),
        GateRequest::NotOffered(name) => findings.add(GateReason::ToolNotOffered { name: name.to_owned() }),
        // `judge` passes shell lines to `judge_shell`.
        GateRequest::Shell(_) => {}
    }
    findings
}

/// Judges the path argument of a tool with [`path::judge`] or [`path::judge_entry`]. A leading `~` is expanded,
/// because people write it even without a shell.
fn judge_tool_path(
    text: &str,
    access: PathAccess,
    judge_path: path::PathJudge,
    rules: (&GatePolicy, &dyn MachineFacts),
    findings: &mut GateFindings,
) {
    let (policy, _) = rules;
    match absolute_tool_path(text, policy) {
        Ok(_) if !text.starts_with('~') => judge_path(text, &policy.workspace, access, rules, findings),
        Ok(expanded) => {
            let expanded = expanded.to_str().unwrap_or(text);
            judge_path(expanded, &policy.workspace, access, rules, findings);
        }
        Err(reason) => findings.add(reason),
    }
}
