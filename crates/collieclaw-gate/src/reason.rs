//! Why the gate decides as it does: each reason with its evidence, its weight, its code and its sentence (C7.8).

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::verdict::ReasonWeight;

/// One thing that was found about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateReason {
    // What is harmless.
    /// The tool only looks, and touches no file.
    LooksOnly,
    /// A path that is read lies inside the workspace.
    ReadsInside {
        /// The path, as it was given.
        path: String,
    },
    /// The address belongs to a domain on the list.
    AllowedDomain {
        /// The host.
        host: String,
    },
    /// The service that the configuration names for this is asked.
    ConfiguredService,

    // What the operator should see.
    /// A file inside the workspace is written.
    WritesInside {
        /// The path, as it was given.
        path: String,
    },
    /// A program on the list, which only looks.
    ListedProgram {
        /// Its name.
        name: String,
        /// Whether it only looks.
        looks_only: bool,
    },
    /// A path outside of the workspace is read, and the policy doesn't keep the agent inside.
    ReadsOutside {
        /// The path, as it was given.
        path: String,
    },
    /// The domain is not on the list.
    UnlistedDomain {
        /// The host.
        host: String,
    },
    /// Something is sent to a domain on the list.
    Sends {
        /// The host.
        host: String,
    },
    /// A tool of someone else, with the risk that its configuration names.
    ForeignTool {
        /// Its name.
        name: String,
        /// Whose it is.
        origin: String,
        /// What the configuration says of it.
        weight: ReasonWeight,
    },
    /// A tool of someone else may change the workspace. It weighs what the tool weighs, but is more than looking.
    ForeignWrites {
        /// Its name.
        name: String,
    },
    /// A tool of someone else may reach the network. It weighs what the tool weighs, but is more than looking.
    ForeignNetwork {
        /// Its name.
        name: String,
    },
    /// The tool is not on the list of whoever asks for it.
    UnlistedTool {
        /// Its name.
        name: String,
    },

    // What only `full` runs.
    /// A path outside of the workspace is written, and the policy doesn't keep the agent inside.
    WritesOutside {
        /// The path, as it was given.
        path: String,
    },
    /// A file is written that makes programs run something: a repository's settings and hooks.
    SteersPrograms {
        /// The path, as it was given.
        path: String,
    },
    /// The program is not on the list.
    UnlistedProgram {
        /// Its name.
        name: String,
    },
    /// A name with a slash is not the program on the list.
    ProgramByPath {
        /// The path, as it was given.
        path: String,
    },
    /// A part of the line that is known only when it runs.
    Unknowable {
        /// What is wrong, or what it does.
        what: &'static str,
        /// Where, counted from one.
        column: usize,
    },
    /// An argument makes the program run or write something else.
    Argument {
        /// The program.
        program: String,
        /// The argument.
        argument: String,
        /// What it makes the program do.
        does: &'static str,
    },
    /// A variable that makes programs do something else.
    Variable {
        /// Its name.
        name: String,
    },
    /// Something is sent to a domain that is not on the list.
    SendsUnlisted {
        /// The host.
        host: String,
    },
    /// A port that is neither the scheme's nor listed.
    OddPort {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },

    // What is refused at every level.
    /// A path outside of the workspace.
    OutsideWorkspace {
        /// The path, as it was given.
        path: String,
    },
    /// A path under a forbidden one.
    ForbiddenPath {
        /// The path, as it was given.
        path: String,
        /// The forbidden path.
        rule: String,
    },
    /// A path in the agent's own home.
    OwnHome {
        /// The path, as it was given.
        path: String,
    },
    /// Neither a file nor a folder, or the wrong one of both.
    WrongKind {
        /// The path, as it was given.
        path: String,
        /// What is wrong, or what it does.
        what: &'static str,
    },
    /// A file with another name somewhere.
    HardLink {
        /// The path, as it was given.
        path: String,
    },
    /// Text that is no path.
    NotAPath {
        /// The path, as it was given.
        path: String,
        /// What is wrong, or what it does.
        what: &'static str,
    },
    /// A command on the list of forbidden ones.
    ForbiddenCommand {
        /// Its name.
        name: String,
    },
    /// The name of a command can't be known, so neither can whether it is forbidden.
    UnknownCommand {
        /// Where, counted from one.
        column: usize,
    },
    /// A command that destroys.
    Destructive {
        /// What is wrong, or what it does.
        what: &'static str,
    },
    /// A line that can't be read with certainty.
    Unreadable {
        /// What is wrong, or what it does.
        what: &'static str,
        /// Where, counted from one.
        column: usize,
    },
    /// Text that is no address.
    NotAnAddress {
        /// What is wrong, or what it does.
        what: &'static str,
    },
    /// An address of this machine or of its network.
    PrivateAddress {
        /// The address.
        address: String,
    },
    /// The tool is not offered here.
    ToolNotOffered {
        /// Its name.
        name: String,
    },
    /// Nobody found anything about the call.
    NotJudged,
}

