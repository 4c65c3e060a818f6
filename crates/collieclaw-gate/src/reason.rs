//! The reasons behind a verdict: each has its evidence, a weight, a code for programs and a sentence for
//! people (C7.8).

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::verdict::ReasonWeight;

/// A finding about a call. Paths, names and hosts are quoted as the call gave them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateReason {
    // Low weight.
    /// The call changes nothing and names no file.
    LooksOnly,
    /// The call reads a path inside the workspace.
    ReadsInside { path: String },
    /// The host is on the list of allowed domains.
    AllowedDomain { host: String },
    /// The call uses the service named in the configuration.
    ConfiguredService,

    /// A variable chooses code that programs run. This adds no weight to the program, but rules out `readonly`: `yq` only
    /// reads, and may be written in Python.
    ChoosesCode { name: String },

    // Medium weight: the operator should see the call.
    /// The call writes a file inside the workspace.
    WritesInside { path: String },
    /// The program is on the list of allowed commands.
    ListedProgram {
        name: String,
        /// True if the program, with these arguments, changes nothing.
        read_only: bool,
    },
    /// The call reads a path outside of the workspace, and the policy allows such paths.
    ReadsOutside { path: String },
    /// The call reads a file of the system that every program can read in the sandbox.
    ReadsSystem { path: String },
    /// The call uses a path in the temporary folder of the sandbox, or in the home and the caches of commands.
    UsesTemporary {
        path: String,
        /// True if the call only reads there.
        read_only: bool,
    },
    /// The program is a file of the workspace, and the operator allows such programs.
    ProjectProgram { path: String },
    /// The address is on the loopback interface of the command's own sandbox.
    OwnLoopback { address: String },
    /// The host is not on the list of allowed domains.
    UnlistedDomain { host: String },
    /// The call sends data to an allowed domain.
    Sends { host: String },
    /// The call runs a tool of a plugin or an MCP server.
    ForeignTool {
        name: String,
        /// The owner of the tool, for people to read.
        origin: String,
        /// The weight of the risk that the tool's configuration names.
        weight: ReasonWeight,
    },
    /// A foreign tool may change the workspace. This adds no weight to [`Self::ForeignTool`], but rules out
    /// `readonly`.
    ForeignWrites { name: String },
    /// A foreign tool may reach the network. This adds no weight to [`Self::ForeignTool`], but rules out
    /// `readonly`.
    ForeignNetwork { name: String },
    /// The tool is not on the channel's list of tools.
    UnlistedTool { name: String },
    /// A part of the line is known only when it runs. A real shell runs the line, and every command is judged when the
    /// shell executes it.
    JudgedWhenRun {
        what: &'static str,
        /// The column in characters, starting at 1.
        column: usize,
    },

    // High weight: the call runs only at `full`.
    /// The call writes a path outside of the workspace, and the policy allows such paths.
    WritesOutside { path: String },
    /// The program is not on the list of allowed commands.
    UnlistedProgram { name: String },
    /// The program is named by a path, so it is not necessarily the listed program of that name.
    ProgramByPath { path: String },
    /// No program of the system has this name, and no other program was accepted for it.
    NotInstalled { name: String },
    /// The program that was accepted for this name is gone, or others can change it now.
    ChangedProgram {
        name: String,
        /// The accepted path.
        path: String,
    },
    /// The script was allowed, and has other content now.
    ChangedScript { path: String },
    /// A part of the line is known only when it runs.
    Unknowable {
        what: &'static str,
        /// The column in characters, starting at 1.
        column: usize,
    },
    /// An argument makes the program do more than its usual work, such as running a command or writing a
    /// file.
    Argument {
        program: String,
        argument: String,
        /// The effect as a verb phrase ("run a command"), or `None` if the gate doesn't know the argument.
        effect: Option<&'static str>,
    },
    /// An environment variable can change what programs do.
    Variable { name: String },
    /// The call sends data to a domain that is not on the list of allowed domains.
    SendsUnlisted { host: String },
    /// The port is neither the default port of the scheme nor listed.
    OddPort { host: String, port: u16 },

    // Blocked: the call is refused at every level.
    /// The path is outside of the workspace, and the policy forbids such paths.
    OutsideWorkspace { path: String },
    /// The path is a forbidden path, or is beneath one.
    ForbiddenPath {
        path: String,
        /// The forbidden path from the policy.
        rule: String,
    },
    /// The path belongs to CollieClaw itself.
    OwnHome { path: String },
    /// The call writes a file that makes programs run commands: the settings or hooks of a repository.
    ExecutableConfig { path: String },
    /// The path leads to something that is neither a file nor a folder, or that can't be reached.
    WrongKind { path: String, what: &'static str },
    /// The call writes a file with several hard links, and so changes a file elsewhere.
    HardLink { path: String },
    /// The text is not a valid path.
    NotAPath { path: String, what: &'static str },
    /// The command is on the list of forbidden commands.
    ForbiddenCommand { name: String },
    /// The name of a command is known only when it runs, so the gate can't tell if the command is forbidden.
    UnknownCommand {
        /// The column in characters, starting at 1.
        column: usize,
    },
    /// The command is destructive, such as `rm -rf /`.
    Destructive { what: &'static str },
    /// The line can't be parsed with certainty, or is too large to check.
    Unreadable {
        what: &'static str,
        /// The column in characters, starting at 1.
        column: usize,
    },
    /// The text is not a valid web address.
    NotAnAddress { what: &'static str },
    /// The address leads to this machine or its local network.
    PrivateAddress { address: String },
    /// The tool is not available to the caller.
    ToolNotOffered { name: String },
    /// The gate found no reason at all, so it did not judge the call.
    NotJudged,
}

impl GateReason {
    /// Returns how much the reason adds to the risk.
    #[must_use]
    pub fn weight(&self) -> ReasonWeight {
        match self {
            Self::LooksOnly
            | Self::ReadsInside { .. }
            | Self::AllowedDomain { .. }
            | Self::ConfiguredService
            | Self::ChoosesCode { .. }
            | Self::ForeignWrites { .. }
            | Self::ForeignNetwork { .. } => ReasonWeight::Low,
            Self::WritesInside { .. }
            | Self::ListedProgram { .. }
            | Self::ReadsOutside { .. }
            | Self::ReadsSystem { .. }
            | Self::UsesTemporary { .. }
            | Self::ProjectProgram { .. }
            | Self::OwnLoopback { .. }
            | Self::UnlistedDomain { .. }
            | Self::UnlistedTool { .. }
            | Self::JudgedWhenRun { .. }
            | Self::Sends { .. } => ReasonWeight::Medium,
            Self::ForeignTool { weight, .. } => *weight,
            Self::WritesOutside { .. }
            | Self::UnlistedProgram { .. }
            | Self::ProgramByPath { .. }
            | Self::NotInstalled { .. }
            | Self::ChangedProgram { .. }
            | Self::ChangedScript { .. }
            | Self::Unknowable { .. }
            | Self::Argument { .. }
            | Self::Variable { .. }
            | Self::SendsUnlisted { .. }
            | Self::OddPort { .. } => ReasonWeight::High,
            Self::OutsideWorkspace { .. }
            | Self::ForbiddenPath { .. }
            | Self::OwnHome { .. }
            | Self::ExecutableConfig { .. }
            | Self::WrongKind { .. }
            | Self::HardLink { .. }
            | Self::NotAPath { .. }
            | Self::ForbiddenCommand { .. }
            | Self::UnknownCommand { .. }
            | Self::Destructive { .. }
            | Self::Unreadable { .. }
            | Self::NotAnAddress { .. }
            | Self::PrivateAddress { .. }
            | Self::ToolNotOffered { .. }
            | Self::NotJudged => ReasonWeight::Blocked,
        }
    }

    /// Returns true if the reason describes a call that changes nothing, and so may run at `readonly`.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::ListedProgram { read_only, .. } | Self::UsesTemporary { read_only, .. } => *read_only,
            Self::ReadsOutside { .. } | Self::ReadsSystem { .. } => true,
            Self::ChoosesCode { .. } | Self::ForeignWrites { .. } | Self::ForeignNetwork { .. } => false,
            other => other.weight() == ReasonWeight::Low,
        }
    }

    /// Returns the code for programs. A code never changes its meaning.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::LooksOnly => "looks-only",
            Self::ReadsInside { .. } => "reads-inside",
            Self::AllowedDomain { .. } => "allowed-domain",
            Self::ConfiguredService => "configured-service",
            Self::ChoosesCode { .. } => "chooses-code",
            Self::WritesInside { .. } => "writes-inside",
            Self::ListedProgram { .. } => "listed-program",
            Self::ReadsOutside { .. } => "reads-outside",
            Self::ReadsSystem { .. } => "reads-system",
            Self::UsesTemporary { .. } => "uses-temporary",
            Self::ProjectProgram { .. } => "project-program",
            Self::OwnLoopback { .. } => "own-loopback",
            Self::UnlistedDomain { .. } => "unlisted-domain",
            Self::Sends { .. } => "sends",
            Self::ForeignTool { .. } => "foreign-tool",
            Self::ForeignWrites { .. } => "foreign-writes",
            Self::ForeignNetwork { .. } => "foreign-network",
            Self::UnlistedTool { .. } => "unlisted-tool",
            Self::JudgedWhenRun { .. } => "judged-when-run",
            Self::WritesOutside { .. } => "writes-outside",
            Self::ExecutableConfig { .. } => "executable-config",
            Self::UnlistedProgram { .. } => "unlisted-program",
            Self::ProgramByPath { .. } => "program-by-path",
            Self::NotInstalled { .. } => "not-installed",
            Self::ChangedProgram { .. } => "changed-program",
            Self::ChangedScript { .. } => "changed-script",
            Self::Unknowable { .. } => "unknowable",
            Self::Argument { .. } => "argument",
            Self::Variable { .. } => "variable",
            Self::SendsUnlisted { .. } => "sends-unlisted",
            Self::OddPort { .. } => "odd-port",
            Self::OutsideWorkspace { .. } => "outside-workspace",
            Self::ForbiddenPath { .. } => "forbidden-path",
            Self::OwnHome { .. } => "own-home",
            Self::WrongKind { .. } => "wrong-kind",
            Self::HardLink { .. } => "hard-link",
            Self::NotAPath { .. } => "not-a-path",
            Self::ForbiddenCommand { .. } => "forbidden-command",
            Self::UnknownCommand { .. } => "unknown-command",
            Self::Destructive { .. } => "destructive",
            Self::Unreadable { .. } => "unreadable",
            Self::NotAnAddress { .. } => "not-an-address",
            Self::PrivateAddress { .. } => "private-address",
            Self::ToolNotOffered { .. } => "tool-not-offered",
            Self::NotJudged => "not-judged",
        }
    }

    /// Returns the sentence for people: the finding, then what would help against it, without a full stop.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::LooksOnly => "the tool changes nothing".to_owned(),
            Self::ReadsInside { path } => format!("it reads {} in the workspace", quoted(path)),
            Self::AllowedDomain { host } => format!("{} is on the list of allowed domains", quoted(host)),
            Self::ConfiguredService => "it uses the service named in the configuration".to_owned(),
            Self::ChoosesCode { name } => {
                format!("the variable {} chooses code that programs run", quoted(name))
            }
            Self::WritesInside { path } => format!("it writes {} in the workspace", quoted(path)),
            Self::ListedProgram { name, .. } => {
                format!("{} is on the list of allowed commands", quoted(name))
            }
            Self::ReadsOutside { path } => format!("it reads {} outside of the workspace", quoted(path)),
            Self::ReadsSystem { path } => format!("it reads {}, which belongs to the system", quoted(path)),
            Self::ProjectProgram { path } => format!(
                "{} is a program of this project; it runs in the sandbox, and the programs that it starts are judged",
                quoted(path)
            ),
            Self::OwnLoopback { address } => format!(
                "{} is in the sandbox of this line, where it reaches only servers that the same line has started",
                quoted(address)
            ),
            Self::UsesTemporary { path, .. } => {
                format!("{} is in the sandbox's private temporary folder or home", quoted(path))
            }
            Self::UnlistedDomain { host } => {
                format!("{} is not on the list of allowed domains", quoted(host))
            }
            Self::Sends { host } => format!("it sends data to {}", quoted(host)),
            Self::ForeignTool { name, origin, .. } => format!("{} is a tool of {origin}", quoted(name)),
            Self::ForeignWrites { name } => format!("{} may change files in the workspace", quoted(name)),
            Self::ForeignNetwork { name } => format!("{} may reach the network", quoted(name)),
            Self::UnlistedTool { name } => format!("{} is not on this channel's list of tools", quoted(name)),
            // The rest of the text is advice for machines that can't judge commands when they run.
            Self::JudgedWhenRun { what, column } => format!(
                "column {column}: {}, so each command is judged when it runs",
                what.split(';').next().unwrap_or(what)
            ),
            Self::WritesOutside { path } => format!("it writes {} outside of the workspace", quoted(path)),
            Self::ExecutableConfig { path } => format!(
                "{} can make `git` or `hg` run commands outside of the sandbox; change it by hand",
                quoted(path)
            ),
            Self::UnlistedProgram { name } => format!(
                "{} isn't on the list of allowed commands{}{}",
                quoted(name),
                file_tool_hint(name),
                allow_cure(name)
            ),
            Self::ProgramByPath { path } => format!(
                "{} is a path, and commands are allowed by name only; use the name of an allowed command{}",
                quoted(path),
                allow_path_cure(path)
            ),
            Self::NotInstalled { name } => format!("no installed program is called {}", quoted(name)),
            Self::ChangedProgram { name, path } => format!(
                "{} is no longer the program {} that was allowed{}",
                quoted(name),
                quoted(path),
                allow_cure(name)
            ),
            Self::ChangedScript { path } => {
                format!("the script {} has changed since it was allowed{}", quoted(path), allow_cure(path))
            }
            Self::Argument { program, argument, effect: Some(effect) } => {
                format!("{} makes {} {effect}", quoted(argument), quoted(program))
            }
            Self::Argument { program, argument, effect: None } => format!(
                "the gate doesn't know what {} makes {} do; leave it out or use another command",
                quoted(argument),
                quoted(program)
            ),
            Self::Variable { name } => {
                format!("the variable {} can change what programs do; leave it out", quoted(name))
            }
            Self::SendsUnlisted { host } => format!(
                "it sends data to {}, which is not on the list of allowed domains; to allow it, add the domain \
                 to `allowed_domains`",
                quoted(host)
            ),
            Self::OddPort { host, port } => format!(
                "{} has an unusual port; to allow it, add the host and port to `allowed_domains`",
                quoted(&format!("{host}:{port}"))
            ),
            Self::OutsideWorkspace { path } => format!("{} is outside of the workspace", quoted(path)),
            Self::ForbiddenPath { path, rule } => {
                // Agents often ask for the name of the system.
                let hint =
                    if path == "/etc/os-release" { "; read `/usr/lib/os-release` instead" } else { "" };
                format!("{} is under the forbidden path {}{hint}", quoted(path), quoted(rule))
            }
            Self::OwnHome { path } => {
                format!("{} belongs to CollieClaw itself, and no tool may touch it", quoted(path))
            }
            Self::HardLink { path } => format!(
                "{} has several hard links, so a change would also show elsewhere; write to a copy",
                quoted(path)
            ),
            Self::WrongKind { path, what } | Self::NotAPath { path, what } => {
                format!("{} {what}", quoted(path))
            }
            Self::ForbiddenCommand { name } => {
                format!("{} is on the list of forbidden commands{}", quoted(name), file_tool_hint(name))
            }
            Self::UnknownCommand { column } => {
                format!("column {column}: the name of this command is known only when it runs; write it out")
            }
            Self::Destructive { what } => format!("it {what}"),
            Self::Unknowable { what, column } | Self::Unreadable { what, column } => {
                format!("column {column}: {what}")
            }
            Self::NotAnAddress { what } => (*what).to_owned(),
            Self::PrivateAddress { address } => {
                format!("{} is an address of this machine or of its network", quoted(address))
            }
            Self::ToolNotOffered { name } => format!("the tool {} is not offered here", quoted(name)),
            Self::NotJudged => "the gate has no rule for this call".to_owned(),
        }
    }
}

