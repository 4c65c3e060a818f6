//! Compares the table with the installed programs: a flag takes a value in the table if it takes a value in
//! reality.
//!
//! A word that is wrongly taken for the value of a flag could be a path that the gate doesn't judge.

use std::process::{Command, Output, Stdio};

use super::{FlagEffect, ProgramSpec, UnlistedFlags};

/// Programs that are installed on every machine with a shell, and that report wrong flags as the C library
/// does.
const INSTALLED: &str = "basename dirname seq expr date ls dir vdir cat tac head tail wc nl cut paste expand unexpand fold \
     fmt cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum od stat readlink realpath du cmp comm join base64 base32 tr \
     uniq sort grep diff sed touch mkdir rmdir cp mv install ln tee truncate chmod chown chgrp env nice timeout stdbuf \
     nohup tar xargs ionice flock shuf pr numfmt df split csplit gzip";

/// Returns the error output of a program that runs with only this flag.
fn complaint(name: &str, flag: &str) -> String {
    String::from_utf8_lossy(&run(name, &[flag]).stderr).into_owned()
}

fn run(name: &str, flags: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    Command::new("timeout")
        .args(["2", name])
        .args(flags)
        .env("LC_ALL", "C")
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .expect("`timeout` is there")
}

fn wants_value(complaint: &str) -> bool {
    complaint.contains("requires an argument")
}

fn is_unknown(complaint: &str) -> bool {
    ["unrecognized option", "invalid option", "unknown option"].iter().any(|text| complaint.contains(text))
}

#[test]
fn flags_take_values_where_the_installed_programs_do() {
    let mut wrong = Vec::new();
    for name in INSTALLED.split_whitespace() {
        let program = ProgramSpec::find_by_name(name).expect("a program of the table");
        for flag in program.flags {
            for spelled in flag.names.split(' ') {
                let complaint = complaint(name, spelled);
                let fits = match flag.effect {
                    FlagEffect::Value(_)
                    | FlagEffect::ReplacesOperand(_)
                    | FlagEffect::SideEffectWithValue(_)
                    | FlagEffect::LastFlag(_)
                    | FlagEffect::Module
                    | FlagEffect::WritesFile => wants_value(&complaint) || is_unknown(&complaint),
                    FlagEffect::JoinedValue(_)
                    | FlagEffect::EditsInPlace
                    | FlagEffect::OperandsBecome(_)
                    | FlagEffect::LinksSymbolically
                    | FlagEffect::KeepsRemoteName
                    | FlagEffect::Harmless => !wants_value(&complaint),
                    FlagEffect::SideEffect(_)
                    | FlagEffect::NamedValue(_)
                    | FlagEffect::CommandUntilEnd
                    | FlagEffect::SideEffectUntilEnd(_) => true,
                };
                if !fits {
                    wrong.push(format!("{name} {spelled}: {:?}, but {complaint:?}", flag.effect));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// If a flag were missing from the table, its value would be judged as an operand and shift the other
/// operands.
#[test]
fn all_long_flags_with_values_are_in_the_table() {
    let mut missing = Vec::new();
    for name in INSTALLED.split_whitespace() {
        let program = ProgramSpec::find_by_name(name).expect("a program of the table");
        let knows =
            |flag: &str| program.flags.iter().any(|known| known.names.split(' ').any(|name| name == flag));
        if program.unlisted_flags == UnlistedFlags::Suspect {
            continue;
        }
        let help = run(name, &["--help"]);
        let help = String::from_utf8_lossy(&help.stdout);
        let flags = help.split([' ', ',', '\n', '\t']).filter_map(|word| word.split_once('='));
        let flags = flags.map(|(flag, _)| flag.trim_end_matches('[')).filter(|flag| flag.starts_with("--"));
        missing.extend(flags.filter(|flag| !knows(flag)).map(|flag| format!("{name} {flag}")));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
