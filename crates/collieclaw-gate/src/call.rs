//! A tool call, and the ruling on it. What may run leaves the gate as a [`Permit`], and in no other way.

use serde::Serialize;

use crate::address::{self, Method};
use crate::facts::Facts;
use crate::foreign::Foreign;
use crate::hearing::judge_shell;
use crate::opened::absolute;
use crate::path::{self, Use};
use crate::plan::Plan;
use crate::policy::GatePolicy;
use crate::reason::Reason;
use crate::verdict::{Autonomy, Decision, Findings, Risk, Verdict};

/// What a tool is asked to do, as far as it matters to the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call<'a> {
    /// It looks at nothing that has a path or an address.
    Look,
    /// A folder is listed.
    FileList(&'a str),
    /// A file is read.
    FileRead(&'a str),
    /// A file is made or replaced.
    FileWrite(&'a str),
    /// A shell line runs in the workspace.
    Shell(&'a str),
    /// An address is asked for, or something is sent to it.
    Http(Method, &'a str),
    /// The search service that the configuration names is asked for something.
    Search,
    /// A tool of someone else: a plugin's, or one of an MCP server.
    Foreign(Foreign<'a>),
    /// A tool that is not offered here.
    NotOffered(&'a str),
}

/// What follows from the verdict on a call.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a ruling that nobody follows protects nobody"]
pub enum Ruling {
    /// It may run.
    Allowed(Permit),
    /// It may run if the operator says yes to exactly this.
    Asks(Question),
    /// It may not run.
    Denied(Verdict),
}

/// The right to run one call, once. Only the gate makes one.
#[derive(Debug, PartialEq, Eq)]
pub struct Permit {
    verdict: Verdict,
    plan: Option<Plan>,
    approved: Approved,
}

/// Who said yes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Approved {
    /// The rules alone.
    Rules,
    /// The operator.
    Operator,
    /// The operator, earlier, to exactly this and for as long as nothing about it changes.
    Remembered,
}

/// A call that waits for the operator.
#[derive(Debug, PartialEq, Eq)]
pub struct Question {
    verdict: Verdict,
    plan: Option<Plan>,
}

impl Permit {
    /// Why it may run.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// What a shell line runs; `None` for other tools, and for a line that only a real shell can run.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// Who said yes.
    #[must_use]
    pub fn approved(&self) -> Approved {
        self.approved
    }
}

impl Question {
    /// What the operator is asked about.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The operator said yes.
    #[must_use]
    pub fn approve(self) -> Permit {
        Permit { verdict: self.verdict, plan: self.plan, approved: Approved::Operator }
    }

    /// What a shell line would run; two questions about one line differ where this does.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// The operator has said yes to exactly this before, and that it holds.
    #[must_use]
    pub fn approve_again(self) -> Permit {
        Permit { approved: Approved::Remembered, ..self.approve() }
    }

    /// The operator said no, or nothing.
    pub fn refuse(self) -> Verdict {
        self.verdict
    }
}

impl Ruling {
    /// The verdict it follows from.
    pub fn verdict(&self) -> &Verdict {
        match self {
            Self::Allowed(permit) => &permit.verdict,
            Self::Asks(question) => &question.verdict,
            Self::Denied(verdict) => verdict,
        }
    }
}

/// Judges a call.
pub fn judge(call: Call<'_>, policy: &GatePolicy, facts: &dyn Facts) -> Ruling {
    let (verdict, plan) = match call {
        Call::Shell(line) => {
            let judged = judge_shell(line, policy.autonomy, policy, facts);
            (judged.verdict, judged.plan)
        }
        call => (found(call, policy, facts).decide(policy.autonomy), None),
    };
    match verdict.decision {
        Decision::Allow => Ruling::Allowed(Permit { verdict, plan, approved: Approved::Rules }),
        Decision::Ask => Ruling::Asks(Question { verdict, plan }),
        Decision::Deny => Ruling::Denied(verdict),
    }
}

/// Judges a call of a tool that is not on the list of whoever asks for it: at most somebody may be asked, and where
/// nobody ever is, it is not offered.
pub fn judge_unlisted(tool: &str, call: Call<'_>, policy: &GatePolicy, facts: &dyn Facts) -> Ruling {
    if policy.autonomy != Autonomy::Supervised {
        return judge(Call::NotOffered(tool), policy, facts);
    }
    let (mut verdict, plan) = match judge(call, policy, facts) {
        Ruling::Denied(verdict) => return Ruling::Denied(verdict),
        Ruling::Allowed(Permit { verdict, plan, .. }) | Ruling::Asks(Question { verdict, plan }) => {
            (verdict, plan)
        }
    };
    verdict.decision = Decision::Ask;
    verdict.risk = verdict.risk.max(Risk::Medium);
    verdict.reasons.insert(0, Reason::UnlistedTool { name: tool.to_owned() });
    Ruling::Asks(Question { verdict, plan })
}

fn found(call: Call<'_>, policy: &GatePolicy, facts: &dyn Facts) -> Findings {
    let mut findings = Findings::default();
    let mut path = |text: &str, used| tool_path(text, used, policy, facts, &mut findings);
    match call {
        Call::FileList(text) | Call::FileRead(text) => path(text, Use::Look),
        Call::FileWrite(text) => path(text, Use::Write),
        Call::Look => findings.add(Reason::LooksOnly),
        Call::Http(method, text) => address::judge(text, method, policy, &mut findings),
        Call::Search => findings.add(Reason::ConfiguredService),
        Call::Foreign(tool) => tool.found(&mut findings),
        Call::NotOffered(name) => findings.add(Reason::ToolNotOffered { name: name.to_owned() }),
        // A shell line has a hearing of its own.
        Call::Shell(_) => {}
    }
    findings
}

/// A path that a tool was given. There is no shell, but people write `~` all the same.
fn tool_path(text: &str, used: Use, policy: &GatePolicy, facts: &dyn Facts, findings: &mut Findings) {
    match absolute(text, policy) {
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
