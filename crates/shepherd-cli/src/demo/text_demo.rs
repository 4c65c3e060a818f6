//! The demonstration as text. It checks each of its claims, and ends with an error if a claim does not hold.

use std::time::{Duration, Instant};

use shepherd_api::{Command, CommandReply, EndReason, EventKind, SessionView};
use shepherd_ipc::{BlockingClient, CallError, ServerPush};
use shepherd_util::EntryId;
use ward_ledger::LedgerFormat;
use ward_terminal::{TextTone, escape_label, paint};

use crate::audit::EVENT_HASH;
use crate::context::{DisplaySettings, PolicyLabels};
use crate::demo::demo_daemon::DemoDaemon;
use crate::entries;
use crate::error::{ShepherdCliError, ensure};
use crate::event_text::EventFormatter;
use crate::humanize;
use crate::output::ConsoleOutput;

/// An entry whose program exits when asked.
pub(super) const OBEDIENT: &str = "twenty-seconds";

/// An entry whose program ignores the request to exit.
pub(super) const STUBBORN: &str = "stubborn";

/// Least time between the request to exit and the kill of the stubborn program. A little less than the policy's grace,
/// because both times are rounded.
const GRACE: Duration = Duration::from_millis(1_900);

/// Longest delay of an event after the end of a session, on a busy machine.
const MAX_LATENESS: Duration = Duration::from_secs(15);

pub(super) fn run_text_demo(
    daemon: &DemoDaemon,
    display: &DisplaySettings,
    output: &mut ConsoleOutput,
) -> Result<(), ShepherdCliError> {
    output.print_line("Shepherd decides what may run, when and for how long, and stops it when time is up.");
    output.print_line("This demonstration uses a temporary daemon and takes about forty seconds.");
    let client = BlockingClient::connect(&daemon.client_options())?;
    let mut demo = TextDemo { client, display, output };
    demo.show_entries()?;
    let obedient = demo.run_session("A program with twenty seconds", OBEDIENT)?;
    ensure(obedient.end == EndReason::Expired, "the program did not end because time was up")?;
    let stubborn = demo.run_session("A program that refuses to stop", STUBBORN)?;
    ensure(stubborn.end == EndReason::Expired, "the stubborn program did not end because time was up")?;
    ensure(stubborn.stop_duration >= GRACE, "the stubborn program was not given its grace")?;
    demo.show_log(daemon)
}

struct TextDemo<'s> {
    client: BlockingClient,
    display: &'s DisplaySettings,
    output: &'s mut ConsoleOutput,
}

struct DemoSession {
    end: EndReason,
    /// Time from the end of the session until the program was gone.
    stop_duration: Duration,
}

impl TextDemo<'_> {
    /// Lists the entries, and shows that a closed entry is refused.
    fn show_entries(&mut self) -> Result<(), ShepherdCliError> {
        self.output.print_heading("Entries that can be launched now, and why others can't");
        let reply = self.client.call(Command::ListEntries { at_time: None, profile: None })?;
        let CommandReply::Entries { entries, .. } = reply else {
            return Err(ShepherdCliError::UnexpectedReply);
        };
        let mut display = self.display.with_labels(PolicyLabels::from_entries(&entries));
        display.width = display.width.saturating_sub(2);
        for line in entries::list_lines(&entries, entries::SessionOwner::ListedChild, &display) {
            self.output.print_line(&format!("  {line}"));
        }
        let Some(closed) = entries.iter().find(|entry| !entry.enabled) else {
            return Err(ShepherdCliError::DemoCheckFailed("the starter policy refuses nothing".to_owned()));
        };
        match self.client.call(Command::Launch {
            entry_id: closed.entry_id.clone(),
            profile: None,
            display: None,
        }) {
            Err(CallError::Refused(error)) if !error.reasons.is_empty() => {
                let reasons: Vec<String> =
                    error.reasons.iter().map(|reason| humanize::reason(reason, &display)).collect();
                let label = escape_label(&closed.label);
                let result = format!("launching {label} is refused: {}", reasons.join(" "));
                self.output.print_marked(TextTone::Good, "✓", &result);
                Ok(())
            }
            Err(error) => Err(error.into()),
            Ok(_) => {
                Err(ShepherdCliError::DemoCheckFailed("an entry was launched that may not run".to_owned()))
            }
        }
    }

    /// Launches an entry and prints its events until it has ended.
    fn run_session(&mut self, heading: &str, entry: &str) -> Result<DemoSession, ShepherdCliError> {
        self.output.print_heading(heading);
        let entry_id: EntryId = entry
            .parse()
            .map_err(|_| ShepherdCliError::DemoCheckFailed(format!("`{entry}` is not an entry")))?;
        self.client.subscribe()?;
        let began = Instant::now();
        let reply = self.client.call(Command::Launch { entry_id, profile: None, display: None })?;
        let CommandReply::Launched { session } = reply else { return Err(ShepherdCliError::UnexpectedReply) };
        let length = session.remaining.map(Duration::from).unwrap_or_default();
        ensure(!length.is_zero(), "the launch has no time limit")?;
        let mut formatter = EventFormatter::default();
        let (mut warned, mut expired) = (Vec::new(), None);
        loop {
            let event = match self.client.next_push(Some(length + MAX_LATENESS)) {
                Ok(ServerPush::Event(event)) => event,
                Ok(ServerPush::FellBehind { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let passed = began.elapsed();
            if let Some(line) = formatter.format_event(&event, self.display) {
                let clock = paint(TextTone::Faint, &format!("{:5.1} s", passed.as_secs_f64()));
                self.output.print_line(&format!("  {clock}  {} {}", paint(line.tone, line.mark), line.text));
            }
            match event.kind {
                EventKind::WarningIssued { threshold_secs, .. } => warned.push(threshold_secs),
                EventKind::SessionExpired { .. } => expired = Some(passed),
                EventKind::SessionEnded { session_id, end } if session_id == session.session_id => {
                    let expired = expired.ok_or_else(|| {
                        ShepherdCliError::DemoCheckFailed(format!(
                            "the program ended too early: {}",
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
        ensure(warned == [10, 5], &format!("warnings came {warned:?} seconds before the end, not [10, 5]"))?;
        ensure(expired >= length, "the program was stopped before its time was up")?;
        ensure(expired <= length + MAX_LATENESS, "the program was stopped long after its time was up")?;
        let state = self.client.call(Command::GetState {})?;
        let CommandReply::State { snapshot } = state else { return Err(ShepherdCliError::UnexpectedReply) };
        ensure(snapshot.session.is_none(), &format!("`{}` is still running", session.entry_id))?;
        let result = "warned at 10 and 5 seconds, not stopped early, and all of its processes are gone";
        self.output.print_marked(TextTone::Good, "✓", result);
        Ok(())
    }

    fn show_log(&mut self, daemon: &DemoDaemon) -> Result<(), ShepherdCliError> {
        self.output.print_heading("The log");
        let log = daemon.audit_log();
        let report = ward_ledger::verify(&log, &LedgerFormat::new(EVENT_HASH)?, None)
            .map_err(|source| ShepherdCliError::Verify { log, source })?;
        ensure(report.is_sound(), "the audit log failed verification")?;
        let result = format!("{} records, linked by their hashes, and none was changed", report.records);
        self.output.print_marked(TextTone::Good, "✓", &result);
        Ok(())
    }
}
