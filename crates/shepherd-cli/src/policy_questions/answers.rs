//! The answers to the questions.

use std::time::Duration;

use shepherd_api::AdminPin;
use shepherd_config::NightHours;

/// All answers, each checked.
pub(super) struct PolicyAnswers {
    pub(super) children: Vec<ChildAnswers>,
    pub(super) minutes: PlayTime,
    pub(super) programs: Vec<ChosenProgram>,
    /// The logins of the parents.
    pub(super) parents: Vec<String>,
    pub(super) pin: Option<AdminPin>,
    /// The times of the warnings before the end, the longest first.
    pub(super) warnings: Vec<Duration>,
}

pub(super) struct ChildAnswers {
    pub(super) id: String,
    pub(super) label: String,
    pub(super) login: String,
    pub(super) school_nights: Option<NightHours>,
    pub(super) weekends: Option<NightHours>,
}

/// The time of games for a day; `None` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlayTime {
    pub(super) weekdays: Option<Duration>,
    pub(super) weekends: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChosenProgram {
    pub(super) label: String,
    pub(super) launch: ProgramLaunch,
    pub(super) is_free: bool,
}

/// The way in which a program is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ProgramLaunch {
    Command(Vec<String>),
    Flatpak(String),
}
