//! Benchmarks of the gateway: throughput, latency and memory use, and the delay of a streamed token from the model
//! server to the client.
#![expect(clippy::print_stderr, reason = "a benchmark tells its progress there")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use ward_bench::{BenchmarkLimit, BenchmarkRow, median, report};

const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(2);

/// The number of connections that a browser with some pages and a few scripts would open.
const CONNECTIONS: usize = 8;

const TOKENS: usize = 31;

fn main() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    bench_load(folder.path())?;
    bench_first_token(folder.path())
}

struct BenchGateway {
    child: Child,
    port: u16,
    token: String,
}

impl BenchGateway {
    fn start(home: &Path) -> io::Result<Self> {
        let mut child = command(home, &["gateway", "--port", "0"]).stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let line = BufReader::new(out).lines().next().ok_or(io::ErrorKind::UnexpectedEof)??;
        let port = line.trim_end_matches('/').rsplit(':').next().and_then(|port| port.parse().ok());
        let token = std::fs::read_to_string(home.join(".collieclaw/gateway.token"))?.trim().to_owned();
        Ok(Self { child, port: port.ok_or(io::ErrorKind::InvalidData)?, token })
    }

    fn head(&self, line: &str) -> String {
        format!(
            "{line} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n",
            self.port, self.token
        )
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Returns the current memory use in megabytes.
    fn peak_resident_megabytes(&self) -> io::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let kilobytes = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
        kilobytes.map(|kilobytes: f64| kilobytes / 1_024.0).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

impl Drop for BenchGateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PathBuf::from(env!("CARGO_BIN_EXE_collieclaw")));
    command.args(arguments).env_clear().env("HOME", home).env("COLLIECLAW_LOG", "off");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Measures the throughput of all connections together, on the same cores as the gateway.
fn bench_load(home: &Path) -> io::Result<()> {
    command(home, &["init"]).status()?;
    let gateway = BenchGateway::start(home)?;
    let (mut rates, mut slowest) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        eprintln!("gateway: round {} of {ROUNDS}", round + 1);
        let started = Instant::now();
        let asked: Vec<io::Result<Vec<f64>>> = std::thread::scope(|scope| {
            let all: Vec<_> =
                (0..CONNECTIONS).map(|_| scope.spawn(|| send_requests(&gateway, started + ROUND))).collect();
            all.into_iter()
                .map(|one| one.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))
                .collect()
        });
        let elapsed = started.elapsed().as_secs_f64();
        let mut took = asked.into_iter().collect::<io::Result<Vec<_>>>()?.concat();
        took.sort_by(f64::total_cmp);
        rates.push(took.len() as f64 / elapsed);
        slowest.push(took.get(took.len() * 99 / 100).copied().unwrap_or(f64::NAN));
    }
    let row = |bench: &str, unit: &str, figure, bar| {
        report(&BenchmarkRow { bench: bench.into(), unit: unit.into(), figure, baseline: None, bar })
    };
    row("gateway: GET /status", "a second", median(&mut rates), BenchmarkLimit::AtLeast(5_000.0))?;
    row("gateway: GET /status, 99th percentile", "ms", median(&mut slowest), BenchmarkLimit::AtMost(10.0))?;
    row("gateway: memory under it", "MB", gateway.peak_resident_megabytes()?, BenchmarkLimit::AtMost(30.0))
}

/// Returns the milliseconds of each request on one connection.
fn send_requests(gateway: &BenchGateway, until: Instant) -> io::Result<Vec<f64>> {
    let request = gateway.head("GET /status") + "\r\n";
    let mut stream = gateway.connect()?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut took = Vec::new();
    while Instant::now() < until {
        let started = Instant::now();
        stream.write_all(request.as_bytes())?;
        read_response(&mut reader)?;
        took.push(started.elapsed().as_secs_f64() * 1_000.0);
    }
    Ok(took)
}

fn read_response(reader: &mut impl BufRead) -> io::Result<()> {
    let mut length = 0;
    let mut line = String::new();
    let mut first = true;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        if first && !line.starts_with("HTTP/1.1 200") {
            return Err(io::Error::other(line));
        }
        first = false;
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        if line == "\r\n" {
            break;
        }
    }
    io::copy(&mut reader.take(length), &mut io::sink()).map(drop)
}

/// Measures the time from the first token of a model server until the client receives it.
fn bench_first_token(home: &Path) -> io::Result<()> {
    let server = TcpListener::bind(("127.0.0.1", 0))?;
    let (sender, sent) = channel();
    let model = format!(
        "default_provider = \"far\"\n[providers.models.far]\nkind = \"openai-compatible\"\nmodel = \"m\"\nbase_url = \"http://{}/v1\"\n\
         [channels.gateway]\nchats_per_minute = 6000\n",
        server.local_addr()?
    );
    std::fs::write(home.join(".collieclaw/config.toml"), model)?;
    std::thread::spawn(move || {
        for stream in server.incoming().flatten() {
            let _ = stream_tokens(stream, &sender);
        }
    });
    let gateway = BenchGateway::start(home)?;
    let mut took = Vec::new();
    for _ in 0..TOKENS {
        let body = "{\"message\":\"hi\"}";
        let head = gateway.head("POST /chat")
            + "Accept: text/event-stream\r\nConnection: close\r\nContent-Type: application/json\r\n";
        let mut stream = gateway.connect()?;
        stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())?;
        let mut lines = BufReader::new(stream).lines();
        lines.by_ref().find(|line| line.as_ref().is_ok_and(|line| line == "event: draft"));
        let there = Instant::now();
        let sent = sent.recv_timeout(Duration::from_secs(10)).map_err(io::Error::other)?;
        took.push(there.saturating_duration_since(sent).as_secs_f64() * 1_000.0);
        lines.for_each(drop);
    }
    report(&BenchmarkRow {
        bench: "gateway: a token of the model server reaches the client".into(),
        unit: "ms".into(),
        figure: median(&mut took),
        baseline: None,
        bar: BenchmarkLimit::AtMost(5.0),
    })
}

/// Runs a model server that waits a moment, then sends one word, and a second word later.
fn stream_tokens(mut stream: TcpStream, sent: &Sender<Instant>) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        line.clear();
    }
    io::copy(&mut reader.take(length), &mut io::sink())?;
    stream.set_nodelay(true)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")?;
    std::thread::sleep(Duration::from_millis(20));
    let word = |word: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}}}}]}}\n\n")
    };
    let first = word("Hello");
    let now = Instant::now();
    stream.write_all(first.as_bytes())?;
    sent.send(now).map_err(io::Error::other)?;
    std::thread::sleep(Duration::from_millis(30));
    stream.write_all((word(" there") + "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n").as_bytes())
}
