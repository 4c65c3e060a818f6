//! What a procedure adds to its steps: a run of a hundred calls, with its journal, against the same hundred calls through
//! the same door. Both write their receipts.

use std::cell::RefCell;
use std::error::Error;
use std::path::Path;
use std::rc::Rc;

use collieclaw::cancel::Cancel;
use collieclaw::channels::Nobody;
use collieclaw::config::{self, Choices, Surroundings, template};
use collieclaw::events::{Events, Form, Level};
use collieclaw::home::Home;
use collieclaw::memory::Memory;
use collieclaw::providers::Mock;
use collieclaw::receipts::{Receipts, Signing};
use collieclaw::runtime::{Attended, Door, Fate, Offer, Rules, Runtime, Wish};
use collieclaw::security::{SystemFacts, Workspace};
use collieclaw::sop::{self, Engine, Halt, OnInterrupted, Runs, State};
use collieclaw::tools::built_in;
use serde_json::json;
use ward_bench::{Bar, Baseline, Row, median, millis, report, timed};
use ward_diag::Source;

const ROUNDS: usize = 15;
const STEPS: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path().canonicalize()?;
    let runtime = runtime(&folder)?;
    let text = procedure();
    let sop = sop::read(Source::new("SOP.toml", &text), "hundred", &runtime.door.rules.tools)
        .map_err(|report| report.render(ward_diag::Style::Plain))?;
    let runs = Runs::new(folder.join("home/sop-runs"));
    let (mut ours, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (called, time) = timed(|| calls(&runtime));
        called?;
        alone.push(millis(time));
        let (run, time) = timed(|| -> Result<Halt, Box<dyn Error>> {
            let mut run = runs.begin("hundred", &text)?;
            let mut attended = Attended { operator: &mut Nobody, cancel: &Cancel::new()? };
            Ok(Engine { runtime: &runtime, sop: &sop }.go(&mut run, OnInterrupted::Ask, &mut attended)?)
        });
        if run? != Halt::Over(State::Finished) {
            return Err("the run did not come to its end".into());
        }
        ours.push(millis(time));
    }
    report(&Row {
        bench: "sop: a run of 100 tool steps".into(),
        unit: "ms".into(),
        figure: median(&mut ours),
        baseline: Some(Baseline { name: "the same 100 calls alone".into(), figure: median(&mut alone) }),
        bar: Bar::RatioAtMost(1.5),
    })?;
    Ok(())
}

fn procedure() -> String {
    let step = |number| {
        format!(
            "[[steps]]\nid = \"s{number}\"\nkind = \"tool\"\ntool = \"file_read\"\nargs = {{ path = \"note\" }}\n"
        )
    };
    let steps: String = (0..STEPS).map(step).collect();
    format!("name = \"hundred\"\ndescription = \"a benchmark\"\n{steps}")
}

fn calls(runtime: &Runtime) -> Result<(), Box<dyn Error>> {
    let arguments = json!({ "path": "note" });
    for _ in 0..STEPS {
        let wish =
            Wish { conversation_id: "bench", tool: "file_read", arguments: &arguments, offer: Offer::Listed };
        let mut attended = Attended { operator: &mut Nobody, cancel: &Cancel::new()? };
        let outcome = runtime.door.call(wish, &mut attended)?;
        if outcome.fate != Fate::Done {
            return Err(outcome.text.into());
        }
    }
    Ok(())
}

fn runtime(folder: &Path) -> Result<Runtime, Box<dyn Error>> {
    let [workspace, home] = ["collieclaw-workspace", "home"].map(|name| folder.join(name));
    std::fs::create_dir(&workspace)?;
    std::fs::create_dir(&home)?;
    std::fs::write(workspace.join("note"), "a line\n")?;
    let surroundings =
        Surroundings { home: home.clone(), user_home: folder.to_owned(), variables: [].into() };
    let tools = built_in();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    let source = Source::new("config.toml", template(&Choices::default()));
    let config = config::read(source, &surroundings, &names)
        .map_err(|report| report.render(ward_diag::Style::Plain))?;
    let own = Home::new(&home);
    let signing = Signing::With { key: own.receipts_key() };
    let (receipts, _) = Receipts::open(&config.receipts.path, &signing, own.intents())?;
    let policy = config.gate_policy(workspace.clone(), &surroundings);
    let door = Door {
        rules: Rules { tools, policy, policy_hash: String::new(), facts: Box::new(SystemFacts) },
        workspace: Workspace::open(&workspace)?,
        memory: Memory::open(&config.memory.path)?,
        search: None,
        bounds: config.tool_bounds(),
        home: own,
        receipts: RefCell::new(receipts),
        events: Events::new(Form::Human, Level::Off, Box::new(std::io::sink())).into(),
    };
    Ok(Runtime::new(door, Rc::new(Mock::new("local", None)), "mock".to_owned(), &config))
}
