//! The demonstration as text: every claim is checked while it is made; one that does not hold ends it with an error.

use std::time::{Duration, Instant};

use shepherd_api::{Command, CommandReply, EndReason, EventKind, SessionView};
use shepherd_ipc::{BlockingClient, CallError, ServerPush};
use shepherd_util::EntryId;
use ward_ledger::LedgerFormat;

use crate::audit::EVENT_HASH;
use crate::context::DisplaySettings;
use crate::demo::demo_daemon::DemoDaemon;
use crate::entries;
use crate::error::ShepherdCliError;
use crate::event_text::EventFormatter;
use crate::humanize;
use crate::output::{ConsoleOutput, TextTone, paint};

/// An entry that ends when it is asked to.
pub(super) const OBEDIENT: &str = "twenty-seconds";

/// One that does not.
pub(super) const STUBBORN: &str = "stubborn";

/// What the stubborn one is given between being asked and being killed. A little less than the policy says: the two
/// moments that we compare are rounded.
const GRACE: Duration = Duration::from_millis(1_900);

/// How long after its end a session may be told of, on a machine that has much else to do.
const MAX_LATENESS: Duration = Duration::from_secs(15);

pub(super) fn run_text_demo(
    household: &DemoDaemon,
    look: &DisplaySettings,
    screen: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    screen.print_line("Shepherd decides what may run, when and for how long, and ends it when time is up.");
    screen.print_line("This is a daemon of your own, with a policy to try. It takes about forty seconds.");
    let client = BlockingClient::connect(&household.client_options())?;
    let mut story = TextDemo { client, display: look, screen };
    story.show_entries()?;
    let obedient = story.run_session("A program that has twenty seconds", OBEDIENT)?;
    ensure(obedient.end == EndReason::Expired, "it did not end because time was up")?;
    let stubborn = story.run_session("A program that does not want to stop", STUBBORN)?;
    ensure(stubborn.end == EndReason::Expired, "the stubborn one did not end because time was up")?;
    ensure(stubborn.stop_duration >= GRACE, "the stubborn one was not given its grace")?;
    story.show_log(household)
}

struct TextDemo<'s> {
    client: BlockingClient,
    display: &'s DisplaySettings,
    screen: &'s mut ConsoleOutput,
}

/// How a session went.
struct DemoSession {
    end: EndReason,
    /// From the end of its time until it was gone.
    stop_duration: Duration,
}

impl TextDemo<'_> {
    /// What could be launched; and that what could not is refused.
    fn show_entries(&mut self) -> Result<(), ShepherdCliError> {
        self.screen.print_heading("What could be launched now, and why not");
        let reply = self.client.call(Command::ListEntries { at_time: None, profile: None })?;
        let CommandReply::Entries { entries, .. } = reply else {
            return Err(ShepherdCliError::UnexpectedReply);
        };
        let narrower =
            DisplaySettings { width: self.display.width.saturating_sub(2), ..self.display.clone() };
        for line in entries::list_lines(&entries, &narrower) {
            self.screen.print_line(&format!("  {line}"));
        }
        let Some(closed) = entries.iter().find(|entry| !entry.enabled) else {
            return Err(ShepherdCliError::DemoCheckFailed("the starter policy refuses nothing".to_owned()));
        };
        match self.client.call(Command::Launch { entry_id: closed.entry_id.clone(), profile: None }) {
            Err(CallError::Refused(error)) if !error.reasons.is_empty() => {
                let reasons: Vec<String> =
                    error.reasons.iter().map(|reason| humanize::reason(reason, self.display)).collect();
                let told = format!("launching {} is refused: {}", closed.entry_id, reasons.join(" "));
                self.screen.print_marked(TextTone::Good, "✓", &told);
                Ok(())
            }
            Err(error) => Err(error.into()),
            Ok(_) => Err(ShepherdCliError::DemoCheckFailed("what may not run was launched".to_owned())),
        }
    }

    /// Launches an entry and tells what happens until it is gone.
    fn run_session(&mut self, heading: &str, entry: &str) -> Result<DemoSession, ShepherdCliError> {
        self.screen.print_heading(heading);
        let entry_id: EntryId =
            entry.parse().map_err(|_| ShepherdCliError::DemoCheckFailed(format!("`{entry}` is no entry")))?;
        self.client.subscribe()?;
        let began = Instant::now();
        let reply = self.client.call(Command::Launch { entry_id, profile: None })?;
        let CommandReply::Launched { session } = reply else { return Err(ShepherdCliError::UnexpectedReply) };
        let length = session.remaining.map(Duration::from).unwrap_or_default();
        ensure(!length.is_zero(), "the launch was given no end")?;
        let mut teller = EventFormatter::default();
        let (mut warned, mut expired) = (Vec::new(), None);
        loop {
            let event = match self.client.next_push(Some(length + MAX_LATENESS)) {
                Ok(ServerPush::Event(event)) => event,
                Ok(ServerPush::FellBehind { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let passed = began.elapsed();
            if let Some(told) = teller.format_event(&event, self.display) {
                let clock = paint(TextTone::Faint, &format!("{:5.1} s", passed.as_secs_f64()));
                self.screen.print_line(&format!("  {clock}  {} {}", paint(told.tone, told.mark), told.text));
            }
            match event.kind {
                EventKind::WarningIssued { threshold_secs, .. } => warned.push(threshold_secs),
                EventKind::SessionExpired { .. } => expired = Some(passed),
                EventKind::SessionEnded { session_id, end } if session_id == session.session_id => {
                    let expired = expired.ok_or_else(|| {
                        ShepherdCliError::DemoCheckFailed(format!(
                            "it ended before its time: {}",
                            humanize::end_reason(&end)
                        ))
                    })?;
                    self.check_session(&session, &warned, length, expired)?;
                    return Ok(DemoSession { end, stop_duration: passed.saturating_sub(expired) });
                }
                _ => {}
            }
        }
    }

    fn check_session(
        &mut self,
        session: &SessionView,
        warned: &[u64],
        length: Duration,
        expired: Duration,
    ) -> Result<(), ShepherdCliError> {
        ensure(warned == [10, 5], &format!("it was warned {warned:?} seconds before the end, not [10, 5]"))?;
        ensure(expired >= length, "it was ended before its time was up")?;
        ensure(expired <= length + MAX_LATENESS, "it was ended long after its time was up")?;
        let state = self.client.call(Command::GetState {})?;
        let CommandReply::State { snapshot } = state else { return Err(ShepherdCliError::UnexpectedReply) };
        ensure(snapshot.session.is_none(), &format!("`{}` still runs", session.entry_id))?;
        let told = "warned at 10 and at 5 seconds, not ended a moment early, and every process of it is gone";
        self.screen.print_marked(TextTone::Good, "✓", told);
        Ok(())
    }

    fn show_log(&mut self, household: &DemoDaemon) -> Result<(), ShepherdCliError> {
        self.screen.print_heading("The record of it");
        let log = household.audit_log();
        let report = ward_ledger::verify(&log, &LedgerFormat::new(EVENT_HASH)?, None)
            .map_err(|source| ShepherdCliError::Verify { log, source })?;
        ensure(report.is_sound(), "the audit log is not sound")?;
        let told = format!("{} records, each with the hash of the one before: sound", report.records);
        self.screen.print_marked(TextTone::Good, "✓", &told);
        Ok(())
    }
}

fn ensure(held: bool, otherwise: &str) -> Result<(), ShepherdCliError> {
    if held { Ok(()) } else { Err(ShepherdCliError::DemoCheckFailed(otherwise.to_owned())) }
}
