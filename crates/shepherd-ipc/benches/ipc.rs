//! Benchmarks of the socket: a round trip, many clients at once, and an event for all subscribers. The daemon behind
//! the socket does nothing else.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use shepherd_api::{ClientRole, Command, CommandReply, DaemonStateSnapshot, Event, EventKind};
use shepherd_ipc::{
    BlockingClient, ClientHub, ClientOptions, ConnectionLimits, IncomingEvent, IpcServer, PeerAuthorizer,
    PeerCredentials, PeerPermissions, PinState, PinStore, ServerOptions,
};
use ward_bench::{BenchmarkBaseline, BenchmarkLimit, BenchmarkRow, median, millis, report, timed};

const ROUND_TRIPS: usize = 4_000;
const CLIENTS: usize = 4;
const SUBSCRIBERS: usize = 500;
const EVENTS: usize = 50;

struct ShellForEveryone;

impl PeerAuthorizer for ShellForEveryone {
    fn authorize(&self, _: &PeerCredentials, _: PinState) -> Option<PeerPermissions> {
        Some(PeerPermissions { role: ClientRole::Shell, role_with_pin: ClientRole::Shell, profile: None })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    let folder = tempfile::tempdir()?;
    let hub = start_daemon(folder.path())?;
    let options = ClientOptions::new(folder.path().join("s"), "bench");
    round_trip(&options)?;
    concurrent_clients(&options)?;
    broadcast_latency(&options, &hub)
}

/// Starts a daemon on its own thread, which runs until the process ends.
fn start_daemon(folder: &Path) -> Result<ClientHub, Box<dyn std::error::Error>> {
    let (ready, hub) = std::sync::mpsc::channel();
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let options = ServerOptions {
                socket: folder.join("s"),
                mode: 0o600,
                group: None,
                daemon_version: String::new(),
                limits: ConnectionLimits::default(),
            };
            let pin = PinStore::open(folder.join("pin")).expect("no PIN");
            let mut server = IpcServer::bind(options, Arc::new(ShellForEveryone), pin).expect("a socket");
            let hub = server.hub().clone();
            ready.send(hub.clone()).expect("somebody waits");
            while let Some(incoming) = server.next_event().await {
                if let IncomingEvent::Request { client, request_id, command } = incoming {
                    let snapshot = snapshot();
                    let reply = match command {
                        Command::SubscribeEvents {} => CommandReply::Subscribed { snapshot },
                        _ => CommandReply::State { snapshot },
                    };
                    hub.respond(&client.client_id, request_id, Ok(reply));
                }
            }
        });
    });
    Ok(hub.recv()?)
}

fn snapshot() -> DaemonStateSnapshot {
    DaemonStateSnapshot {
        api_version: 1,
        at: Timestamp::UNIX_EPOCH,
        session: None,
        sessions: Vec::new(),
        entry_count: 20,
        mode: "school".to_owned(),
        clock_trusted: true,
        profiles: Vec::new(),
        language: None,
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000_000.0
}

/// Measures one client with one request at a time. The baseline is a byte to a thread and back.
fn round_trip(options: &ClientOptions) -> Result<(), Box<dyn std::error::Error>> {
    let (mut near, mut far) = UnixStream::pair()?;
    std::thread::spawn(move || {
        let mut byte = [0];
        while far.read_exact(&mut byte).is_ok() && far.write_all(&byte).is_ok() {}
    });
    let mut client = BlockingClient::connect(options)?;
    let (mut calls, mut echoes) = (Vec::new(), Vec::new());
    for _ in 0..ROUND_TRIPS {
        let (reply, time) = timed(|| client.call(Command::GetState {}));
        reply?;
        calls.push(micros(time));
        let (echo, time) = timed(|| near.write_all(b"x").and_then(|()| near.read_exact(&mut [0])));
        echo?;
        echoes.push(micros(time));
    }
    report(&BenchmarkRow {
        bench: "ipc: get_state, round trip (median)".to_owned(),
        unit: "µs".to_owned(),
        figure: median(&mut calls),
        baseline: Some(BenchmarkBaseline {
            name: "a byte to a thread and back".to_owned(),
            figure: median(&mut echoes),
        }),
        bar: BenchmarkLimit::AtMost(100.0),
    })?;
    Ok(())
}

/// Measures several clients at once, each with the maximum number of open requests.
fn concurrent_clients(options: &ClientOptions) -> Result<(), Box<dyn std::error::Error>> {
    let mut rates = Vec::new();
    for _ in 0..5 {
        let started = Instant::now();
        let threads: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let socket = options.socket.clone();
                std::thread::spawn(move || send_flood(&socket).map_err(|error| error.to_string()))
            })
            .collect();
        let mut answered = 0;
        for thread in threads {
            answered += thread.join().map_err(|_| "a client panicked")??;
        }
        rates.push(f64::from(answered) / started.elapsed().as_secs_f64());
        // Wait until the rate limit of this user allows requests again.
        std::thread::sleep(Duration::from_secs(1));
    }
    report(&BenchmarkRow {
        bench: format!("ipc: get_state, {CLIENTS} clients at once"),
        unit: "requests/s".to_owned(),
        figure: median(&mut rates),
        baseline: None,
        bar: BenchmarkLimit::AtLeast(20_000.0),
    })?;
    Ok(())
}

/// Returns the number of answers, without those that report the rate limit.
fn send_flood(socket: &Path) -> Result<u32, Box<dyn std::error::Error>> {
    const PIPELINED: usize = 4;
    let mut stream = UnixStream::connect(socket)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    stream.write_all(b"{\"type\":\"hello\",\"api_version\":1,\"client\":\"bench\"}\n")?;
    reader.read_line(&mut line)?;
    let requests = "{\"type\":\"request\",\"id\":1,\"command\":{\"type\":\"get_state\"}}\n".repeat(PIPELINED);
    let mut answered = 0;
    for _ in 0..ROUND_TRIPS / PIPELINED {
        stream.write_all(requests.as_bytes())?;
        for _ in 0..PIPELINED {
            line.clear();
            reader.read_line(&mut line)?;
            answered += u32::from(line.contains("\"ok\""));
        }
    }
    Ok(answered)
}

/// Measures the time from the publication of an event until the last subscriber has it.
fn broadcast_latency(options: &ClientOptions, hub: &ClientHub) -> Result<(), Box<dyn std::error::Error>> {
    let mut subscribers = Vec::new();
    for _ in 0..SUBSCRIBERS {
        let mut client = BlockingClient::connect(options)?;
        client.subscribe()?;
        subscribers.push(client);
    }
    let event = Event { at: Timestamp::UNIX_EPOCH, kind: EventKind::StateChanged { snapshot: snapshot() } };
    let mut times = Vec::new();
    for _ in 0..EVENTS {
        let started = Instant::now();
        hub.broadcast(&event);
        for client in &mut subscribers {
            client.next_push(None)?;
        }
        times.push(millis(started.elapsed()));
    }
    report(&BenchmarkRow {
        bench: format!("ipc: an event reaches {SUBSCRIBERS} subscribers (median)"),
        unit: "ms".to_owned(),
        figure: median(&mut times),
        baseline: None,
        bar: BenchmarkLimit::AtMost(20.0),
    })?;
    Ok(())
}
