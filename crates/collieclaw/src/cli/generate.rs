//! `collieclaw completions` and `collieclaw man`, generated from the definition of the command line.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use ward_cli::{Shell, completion_script, manual_page, write_manual_pages};

use super::arguments::CollieclawArgs;
use super::failure::CommandFailure;
use super::output::OutputPrinter;

#[derive(Args)]
#[command(after_help = "Examples:\n  collieclaw completions bash\n  collieclaw completions fish")]
pub(crate) struct CompletionsArgs {
    /// Shell to print completions for
    shell: Shell,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  collieclaw man\n  collieclaw man --dir /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write a page for every command into this folder, instead of printing the main page
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn completions(
    completions: &CompletionsArgs,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    screen.print_bytes(&completion_script(CollieclawArgs::command(), completions.shell));
    Ok(())
}

pub(crate) fn man(man: &ManArgs, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    let command = CollieclawArgs::command();
    match &man.dir {
        None => {
            let page = manual_page(command).map_err(CommandFailure::io("generate the manual page"))?;
            screen.print_bytes(&page);
        }
        Some(folder) => {
            write_manual_pages(command, folder)
                .map_err(CommandFailure::io(format!("write to {}", folder.display())))?;
            screen.print_line(&format!("Wrote a page for every command to {}.", folder.display()));
        }
    }
    Ok(())
}