/// Quotes a text and shortens it to a recognisable length. The whole call is shown elsewhere.
fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("`{}…`", text.get(..end).unwrap_or_default()),
        None => format!("`{text}`"),
    }
}

/// Returns the sentence that names the command which allows a program. Left out for names that a shell would read as
/// something else.
fn allow_cure(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._+-/".contains(letter);
    if name.is_empty() || name.starts_with('-') || name.len() > 64 || !name.chars().all(is_plain) {
        return String::new();
    }
    format!(". To allow it in this workspace: `collieclaw allow {name}`")
}

/// Returns the sentence that names the commands which allow a program of the workspace. Left out for other places.
fn allow_path_cure(path: &str) -> String {
    let cure = if path.starts_with('/') { String::new() } else { allow_cure(path) };
    if cure.is_empty() {
        return ", or allow a script of the workspace with `collieclaw allow`".to_owned();
    }
    format!("{cure}, or all programs of the project: `collieclaw allow --project-programs`")
}

/// Returns the hint at the tool that does the work of a command.
fn file_tool_hint(name: &str) -> &'static str {
    match name {
        "rm" | "rmdir" | "unlink" | "shred" => "; to delete files, use the tool `file_delete`",
        "mv" | "rename" => "; to move files, use the tool `file_move`",
        _ => "",
    }
}

impl Serialize for GateReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut reason = serializer.serialize_struct("Reason", 2)?;
        reason.serialize_field("code", self.code())?;
        reason.serialize_field("detail", &self.detail())?;
        reason.end()
    }
}
