//! C19.2, C19.4: a page of an allowed local server is fetched by the tool and by commands, and no other server is reached.

use collieclaw_agent::receipts::hash_json;
use serde_json::{Value, json};

use super::{JobFolder, JobScript};
use crate::command_network::FolderServer;

const PAGE: &str = "<!doctype html><html><head><title>Sheep</title><style>p { color: red }</style>\
    <script>var tracker = 1;</script></head><body><h1>Counting sheep</h1><p>There are <b>12</b> sheep.</p></body></html>\n";

/// C19.2, C19.4.
#[test]
fn a_page_of_an_allowed_server_is_fetched() {
    let server = FolderServer::start();
    server.write("index.html", PAGE);
    let other = FolderServer::start();
    other.write("index.html", "nobody reads this");
    let mut job = JobFolder::create(&[("README.md", "# Sheep\n")]);
    let domains = format!("allowed_domains = [\"{}\"]", server.address());
    // With an allowed domain, the tool `http` is offered in a project.
    job.test_agent = job.test_agent.with_config_change("allowed_domains = []", &domains);
    job.trust(&["--network", "listed"]);
    let page = format!("http://{}/index.html", server.address());
    let script = JobScript::default()
        .call("http", json!({ "url": page }), "# Counting sheep\n\nThere are 12 sheep.")
        .shell(&format!("curl -sS {page} | grep -o '<h1>.*</h1>'"), "<h1>Counting sheep</h1>")
        .shell(&format!("curl -fsSL -o page.html {page} && wc -c < page.html"), &format!("{}\n", PAGE.len()))
        .shell(
            &format!(
                "base=http://{}; for p in index.html missing; do \
                 curl -s -o /dev/null -w '%{{http_code}}\\n' \"$base/$p\"; done",
                server.address()
            ),
            "200\n404\n",
        )
        .shell(
            &format!("python3 -c \"import urllib.request as r; print(r.urlopen('{page}').status)\""),
            "200\n",
        )
        // The proxy answers in place of a server that isn't listed.
        .shell(
            &format!(
                "python3 -c \"import urllib.request as r; print(r.urlopen('http://{}/index.html').read())\" 2>&1 | tail -n 1",
                other.address()
            ),
            "\"verdict\":\"refused\"",
        );
    assert_eq!(job.run(&script), 5, "the number of questions");
    assert_eq!(job.read("page.html"), PAGE);
    check_receipts(&job.receipts(), &page, server.address().as_str(), other.address().as_str());
}

/// Checks that the receipts tell which programs ran with which arguments, and which servers they reached.
fn check_receipts(receipts: &[Value], page: &str, listed: &str, unlisted: &str) {
    assert_eq!(receipts[0].get("network"), None, "the tool `http` needs no proxy");
    let commands = &receipts[1]["commands"];
    let programs: Vec<&Value> = commands["listed"].as_array().unwrap().iter().collect();
    assert_eq!(commands["total"], json!(2), "{commands}");
    let curl = programs.iter().find(|program| program["program"] == "/usr/bin/curl").unwrap();
    let arguments = hash_json(&json!(["curl", "-sS", page])).unwrap();
    assert_eq!((&curl["verdict"], &curl["argv_hash"]), (&json!("run"), &json!(arguments)), "{commands}");
    let (host, port) = listed.split_once(':').unwrap();
    let connections = receipts[1]["network"]["connections"].as_array().unwrap();
    assert_eq!(connections.len(), 1, "{connections:?}");
    let connection = &connections[0];
    assert_eq!(
        (&connection["host"], &connection["verdict"]),
        (&json!(host), &json!("allowed")),
        "{connection}"
    );
    assert_eq!(connection["port"].to_string(), port);
    assert_eq!(connection["connections"], json!(1));
    assert!(connection["bytes_sent"].as_u64() > Some(0), "{connection}");
    assert!(connection["bytes_received"].as_u64() > u64::try_from(PAGE.len()).ok(), "{connection}");
    let refused = receipts.last().unwrap()["network"]["connections"][0].clone();
    assert_eq!(format!("{}:{}", refused["host"].as_str().unwrap(), refused["port"]), unlisted);
    assert_eq!(refused["verdict"], "refused", "{refused}");
    assert!(refused["reason"].is_string() && refused["bytes_received"] == json!(0), "{refused}");
}
