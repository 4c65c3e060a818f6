//! Output of the `sop` commands: procedures, dry runs, and the state of runs.

use collieclaw_agent::receipts::hash_text;
use collieclaw_agent::sop::{
    DryRunResult, Sop, SopRun, SopRunHalt, SopRunState, SopRunStore, SopStep, StepStatus,
};
use collieclaw_agent::tools::Tool;
use collieclaw_gate::GateReason;
use serde_json::{Value, json};
use ward_terminal::{align_columns, escape_line, escape_lines, format_count};

use super::files::{self, SopFile, SopLoadError, SopLoadResult};
use super::{started_copy, step_kind, steps_json};
use crate::cli::environment::CliEnvironment;
use crate::cli::failure::CommandFailure;
use crate::cli::output::{OutputPrinter, format_timestamp};

pub(super) fn print_sops(
    all: &[SopLoadResult],
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let value: Vec<Value> = all
        .iter()
        .map(|(name, read)| match read {
            Ok(sop) => json!({ "name": name, "valid": true, "sop": sop }),
            Err(SopLoadError::Faults(report)) => json!({ "name": name, "valid": false, "faults": report }),
            Err(SopLoadError::Unreadable(why)) => json!({ "name": name, "valid": false, "fault": why }),
        })
        .collect();
    screen.print_answer(&value, || {
        let row = |(name, read): &SopLoadResult| match read {
            Ok(sop) => vec![
                name.clone(),
                format_count(sop.steps.len(), "step", "steps"),
                escape_line(&sop.description),
            ],
            Err(_) => {
                vec![
                    escape_line(name),
                    "NOT VALID".to_owned(),
                    "run `collieclaw sop validate` to see why".to_owned(),
                ]
            }
        };
        if all.is_empty() {
            let place = environment.home.sops().join("NAME").join(files::SOP_FILE_NAME);
            return format!(
                "no procedures yet: write one to {} (docs/collieclaw-sop.md has an example)",
                place.display()
            );
        }
        align_columns(&all.iter().map(row).collect::<Vec<_>>())
    });
    Ok(())
}

pub(super) fn print_dry_run(results: &[(&SopStep, DryRunResult)], screen: &OutputPrinter) {
    let value: Vec<Value> = results
        .iter()
        .map(|(step, said)| match said {
            DryRunResult::Judged(verdict) => {
                json!({ "id": step.id, "kind": step_kind(step), "verdict": verdict })
            }
            DryRunResult::InvalidArguments(bad) => {
                json!({ "id": step.id, "kind": step_kind(step), "fault": bad.to_string() })
            }
            DryRunResult::AsksModel => json!({ "id": step.id, "kind": step_kind(step), "asks": "model" }),
            DryRunResult::AwaitsApproval => {
                json!({ "id": step.id, "kind": step_kind(step), "asks": "operator" })
            }
        })
        .collect();
    screen.print_answer(&value, || {
        let row = |(step, said): &(&SopStep, DryRunResult)| {
            let (word, why) = match said {
                DryRunResult::Judged(verdict) => {
                    let reasons: Vec<String> = verdict.reasons.iter().map(GateReason::detail).collect();
                    (verdict.decision.to_string(), format!("{}: {}", verdict.risk, reasons.join("; ")))
                }
                DryRunResult::InvalidArguments(bad) => ("deny".to_owned(), bad.to_string()),
                DryRunResult::AsksModel => {
                    ("model".to_owned(), "each call is checked when the model makes it".to_owned())
                }
                DryRunResult::AwaitsApproval => ("waits".to_owned(), "until you approve".to_owned()),
            };
            vec![step.id.clone(), step_kind(step), word, escape_line(&why)]
        };
        let rows: Vec<Vec<String>> = results.iter().map(row).collect();
        format!("{}\n\nNothing was run.", align_columns(&rows))
    });
}

/// Reports the state of a run. The output of a finished run goes to standard output.
pub(super) fn print_halt(
    run: &SopRun,
    sop: &Sop,
    halt: &SopRunHalt,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let name = &run.header.run;
    let mut value = json!({ "run": name, "sop": sop.name, "steps": steps_json(run, sop) });
    if let (Value::Object(members), Value::Object(state)) = (&mut value, json!(run.state(sop))) {
        members.extend(state);
    }
    if screen.is_json() {
        screen.print_answer(&value, String::new);
        return Ok(());
    }
    for step in &sop.steps {
        if let Some(ended) = run.ended_step(&step.id).filter(|ended| ended.end != StepStatus::Done) {
            let why = ended.output.lines().next().unwrap_or_default();
            screen.print_remark(&format!("{}: {}", step.id, escape_line(why)));
        }
    }
    match halt {
        SopRunHalt::Waiting { step, prompt } => {
            screen.print_remark(&format!("{step} asks: {}", escape_lines(prompt)));
            screen.print_remark(&format!("Approve with: collieclaw sop approve {name} --step {step}"));
        }
        SopRunHalt::NoOperator { step } | SopRunHalt::Stopped { step, .. } => {
            screen.print_remark(&format!("{name} stopped at step {step}"));
        }
        SopRunHalt::Interrupted { step, receipt_id } => {
            let receipt = receipt_id.as_deref().unwrap_or("none");
            screen.print_remark(&format!("{step} was interrupted; its receipt: {receipt}"));
        }
        SopRunHalt::Over(SopRunState::Finished) => {
            let last = sop.steps.iter().rev().find_map(|step| run.ended_step(&step.id));
            if let Some(last) = last {
                screen.print_untrusted(&last.output)?;
            }
        }
        SopRunHalt::Over(_) => {}
    }
    Ok(())
}