impl GateReason {
    /// What it adds to the risk.
    #[must_use]
    pub fn weight(&self) -> ReasonWeight {
        match self {
            Self::LooksOnly
            | Self::ReadsInside { .. }
            | Self::AllowedDomain { .. }
            | Self::ConfiguredService
            | Self::ForeignWrites { .. }
            | Self::ForeignNetwork { .. } => ReasonWeight::Low,
            Self::WritesInside { .. }
            | Self::ListedProgram { .. }
            | Self::ReadsOutside { .. }
            | Self::UnlistedDomain { .. }
            | Self::UnlistedTool { .. }
            | Self::Sends { .. } => ReasonWeight::Medium,
            Self::ForeignTool { weight, .. } => *weight,
            Self::WritesOutside { .. }
            | Self::SteersPrograms { .. }
            | Self::UnlistedProgram { .. }
            | Self::ProgramByPath { .. }
            | Self::Unknowable { .. }
            | Self::Argument { .. }
            | Self::Variable { .. }
            | Self::SendsUnlisted { .. }
            | Self::OddPort { .. } => ReasonWeight::High,
            Self::OutsideWorkspace { .. }
            | Self::ForbiddenPath { .. }
            | Self::OwnHome { .. }
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

    /// Whether a call of which only this is known changes nothing, so that it may run at `readonly`.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::ListedProgram { looks_only, .. } => *looks_only,
            Self::ReadsOutside { .. } => true,
            Self::ForeignWrites { .. } | Self::ForeignNetwork { .. } => false,
            other => other.weight() == ReasonWeight::Low,
        }
    }

    /// The code for programs. It never changes its meaning.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::LooksOnly => "looks-only",
            Self::ReadsInside { .. } => "reads-inside",
            Self::AllowedDomain { .. } => "allowed-domain",
            Self::ConfiguredService => "configured-service",
            Self::WritesInside { .. } => "writes-inside",
            Self::ListedProgram { .. } => "listed-program",
            Self::ReadsOutside { .. } => "reads-outside",
            Self::UnlistedDomain { .. } => "unlisted-domain",
            Self::Sends { .. } => "sends",
            Self::ForeignTool { .. } => "foreign-tool",
            Self::ForeignWrites { .. } => "foreign-writes",
            Self::ForeignNetwork { .. } => "foreign-network",
            Self::UnlistedTool { .. } => "unlisted-tool",
            Self::WritesOutside { .. } => "writes-outside",
            Self::SteersPrograms { .. } => "steers-programs",
            Self::UnlistedProgram { .. } => "unlisted-program",
            Self::ProgramByPath { .. } => "program-by-path",
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

    /// The sentence for people.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::LooksOnly => "it only looks".to_owned(),
            Self::ReadsInside { path } => format!("{} is read, inside the workspace", quoted(path)),
            Self::AllowedDomain { host } => format!("{} is on the list of allowed domains", quoted(host)),
            Self::ConfiguredService => "it asks the service that the configuration names".to_owned(),
            Self::WritesInside { path } => format!("{} is written, inside the workspace", quoted(path)),
            Self::ListedProgram { name, .. } => {
                format!("{} is on the list of allowed commands", quoted(name))
            }
            Self::ReadsOutside { path } => format!("{} is read, outside of the workspace", quoted(path)),
            Self::UnlistedDomain { host } => {
                format!("{} is not on the list of allowed domains", quoted(host))
            }
            Self::Sends { host } => format!("something is sent to {}", quoted(host)),
            Self::ForeignTool { name, origin, .. } => format!("{} is a tool of {origin}", quoted(name)),
            Self::ForeignWrites { name } => format!("{} may change files in the workspace", quoted(name)),
            Self::ForeignNetwork { name } => format!("{} may reach the network", quoted(name)),
            Self::UnlistedTool { name } => format!("{} is not on this channel's list of tools", quoted(name)),
            Self::WritesOutside { path } => format!("{} is written, outside of the workspace", quoted(path)),
            Self::SteersPrograms { path } => {
                format!(
                    "{} decides what programs run in this folder, outside of the sandbox, too",
                    quoted(path)
                )
            }
            Self::UnlistedProgram { name } => {
                format!("{} is not on the list of allowed commands", quoted(name))
            }
            Self::ProgramByPath { path } => {
                format!("{} is named by its path, so it is not the program on the list", quoted(path))
            }
            Self::Argument { program, argument, does } => {
                format!("{} makes {} {does}", quoted(argument), quoted(program))
            }
            Self::Variable { name } => {
                format!("the variable {} makes programs do something else", quoted(name))
            }
            Self::SendsUnlisted { host } => {
                format!("something is sent to {}, which is not on the list of allowed domains", quoted(host))
            }
            Self::OddPort { host, port } => {
                format!("{} is an unusual port that is not listed", quoted(&format!("{host}:{port}")))
            }
            Self::OutsideWorkspace { path } => format!("{} is outside of the workspace", quoted(path)),
            Self::ForbiddenPath { path, rule } => {
                format!("{} is under the forbidden path {}", quoted(path), quoted(rule))
            }
            Self::OwnHome { path } => format!("{} belongs to CollieClaw itself", quoted(path)),
            Self::HardLink { path } => format!("{} has another name somewhere (a hard link)", quoted(path)),
            Self::WrongKind { path, what } | Self::NotAPath { path, what } => {
                format!("{} {what}", quoted(path))
            }
            Self::ForbiddenCommand { name } => {
                format!("{} is on the list of forbidden commands", quoted(name))
            }
            Self::UnknownCommand { column } => format!(
                "column {column}: which command this is can't be known before it runs; write its name out"
            ),
            Self::Destructive { what } => format!("it {what}"),
            Self::Unknowable { what, column } | Self::Unreadable { what, column } => {
                format!("column {column}: {what}")
            }
            Self::NotAnAddress { what } => (*what).to_owned(),
            Self::PrivateAddress { address } => {
                format!("{} is an address of this machine or of its network", quoted(address))
            }
            Self::ToolNotOffered { name } => format!("the tool {} is not offered here", quoted(name)),
            Self::NotJudged => "nothing is known about this call".to_owned(),
        }
    }
}

/// What a reason quotes: enough to know it by. The call itself is shown whole elsewhere.
fn quoted(text: &str) -> String {
    /// In characters.
    const LONGEST: usize = 200;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("`{}…`", text.get(..end).unwrap_or_default()),
        None => format!("`{text}`"),
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
