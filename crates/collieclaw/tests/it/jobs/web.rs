//! C19.2, C19.4: a page of an allowed local server is fetched by the tool and by commands, and no other server is reached.

use serde_json::json;

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
    job.test_agent = job
        .test_agent
        .with_config_change("allowed_domains = []", &domains)
        .with_config_change("\"memory_search\", \"shell\"]", "\"memory_search\", \"shell\", \"http\"]");
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
}
