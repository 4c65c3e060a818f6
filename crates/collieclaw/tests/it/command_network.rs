//! C19.4: commands reach listed domains through the proxy, and nothing else.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use collieclaw_gate::{AutonomyLevel, CommandNetwork};
use serde_json::Value;

use crate::test_workspace::{TestCallResult, TestWorkspace};
use crate::toolchains::{rust_toolchain, with_rust};

const INSTALL_TIMEOUT: Duration = Duration::from_secs(300);

/// A web server outside of the sandbox that serves a folder.
pub(crate) struct FolderServer {
    child: Child,
    folder: tempfile::TempDir,
    port: u16,
}

impl FolderServer {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("/usr/bin/python3")
            .args(["-u", "-m", "http.server", "--bind", "127.0.0.1", "0", "--directory"])
            .arg(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port =
            line.split_whitespace().skip_while(|word| *word != "port").nth(1).unwrap().parse().unwrap();
        Self { child, folder, port }
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Runs a shell script outside of the sandbox, in the folder that is served.
    fn prepare(&self, script: &str) {
        run_outside(self.folder.path(), &script.replace("ADDRESS", &self.address()));
    }
}

impl Drop for FolderServer {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn run_outside(folder: &Path, script: &str) {
    let output = Command::new("/bin/bash").args(["-euc", script]).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn open_workspace(allowed: &[String]) -> TestWorkspace {
    let mut test_workspace = TestWorkspace::new();
    test_workspace.policy.autonomy = AutonomyLevel::Full;
    test_workspace.policy.command_network = CommandNetwork::Listed;
    test_workspace.policy.allowed_domains = allowed.to_vec();
    test_workspace
}

fn run_script(test_workspace: &TestWorkspace, script: &str) -> TestCallResult {
    test_workspace.write("run.sh", script);
    test_workspace.gateway_with_shell_limits(INSTALL_TIMEOUT, 1 << 20).shell("bash -u run.sh")
}

/// Returns the verdicts of the connections to a host.
fn verdicts(outcome: &TestCallResult, host: &str) -> Vec<String> {
    let network = outcome.metadata("network");
    let records = network["connections"].as_array().unwrap_or_else(|| panic!("no record: {outcome:?}"));
    let of_host = records.iter().filter(|record| record["host"] == host);
    of_host.map(|record| record["verdict"].as_str().unwrap().to_owned()).collect()
}

fn check(outcome: &TestCallResult, expected: &str) {
    assert_eq!(outcome.exit_code(), 0, "{outcome:?}; if a program is missing: cargo xtask setup");
    assert!(outcome.output().contains(expected), "{expected}: {}", outcome.output());
    assert_eq!(verdicts(outcome, "127.0.0.1"), ["allowed"], "{outcome:?}");
}

#[test]
fn curl_reaches_a_listed_service_and_the_call_records_it() {
    let server = FolderServer::start();
    server.write("page", "the page");
    let test_workspace = open_workspace(&[server.address()]);
    let outcome = run_script(&test_workspace, &format!("curl -sS http://{}/page", server.address()));
    check(&outcome, "the page");
    let record = &outcome.metadata("network")["connections"][0];
    assert_eq!(record["port"], Value::from(server.port));
    assert!(record["bytes_received"].as_u64().unwrap() > 8, "{record}");
    // A pipeline has a sandbox for each command.
    let gateway = test_workspace.gateway();
    let outcome = gateway.shell(&format!("curl -sS http://{}/page | cat", server.address()));
    check(&outcome, "the page");
}

#[test]
fn without_the_setting_there_is_no_proxy() {
    let server = FolderServer::start();
    server.write("page", "the page");
    let mut test_workspace = open_workspace(&[server.address()]);
    test_workspace.policy.command_network = CommandNetwork::None;
    let outcome =
        run_script(&test_workspace, &format!("curl -sS http://{}/page; echo $?; env", server.address()));
    assert!(outcome.output().starts_with("7\n"), "{outcome:?}");
    assert!(!outcome.output().to_lowercase().contains("proxy"), "{outcome:?}");
    assert_eq!(outcome.metadata("network"), Value::Null);
}

#[test]
fn nothing_but_listed_services_is_reached() {
    let (listed, other) = (FolderServer::start(), TcpListener::bind("127.0.0.1:0").unwrap());
    other.set_nonblocking(true).unwrap();
    let port = other.local_addr().unwrap().port();
    listed.write("page", "the page");
    let test_workspace = open_workspace(&[listed.address()]);
    let script = format!(
        "try() {{ echo \"$* -> $(curl -sS -m 20 -o body -w '%{{http_code}}' \"$@\" 2> error) $? $(cat body 2> /dev/null)\"; rm -f body; }}\n\
         try http://127.0.0.1:{port}/\n\
         try --proxytunnel http://127.0.0.1:{port}/\n\
         try http://localhost:{port}/\n\
         try http://2130706433:{port}/\n\
         try --noproxy '*' http://127.0.0.1:{port}/\n\
         try --noproxy '*' http://{listed}/page\n\
         try --noproxy '*' http://192.0.2.1/\n\
         try http://169.254.169.254/latest/meta-data/\n\
         try https://unlisted.example/\n\
         try -H 'Host: unlisted.example' http://{listed}/page\n\
         getent hosts example.org && echo RESOLVED\n\
         python3 -c 'import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b\"x\", (\"192.0.2.1\", 53))' 2> /dev/null && echo SENT\n\
         true",
        listed = listed.address()
    );
    let outcome = run_script(&test_workspace, &script);
    for leak in ["the page", "RESOLVED", "SENT", "-> 200"] {
        assert!(!outcome.output().contains(leak), "{leak}: {}", outcome.output());
    }
    assert!(other.accept().is_err(), "a connection arrived");
    let network = outcome.metadata("network").to_string();
    assert!(network.contains("169.254.169.254") && network.contains("unlisted.example"), "{network}");
    assert!(!network.contains("allowed\""), "{network}");
}

#[test]
fn the_proxy_ends_with_the_command() {
    let server = FolderServer::start();
    let test_workspace = open_workspace(&[server.address()]);
    let script = "setsid sh -c 'sleep 60; curl -sS http://127.0.0.1:3128/' > /dev/null 2>&1 & echo started";
    let outcome = run_script(&test_workspace, script);
    assert_eq!(outcome.output(), "started\n");
    // Nobody outside of the sandbox sees the socket.
    assert!(std::net::TcpStream::connect("127.0.0.1:3128").is_err());
    assert_eq!(outcome.metadata("network")["connections"], Value::Array(Vec::new()));
}

#[test]
fn pip_installs_from_a_listed_index() {
    let server = FolderServer::start();
    server.prepare(
        "mkdir -p simple/demo && cd simple/demo && python3 - <<'END'
import zipfile
with zipfile.ZipFile('demo-1.0-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('demo.py', 'text = \"installed with pip\"\\n')
    wheel.writestr('demo-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: demo\\nVersion: 1.0\\n')
    wheel.writestr('demo-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr('demo-1.0.dist-info/RECORD', 'demo.py,,\\ndemo-1.0.dist-info/METADATA,,\\ndemo-1.0.dist-info/WHEEL,,\\ndemo-1.0.dist-info/RECORD,,\\n')
END",
    );
    let test_workspace = open_workspace(&[server.address()]);
    let script = format!(
        "/usr/bin/python3 -m venv env && env/bin/pip install --disable-pip-version-check --no-cache-dir \
         --index-url http://{}/simple --trusted-host 127.0.0.1 demo && env/bin/python -c 'import demo; print(demo.text)'",
        server.address()
    );
    check(&run_script(&test_workspace, &script), "installed with pip");
}

#[test]
fn npm_installs_from_a_listed_registry() {
    let server = FolderServer::start();
    server.prepare(
        "mkdir package && echo '{\"name\": \"demo\", \"version\": \"1.0.0\"}' > package/package.json \
         && echo 'module.exports = \"installed with npm\"' > package/index.js && tar czf demo-1.0.0.tgz package && python3 - <<'END'
import base64, hashlib, json
digest = base64.b64encode(hashlib.sha512(open('demo-1.0.0.tgz', 'rb').read()).digest()).decode()
dist = {'tarball': 'http://ADDRESS/demo-1.0.0.tgz', 'integrity': 'sha512-' + digest}
version = {'name': 'demo', 'version': '1.0.0', 'dist': dist}
json.dump({'name': 'demo', 'dist-tags': {'latest': '1.0.0'}, 'versions': {'1.0.0': version}}, open('demo', 'w'))
END",
    );
    let test_workspace = open_workspace(&[server.address()]);
    test_workspace
        .write("package.json", r#"{"name": "user", "version": "1.0.0", "dependencies": {"demo": "^1.0.0"}}"#);
    let script = format!(
        "export npm_config_registry=http://{}/\nnpm install --no-audit --no-fund && mv node_modules earlier && npm ci --no-audit --no-fund \
         && node -e 'console.log(require(\"demo\"))'",
        server.address()
    );
    check(&run_script(&test_workspace, &script), "installed with npm");
}

#[test]
fn git_clones_and_fetches_from_a_listed_host() {
    let server = FolderServer::start();
    server.prepare(
        "git init -q work && cd work && git -c user.name=n -c user.email=e@example.org commit -q --allow-empty -m 'fetched with git' \
         && cd .. && git clone -q --bare work repo.git && git -C repo.git update-server-info",
    );
    let test_workspace = open_workspace(&[server.address()]);
    let script = format!(
        "git clone -q http://{}/repo.git copy && git -C copy fetch -q && git -C copy log --format=%s",
        server.address()
    );
    check(&run_script(&test_workspace, &script), "fetched with git");
}

#[test]
fn cargo_fetches_from_a_listed_registry() {
    let server = FolderServer::start();
    server.prepare(
        "mkdir -p demo-1.0.0/src index/de/mo && echo 'pub const TEXT: &str = \"fetched with cargo\";' > demo-1.0.0/src/lib.rs \
         && printf '[package]\\nname = \"demo\"\\nversion = \"1.0.0\"\\nedition = \"2021\"\\n' > demo-1.0.0/Cargo.toml \
         && tar czf demo-1.0.0.crate demo-1.0.0 && python3 - <<'END'
import hashlib, json
digest = hashlib.sha256(open('demo-1.0.0.crate', 'rb').read()).hexdigest()
json.dump({'dl': 'http://ADDRESS/{crate}-{version}.crate'}, open('index/config.json', 'w'))
krate = {'name': 'demo', 'vers': '1.0.0', 'deps': [], 'cksum': digest, 'features': {}, 'yanked': False}
open('index/de/mo/demo', 'w').write(json.dumps(krate) + '\\n')
END",
    );
    let test_workspace = with_rust(open_workspace(&[server.address()]), &rust_toolchain());
    let sources = format!(
        "[source.crates-io]\nreplace-with = \"local\"\n[source.local]\nregistry = \"sparse+http://{}/index/\"\n",
        server.address()
    );
    test_workspace.write(".cargo/config.toml", &sources);
    test_workspace.write(
        "Cargo.toml",
        "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\ndemo = \"1\"\n",
    );
    test_workspace.write("src/main.rs", "fn main() { println!(\"{}\", demo::TEXT); }\n");
    let outcome = run_script(&test_workspace, "cargo fetch 2>&1 && cargo run --offline -q 2>&1");
    check(&outcome, "fetched with cargo");
}
