//! The words of the policy's language for a person at this desktop.

use std::time::Duration;

use shepherd_api::{EndReason, Millis, StopRequester};
use shepherd_text::SentenceCatalogue;

/// Describes a length of time, rounded up to seconds, so that a warning that comes a moment late still shows a round
/// number.
pub(crate) fn length(catalogue: &SentenceCatalogue, Millis(millis): Millis) -> String {
    catalogue.duration(Duration::from_secs(millis.div_ceil(1000)))
}

/// Explains to a child why a program was ended. `None` if the child knows, because the program ended by itself.
pub(crate) fn end_reason(catalogue: &SentenceCatalogue, end: &EndReason) -> Option<String> {
    match end {
        EndReason::Expired => Some(catalogue.end_expired()),
        EndReason::Stopped { by: StopRequester::Admin } => Some(catalogue.end_stopped_by_parent()),
        EndReason::Stopped { by: StopRequester::Policy } => Some(catalogue.end_shepherd_stops()),
        EndReason::LaunchFailed { .. } | EndReason::LaunchTimedOut => Some(catalogue.end_not_started()),
        EndReason::Exited { .. } | EndReason::Stopped { by: StopRequester::User } | EndReason::Lost => None,
    }
}
