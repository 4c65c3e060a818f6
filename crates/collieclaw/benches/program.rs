//! The bars of the program: how fast it starts, what a turn costs, how large it is, how soon it stops.
//!
//! Wall times are compared with those of `true`, spawned in turns with it in the same run. What a turn has to make durable
//! is measured beside it: the same number of synced files, of the same sizes, in the same folder.
#![expect(clippy::print_stderr, reason = "a benchmark tells its progress there")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ward_bench::{Bar, Baseline, Row, median, report};
use ward_process::{Containment, Order, Supervisor};

const ROUNDS: usize = 61;

/// Synced by a turn with one tool call, as `strace` counts: the intent and its folder, the receipt and its head, the
/// memory's log and its folder.
const SYNCS: usize = 6;

fn main() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let program = PathBuf::from(env!("CARGO_BIN_EXE_collieclaw"));
    let house = House { program, folder: folder.path().to_owned() };
    house.run(&["init"]).status()?;
    fs::write(house.fixture(), FIXTURE)?;
    version(&house)?;
    turn(&house)?;
    size(&house)?;
    verify(&house)?;
    stop(&house)
}

const FIXTURE: &str =
    "[[round]]\n[[round.call]]\ntool = \"file_list\"\nargs = { path = \".\" }\n[[round]]\ntext = \"done\"\n";

struct House {
    program: PathBuf,
    folder: PathBuf,
}

impl House {
    fn fixture(&self) -> PathBuf {
        self.folder.join("fixture.toml")
    }

    fn run(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).env_clear().env("HOME", &self.folder).env("COLLIECLAW_LOG", "off");
        command.env("COLLIECLAW_MOCK_FIXTURE", self.fixture());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

fn millis(mut work: impl FnMut() -> std::io::Result<()>) -> std::io::Result<f64> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed().as_secs_f64() * 1_000.0)
}

fn spawn_true() -> std::io::Result<()> {
    Command::new("/bin/true").stdin(Stdio::null()).status().map(drop)
}

fn version(house: &House) -> std::io::Result<()> {
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(millis(spawn_true)?);
        ours.push(millis(|| house.run(&["--version"]).status().map(drop))?);
    }
    report(&Row {
        bench: "collieclaw --version".into(),
        unit: "ms".into(),
        figure: median(&mut ours),
        baseline: Some(Baseline { name: "true".into(), figure: median(&mut plain) }),
        bar: Bar::RatioAtMost(2.0),
    })?;
    memory("collieclaw --version, memory", house, &["--version"], 8.0)
}

fn turn(house: &House) -> std::io::Result<()> {
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(millis(spawn_true)?);
        let syncs = millis(|| synced(&house.folder))?;
        let turn = millis(|| house.run(&["agent", "-m", "list"]).status().map(drop))?;
        ours.push((turn - syncs).max(0.0));
    }
    report(&Row {
        bench: "agent -m with one tool call, beyond its fsyncs".into(),
        unit: "ms".into(),
        figure: median(&mut ours),
        baseline: Some(Baseline { name: "true".into(), figure: median(&mut plain) }),
        bar: Bar::RatioAtMost(15.0),
    })?;
    memory("agent -m with one tool call, memory", house, &["agent", "-m", "list"], 15.0)
}

fn synced(folder: &Path) -> std::io::Result<()> {
    for number in 0..SYNCS {
        let path = folder.join(format!("synced-{number}"));
        let mut file = File::create(&path)?;
        file.write_all(&[b'x'; 512])?;
        file.sync_data()?;
        fs::remove_file(path)?;
    }
    Ok(())
}

