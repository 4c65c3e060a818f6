//! `trash`: lists, restores and removes what the tool `file_delete` took away.

use clap::Subcommand;
use collieclaw_agent::security::WorkspaceHandle;
use collieclaw_agent::trash::{TrashStore, TrashedItem};
use serde_json::json;
use ward_terminal::{align_columns, escape_line, format_count};

use super::confirm::confirm;
use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::{OutputPrinter, format_timestamp};
use super::wiring;

#[derive(Subcommand)]
pub(crate) enum TrashCommand {
    /// List files and folders in the trash, the newest first.
    #[command(after_help = "Examples:\n  collieclaw trash list\n  collieclaw trash list --output json")]
    List,
    /// Move a file or folder back to its place. An existing file is not replaced.
    #[command(after_help = "Example:\n  collieclaw trash restore trash-0123456789abcdef")]
    Restore {
        /// Id of the item, from `trash list`
        id: String,
    },
    /// Remove everything in the trash for good.
    #[command(after_help = "Examples:\n  collieclaw trash empty\n  collieclaw trash empty --yes")]
    Empty {
        /// Remove without asking
        #[arg(long)]
        yes: bool,
    },
}

pub(crate) fn run(
    command: &TrashCommand,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let trash = TrashStore::new(&environment.home);
    match command {
        TrashCommand::List => {
            let items = trash.list()?;
            screen.print_answer(&items, || format_items(&items));
        }
        TrashCommand::Restore { id } => {
            let item = trash.find(id)?;
            restore(&trash, &item, environment)?;
            screen.print_answer(&json!({ "restored": item.path }), || {
                format!("{} is restored", escape_line(&item.path.display().to_string()))
            });
        }
        TrashCommand::Empty { yes } => {
            let count = trash.list()?.len();
            let shown = format!("{} in the trash", format_count(count, "item", "items"));
            confirm(&shown, "Remove them for good?", (*yes).into(), screen)?;
            let removed = trash.empty()?;
            screen.print_answer(&json!({ "removed": removed }), || {
                format!("{} removed", format_count(removed, "item", "items"))
            });
        }
    }
    Ok(())
}

/// Restores an item through the handle of its workspace, with the same rules as a tool: meanwhile, a folder on the way
/// may have become a symlink.
fn restore(
    trash: &TrashStore,
    item: &TrashedItem,
    environment: &CliEnvironment,
) -> Result<(), CommandFailure> {
    let config = wiring::load_config(environment)?;
    let workspace = WorkspaceHandle::open(&item.workspace)
        .map_err(|source| CommandFailure::Workspace { path: item.workspace.clone(), source })?;
    let policy = config.gate_policy(workspace.path().to_owned(), &environment.config_context);
    Ok(trash.restore(item, workspace.access_under(&policy))?)
}

fn format_items(items: &[TrashedItem]) -> String {
    if items.is_empty() {
        return "the trash is empty".to_owned();
    }
    let row = |item: &TrashedItem| {
        vec![
            item.id.clone(),
            format_timestamp(item.deleted_at),
            escape_line(&item.path.display().to_string()),
        ]
    };
    align_columns(&items.iter().map(row).collect::<Vec<_>>())
}
