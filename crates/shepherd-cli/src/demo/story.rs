//! The demonstration as text: every claim is checked while it is made; one that does not hold ends it with an error.

use std::time::{Duration, Instant};

use shepherd_api::{Command, EndReason, EventKind, Reply, SessionView};
use shepherd_ipc::{CallError, Client, Pushed};
use shepherd_util::EntryId;
use ward_ledger::Format;

use crate::audit::EVENT_HASH;
use crate::context::Look;
use crate::demo::household::Household;
use crate::entries;
use crate::failure::Failure;
use crate::screen::{Screen, Tone, paint};
use crate::tell::Teller;
use crate::words;

/// An entry that ends when it is asked to.
pub(super) const OBEDIENT: &str = "twenty-seconds";

/// One that does not.
pub(super) const STUBBORN: &str = "stubborn";

/// What the stubborn one is given between being asked and being killed. A little less than the policy says: the two
/// moments that we compare are rounded.
const GRACE: Duration = Duration::from_millis(1_900);

/// How long after its end a session may be told of, on a machine that has much else to do.
const LATE: Duration = Duration::from_secs(15);

pub(super) fn tell(household: &Household, look: &Look, screen: &mut Screen) -> Result<(), Failure> {
    screen.line("Shepherd decides what may run, when and for how long, and ends it when time is up.");
    screen.line("This is a daemon of your own, with a policy to try. It takes about forty seconds.");
    let client = Client::connect(&household.client_options())?;
    let mut story = Story { client, look, screen };
    story.show_entries()?;
    let obedient = story.run("A program that has twenty seconds", OBEDIENT)?;
    expect(obedient.end == EndReason::Expired, "it did not end because time was up")?;
    let stubborn = story.run("A program that does not want to stop", STUBBORN)?;
    expect(stubborn.end == EndReason::Expired, "the stubborn one did not end because time was up")?;
    expect(stubborn.ending >= GRACE, "the stubborn one was not given its grace")?;
    story.show_log(household)
}

struct Story<'s> {
    client: Client,
    look: &'s Look,
    screen: &'s mut Screen,
}

/// How a session went.
struct Run {
    end: EndReason,
    /// From the end of its time until it was gone.
    ending: Duration,
}

impl Story<'_> {
    /// What could be launched; and that what could not is refused.
    fn show_entries(&mut self) -> Result<(), Failure> {
        self.screen.heading("What could be launched now, and why not");
        let reply = self.client.call(Command::ListEntries { at_time: None, profile: None })?;
        let Reply::Entries { entries, .. } = reply else { return Err(Failure::StrangeReply) };
        let narrower = Look { width: self.look.width.saturating_sub(2), ..self.look.clone() };
        for line in entries::list_lines(&entries, &narrower) {
            self.screen.line(&format!("  {line}"));
        }
        let Some(closed) = entries.iter().find(|entry| !entry.enabled) else {
            return Err(Failure::NotAsTold("the starter policy refuses nothing".to_owned()));
        };
        match self.client.call(Command::Launch { entry_id: closed.entry_id.clone(), profile: None }) {
            Err(CallError::Refused(error)) if !error.reasons.is_empty() => {
                let reasons: Vec<String> =
                    error.reasons.iter().map(|reason| words::reason(reason, self.look)).collect();
                let told = format!("launching {} is refused: {}", closed.entry_id, reasons.join(" "));
                self.screen.toned(Tone::Good, "✓", &told);
                Ok(())
            }
            Err(error) => Err(error.into()),
            Ok(_) => Err(Failure::NotAsTold("what may not run was launched".to_owned())),
        }
    }

    /// Launches an entry and tells what happens until it is gone.
    fn run(&mut self, heading: &str, entry: &str) -> Result<Run, Failure> {
        self.screen.heading(heading);
        let entry_id: EntryId =
            entry.parse().map_err(|_| Failure::NotAsTold(format!("`{entry}` is no entry")))?;
        self.client.subscribe()?;
        let began = Instant::now();
        let reply = self.client.call(Command::Launch { entry_id, profile: None })?;
        let Reply::Launched { session } = reply else { return Err(Failure::StrangeReply) };
        let length = session.remaining.map(Duration::from).unwrap_or_default();
        expect(!length.is_zero(), "the launch was given no end")?;
        let mut teller = Teller::default();
        let (mut warned, mut expired) = (Vec::new(), None);
        loop {
            let event = match self.client.pushed(Some(length + LATE)) {
                Ok(Pushed::Event(event)) => event,
                Ok(Pushed::FellBehind { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            let passed = began.elapsed();
            if let Some(told) = teller.tell(&event, self.look) {
                let clock = paint(Tone::Faint, &format!("{:5.1} s", passed.as_secs_f64()));
                self.screen.line(&format!("  {clock}  {} {}", paint(told.tone, told.mark), told.text));
            }
            match event.kind {
                EventKind::WarningIssued { threshold_secs, .. } => warned.push(threshold_secs),
                EventKind::SessionExpired { .. } => expired = Some(passed),
                EventKind::SessionEnded { session_id, end } if session_id == session.session_id => {
                    let expired = expired.ok_or_else(|| {
                        Failure::NotAsTold(format!("it ended before its time: {}", words::end(&end)))
                    })?;
                    self.check(&session, &warned, length, expired)?;
                    return Ok(Run { end, ending: passed.saturating_sub(expired) });
                }
                _ => {}
            }
        }
    }

    fn check(
        &mut self,
        session: &SessionView,
        warned: &[u64],
        length: Duration,
        expired: Duration,
    ) -> Result<(), Failure> {
        expect(warned == [10, 5], &format!("it was warned {warned:?} seconds before the end, not [10, 5]"))?;
        expect(expired >= length, "it was ended before its time was up")?;
        expect(expired <= length + LATE, "it was ended long after its time was up")?;
        let state = self.client.call(Command::GetState {})?;
        let Reply::State { snapshot } = state else { return Err(Failure::StrangeReply) };
        expect(snapshot.session.is_none(), &format!("`{}` still runs", session.entry_id))?;
        let told = "warned at 10 and at 5 seconds, not ended a moment early, and every process of it is gone";
        self.screen.toned(Tone::Good, "✓", told);
        Ok(())
    }

    fn show_log(&mut self, household: &Household) -> Result<(), Failure> {
        self.screen.heading("The record of it");
        let log = household.audit_log();
        let report = ward_ledger::verify(&log, &Format::new(EVENT_HASH)?, None)
            .map_err(|source| Failure::Verify { log, source })?;
        expect(report.is_sound(), "the audit log is not sound")?;
        let told = format!("{} records, each with the hash of the one before: sound", report.records);
        self.screen.toned(Tone::Good, "✓", &told);
        Ok(())
    }
}

fn expect(held: bool, otherwise: &str) -> Result<(), Failure> {
    if held { Ok(()) } else { Err(Failure::NotAsTold(otherwise.to_owned())) }
}
