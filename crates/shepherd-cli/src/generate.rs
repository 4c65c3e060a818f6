//! `shepherd completions` and `man`, generated from the definition of the command line.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use ward_cli::{Shell, completion_script, manual_page, write_manual_pages};

use crate::arguments::ShepherdArgs;
use crate::error::ShepherdCliError;
use crate::output::ConsoleOutput;

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd completions bash\n  shepherd completions fish")]
pub(crate) struct CompletionsArgs {
    /// Name of the shell
    shell: Shell,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  shepherd man\n  shepherd man --dir /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write a page for every command into this folder instead of printing the main page
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn completions(
    completions: &CompletionsArgs,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    output.write_bytes(&completion_script(ShepherdArgs::command(), completions.shell));
    Ok(())
}

pub(crate) fn man(man: &ManArgs, output: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let command = ShepherdArgs::command();
    match &man.dir {
        None => {
            let page = manual_page(command).map_err(ShepherdCliError::io("render the manual page"))?;
            output.write_bytes(&page);
        }
        Some(folder) => {
            write_manual_pages(command, folder).map_err(ShepherdCliError::file(folder))?;
            output.print_line(&format!("Wrote the manual pages to {}.", folder.display()));
        }
    }
    Ok(())
}
