//! Completions and manual pages, from the same source as the command line itself.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::arguments::Arguments;
use super::failure::Failure;
use super::screen::Screen;

#[derive(Args)]
#[command(after_help = "Examples:\n  collieclaw completions bash\n  collieclaw completions fish")]
pub(crate) struct Completions {
    /// For which shell.
    shell: Shell,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  collieclaw man\n  collieclaw man --dir /usr/local/share/man/man1")]
pub(crate) struct Man {
    /// Write a page for every command into this folder, instead of printing the first.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn completions(completions: &Completions, screen: &Screen) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut Arguments::command(), "collieclaw", &mut script);
    screen.raw(&script);
    Ok(())
}

pub(crate) fn man(man: &Man, screen: &Screen) -> Result<(), Failure> {
    let mut command = Arguments::command();
    command.build();
    match &man.dir {
        None => {
            let page = page(&command).map_err(Failure::io("make the page"))?;
            screen.raw(&page);
        }
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(Failure::io(format!("write to {}", folder.display())))?;
            clap_mangen::generate_to(command, folder)
                .map_err(Failure::io(format!("write to {}", folder.display())))?;
            screen.line(&format!("A page for every command is in {}.", folder.display()));
        }
    }
    Ok(())
}

fn page(command: &clap::Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}
