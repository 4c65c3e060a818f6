//! The second look: what a tool has opened is judged by the same rules as the path it was asked for.
//!
//! A path can lead elsewhere a moment after it was judged. Whoever opens it asks the kernel where the handle really
//! leads, and asks here whether a tool may be there.

use std::path::{Path, PathBuf};

use crate::path::{find_objection, steers_programs};
use crate::policy::GatePolicy;
use crate::reason::GateReason;

/// What a tool's path stands for, as an absolute path: `~` is the user's home, and what is relative begins in the
/// workspace. Nothing is looked up.
///
/// # Errors
/// When the text is no path that a tool takes.
pub fn absolute_tool_path(text: &str, policy: &GatePolicy) -> Result<PathBuf, GateReason> {
    let not = |what| GateReason::NotAPath { path: text.to_owned(), what };
    if text.is_empty() || text.contains('\0') {
        return Err(not("is no path"));
    }
    match text.strip_prefix('~') {
        None => Ok(policy.workspace.join(text)),
        Some("") => Ok(policy.user_home.clone()),
        Some(rest) => match rest.strip_prefix('/') {
            Some(rest) => Ok(policy.user_home.join(rest.trim_start_matches('/'))),
            None => Err(not("names someone's home")),
        },
    }
}

/// Judges the place that a handle really leads to, with all links followed.
///
/// # Errors
/// With the rule that speaks against it.
pub fn judge_opened_path(place: &Path, policy: &GatePolicy) -> Result<(), GateReason> {
    match find_objection(&place.display().to_string(), place, policy) {
        None => Ok(()),
        Some(reason) => Err(reason),
    }
}

/// Judges a place that is about to be written, by the path that was asked for and by where it really lies. A file that
/// steers other programs is high by its name; under another name it was judged as any file, so it stays as it is.
///
/// # Errors
/// When only the place says what it is.
pub fn judge_write_target(asked: &Path, place: &Path) -> Result<(), GateReason> {
    if steers_programs(place) && !steers_programs(asked) {
        return Err(GateReason::SteersPrograms { path: asked.display().to_string() });
    }
    Ok(())
}
