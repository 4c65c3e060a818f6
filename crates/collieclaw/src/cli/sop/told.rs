//! What is told of procedures and their runs.

use collieclaw::channels::{visible, visible_lines};
use collieclaw::receipts::hash_of_text;
use collieclaw::sop::{End, Halt, Rehearsed, Run, Runs, Sop, State, Step};
use collieclaw::tools::Tool;
use collieclaw_gate::Reason;
use serde_json::{Value, json};

use super::found::{self, Found, Read, Unfit};
use super::{copy, kind, steps};
use crate::cli::environment::Environment;
use crate::cli::failure::Failure;
use crate::cli::screen::{Screen, count, moment, table};

pub(super) fn list(all: &[Read], environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let value: Vec<Value> = all
        .iter()
        .map(|(name, read)| match read {
            Ok(sop) => json!({ "name": name, "valid": true, "sop": sop }),
            Err(Unfit::Faults(report)) => json!({ "name": name, "valid": false, "faults": report }),
            Err(Unfit::Unread(why)) => json!({ "name": name, "valid": false, "fault": why }),
        })
        .collect();
    screen.answer(&value, || {
        let row = |(name, read): &Read| match read {
            Ok(sop) => vec![name.clone(), count(sop.steps.len() as u64, "step"), visible(&sop.description)],
            Err(_) => {
                vec![visible(name), "NOT VALID".to_owned(), "`collieclaw sop validate` tells why".to_owned()]
            }
        };
        if all.is_empty() {
            let place = environment.home.sops().join("NAME").join(found::FILE);
            return format!(
                "no procedures yet: write one to {} (docs/collieclaw-sop.md has one)",
                place.display()
            );
        }
        table(&all.iter().map(row).collect::<Vec<_>>())
    });
    Ok(())
}

pub(super) fn rehearsal(rehearsed: &[(&Step, Rehearsed)], screen: &Screen) {
    let value: Vec<Value> = rehearsed
        .iter()
        .map(|(step, said)| match said {
            Rehearsed::Judged(verdict) => json!({ "id": step.id, "kind": kind(step), "verdict": verdict }),
            Rehearsed::Bad(bad) => json!({ "id": step.id, "kind": kind(step), "fault": bad.to_string() }),
            Rehearsed::Model => json!({ "id": step.id, "kind": kind(step), "asks": "model" }),
            Rehearsed::Waits => json!({ "id": step.id, "kind": kind(step), "asks": "operator" }),
        })
        .collect();
    screen.answer(&value, || {
        let row = |(step, said): &(&Step, Rehearsed)| {
            let (word, why) = match said {
                Rehearsed::Judged(verdict) => {
                    let reasons: Vec<String> = verdict.reasons.iter().map(Reason::detail).collect();
                    (verdict.decision.to_string(), format!("{}: {}", verdict.risk, reasons.join("; ")))
                }
                Rehearsed::Bad(bad) => ("deny".to_owned(), bad.to_string()),
                Rehearsed::Model => {
                    ("model".to_owned(), "each of its calls is judged when it comes".to_owned())
                }
                Rehearsed::Waits => ("waits".to_owned(), "until you approve".to_owned()),
            };
            vec![step.id.clone(), kind(step), word, visible(&why)]
        };
        let rows: Vec<Vec<String>> = rehearsed.iter().map(row).collect();
        format!("{}\n\nNothing was run.", table(&rows))
    });
}

/// Where a run stands now; its output goes on standard output when it is finished.
pub(super) fn halt(run: &Run, sop: &Sop, halt: &Halt, screen: &Screen) -> Result<(), Failure> {
    let name = &run.header.run;
    let mut value = json!({ "run": name, "sop": sop.name, "steps": steps(run, sop) });
    if let (Value::Object(members), Value::Object(state)) = (&mut value, json!(run.state(sop))) {
        members.extend(state);
    }
    if screen.is_for_programs() {
        screen.answer(&value, String::new);
        return Ok(());
    }
    for step in &sop.steps {
        if let Some(ended) = run.ended(&step.id).filter(|ended| ended.end != End::Done) {
            let why = ended.output.lines().next().unwrap_or_default();
            screen.remark(&format!("{}: {}", step.id, visible(why)));
        }
    }
    match halt {
        Halt::Waiting { step, prompt } => {
            screen.remark(&format!("{step} asks: {}", visible_lines(prompt)));
            screen.remark(&format!("Say yes with: collieclaw sop approve {name} --step {step}"));
        }
        Halt::Stopped { step, .. } => screen.remark(&format!("{name} stopped at the step {step}")),
        Halt::Interrupted { step, receipt_id } => {
            let receipt = receipt_id.as_deref().unwrap_or("none");
            screen.remark(&format!("{step} was interrupted; its receipt: {receipt}"));
        }
        Halt::Over(State::Finished) => {
            let last = sop.steps.iter().rev().find_map(|step| run.ended(&step.id));
            if let Some(last) = last {
                screen.foreign(&last.output)?;
            }
        }
        Halt::Over(_) => {}
    }
    Ok(())
}

