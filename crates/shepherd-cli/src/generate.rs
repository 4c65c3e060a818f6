//! `shepherd completions` and `man`, generated from the definition of the command line.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

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
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut ShepherdArgs::command(), "shepherd", &mut script);
    output.write_bytes(&script);
    Ok(())
}

pub(crate) fn man(man: &ManArgs, output: &mut ConsoleOutput) -> Result<(), ShepherdCliError> {
    let mut command = ShepherdArgs::command();
    command.build();
    match &man.dir {
        None => {
            let page = render_page(&command).map_err(ShepherdCliError::io("render the manual page"))?;
            output.write_bytes(&page);
        }
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(ShepherdCliError::file(folder))?;
            clap_mangen::generate_to(command, folder).map_err(ShepherdCliError::file(folder))?;
            output.print_line(&format!("Wrote the manual pages to {}.", folder.display()));
        }
    }
    Ok(())
}

fn render_page(command: &clap::Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}
