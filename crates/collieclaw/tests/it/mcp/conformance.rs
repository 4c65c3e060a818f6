//! The conformance suite of the protocol against `mcp serve --http`. A plugin provides the tools that the suite
//! expects, so its calls go through schema, gate, sandbox and receipts. docs/collieclaw-mcp.md lists the scenarios
//! that don't apply.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::server_fixture::installed_peers;
use super::serving::HttpServeProcess;
use crate::support::{ChildGuard, TestAgent};

/// The features that the suite tests and we don't offer. The suite checks this list in both directions.
pub(crate) const NOT_OFFERED: &str = "server:
  - logging-set-level
  - tools-call-image
  - tools-call-audio
  - tools-call-embedded-resource
  - tools-call-mixed-content
  - tools-call-with-logging
  - tools-call-with-progress
  - tools-call-sampling
  - tools-call-elicitation
  - elicitation-sep1034-defaults
  - elicitation-sep1330-enums
  - resources-read-text
  - resources-read-binary
  - resources-templates-read
  - resources-subscribe
  - resources-unsubscribe
  - prompts-get-simple
  - prompts-get-with-args
  - prompts-get-embedded-resource
  - prompts-get-with-image
";

const MANIFEST: &str = r##"
name = "conformance"
version = "1.0.0"
capabilities = ["tool"]

[[tools]]
name = "test_simple_text"
description = "Says something."
command = ["./run", "{\"output\": \"This is a simple text response for testing.\"}"]
schema = { type = "object" }
risk = "low"

[[tools]]
name = "test_error_handling"
description = "Always fails."
command = ["./run", "{\"error\": \"This tool intentionally returns an error for testing\"}"]
schema = { type = "object" }
risk = "low"

[[tools]]
name = "json_schema_2020_12_tool"
description = "Has a schema with references."
command = ["./run", "{\"output\": \"\"}"]
risk = "low"
schema = '''{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": {
    "address": { "type": "object", "properties": { "street": { "type": "string" }, "city": { "type": "string" } } }
  },
  "properties": { "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" } },
  "additionalProperties": false
}'''
"##;

/// A script that adds the token to the requests of the suite, which can't send one.
const WITH_TOKEN: &str = r#"
const http = require("http");
const [port, token] = process.argv.slice(1);
const proxy = http.createServer((asked, answer) => {
  const headers = { ...asked.headers, authorization: `Bearer ${token}` };
  const to = { host: "127.0.0.1", port, path: asked.url, method: asked.method, headers };
  const through = http.request(to, (got) => { answer.writeHead(got.statusCode, got.headers); got.pipe(answer); });
  through.on("error", () => answer.destroy());
  asked.pipe(through);
});
proxy.listen(0, "127.0.0.1", () => console.log(proxy.address().port));
"#;

#[test]
fn the_official_suite_passes_where_it_applies() {
    let test_agent = TestAgent::new();
    let folder = test_agent.write_plugin_folder(
        "conformance",
        &[("manifest.toml", MANIFEST), ("run", "#!/bin/sh\necho \"$1\"\n")],
    );
    let installed_plugin = test_agent.run(&["plugin", "install", "--yes", folder.to_str().unwrap()]);
    assert_eq!(installed_plugin.code, 0, "{installed_plugin:?}");
    let names = "\"test_simple_text\", \"test_error_handling\", \"json_schema_2020_12_tool\", ";
    let test_agent = test_agent.with_config_change("tools_allow = [", &format!("tools_allow = [{names}"));

    let server = HttpServeProcess::new(&test_agent);
    let (_, port) = server.host.split_once(':').unwrap();
    let bin = installed_peers().join("node_modules/.bin");
    let mut proxy = Command::new(bin.join("node"));
    proxy.args(["-e", WITH_TOKEN, port, &server.token]).stdout(Stdio::piped()).stdin(Stdio::null());
    let mut proxy = ChildGuard(proxy.spawn().unwrap());
    let mut port = String::new();
    BufReader::new(proxy.0.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let url = format!("http://127.0.0.1:{}/mcp", port.trim());

    let baseline = test_agent.path().join("not-offered.yml");
    std::fs::write(&baseline, NOT_OFFERED).unwrap();
    let run = |more: &[&str]| {
        let mut suite = Command::new(bin.join("node"));
        suite.arg(bin.join("conformance")).args(["server", "--url", &url]).args(more);
        let ran = suite.current_dir(test_agent.path()).stdin(Stdio::null()).output().unwrap();
        let actual = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(ran.status.success(), "{more:?}: {actual}{}", String::from_utf8_lossy(&ran.stderr));
        actual
    };
    let actual = run(&["--expected-failures", baseline.to_str().unwrap()]);
    for passed in [
        "server-initialize",
        "tools-list",
        "tools-call-simple-text",
        "tools-call-error",
        "dns-rebinding-protection",
    ] {
        assert!(actual.contains(&format!("✓ {passed}: ")), "{passed}: {actual}");
    }
    // Not in the suite's default list yet.
    run(&["--scenario", "json-schema-2020-12"]);
    assert!(test_agent.receipts().len() >= 2, "its calls went through the tool gateway");
    assert_eq!(test_agent.run(&["receipt", "verify"]).code, 0);
}
