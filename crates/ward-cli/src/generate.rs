//! Completions and manual pages, generated from the definition of a command line.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

/// Returns the script with which a shell completes the commands and flags of a program.
#[must_use]
pub fn completion_script(mut program: Command, shell: Shell) -> Vec<u8> {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, name, &mut script);
    script
}

/// Returns the manual page of a program in the format of `man`.
///
/// # Errors
/// The page can't be rendered.
pub fn manual_page(mut program: Command) -> io::Result<Vec<u8>> {
    program.build();
    let mut page = Vec::new();
    Man::new(program).render(&mut page)?;
    Ok(page)
}

/// Writes a manual page for the program and for each of its commands into a folder, which is created if it is
/// missing.
///
/// # Errors
/// The folder or a page can't be written.
pub fn write_manual_pages(mut program: Command, folder: &Path) -> io::Result<()> {
    program.build();
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(program, folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Command {
        Command::new("sheep").about("Counts sheep").subcommand(Command::new("count").about("Count them"))
    }

    #[test]
    fn a_completion_script_knows_the_commands() {
        let script = String::from_utf8(completion_script(program(), Shell::Bash)).unwrap();
        assert!(script.contains("_sheep") && script.contains("count"), "{script}");
    }

    #[test]
    fn every_command_has_a_manual_page() {
        let page = String::from_utf8(manual_page(program()).unwrap()).unwrap();
        assert!(page.contains("Counts sheep"), "{page}");
        let folder = tempfile::tempdir().unwrap();
        let pages = folder.path().join("man/man1");
        write_manual_pages(program(), &pages).unwrap();
        let written = fs::read_to_string(pages.join("sheep-count.1")).unwrap();
        assert!(written.contains("Count them"), "{written}");
        assert!(pages.join("sheep.1").exists());
    }
}
