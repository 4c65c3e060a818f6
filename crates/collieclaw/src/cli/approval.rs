//! `approval`: what was said yes to for good.

use clap::Subcommand;
use collieclaw::channels::visible;
use collieclaw::security::{Approval as Kept, ApprovalError, Approvals, Listed, Subject};
use serde_json::{Value, json};

use super::environment::Environment;
use super::failure::Failure;
use super::open;
use super::screen::{Screen, count, moment, table};

#[derive(Subcommand)]
pub(crate) enum Approval {
    /// What is no longer asked about, and whether it still holds.
    #[command(after_help = "Examples:\n  collieclaw approval list\n  collieclaw approval list --output json")]
    List,
    /// Asks about it again from now on.
    #[command(
        after_help = "Example:\n  collieclaw approval revoke approval-0123456789abcdef0123456789abcdef"
    )]
    Revoke {
        /// Which, as `list` names it.
        id: String,
    },
    /// Asks about everything again.
    #[command(after_help = "Example:\n  collieclaw approval clear")]
    Clear,
}

pub(crate) fn run(approval: &Approval, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let approvals = Approvals::new(environment.home.approvals());
    match approval {
        Approval::List => list(&approvals, environment, screen),
        Approval::Revoke { id } => {
            approvals.revoke(id)?;
            screen.answer(&json!({ "revoked": [id] }), || format!("{} is asked about again.", visible(id)));
            Ok(())
        }
        Approval::Clear => {
            let ids: Vec<String> = approvals.list()?.into_iter().map(|listed| listed.id).collect();
            for id in &ids {
                match approvals.revoke(id) {
                    // Somebody else has.
                    Err(ApprovalError::Unknown { .. }) => {}
                    revoked => revoked?,
                }
            }
            let number = ids.len() as u64;
            screen.answer(&json!({ "revoked": ids }), || format!("{} revoked.", count(number, "approval")));
            Ok(())
        }
    }
}

fn list(approvals: &Approvals, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let setup = open::setup(environment)?;
    let workspace = open::workspace(&setup.config)?;
    let rules = open::rules(&setup, &workspace, environment)?;
    let state = |listed: &Listed| match &listed.approval {
        Err(ApprovalError::OtherVersion { .. }) => "void: of another version",
        Err(_) => "not trusted",
        Ok(kept) if kept.subject.workspace != rules.policy.workspace => "another workspace",
        Ok(kept) if kept.subject.policy_hash != rules.policy_hash => "void: the rules have changed",
        Ok(_) => "holds",
    };
    let listed = approvals.list()?;
    let value = |one: &Listed| match &one.approval {
        Ok(Kept { granted, subject: Subject { tool, arguments, workspace, .. }, .. }) => json!({
            "id": one.id, "state": state(one), "granted": granted, "tool": tool, "arguments": arguments,
            "workspace": workspace
        }),
        Err(error) => json!({ "id": one.id, "state": state(one), "fault": error.to_string() }),
    };
    screen.answer(&listed.iter().map(value).collect::<Vec<Value>>(), || {
        let row = |one: &Listed| {
            let (granted, what) = match &one.approval {
                Ok(kept) => {
                    let subject = &kept.subject;
                    (moment(kept.granted), format!("{} {}", subject.tool, subject.arguments))
                }
                Err(error) => ("-".to_owned(), error.to_string()),
            };
            vec![visible(&one.id), granted, state(one).to_owned(), visible(&what)]
        };
        if listed.is_empty() {
            return "nothing is approved for good: everything that needs a yes is asked about; `a` at such a question keeps one".to_owned();
        }
        table(&listed.iter().map(row).collect::<Vec<_>>())
    });
    Ok(())
}
