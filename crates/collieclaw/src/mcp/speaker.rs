//! Starting `collieclaw-mcp`, which speaks the protocol for us, in a sandbox that shows it nothing of anyone's.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use collieclaw_gate::GatePolicy;
use ward_diag::Chain;
use ward_process::sandbox::Network;
use ward_process::{Input, Output};

use super::line::{self, Ear, Greeting, Task, VERSION};
use super::start::Reins;
use crate::tools::room::{Ground, Reach, Room};
use crate::tools::shell::next_id;

/// What is told of it when nobody ended it.
pub(super) const ENDED: &str = "the program that speaks the protocol has ended";
pub(super) const BROKE_OFF: &str = "the program that speaks the protocol broke off";

/// It listens at once, or never.
const GREETING: Duration = Duration::from_secs(10);

/// Its name, beside ours.
const PROGRAM: &str = "collieclaw-mcp";

/// It is ours and ends with us, however long that is.
const A_YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// One that runs.
pub(super) struct Speaker {
    /// The line to it.
    pub(super) line: UnixStream,
    pub(super) reins: Reins,
}

impl Speaker {
    /// Starts it for a task, with what it reads and writes in that. Its standard error is the line to us, so that also the
    /// words of a panic arrive.
    pub(super) fn start(
        task: Task,
        policy: &GatePolicy,
        input: Input,
        output: Output,
    ) -> Result<Self, String> {
        let program = program()?;
        let network = if matches!(task, Task::AskAddress { .. }) { Network::On } else { Network::Off };
        let reach = Reach {
            workspace: Ground::Closed,
            network,
            own: Some(program.clone()),
            programs: Vec::new(),
            time: A_YEAR,
        };
        let room = Room::new(&reach, policy)?;
        let (line, theirs) = UnixStream::pair().map_err(|error| format!("no line to it: {error}"))?;
        let order = room
            .order(&program, &[PROGRAM.to_owned()], &[], "/".as_ref())
            .stdin(input)
            .stdout(output)
            .stderr(Output::To(theirs.into()));
        let supervisor = room.supervisor();
        let tree = supervisor.spawn(next_id()?, order).map_err(|error| Chain(&error).to_string())?;
        let reins = Reins::new(tree, supervisor);
        let greeting = Greeting { version: VERSION.to_owned(), task };
        if line::say(&line, &greeting, Instant::now() + GREETING).is_err() {
            let said = Ear::new(line).last_words(Vec::new());
            reins.end();
            return Err(format!("{BROKE_OFF}: {said}"));
        }
        Ok(Self { line, reins })
    }
}

/// Where it lies.
///
/// # Errors
/// When it is not there.
pub fn program() -> Result<PathBuf, String> {
    let ours = std::env::current_exe()
        .map_err(|error| format!("where our own program lies is not known: {error}"))?;
    let program = ours.with_file_name(PROGRAM);
    match program.metadata() {
        Ok(file) if file.is_file() && file.permissions().mode() & 0o111 != 0 => Ok(program),
        Ok(_) => Err(format!("{} is missing: what lies there is no program", program.display())),
        Err(_) => Err(format!("{} is missing, the program that speaks the protocol", program.display())),
    }
}
