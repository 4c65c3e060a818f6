//! The delay of a streamed word, counted from the moment the server sends it.
//!
//! Measured twice: at the listener of the provider, and on the screen of the real program at a terminal, which also
//! has to remove its spinner and escape control sequences.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use collieclaw_providers::cancel::CancelFlag;
use collieclaw_providers::{ChatMessage, ChatRequest, DraftEvent, OpenAiProvider, OpenAiSettings, Provider};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use ward_bench::{BenchmarkLimit, BenchmarkRow, median, report};

const ROUNDS: usize = 41;

/// A word that occurs nowhere else in the output.
const WORD: &str = "Aardvark";

fn main() -> io::Result<()> {
    let (port, sent) = start_server()?;
    let mut at_listener = Vec::new();
    for _ in 0..ROUNDS {
        at_listener.push(millis(&sent, receive_at_provider(port)?)?);
    }
    report_figure(
        "stream: first word, from the server to the listener, median of 41",
        median(&mut at_listener),
    )?;
    let mut seen = bench_terminal(port, &sent)?;
    report_figure("stream: first word, from the server to the terminal, median of 41", median(&mut seen))?;
    // The list is sorted; the two slowest may have been delayed by other work on this machine.
    let late = seen.iter().rev().nth(2).copied().unwrap_or(f64::MAX);
    report_figure("stream: first word, from the server to the terminal, third slowest of 41", late)
}

fn report_figure(bench: &str, figure: f64) -> io::Result<()> {
    report(&BenchmarkRow {
        bench: bench.into(),
        unit: "ms".into(),
        figure,
        baseline: None,
        bar: BenchmarkLimit::AtMost(5.0),
    })
}

/// Runs a server that sends a word once everything is idle, and reports when.
fn start_server() -> io::Result<(u16, Receiver<Instant>)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let port = listener.local_addr()?.port();
    let (tell, sent) = channel();
    std::thread::spawn(move || -> io::Result<()> {
        for stream in listener.incoming() {
            let mut stream = stream?;
            stream.set_nodelay(true)?;
            take_request(&stream)?;
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")?;
            std::thread::sleep(Duration::from_millis(150));
            let word = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{WORD}\"}}}}]}}\n\n");
            let now = Instant::now();
            stream.write_all(word.as_bytes())?;
            let _ = tell.send(now);
            std::thread::sleep(Duration::from_millis(50));
            stream.write_all(
                b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
            )?;
        }
        Ok(())
    });
    Ok((port, sent))
}

fn take_request(stream: &std::net::TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    io::copy(&mut reader.take(length), &mut io::sink()).map(drop)
}

fn millis(sent: &Receiver<Instant>, arrived: Instant) -> io::Result<f64> {
    let sent = sent.recv_timeout(Duration::from_secs(10)).map_err(io::Error::other)?;
    Ok(arrived.saturating_duration_since(sent).as_secs_f64() * 1_000.0)
}

/// Returns when the listener received the word.
fn receive_at_provider(port: u16) -> io::Result<Instant> {
    let provider = OpenAiProvider::new(OpenAiSettings {
        name: "bench".to_owned(),
        base_url: format!("http://127.0.0.1:{port}/v1"),
        api_key: None,
        api_key_env: None,
        timeout: Duration::from_secs(20),
        stall_timeout: Duration::from_secs(20),
        max_response_bytes: 1 << 20,
        stream: true,
    });
    let request = ChatRequest {
        system_prompt: String::new(),
        messages: vec![ChatMessage::user("hi")],
        tools: Vec::new(),
        model: "m".to_owned(),
        temperature: None,
        metadata: serde_json::Map::new(),
    };
    let mut first_text = None;
    let mut listen = |draft: DraftEvent<'_>| {
        if matches!(draft, DraftEvent::Text(_)) && first_text.is_none() {
            first_text = Some(Instant::now());
        }
    };
    provider.chat(&request, &mut listen, &CancelFlag::new()?).map_err(io::Error::other)?;
    first_text.ok_or_else(|| io::Error::other("the provider reported no text"))
}

/// Returns how long each word took to reach the screen, shortest first.
fn bench_terminal(port: u16, sent: &Receiver<Instant>) -> io::Result<Vec<f64>> {
    let home = tempfile::tempdir()?;
    let program = PathBuf::from(env!("CARGO_BIN_EXE_collieclaw"));
    let command = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).env_clear().env("HOME", home.path()).env("TERM", "xterm");
        command
    };
    command(&["init"]).output()?;
    // In any other folder the agent first asks whether to work there.
    let workspace = home.path().join("collieclaw-workspace");
    let config = format!(
        "default_provider = \"openai_compatible\"\n[providers.models.openai_compatible]\n\
         base_url = \"http://127.0.0.1:{port}/v1\"\n[memory]\nrecent_turns = 0\n"
    );
    fs::write(home.path().join(".collieclaw/config.toml"), config)?;

    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let slave = fs::File::options()
        .read(true)
        .write(true)
        .open(ptsname(&master, Vec::new())?.to_str().map_err(io::Error::other)?)?;
    let mut agent = command(&["agent"])
        .current_dir(workspace)
        .stdin(slave.try_clone()?)
        .stdout(slave.try_clone()?)
        .stderr(slave)
        .spawn()?;
    let mut screen = BenchTerminal { master: fs::File::from(master), seen: Vec::new() };
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        screen.wait_for("collieclaw> ")?;
        screen.master.write_all(b"hi\r")?;
        times.push(millis(sent, screen.wait_for(WORD)?)?);
    }
    screen.wait_for("collieclaw> ")?;
    screen.master.write_all(b"/exit\r")?;
    agent.wait()?;
    times.sort_by(f64::total_cmp);
    Ok(times)
}

struct BenchTerminal {
    master: fs::File,
    seen: Vec<u8>,
}

impl BenchTerminal {
    /// Returns when a text was visible on the screen.
    fn wait_for(&mut self, text: &str) -> io::Result<Instant> {
        let mut buffer = [0; 4096];
        loop {
            let now = Instant::now();
            let found = self.seen.windows(text.len()).position(|window| window == text.as_bytes());
            if let Some(at) = found {
                self.seen.drain(..at + text.len());
                return Ok(now);
            }
            let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
            if poll(&mut [PollFd::new(&self.master, PollFlags::IN)], Some(&limit))? == 0 {
                let seen = String::from_utf8_lossy(&self.seen);
                return Err(io::Error::other(format!(
                    "`{text}` did not appear on the screen after `{seen}`"
                )));
            }
            let amount = self.master.read(&mut buffer)?;
            self.seen.extend(buffer.iter().take(amount));
        }
    }
}
