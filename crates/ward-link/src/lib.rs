//! Linker options with which programs start faster, for the build scripts of the shipped programs.
//!
//! A third of the time of a short command is the dynamic linker's: it adds the load address to tens of thousands of
//! pointers, and maps a library for each dependency. [`print_program_options`] makes the list of these pointers compact
//! (`DT_RELR`), and links the unwinder of panics into the program instead of loading it from `libgcc_s`.
//!
//! Both need a C library and a compiler that know them. Where they don't, as in a build for another machine, the
//! program is linked as Cargo does it. Nothing here is linked into a program.

#![warn(missing_docs)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The first version of glibc that loads programs with compact relocations. Older versions refuse to start them.
const FIRST_GLIBC_WITH_RELR: (u32, u32) = (2, 36);

/// Prints the options for the programs of the package whose build script calls this.
///
/// # Errors
/// Fails if the output folder of the build script can't be written to.
pub fn print_program_options() -> std::io::Result<()> {
    print_instruction("rerun-if-changed=build.rs");
    if !is_for_this_machine() {
        return Ok(());
    }
    if glibc_version().is_some_and(|version| version >= FIRST_GLIBC_WITH_RELR) {
        print_instruction("rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    if let (Some(unwinder), Some(folder)) = (find_static_unwinder(), variable("OUT_DIR")) {
        let folder = PathBuf::from(folder).join("link");
        write_linker_script(&folder, &unwinder)?;
        print_instruction(&format!("rustc-link-arg-bins=-L{}", folder.display()));
    }
    Ok(())
}

/// Returns whether the program is built for the machine that builds it, with glibc.
fn is_for_this_machine() -> bool {
    let target = variable("TARGET");
    target.is_some()
        && target == variable("HOST")
        && variable("CARGO_CFG_TARGET_OS").as_deref() == Some("linux")
        && variable("CARGO_CFG_TARGET_ENV").as_deref() == Some("gnu")
}

fn glibc_version() -> Option<(u32, u32)> {
    parse_glibc_version(&output_of(Command::new("getconf").arg("GNU_LIBC_VERSION"))?)
}

/// Parses `glibc 2.36`.
fn parse_glibc_version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    let minor = minor.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns the static library of the unwinder, which the C compiler brings along.
fn find_static_unwinder() -> Option<PathBuf> {
    let compiler = variable("RUSTC_LINKER").unwrap_or_else(|| "cc".to_owned());
    let path = output_of(Command::new(compiler).arg("-print-file-name=libgcc_eh.a"))?;
    // A compiler that doesn't know the library prints the bare name.
    let path = PathBuf::from(path.trim());
    (path.is_absolute() && path.is_file()).then_some(path)
}

/// Makes the linker find the static unwinder where the standard library asks for `libgcc_s`.
fn write_linker_script(folder: &Path, unwinder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("libgcc_s.so"), format!("INPUT ( {} )\n", unwinder.display()))
}

fn output_of(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[expect(clippy::print_stdout, reason = "Cargo reads the standard output of build scripts")]
fn print_instruction(instruction: &str) {
    println!("cargo::{instruction}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_glibc_is_compared_as_numbers() {
        assert_eq!(parse_glibc_version("glibc 2.36\n"), Some((2, 36)));
        assert_eq!(parse_glibc_version("glibc 2.36.9000\n"), Some((2, 36)));
        assert!(parse_glibc_version("glibc 2.4\n").is_some_and(|version| version < FIRST_GLIBC_WITH_RELR));
        for other in ["", "musl 1.2", "glibc", "glibc 2", "glibc two.36"] {
            assert_eq!(parse_glibc_version(other), None, "{other}");
        }
    }
}