pub(super) fn runs(
    runs: &Runs,
    tools: &[Box<dyn Tool>],
    environment: &Environment,
    screen: &Screen,
) -> Result<(), Failure> {
    let mut listed = Vec::new();
    for name in runs.names()? {
        // One that can't be read is listed, too.
        listed.push((name.clone(), standing(runs, &name, tools, environment)));
    }
    listed.sort_by_key(|(_, standing)| standing.as_ref().ok().map(|standing| standing.run.header.started));
    let value = |(name, standing): &(String, Result<Standing, Failure>)| match standing {
        Ok(standing) => standing.value(),
        Err(failure) => json!({ "run": name, "state": "unreadable", "fault": failure.to_string() }),
    };
    screen.answer(&listed.iter().map(value).collect::<Vec<_>>(), || {
        let row = |(name, standing): &(String, Result<Standing, Failure>)| match standing {
            Ok(standing) => {
                let header = &standing.run.header;
                vec![name.clone(), moment(header.started), header.sop.clone(), standing.words()]
            }
            Err(failure) => {
                vec![visible(name), "-".to_owned(), "-".to_owned(), visible(&failure.to_string())]
            }
        };
        if listed.is_empty() {
            return "no procedure was run yet: `collieclaw sop run NAME` begins".to_owned();
        }
        table(&listed.iter().map(row).collect::<Vec<_>>())
    });
    Ok(())
}

pub(super) fn run(
    runs: &Runs,
    name: &str,
    tools: &[Box<dyn Tool>],
    environment: &Environment,
    screen: &Screen,
) -> Result<(), Failure> {
    let standing = standing(runs, name, tools, environment)?;
    let mut value = standing.value();
    if let Value::Object(members) = &mut value {
        members.insert("steps".to_owned(), steps(&standing.run, &standing.sop).into());
    }
    screen.answer(&value, || {
        let run = &standing.run;
        let row = |step: &Step| {
            let how = match run.ended(&step.id).map(|ended| ended.end) {
                Some(End::Done) => "done",
                Some(End::Failed) => "failed",
                Some(End::Denied) => "denied",
                None if run.is_approved(&step.id) => "approved",
                None if run.is_skipped(&step.id) => "taken as done",
                None => "-",
            };
            let first = run.ended(&step.id).and_then(|ended| ended.output.lines().next()).unwrap_or_default();
            vec![step.id.clone(), kind(step), how.to_owned(), visible(first)]
        };
        let rows: Vec<Vec<String>> = standing.sop.steps.iter().map(row).collect();
        format!("{}: {}\n{}", run.header.run, standing.words(), table(&rows))
    });
    Ok(())
}

/// A run, and where it stands.
struct Standing {
    run: Run,
    sop: Sop,
    held: bool,
    changed: bool,
}

fn standing(
    runs: &Runs,
    name: &str,
    tools: &[Box<dyn Tool>],
    environment: &Environment,
) -> Result<Standing, Failure> {
    let (run, held) = runs.look(name)?;
    let (_, sop) = found::read(copy(&run), tools);
    let sop = sop.map_err(|unfit| match unfit {
        Unfit::Faults(report) => Failure::Sop { report: Box::new(report) },
        Unfit::Unread(what) => Failure::Wrong { what, cure: "`collieclaw sop validate` tells why" },
    })?;
    let now = found::one(&run.header.sop, environment);
    let changed = !matches!(now, Ok(Found { text, .. }) if hash_of_text(&text) == run.header.sop_hash);
    Ok(Standing { run, sop, held, changed })
}

impl Standing {
    fn value(&self) -> Value {
        let header = &self.run.header;
        let mut value = json!({ "run": header.run, "sop": header.sop, "started": header.started,
            "sop_hash": header.sop_hash, "changed_since": self.changed });
        if let (Value::Object(members), Value::Object(state)) = (&mut value, json!(self.run.state(&self.sop)))
        {
            members.extend(state);
            if self.held {
                members.insert("state".to_owned(), "running".into());
            }
        }
        value
    }

    fn words(&self) -> String {
        let state = match self.run.state(&self.sop) {
            _ if self.held => "running".to_owned(),
            State::Finished => "finished".to_owned(),
            State::Failed { step } => format!("failed at {step}"),
            State::Cancelled => "cancelled".to_owned(),
            State::Waiting { step, prompt } => format!("waits for you at {step}: {}", visible(&prompt)),
            State::Interrupted { step } => format!("interrupted in {step}"),
            State::Ready { step } => format!("stopped before {step}"),
        };
        let changed = if self.changed { " (the procedure has changed since)" } else { "" };
        format!("{state}{changed}")
    }
}
