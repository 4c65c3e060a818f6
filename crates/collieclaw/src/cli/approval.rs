//! `approval`: lists and revokes permanent approvals.

use clap::Subcommand;
use collieclaw_agent::security::{Approval, ApprovalError, ApprovalStore, ApprovalSubject, ListedApproval};
use serde_json::{Value, json};
use ward_terminal::{align_columns, escape_line, format_count};

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::{OutputPrinter, format_timestamp};
use super::wiring::{self, TrustMode, WorkspaceArgs};

#[derive(Subcommand)]
pub(crate) enum ApprovalCommand {
    /// List permanent approvals, and whether each is still valid.
    #[command(after_help = "Examples:\n  collieclaw approval list\n  collieclaw approval list --output json")]
    List,
    /// Revoke an approval, so that you are asked again.
    #[command(
        after_help = "Example:\n  collieclaw approval revoke approval-0123456789abcdef0123456789abcdef"
    )]
    Revoke {
        /// Id of the approval, as `approval list` shows it
        id: String,
    },
    /// Revoke all approvals.
    #[command(after_help = "Example:\n  collieclaw approval clear")]
    Clear,
}

pub(crate) fn run(
    approval: &ApprovalCommand,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let approvals = ApprovalStore::new(environment.home.approvals());
    match approval {
        ApprovalCommand::List => list(&approvals, environment, screen),
        ApprovalCommand::Revoke { id } => {
            approvals.revoke(id)?;
            screen.print_answer(&json!({ "revoked": [id] }), || format!("{} is revoked.", escape_line(id)));
            Ok(())
        }
        ApprovalCommand::Clear => {
            let ids: Vec<String> = approvals.list()?.into_iter().map(|listed| listed.id).collect();
            for id in &ids {
                match approvals.revoke(id) {
                    // Another process revoked it in the meantime.
                    Err(ApprovalError::Unknown { .. }) => {}
                    revoked => revoked?,
                }
            }
            let number = ids.len() as u64;
            screen.print_answer(&json!({ "revoked": ids }), || {
                format!("{} revoked.", format_count(number, "approval", "approvals"))
            });
            Ok(())
        }
    }
}

fn list(
    approvals: &ApprovalStore,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let choice = wiring::choose_workspace(&WorkspaceArgs::default(), TrustMode::Never, environment, screen)?;
    let setup = wiring::load_setup_in(&choice, environment)?;
    let workspace = wiring::open_workspace(&setup.config)?;
    let rules = wiring::build_rules(&setup, &workspace, environment)?;
    let state = |listed: &ListedApproval| match &listed.approval {
        Err(ApprovalError::OtherVersion { .. }) => "no effect: made by another version",
        Err(_) => "not trusted",
        Ok(kept) if kept.subject.workspace != rules.policy.workspace => "another workspace",
        Ok(kept) if kept.subject.policy_hash != rules.policy_hash => "no effect: the rules have changed",
        Ok(_) => "holds",
    };
    let listed = approvals.list()?;
    let value = |entry: &ListedApproval| match &entry.approval {
        Ok(Approval { granted, subject: ApprovalSubject { tool, arguments, workspace, .. }, .. }) => json!({
            "id": entry.id, "state": state(entry), "granted": granted, "tool": tool, "arguments": arguments,
            "workspace": workspace
        }),
        Err(error) => json!({ "id": entry.id, "state": state(entry), "fault": error.to_string() }),
    };
    screen.print_answer(&listed.iter().map(value).collect::<Vec<Value>>(), || {
        let row = |entry: &ListedApproval| {
            let (granted, what) = match &entry.approval {
                Ok(kept) => {
                    let subject = &kept.subject;
                    (format_timestamp(kept.granted), format!("{} {}", subject.tool, subject.arguments))
                }
                Err(error) => ("-".to_owned(), error.to_string()),
            };
            vec![escape_line(&entry.id), granted, state(entry).to_owned(), escape_line(&what)]
        };
        if listed.is_empty() {
            return "no permanent approvals; answer `a` to an approval question to add one".to_owned();
        }
        align_columns(&listed.iter().map(row).collect::<Vec<_>>())
    });
    Ok(())
}
