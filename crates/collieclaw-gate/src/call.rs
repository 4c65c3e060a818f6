//! A tool call, and the ruling on it. What may run leaves the gate as a [`Permit`], and in no other way.

use serde::Serialize;

use crate::address::{self, HttpMethod};
use crate::evaluation::judge_shell;
use crate::facts::MachineFacts;
use crate::foreign::ForeignToolInfo;
use crate::path::{self, PathAccess};
use crate::plan::ShellPlan;
use crate::policy::GatePolicy;
use crate::reason::GateReason;
use crate::recheck::absolute_tool_path;
use crate::verdict::{AutonomyLevel, GateDecision, GateFindings, GateVerdict, RiskLevel};

/// What a tool is asked to do, as far as it matters to the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateRequest<'a> {
    /// It looks at nothing that has a path or an address.
    ReadOnly,
    /// A folder is listed.
    FileList(&'a str),
    /// A file is read.
    FileRead(&'a str),
    /// A file is made or replaced.
    FileWrite(&'a str),
    /// A shell line runs in the workspace.
    Shell(&'a str),
    /// An address is asked for, or something is sent to it.
    Http(HttpMethod, &'a str),
    /// The search service that the configuration names is asked for something.
    WebSearch,
    /// A tool of someone else: a plugin's, or one of an MCP server.
    ForeignTool(ForeignToolInfo<'a>),
    /// A tool that is not offered here.
    NotOffered(&'a str),
}

/// What follows from the verdict on a call.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a ruling that nobody follows protects nobody"]
pub enum GateOutcome {
    /// It may run.
    Allowed(Permit),
    /// It may run if the operator says yes to exactly this.
    NeedsApproval(ApprovalQuestion),
    /// It may not run.
    Denied(GateVerdict),
}

/// The right to run one call, once. Only the gate makes one.
#[derive(Debug, PartialEq, Eq)]
pub struct Permit {
    verdict: GateVerdict,
    plan: Option<ShellPlan>,
    approved_by: ApprovalSource,
}

/// Who said yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalSource {
    /// The rules alone.
    Rules,
    /// The operator.
    Operator,
    /// The operator, earlier, to exactly this and for as long as nothing about it changes.
    Remembered,
}

/// A call that waits for the operator.
#[derive(Debug, PartialEq, Eq)]
pub struct ApprovalQuestion {
    verdict: GateVerdict,
    plan: Option<ShellPlan>,
}

impl Permit {
    /// Why it may run.
    pub fn verdict(&self) -> &GateVerdict {
        &self.verdict
    }

    /// What a shell line runs; `None` for other tools, and for a line that only a real shell can run.
    #[must_use]
    pub fn plan(&self) -> Option<&ShellPlan> {
        self.plan.as_ref()
    }

    /// Who said yes.
    #[must_use]
    pub fn approved_by(&self) -> ApprovalSource {
        self.approved_by
    }
}

impl ApprovalQuestion {
    /// What the operator is asked about.
    pub fn verdict(&self) -> &GateVerdict {
        &self.verdict
    }

    /// The operator said yes.
    #[must_use]
    pub fn approve(self) -> Permit {
        Permit { verdict: self.verdict, plan: self.plan, approved_by: ApprovalSource::Operator }
    }

    /// What a shell line would run; two questions about one line differ where this does.
    #[must_use]
    pub fn plan(&self) -> Option<&ShellPlan> {
        self.plan.as_ref()
    }

    /// The operator has said yes to exactly this before, and that it holds.
    #[must_use]
    pub fn approve_remembered(self) -> Permit {
        Permit { approved_by: ApprovalSource::Remembered, ..self.approve() }
    }

    /// The operator said no, or nothing.
    pub fn refuse(self) -> GateVerdict {
        self.verdict
    }
}

impl GateOutcome {
    /// The verdict it follows from.
    pub fn verdict(&self) -> &GateVerdict {
        match self {
            Self::Allowed(permit) => &permit.verdict,
            Self::NeedsApproval(question) => &question.verdict,
            Self::Denied(verdict) => verdict,
        }
    }
}

/// Judges a call.
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

/// Judges a call of a tool that is not on the list of whoever asks for it: at most somebody may be asked, and where
/// nobody ever is, it is not offered.
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
    let mut path = |text: &str, used| judge_tool_path(text, used, policy, facts, &mut findings);
    match call {
        GateRequest::FileList(text) | GateRequest::FileRead(text) => path(text, PathAccess::Read),
        GateRequest::FileWrite(text) => path(text, PathAccess::Write),
        GateRequest::ReadOnly => findings.add(GateReason::LooksOnly),
        GateRequest::Http(method, text) => address::judge(text, method, policy, &mut findings),
        GateRequest::WebSearch => findings.add(GateReason::ConfiguredService),
        GateRequest::ForeignTool(tool) => tool.add_findings(&mut findings),
        GateRequest::NotOffered(name) => findings.add(GateReason::ToolNotOffered { name: name.to_owned() }),
        // A shell line has a hearing of its own.
        GateRequest::Shell(_) => {}
    }
    findings
}

/// A path that a tool was given. There is no shell, but people write `~` all the same.
fn judge_tool_path(
    text: &str,
    used: PathAccess,
    policy: &GatePolicy,
    facts: &dyn MachineFacts,
    findings: &mut GateFindings,
) {
    match absolute_tool_path(text, policy) {
        Ok(_) if !text.starts_with('~') => {
            path::judge(text, &policy.workspace, used, (policy, facts), findings);
        }
        Ok(expanded) => {
            let expanded = expanded.to_str().unwrap_or(text);
            path::judge(expanded, &policy.workspace, used, (policy, facts), findings);
        }
        Err(reason) => findings.add(reason),
    }
}
