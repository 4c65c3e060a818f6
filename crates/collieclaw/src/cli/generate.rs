//! `completions` and `man`, generated from the command-line grammar.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

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
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut CollieclawArgs::command(), "collieclaw", &mut script);
    screen.print_bytes(&script);
    Ok(())
}

pub(crate) fn man(man: &ManArgs, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    let mut command = CollieclawArgs::command();
    command.build();
    match &man.dir {
        None => {
            let page = render_page(&command).map_err(CommandFailure::io("make the page"))?;
            screen.print_bytes(&page);
        }
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .map_err(CommandFailure::io(format!("write to {}", folder.display())))?;
            clap_mangen::generate_to(command, folder)
                .map_err(CommandFailure::io(format!("write to {}", folder.display())))?;
            screen.print_line(&format!("Wrote a page for every command to {}.", folder.display()));
        }
    }
    Ok(())
}

fn render_page(command: &clap::Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}
