//! Benchmarks of the program: start-up time, cost of a turn, memory use, and time to stop.
//!
//! Wall times are compared with those of `true`, spawned alternately in the same run. The cost of durable writes is
//! measured separately: the same number of synced files, of the same sizes, in the same folder.
#![expect(clippy::print_stderr, reason = "a benchmark tells its progress there")]

use std::fs::{self, File};
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use ward_bench::{BenchmarkBaseline, BenchmarkLimit, BenchmarkRow, median, report};
use ward_process::{Containment, ProcessExit, ProcessSpec, Supervisor};

const ROUNDS: usize = 61;

/// The syncs of a turn with one tool call, as counted by `strace`: the intent and its folder, the receipt and its
/// head, the memory's log and its folder.
const SYNCS: usize = 6;

fn main() -> std::io::Result<()> {
    let folder = tempfile::tempdir()?;
    let program = PathBuf::from(env!("CARGO_BIN_EXE_collieclaw"));
    let home = BenchHome { program, folder: folder.path().to_owned() };
    exit_code(&mut home.command(&["init"]), 0)?;
    fs::write(home.fixture(), FIXTURE)?;
    bench_version(&home)?;
    bench_turn(&home)?;
    bench_size(&home)?;
    bench_verify(&home)?;
    bench_estop(&home)
}

const FIXTURE: &str =
    "[[round]]\n[[round.call]]\ntool = \"file_list\"\nargs = { path = \".\" }\n[[round]]\ntext = \"done\"\n";

struct BenchHome {
    program: PathBuf,
    folder: PathBuf,
}

impl BenchHome {
    fn fixture(&self) -> PathBuf {
        self.folder.join("fixture.toml")
    }

    fn command(&self, arguments: &[&str]) -> Command {
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

/// Checks the exit code, because a run that fails at once isn't fast.
fn exit_code(command: &mut Command, expected: i32) -> std::io::Result<()> {
    check_exit_status(command.status()?, expected)
}

fn check_exit_status(status: ExitStatus, expected: i32) -> std::io::Result<()> {
    match status.code() {
        Some(code) if code == expected => Ok(()),
        _ => Err(std::io::Error::other(format!("it ended with {status}, not with {expected}"))),
    }
}

fn spawn_true() -> std::io::Result<()> {
    Command::new("/bin/true").stdin(Stdio::null()).status().map(drop)
}

fn bench_version(home: &BenchHome) -> std::io::Result<()> {
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(millis(spawn_true)?);
        ours.push(millis(|| exit_code(&mut home.command(&["--version"]), 0))?);
    }
    report(&BenchmarkRow {
        bench: "collieclaw --version".into(),
        unit: "ms".into(),
        figure: median(&mut ours),
        baseline: Some(BenchmarkBaseline { name: "true".into(), figure: median(&mut plain) }),
        bar: BenchmarkLimit::RatioAtMost(2.0),
    })?;
    bench_memory("collieclaw --version, memory", home, &["--version"], 8.0)
}

fn bench_turn(home: &BenchHome) -> std::io::Result<()> {
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(millis(spawn_true)?);
        let syncs = millis(|| bench_sync(&home.folder))?;
        let turn = millis(|| exit_code(&mut home.command(&["agent", "-m", "list"]), 0))?;
        ours.push(turn - syncs);
    }
    report(&BenchmarkRow {
        bench: "agent -m with one tool call, beyond its fsyncs".into(),
        unit: "ms".into(),
        figure: median(&mut ours),
        baseline: Some(BenchmarkBaseline { name: "true".into(), figure: median(&mut plain) }),
        bar: BenchmarkLimit::RatioAtMost(15.0),
    })?;
    bench_memory("agent -m with one tool call, memory", home, &["agent", "-m", "list"], 15.0)
}

