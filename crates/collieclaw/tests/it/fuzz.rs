//! Fuzz targets; longer with `cargo xtask fuzz collieclaw`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use collieclaw_agent::plugins::{PluginFiles, PluginManifest};
use collieclaw_providers::cancel::CancelFlag;
use collieclaw_providers::net::{EventReader, StreamEvent};
use collieclaw_providers::secret::Secret;
use collieclaw_providers::{DraftEvent, OpenAiProvider, OpenAiSettings, Provider};

/// Parses bytes that arrive in pieces of these sizes.
fn read_in_pieces(
    bytes: &[u8],
    sizes: impl Iterator<Item = usize>,
) -> Result<Vec<StreamEvent>, &'static str> {
    let mut reader = EventReader::new(4096);
    let mut events = Vec::new();
    let mut rest = bytes;
    for size in sizes {
        if rest.is_empty() {
            break;
        }
        let (piece, later) = rest.split_at(size.clamp(1, rest.len()));
        events.extend(reader.push_bytes(piece).map_err(|_| "too long")?);
        rest = later;
    }
    events.extend(reader.finish());
    Ok(events)
}

/// Runs a server that answers every request with the current bytes, and closes the connection.
fn start_server(body: Arc<Mutex<Vec<u8>>>) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                match line.trim().to_lowercase().strip_prefix("content-length: ") {
                    Some(value) => length = value.parse().unwrap(),
                    None if line.trim().is_empty() => break,
                    None => {}
                }
            }
            std::io::copy(&mut reader.take(length), &mut std::io::sink()).unwrap();
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            // A client that has read enough may disconnect.
            let _ = stream.write_all(head).and_then(|()| stream.write_all(&body.lock().unwrap()));
        }
    });
    port
}

#[test]
fn no_stream_makes_the_provider_panic_or_show_discarded_text() {
    const KEY: &str = "sk-canary-4711";
    let body = Arc::default();
    let port = start_server(Arc::clone(&body));
    let provider = OpenAiProvider::new(OpenAiSettings {
        name: "fuzzed".to_owned(),
        base_url: format!("http://127.0.0.1:{port}/v1"),
        api_key: Some(Secret::new(KEY.to_owned())),
        api_key_env: None,
        timeout: Duration::from_secs(20),
        stall_timeout: Duration::from_secs(20),
        max_response_bytes: 8192,
        stream: true,
    });
    let corpus = [
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hä🐑 sk-can\"}}]}\n\n\
         data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ary-4711\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"time\",\
         \"arguments\":\"{\\\"x\\\":\"}}]}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"1}\"}}]},\
         \"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}\n\n\
         data: {\"choices\":[{\"delta\":{\"content\":\"\\udc11\"},\"finish_reason\":\"stop\"}]}\n\n",
        "event: error\ndata: {\"error\":{\"message\":\"no\",\"code\":503}}\n\n",
        "{\"choices\":[{\"message\":{\"content\":\"whole\"}}]}",
    ]
    .map(|text| text.as_bytes().to_vec());
    let cancel = CancelFlag::new().unwrap();
    let report = ward_fuzz::run("stream", &corpus, |bytes| {
        *body.lock().unwrap() = bytes.to_vec();
        let mut actual = String::new();
        let mut listen = |draft: DraftEvent<'_>| match draft {
            DraftEvent::Text(text) => actual.push_str(text),
            DraftEvent::Discard => panic!("a server takes nothing back"),
        };
        let answer = provider.chat(&crate::openai::request(), &mut listen, &cancel);
        assert!(!actual.contains(KEY), "the output contains the key");
        match answer {
            Ok(answer) => {
                // A body in one piece is not streamed.
                assert!(actual.is_empty() || actual == answer.final_text, "{actual:?} is not {answer:?}");
                assert!(!format!("{answer:?}").contains(KEY), "the key is in {answer:?}");
                format!("{} {}", answer.tool_calls.len(), answer.usage.is_some())
            }
            Err(error) => {
                let said = error.to_string();
                assert!(!said.contains(KEY) && said.len() < 2_000, "{said}");
                said.chars().filter(|letter| !letter.is_ascii_digit()).take(70).collect()
            }
        }
    })
    .unwrap();
    println!("{report}");
}

#[test]
fn events_are_the_same_wherever_a_stream_is_cut() {
    let corpus: Vec<Vec<u8>> = [
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hä🐑\"}}]}\n\n: ping\n\ndata: [DONE]\n\n",
        "\u{feff}event: error\r\ndata: a\r\ndata: b\r\rdata\n\nid: 7\nretry: 3\ndata:x\r\n\r\n",
        "data:\n\ndata: \n\n\n\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    let report = ward_fuzz::run("event_stream", &corpus, |bytes| {
        let whole = read_in_pieces(bytes, std::iter::repeat(usize::MAX));
        assert_eq!(read_in_pieces(bytes, std::iter::repeat(1)), whole, "byte by byte");
        assert_eq!(read_in_pieces(bytes, [3, 1, 7, 2].into_iter().cycle()), whole, "in pieces");
        let events = whole.as_ref().map_or(0, Vec::len);
        for event in whole.iter().flatten() {
            assert!(!event.data.contains(&b'\r') && event.data.len() <= 4096);
        }
        (whole.is_ok(), events.min(8))
    })
    .unwrap();
    println!("{report}");
}

#[test]
fn a_manifest_of_any_bytes_is_read_or_its_faults_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = [
        "name = \"a\"\nversion = \"1\"\ncapabilities = [\"tool\"]\n[[tools]]\nname = \"b\"\ndescription = \"c\"\n\
         command = \"./d\"\nschema = { type = \"object\" }\nrisk = \"low\"\nnetwork = false\nworkspace = \"read\"\n\
         timeout = \"5s\"\n",
        "name = \"a\"\n[[tools]]\ncommand = [\"python3\", \"x\"]\nschema = '{\"type\": \"object\", \"$ref\": \"#/$defs/x\", \
         \"$defs\": {\"x\": {\"pattern\": \"(a+)+$\"}}}'\n",
        "tools = 7\nschema = \"other.json\"\n",
    ]
    .map(|text| text.as_bytes().to_vec());
    let report = ward_fuzz::run("manifest", &corpus, |bytes| {
        std::fs::write(folder.path().join("manifest.toml"), bytes).unwrap();
        let contents = PluginFiles::read(folder.path()).unwrap();
        match PluginManifest::read(&contents, folder.path(), &["shell"]) {
            Ok(manifest) => {
                for tool in &manifest.tools {
                    assert!(tool.name != "shell" && !tool.name.contains("__"), "{tool:?}");
                    assert!(!tool.command[0].starts_with('/') && !tool.command[0].contains(".."), "{tool:?}");
                }
                format!("{} tools", manifest.tools.len())
            }
            Err(report) => {
                let codes = report.faults().iter().map(ward_diag::ConfigFault::code);
                codes.take(4).collect::<Vec<_>>().join(" ")
            }
        }
    })
    .unwrap();
    println!("{report}");
}
