//! Benchmarks of requests and events: round trip, throughput, and delivery to all subscribers.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use shepherd_api::{Command, EventKind};
use shepherd_ipc::BlockingClient;
use ward_bench::{BenchmarkLimit, median, millis, timed};

use crate::bench_daemon::{BenchDaemon, await_event, family_policy};
use crate::report;

const ROUND_TRIPS: usize = 4_000;
const CLIENTS: usize = 4;
/// The number of open requests that a client may have.
const PIPELINED: usize = 4;
const RATE_ROUNDS: usize = 5;
const SUBSCRIBERS: usize = 500;
const EVENTS: usize = 40;

pub(crate) fn measure() {
    let daemon =
        BenchDaemon::new(&format!("{}\n[modes]\nnames = [\"school\", \"holiday\"]\n", family_policy(100)));
    round_trip(&daemon);
    measure_request_rate(&daemon);
    measure_event_fanout(&daemon);
}

/// Measures one client with one request at a time. The baseline is a byte to a thread and back.
fn round_trip(daemon: &BenchDaemon) {
    let (mut near, mut far) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        let mut byte = [0];
        while far.read_exact(&mut byte).is_ok() && far.write_all(&byte).is_ok() {}
    });
    let mut client = daemon.client();
    let (mut calls, mut echoes) = (Vec::new(), Vec::new());
    for _ in 0..ROUND_TRIPS {
        let (reply, time) = timed(|| client.call(Command::GetState {}));
        reply.unwrap();
        calls.push(millis(time) * 1_000.0);
        let (echo, time) = timed(|| near.write_all(b"x").and_then(|()| near.read_exact(&mut [0])));
        echo.unwrap();
        echoes.push(millis(time) * 1_000.0);
    }
    let baseline = Some(("a byte to a thread and back", median(&mut echoes)));
    report(
        "get_state, round trip (median)",
        "µs",
        median(&mut calls),
        baseline,
        BenchmarkLimit::AtMost(100.0),
    );
}

/// Measures several clients at once, each with the maximum number of open requests.
fn measure_request_rate(daemon: &BenchDaemon) {
    let mut rates = Vec::new();
    for _ in 0..RATE_ROUNDS {
        let started = Instant::now();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let socket = daemon.options().socket;
                std::thread::spawn(move || flood(socket))
            })
            .collect();
        let answered: u32 = clients.into_iter().map(|client| client.join().unwrap()).sum();
        rates.push(f64::from(answered) / started.elapsed().as_secs_f64());
        // Wait until the rate limit of this user allows requests again.
        std::thread::sleep(Duration::from_secs(1));
    }
    let name = format!("get_state, {CLIENTS} clients at once");
    report(&name, "requests/s", median(&mut rates), None, BenchmarkLimit::AtLeast(20_000.0));
}

/// Returns the number of answers, without those that report the rate limit.
fn flood(socket: PathBuf) -> u32 {
    let mut stream = UnixStream::connect(socket).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    stream.write_all(b"{\"type\":\"hello\",\"api_version\":1,\"client\":\"bench\"}\n").unwrap();
    reader.read_line(&mut line).unwrap();
    let requests = "{\"type\":\"request\",\"id\":1,\"command\":{\"type\":\"get_state\"}}\n".repeat(PIPELINED);
    let mut answered = 0;
    for _ in 0..ROUND_TRIPS / PIPELINED {
        stream.write_all(requests.as_bytes()).unwrap();
        for _ in 0..PIPELINED {
            line.clear();
            reader.read_line(&mut line).unwrap();
            answered += u32::from(line.contains("\"ok\""));
        }
    }
    answered
}

/// Measures the time from the timestamp of an event until the last subscriber has read it.
fn measure_event_fanout(daemon: &BenchDaemon) {
    let mut admin = daemon.client();
    let mut subscribers: Vec<BlockingClient> = (0..SUBSCRIBERS).map(|_| daemon.subscriber()).collect();
    let mut times = Vec::new();
    for round in 0..EVENTS {
        let mode = if round % 2 == 0 { "holiday" } else { "school" };
        admin.call(Command::SwitchMode { mode: Some(mode.to_owned()) }).unwrap();
        let mut said = Timestamp::MAX;
        for client in &mut subscribers {
            said = await_event(client, |event| {
                matches!(event.kind, EventKind::ModeSwitched { .. }).then_some(event.at)
            });
        }
        times.push(millis(Duration::try_from(Timestamp::now().duration_since(said)).unwrap()));
    }
    let name = format!("an event reaches {SUBSCRIBERS} subscribers (median)");
    report(&name, "ms", median(&mut times), None, BenchmarkLimit::AtMost(20.0));
}
