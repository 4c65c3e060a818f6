//! The second check of a path, after a tool has opened it.
//!
//! A path can lead elsewhere a moment after the gate judged it. The tool therefore asks the kernel for the
//! real path of the open handle and has that path judged here, by the same rules.

use std::path::{Path, PathBuf};

use crate::path::{INVALID_PATH, find_objection, find_rule_inside, steers_programs};
use crate::policy::GatePolicy;
use crate::reason::GateReason;

/// Makes a tool's path absolute: `~` becomes the user's home, and a relative path starts in the workspace.
/// The file system is not consulted.
///
/// # Errors
/// Fails if the text is not a valid path, or names the home folder of another user.
pub fn absolute_tool_path(text: &str, policy: &GatePolicy) -> Result<PathBuf, GateReason> {
    let not = |what| GateReason::NotAPath { path: text.to_owned(), what };
    if text.is_empty() || text.contains('\0') {
        return Err(not(INVALID_PATH));
    }
    match text.strip_prefix('~') {
        None => Ok(policy.workspace.join(text)),
        Some("") => Ok(policy.user_home.clone()),
        Some(rest) => match rest.strip_prefix('/') {
            Some(rest) => Ok(policy.user_home.join(rest.trim_start_matches('/'))),
            None => Err(not("names another user's home folder; write the path out")),
        },
    }
}

/// Judges the real path of an open handle, with all links resolved.
///
/// # Errors
/// Returns the rule that forbids the path.
pub fn judge_opened_path(place: &Path, policy: &GatePolicy) -> Result<(), GateReason> {
    match find_objection(&place.display().to_string(), place, policy) {
        None => Ok(()),
        Some(reason) => Err(reason),
    }
}

/// Judges a file that is about to be written, by the requested path and by its real path. A file that
/// controls other programs is recognised by its name. If only the real path has such a name, the gate judged
/// the request as an ordinary write, so the write is refused here.
///
/// # Errors
/// Fails if the real path controls other programs and the requested path doesn't show it.
pub fn judge_write_target(asked: &Path, place: &Path) -> Result<(), GateReason> {
    if steers_programs(place) && !steers_programs(asked) {
        return Err(GateReason::ExecutableConfig { path: asked.display().to_string() });
    }
    Ok(())
}

/// Judges an entry of a folder that is about to be moved or removed, by the requested path and by its real path.
///
/// # Errors
/// Fails like [`judge_opened_path`] and [`judge_write_target`], and if the entry contains the workspace or a path
/// that no tool may touch.
pub fn judge_moved_entry(asked: &Path, place: &Path, policy: &GatePolicy) -> Result<(), GateReason> {
    judge_opened_path(place, policy)?;
    judge_write_target(asked, place)?;
    let path = asked.display().to_string();
    if policy.workspace.starts_with(place) {
        return Err(GateReason::WrongKind { path, what: "is the workspace itself, or contains it" });
    }
    find_rule_inside(&path, place, policy).map_or(Ok(()), Err)
}
