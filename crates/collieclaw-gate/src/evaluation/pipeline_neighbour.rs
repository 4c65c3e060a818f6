//! Commands that run beside an allowed script in a pipeline. One of them could swap the script after it was checked.

use std::path::Path;

use super::command::JudgingPhase;
use super::{CommandFolder, ShellEvaluation};
use crate::facts::{MachineFacts, PathStatus};
use crate::plan::{PlannedAction, PlannedCommand, PlannedTarget};
use crate::policy::GatePolicy;
use crate::programs::CommandArgument;
use crate::reason::GateReason;
use crate::shell::BytePosition;
use crate::verdict::AutonomyLevel;

/// Programs that change no other files than those they name.
const WRITES_NAMED_FILES: [&str; 1] = ["tee"];

/// Returns true if a command of a plan may change a script of the workspace, or put another file in its place.
#[must_use]
pub fn may_change_script(
    command: &PlannedCommand,
    script: &Path,
    policy: &GatePolicy,
    facts: &dyn MachineFacts,
) -> bool {
    let leads_to_script = |path: &str| match facts.inspect_path(&command.folder.join(path)) {
        PathStatus::File { leads_to, .. } | PathStatus::Missing { leads_to } => leads_to == script,
        PathStatus::Folder { leads_to } => script.starts_with(leads_to),
        PathStatus::Special { .. } => false,
        PathStatus::Unreachable => true,
    };
    let writes_script = command.redirections.iter().any(|redirection| match &redirection.target {
        PlannedTarget::Write(path) | PlannedTarget::Append(path) => leads_to_script(path),
        PlannedTarget::Read(_)
        | PlannedTarget::Duplicate(_)
        | PlannedTarget::Text(_)
        | PlannedTarget::Null => false,
    });
    let PlannedAction::Run { words, .. } = &command.action else { return writes_script };
    let names_files = words.first().is_some_and(|name| WRITES_NAMED_FILES.contains(&name.as_str()));
    writes_script
        || if names_files {
            words.iter().skip(1).any(|word| leads_to_script(word))
        } else {
            !only_reads(words, command, policy, facts)
        }
}

/// Returns true if the table knows that a command changes nothing.
fn only_reads(
    words: &[String],
    command: &PlannedCommand,
    policy: &GatePolicy,
    facts: &dyn MachineFacts,
) -> bool {
    let mut evaluation = ShellEvaluation::new("", policy, facts);
    let words: Vec<_> =
        words.iter().map(|word| CommandArgument { text: Some(word.clone()), at: BytePosition(0) }).collect();
    let folder = CommandFolder { folder: Some(command.folder.clone()) };
    evaluation.judge_program(&words, &folder, JudgingPhase::Name);
    evaluation.judge_program(&words, &folder, JudgingPhase::Words);
    let reasons = evaluation.findings.decide(AutonomyLevel::Supervised).reasons;
    reasons.iter().all(GateReason::is_read_only)
}