fn bench_sync(folder: &Path) -> std::io::Result<()> {
    for number in 0..SYNCS {
        let path = folder.join(format!("synced-{number}"));
        let mut file = File::create(&path)?;
        file.write_all(&[b'x'; 512])?;
        file.sync_data()?;
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Returns the peak memory use, as counted by the kernel.
fn bench_memory(bench: &str, home: &BenchHome, arguments: &[&str], megabytes: f64) -> std::io::Result<()> {
    let supervisor =
        Supervisor::with_containment(Containment::ProcessGroup).map_err(std::io::Error::other)?;
    let order = ProcessSpec::new(&home.program)
        .args(arguments.iter().copied())
        .env("HOME", &home.folder)
        .env("COLLIECLAW_MOCK_FIXTURE", home.fixture());
    let id = format!("bench-{}", std::process::id()).parse().map_err(std::io::Error::other)?;
    let mut tree = supervisor.spawn(id, order).map_err(std::io::Error::other)?;
    let ended = tree.wait(None)?.ok_or_else(|| std::io::Error::other("it does not end"))?;
    if ended.exit != ProcessExit::Code(0) {
        return Err(std::io::Error::other(format!("{bench}: it failed: {:?}", ended.exit)));
    }
    report(&BenchmarkRow {
        bench: bench.into(),
        unit: "MB".into(),
        figure: megabytes_of(ended.usage.max_resident_bytes),
        baseline: None,
        bar: BenchmarkLimit::AtMost(megabytes),
    })
}

#[expect(clippy::cast_precision_loss, reason = "nothing here has 2^53 bytes")]
fn megabytes_of(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn bench_size(home: &BenchHome) -> std::io::Result<()> {
    let beside = home.program.with_file_name("collieclaw-mcp");
    for (what, program, limit) in
        [("collieclaw", &home.program, 12.0), ("collieclaw-mcp, which speaks MCP for it,", &beside, 10.0)]
    {
        report(&BenchmarkRow {
            bench: format!("{what} the release program"),
            unit: "MB".into(),
            figure: megabytes_of(fs::metadata(program)?.len()),
            baseline: None,
            bar: BenchmarkLimit::AtMost(limit),
        })?;
    }
    Ok(())
}

/// The number of receipts in the log.
const RECEIPTS: usize = 100_000;

fn bench_verify(home: &BenchHome) -> std::io::Result<()> {
    let log = home.folder.join(".collieclaw/tool_receipts.log");
    let known = fs::read_to_string(&log)?;
    let receipt = known.lines().next().unwrap_or_default();
    let mut receipt: serde_json::Map<_, _> = serde_json::from_str(receipt)?;
    for of_the_chain in ["sequence", "previous_hash", "receipt_hash", "key_id", "mac"] {
        receipt.remove(of_the_chain);
    }
    let format = collieclaw_agent::receipts::ledger_format();
    let key = home.folder.join(".collieclaw/receipts.key");
    let key = ward_ledger::LedgerKey::load(&key).map_err(std::io::Error::other)?;
    let options = ward_ledger::LedgerOptions::new(format.clone()).with_key(key.clone());
    let (mut ledger, _) = ward_ledger::Ledger::open(&log, options).map_err(std::io::Error::other)?;
    for _ in 0..RECEIPTS / 1_000 {
        ledger.append_all(vec![receipt.clone(); 1_000]).map_err(std::io::Error::other)?;
    }
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        plain.push(millis(|| {
            ward_ledger::verify(&log, &format, Some(&key)).map(drop).map_err(std::io::Error::other)
        })?);
        ours.push(millis(|| exit_code(&mut home.command(&["receipt", "verify"]), 0))?);
    }
    report(&BenchmarkRow {
        bench: "receipt verify, 100,000 signed receipts".into(),
        unit: "ms".into(),
        figure: median(&mut ours),
        baseline: Some(BenchmarkBaseline {
            name: "the ledger's own check".into(),
            figure: median(&mut plain),
        }),
        bar: BenchmarkLimit::RatioAtMost(1.2),
    })
}

/// The exit code of a command ended by the emergency stop.
const STOPPED: i32 = 8;

/// Measures the time from the creation of the stop file to the end of the last process and all of its children.
fn bench_estop(home: &BenchHome) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let config = home.folder.join(".collieclaw/config.toml");
    let text = fs::read_to_string(&config)?.replace("autonomy = \"supervised\"", "autonomy = \"full\"");
    let text = text.replace("allowed_domains = []", &format!("allowed_domains = [\"{address}\"]"));
    fs::write(&config, text)?;
    let stubborn = r#"bash -c 'trap "" TERM INT; setsid sleep 14.5 & sleep 14.5'"#;
    let shell = |line: &str| serde_json::json!({ "command": line }).to_string();
    let rows = [
        ("a running command", vec![("shell", shell("sleep 14.5"))], 1),
        ("three processes with one each", vec![("shell", shell("sleep 14.5")); 3], 3),
        ("a tree that ignores signals and has left its group", vec![("shell", shell(stubborn))], 2),
        ("a request that hangs", vec![("http", format!(r#"{{"url":"http://{address}/"}}"#))], 0),
    ];
    for (what, calls, sleeps) in rows {
        let mut slowest = 0.0_f64;
        for _ in 0..11 {
            let start = |(tool, arguments): &(&str, String)| {
                home.command(&["tool", "run", tool, "--json", arguments]).spawn()
            };
            let mut agents: Vec<Child> = calls.iter().map(start).collect::<Result<_, _>>()?;
            // Closing the connection would end the tool as well.
            let _held = if sleeps == 0 { Some(listener.accept()?) } else { None };
            while count_sleepers() < sleeps {
                std::thread::sleep(Duration::from_millis(2));
            }
            slowest = slowest.max(millis(|| {
                File::create(home.folder.join(".collieclaw/ESTOP"))?;
                agents.iter_mut().try_for_each(|agent| check_exit_status(agent.wait()?, STOPPED))
            })?);
            if count_sleepers() > 0 {
                return Err(std::io::Error::other(format!("{what} outlived the stop")));
            }
            fs::remove_file(home.folder.join(".collieclaw/ESTOP"))?;
        }
        eprintln!("the slowest of eleven stops of {what} took {slowest:.1} ms");
        report(&BenchmarkRow {
            bench: format!("estop: until {what} and what runs it are gone, slowest of 11"),
            unit: "ms".into(),
            figure: slowest,
            baseline: None,
            bar: BenchmarkLimit::AtMost(100.0),
        })?;
    }
    Ok(())
}

/// Counts the running sleeps.
fn count_sleepers() -> usize {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.filter(|line| line == b"sleep\x0014.5\x00").count()
}
