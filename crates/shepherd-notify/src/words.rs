//! The sentences that people read.

use std::time::Duration;

use jiff::{Timestamp, Zoned};
use shepherd_api::{EndReason, Millis, StopRequester};
use shepherd_util::HumanDuration;

/// Describes a length of time, rounded up to seconds, so that a warning that comes a moment late still shows a round
/// number.
pub(crate) fn length(Millis(millis): Millis) -> String {
    HumanDuration(Duration::from_secs(millis.div_ceil(1000))).to_string()
}

/// Explains to a child why a program was ended. `None` if the child knows, because the program ended by itself.
pub(crate) fn end_reason(end: &EndReason) -> Option<&'static str> {
    match end {
        EndReason::Expired => Some("The time is up."),
        EndReason::Stopped { by: StopRequester::Admin } => Some("A parent has stopped it."),
        EndReason::Stopped { by: StopRequester::Policy } => Some("Shepherd is being stopped."),
        EndReason::LaunchFailed { .. } | EndReason::LaunchTimedOut => Some("It could not be started."),
        EndReason::Exited { .. } | EndReason::Stopped { by: StopRequester::User } | EndReason::Lost => None,
    }
}

/// Returns the text of a button that asks for time.
pub(crate) fn ask_button(minutes: u32) -> String {
    format!("Ask for {minutes} more minutes")
}

/// Formats a time in the zone of `now`, as short as possible seen from then.
pub(crate) fn time(at: Timestamp, now: &Zoned) -> String {
    let then = at.to_zoned(now.time_zone().clone());
    let format = match (then.date() - now.date()).get_days() {
        0 => "%H:%M",
        1 => "tomorrow %H:%M",
        2..=6 => "%a %H:%M",
        _ => "%Y-%m-%d %H:%M",
    };
    then.strftime(format).to_string()
}
