//! What the shell tool adds to a program: `true` in its sandbox, by the tool alone and through the whole door, against
//! `true` started bare.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use collieclaw::cancel::Cancel;
use collieclaw::events::{Events, Form, Level};
use collieclaw::home::Home;
use collieclaw::memory::Memory;
use collieclaw::receipts::Receipts;
use collieclaw::runtime::{
    Answer, Asked, Attended, Door, Fate, Granted, Offer, Operator, Posed, Reply, Rules, Wish,
};
use collieclaw::security::{SystemFacts, Workspace};
use collieclaw::tools::{BadArguments, Context, Prepared, Tool, ToolBounds, ToolResult, built_in};
use collieclaw_gate::{Autonomy, Bounds, Call, DEFAULT_ALLOWED_COMMANDS, GatePolicy};
use serde_json::{Value, json};
use ward_bench::{Bar, Baseline, Row, median, millis, report, timed};

const ROUNDS: usize = 300;

/// Promised for every command of an agent: less than a person can notice.
const BAR_MS: f64 = 3.0;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let took = Rc::new(Cell::new(Duration::ZERO));
    let door = door(folder.path(), &took)?;
    // The first one finds out what the machine gives, once for the whole process.
    through_the_door(&door)?;
    let (mut bare, mut tool, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (status, without) = timed(|| Command::new("/bin/true").status());
        if !status?.success() {
            return Err("`true` was not true".into());
        }
        let (result, with) = timed(|| through_the_door(&door));
        result?;
        bare.push(millis(without));
        tool.push(millis(took.get()) - millis(without));
        whole.push(millis(with) - millis(without));
    }
    let bare = median(&mut bare);
    for (bench, figure) in [
        ("tools: time that the shell tool adds to `true`, in its sandbox", median(&mut tool)),
        ("tools: the same with the door: judged, approved, watched for a stop", median(&mut whole)),
    ] {
        report(&Row {
            bench: bench.into(),
            unit: "ms".into(),
            figure,
            baseline: Some(Baseline { name: "`true` started bare".into(), figure: bare }),
            bar: Bar::AtMost(BAR_MS),
        })?;
    }
    Ok(())
}

fn through_the_door(door: &Door) -> Result<(), Box<dyn Error>> {
    let arguments = json!({ "command": "true" });
    let wish = Wish { conversation_id: "bench", tool: "shell", arguments: &arguments, offer: Offer::Listed };
    let mut attended = Attended { operator: &mut SaysYes, cancel: &Cancel::new()? };
    let outcome = door.call(wish, &mut attended)?;
    if outcome.fate == Fate::Done { Ok(()) } else { Err(outcome.text.into()) }
}

/// Without receipts, which have a benchmark of their own: their disk would be all that is seen here.
fn door(folder: &std::path::Path, took: &Rc<Cell<Duration>>) -> Result<Door, Box<dyn Error>> {
    let folder = folder.canonicalize()?;
    let [workspace, home] = ["workspace", "home"].map(|name| folder.join(name));
    std::fs::create_dir(&workspace)?;
    std::fs::create_dir(&home)?;
    let policy = GatePolicy {
        autonomy: Autonomy::Supervised,
        workspace: workspace.clone(),
        bounds: Bounds::Workspace,
        user_home: folder.clone(),
        own_home: home.clone(),
        own_files: Vec::new(),
        forbidden_paths: ["/etc", "/sys", "/boot"].map(Into::into).into(),
        forbidden_commands: ["rm".to_owned()].into(),
        allowed_commands: DEFAULT_ALLOWED_COMMANDS.iter().map(|name| (*name).to_owned()).collect(),
        allowed_domains: Vec::new(),
    };
    let time = Duration::from_secs(15);
    let timed = |tool| Box::new(Timed { tool, took: Rc::clone(took) }) as Box<dyn Tool>;
    let tools = built_in().into_iter().map(timed).collect();
    Ok(Door {
        rules: Rules { tools, policy, policy_hash: String::new(), facts: Box::new(SystemFacts) },
        workspace: Workspace::open(&workspace)?,
        memory: Memory::open(&home.join("memory.db"))?,
        search: None,
        bounds: ToolBounds {
            tool_timeout: time,
            shell_timeout: time,
            http_timeout: time,
            max_response_bytes: 1 << 20,
        },
        home: Home::new(home),
        receipts: RefCell::new(Receipts::off()),
        events: Events::new(Form::Human, Level::Off, Box::new(std::io::sink())).into(),
    })
}

struct SaysYes;

impl Operator for SaysYes {
    fn ask(&mut self, _: &Asked<'_>) -> Answer {
        Answer::Yes
    }

    fn question(&mut self, _: &Posed<'_>) -> Reply {
        Reply::Nobody
    }
}

/// A tool that tells how long it took.
struct Timed {
    tool: Box<dyn Tool>,
    took: Rc<Cell<Duration>>,
}

struct TimedCall {
    prepared: Box<dyn Prepared>,
    took: Rc<Cell<Duration>>,
}

impl Tool for Timed {
    fn name(&self) -> &str {
        self.tool.name()
    }

    fn description(&self) -> &str {
        self.tool.description()
    }

    fn parameters_schema(&self) -> Value {
        self.tool.parameters_schema()
    }

    fn prepare(&self, arguments: &Value) -> Result<Box<dyn Prepared>, BadArguments> {
        Ok(Box::new(TimedCall { prepared: self.tool.prepare(arguments)?, took: Rc::clone(&self.took) }))
    }
}

impl Prepared for TimedCall {
    fn call(&self) -> Call<'_> {
        self.prepared.call()
    }

    fn invoke(self: Box<Self>, granted: Granted, context: &Context<'_>) -> ToolResult {
        let Self { prepared, took } = *self;
        let (result, time) = timed(|| prepared.invoke(granted, context));
        took.set(time);
        result
    }
}