pub(super) fn print_runs(
    runs: &SopRunStore,
    tools: &[Box<dyn Tool>],
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let mut listed = Vec::new();
    for name in runs.names()? {
        // Unreadable runs are listed as well.
        listed.push((name.clone(), load_run(runs, &name, tools, environment)));
    }
    listed.sort_by_key(|(_, listing)| listing.as_ref().ok().map(|listing| listing.run.header.started));
    let value = |(name, listing): &(String, Result<RunListing, CommandFailure>)| match listing {
        Ok(listing) => listing.to_json(),
        Err(failure) => json!({ "run": name, "state": "unreadable", "fault": failure.to_string() }),
    };
    screen.print_answer(&listed.iter().map(value).collect::<Vec<_>>(), || {
        let row = |(name, listing): &(String, Result<RunListing, CommandFailure>)| match listing {
            Ok(listing) => {
                let header = &listing.run.header;
                vec![name.clone(), format_timestamp(header.started), header.sop.clone(), listing.describe()]
            }
            Err(failure) => {
                vec![escape_line(name), "-".to_owned(), "-".to_owned(), escape_line(&failure.to_string())]
            }
        };
        if listed.is_empty() {
            return "no runs yet: start one with `collieclaw sop run NAME`".to_owned();
        }
        align_columns(&listed.iter().map(row).collect::<Vec<_>>())
    });
    Ok(())
}

pub(super) fn print_run(
    runs: &SopRunStore,
    name: &str,
    tools: &[Box<dyn Tool>],
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let listing = load_run(runs, name, tools, environment)?;
    let mut value = listing.to_json();
    if let Value::Object(members) = &mut value {
        members.insert("steps".to_owned(), steps_json(&listing.run, &listing.sop).into());
    }
    screen.print_answer(&value, || {
        let run = &listing.run;
        let row = |step: &SopStep| {
            let how = match run.ended_step(&step.id).map(|ended| ended.end) {
                Some(StepStatus::Done) => "done",
                Some(StepStatus::Failed) => "failed",
                Some(StepStatus::Denied) => "denied",
                None if run.is_approved(&step.id) => "approved",
                None if run.is_skipped(&step.id) => "taken as done",
                None => "-",
            };
            let first =
                run.ended_step(&step.id).and_then(|ended| ended.output.lines().next()).unwrap_or_default();
            vec![step.id.clone(), step_kind(step), how.to_owned(), escape_line(first)]
        };
        let rows: Vec<Vec<String>> = listing.sop.steps.iter().map(row).collect();
        format!("{}: {}\n{}", run.header.run, listing.describe(), align_columns(&rows))
    });
    Ok(())
}

/// A run with its state, as `sop status` shows it.
struct RunListing {
    run: SopRun,
    sop: Sop,
    held: bool,
    changed: bool,
}

fn load_run(
    runs: &SopRunStore,
    name: &str,
    tools: &[Box<dyn Tool>],
    environment: &CliEnvironment,
) -> Result<RunListing, CommandFailure> {
    let (run, held) = runs.inspect(name)?;
    let (_, sop) = files::parse(started_copy(&run), tools);
    let sop = sop.map_err(|unfit| match unfit {
        SopLoadError::Faults(report) => CommandFailure::Sop { report: Box::new(report) },
        SopLoadError::Unreadable(what) => {
            CommandFailure::InvalidInput { what, cure: "run `collieclaw sop validate` to see why" }
        }
    })?;
    let now = files::load(&run.header.sop, environment);
    let changed = !matches!(now, Ok(SopFile { text, .. }) if hash_text(&text) == run.header.sop_hash);
    Ok(RunListing { run, sop, held, changed })
}

impl RunListing {
    fn to_json(&self) -> Value {
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

    fn describe(&self) -> String {
        let state = match self.run.state(&self.sop) {
            _ if self.held => "running".to_owned(),
            SopRunState::Finished => "finished".to_owned(),
            SopRunState::Failed { step } => format!("failed at {step}"),
            SopRunState::Cancelled => "cancelled".to_owned(),
            SopRunState::Waiting { step, prompt } => {
                format!("waits for you at {step}: {}", escape_line(&prompt))
            }
            SopRunState::Interrupted { step } => format!("interrupted in {step}"),
            SopRunState::Ready { step } => format!("stopped before {step}"),
        };
        let changed = if self.changed { " (the procedure has changed since)" } else { "" };
        format!("{state}{changed}")
    }
}
