//! The names under which an executed file acts: its own, `argv[0]`, an applet, or the program that the dynamic loader
//! starts.

use std::path::{Component, Path};

/// Programs that contain many others, and choose one by `argv[0]` or by their first argument.
pub(super) const MULTI_CALL_PROGRAMS: [&str; 3] = ["busybox", "coreutils", "toybox"];

/// The maximum number of applets that name the next one, as in `busybox busybox ls`.
const MAX_APPLETS: usize = 16;

/// The content of an executed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramContent {
    OneProgram,
    /// One of [`MULTI_CALL_PROGRAMS`], under any name.
    ManyPrograms,
}

/// A name and arguments under which an executed file acts.
pub(super) struct ProgramIdentity<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: &'a [String],
}

/// Returns the names under which an executed file may act, each with its arguments. `arguments` start with `argv[0]`.
pub(super) fn identities<'e>(
    program: &'e Path,
    arguments: &'e [String],
    content: ProgramContent,
) -> Vec<ProgramIdentity<'e>> {
    let argv0 = arguments.first().map(|name| base_name(name.trim_start_matches('-'))).unwrap_or_default();
    let arguments = arguments.get(1..).unwrap_or_default();
    let name = file_name(program);
    // The kernel marks the path of a removed file.
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    let mut found = vec![ProgramIdentity { name, arguments }, ProgramIdentity { name: argv0, arguments }];
    if content == ProgramContent::OneProgram {
        return found;
    }
    let mut rest = arguments;
    for _ in 0..MAX_APPLETS {
        let Some(place) = rest.iter().position(|text| !text.starts_with('-')) else { break };
        let name = rest.get(place).map(|name| base_name(name)).unwrap_or_default();
        rest = rest.get(place + 1..).unwrap_or_default();
        found.push(ProgramIdentity { name, arguments: rest });
        if !MULTI_CALL_PROGRAMS.iter().any(|many| name.starts_with(many)) {
            break;
        }
    }
    // `--coreutils-prog=NAME` and `--coreutils-prog-shebang=NAME`.
    let named = arguments.first().filter(|flag| flag.starts_with("--coreutils-prog"));
    let named = named.and_then(|flag| flag.split_once('=')).map(|(_, name)| base_name(name));
    found.extend(named.map(|name| ProgramIdentity { name, arguments }));
    found
}

/// The dynamic loaders of the architectures and C libraries that we know.
pub(super) const LOADERS: [&str; 4] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];

/// Returns true for the dynamic loader, which runs the program that its arguments name.
pub(super) fn is_loader(name: &str) -> bool {
    name.starts_with("ld-") || name.starts_with("ld.so") || name.starts_with("ld64.so")
}

/// The effect of the dynamic loader as a command.
pub(super) enum LoaderAction<'a> {
    /// The loader prints something about a program, as for `ldd`, and runs nothing.
    Print,
    Run(LoadedProgram<'a>),
}

/// A program that the dynamic loader starts.
#[derive(Default)]
pub(super) struct LoadedProgram<'a> {
    pub(super) path: Option<&'a String>,
    /// The value of `--argv0`.
    argv0: Option<&'a String>,
    /// The arguments after the path.
    rest: &'a [String],
}

impl LoadedProgram<'_> {
    /// Returns the arguments that the program gets, starting with `argv[0]`.
    pub(super) fn arguments(&self) -> Vec<String> {
        self.argv0.or(self.path).into_iter().chain(self.rest).cloned().collect()
    }
}

/// Reads the loader's own flags, which end at its program. The same words behind it are arguments of the program.
pub(super) fn read_loader_arguments(arguments: &[String]) -> LoaderAction<'_> {
    const FLAGS_WITH_VALUE: [&str; 5] =
        ["--library-path", "--inhibit-rpath", "--audit", "--preload", "--glibc-hwcaps-prepend"];
    let mut started = LoadedProgram::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--list" | "--verify" | "--help" | "--version" => return LoaderAction::Print,
            "--argv0" => started.argv0 = arguments.next(),
            flag if FLAGS_WITH_VALUE.contains(&flag) => _ = arguments.next(),
            flag if flag.starts_with('-') => {}
            _ => {
                started.path = Some(argument);
                started.rest = arguments.as_slice();
                break;
            }
        }
    }
    LoaderAction::Run(started)
}

/// Returns true for a plain path below the folders of the system, which no process of a line can change.
pub(super) fn is_system_path(path: &Path) -> bool {
    let is_plain = path.components().all(|part| !matches!(part, Component::ParentDir));
    is_plain && ["/usr", "/bin", "/sbin", "/lib", "/lib64"].iter().any(|folder| path.starts_with(folder))
}

pub(super) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the last part of a path; an empty text if it isn't UTF-8.
pub(super) fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