/// The most that it ever held, as the kernel counted.
fn memory(bench: &str, house: &House, arguments: &[&str], megabytes: f64) -> std::io::Result<()> {
    let supervisor = Supervisor::with(Containment::ProcessGroup).map_err(std::io::Error::other)?;
    let order = Order::new(&house.program)
        .args(arguments.iter().copied())
        .env("HOME", &house.folder)
        .env("COLLIECLAW_MOCK_FIXTURE", house.fixture());
    let id = format!("bench-{}", std::process::id()).parse().map_err(std::io::Error::other)?;
    let mut tree = supervisor.spawn(id, order).map_err(std::io::Error::other)?;
    let ended = tree.wait(None)?.ok_or_else(|| std::io::Error::other("it does not end"))?;
    report(&Row {
        bench: bench.into(),
        unit: "MB".into(),
        figure: megabytes_of(ended.usage.max_resident_bytes),
        baseline: None,
        bar: Bar::AtMost(megabytes),
    })
}

#[expect(clippy::cast_precision_loss, reason = "nothing here has 2^53 bytes")]
fn megabytes_of(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn size(house: &House) -> std::io::Result<()> {
    report(&Row {
        bench: "collieclaw, the release program".into(),
        unit: "MB".into(),
        figure: megabytes_of(fs::metadata(&house.program)?.len()),
        baseline: None,
        bar: Bar::AtMost(10.0),
    })
}

/// A log of so many receipts.
const RECEIPTS: usize = 100_000;

fn verify(house: &House) -> std::io::Result<()> {
    let log = house.folder.join(".collieclaw/tool_receipts.log");
    let known = fs::read_to_string(&log)?;
    let receipt = known.lines().next().unwrap_or_default();
    let mut receipt: serde_json::Map<_, _> = serde_json::from_str(receipt)?;
    for of_the_chain in ["sequence", "previous_hash", "receipt_hash", "key_id", "mac"] {
        receipt.remove(of_the_chain);
    }
    let format = collieclaw::receipts::format();
    let key = house.folder.join(".collieclaw/receipts.key");
    let key = ward_ledger::Key::load(&key).map_err(std::io::Error::other)?;
    let options = ward_ledger::Options::new(format.clone()).with_key(key.clone());
    let (mut ledger, _) = ward_ledger::Ledger::open(&log, options).map_err(std::io::Error::other)?;
    for _ in 0..RECEIPTS / 1_000 {
        ledger.append_all(vec![receipt.clone(); 1_000]).map_err(std::io::Error::other)?;
    }
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        plain.push(millis(|| {
            ward_ledger::verify(&log, &format, Some(&key)).map(drop).map_err(std::io::Error::other)
        })?);
        ours.push(millis(|| house.run(&["receipt", "verify"]).status().map(drop))?);
    }
    report(&Row {
        bench: "receipt verify, 100,000 signed receipts".into(),
        unit: "ms".into(),
        figure: median(&mut ours),
        baseline: Some(Baseline { name: "the ledger's own check".into(), figure: median(&mut plain) }),
        bar: Bar::RatioAtMost(1.2),
    })
}

/// From the file of the stop to the end of a command that would have slept on.
fn stop(house: &House) -> std::io::Result<()> {
    let config = house.folder.join(".collieclaw/config.toml");
    let text = fs::read_to_string(&config)?.replace("autonomy = \"supervised\"", "autonomy = \"full\"");
    fs::write(&config, text)?;
    let mut slowest = 0.0_f64;
    for _ in 0..11 {
        let mut agent =
            house.run(&["tool", "run", "shell", "--json", r#"{"command":"sleep 14"}"#]).spawn()?;
        let intents = house.folder.join(".collieclaw/intents");
        while fs::read_dir(&intents).map_or(0, Iterator::count) == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_millis(30));
        slowest = slowest.max(millis(|| {
            File::create(house.folder.join(".collieclaw/ESTOP"))?;
            agent.wait().map(drop)
        })?);
        fs::remove_file(house.folder.join(".collieclaw/ESTOP"))?;
    }
    eprintln!("the slowest of eleven stops took {slowest:.1} ms");
    report(&Row {
        bench: "estop: until a running command and its process are gone, slowest of 11".into(),
        unit: "ms".into(),
        figure: slowest,
        baseline: None,
        bar: Bar::AtMost(100.0),
    })
}
