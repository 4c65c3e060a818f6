//! Configuration changes while the gateway runs: errors are shown with help and cleared once fixed, and every new
//! configuration is reported (C7, C14).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::support::TestGateway;
use crate::support::TestAgent;

const WRITES: &str = "[[round]]\n[[round.call]]\ntool = \"file_write\"\nargs = { path = \"x\", content = \"\" }\n[[round]]\ntext = \"so\"\n";

struct ReloadFixture {
    gateway: TestGateway,
    path: PathBuf,
    text: String,
}

impl ReloadFixture {
    fn new(autonomy: &str) -> Self {
        let test_agent = TestAgent::new()
            .with_mock_fixture(WRITES)
            .with_config_change(
                "port = 8477\ntools_allow = [",
                "port = 8477\ntools_allow = [\"file_write\", ",
            )
            .with_config_change("autonomy = \"supervised\"", &format!("autonomy = \"{autonomy}\""));
        let path = test_agent.home().join("config.toml");
        let text = fs::read_to_string(&path).unwrap();
        Self { gateway: TestGateway::start_in(test_agent), path, text }
    }

    /// Writes the file with a modification time one minute ago.
    fn write_config(&self, text: &str) {
        fs::write(&self.path, text).unwrap();
        self.set_modified(SystemTime::now() - Duration::from_secs(60));
    }

    fn set_modified(&self, modified: SystemTime) {
        fs::File::options().write(true).open(&self.path).unwrap().set_modified(modified).unwrap();
    }

    fn config_with(&self, from: &str, to: &str) -> String {
        assert!(self.text.contains(from), "no `{from}` in {}", self.text);
        self.text.replacen(from, to, 1)
    }

    fn status(&self) -> Value {
        self.gateway.get("/status").json()
    }

    fn config_fault(&self) -> String {
        self.status()["config_fault"].as_str().unwrap_or_default().to_owned()
    }

    /// Returns the outcome of a write.
    fn attempt_write(&self) -> Value {
        self.gateway.post("/chat", &json!({ "message": "write" })).json()["tool_calls"][0]["outcome"].clone()
    }

    fn audit_records(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.gateway.test_agent.home().join("audit.log")).unwrap_or_default();
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["event"] == "config_reloaded").collect()
    }
}

#[test]
fn a_fault_is_over_when_it_is_mended_wherever_that_is() {
    let scene = ReloadFixture::new("full");
    assert_eq!(scene.attempt_write(), "done");
    let readonly = scene.config_with("autonomy = \"full\"", "autonomy = \"readonly\"");
    scene.write_config(&readonly.replace("~/collieclaw-workspace", "~/elsewhere"));
    let fault = scene.config_fault();
    assert!(fault.contains("elsewhere") && fault.contains("\nhelp: run `collieclaw init`"), "{fault}");
    assert!(!fault.contains("os error"), "{fault}");
    assert_eq!(scene.attempt_write(), "done", "the rules of before hold");
    fs::create_dir(scene.gateway.test_agent.path().join("elsewhere")).unwrap();
    assert_eq!(scene.attempt_write(), "denied", "the next turn has the new ones");
    let status = scene.status();
    assert_eq!((&status["config_fault"], &status["config_changed"]), (&json!(null), &json!(false)));
    assert!(status["workspace"].as_str().unwrap().ends_with("/elsewhere"), "{status}");

    let mode = |mode| fs::set_permissions(&scene.path, PermissionsExt::from_mode(mode)).unwrap();
    mode(0o664);
    let fault = scene.config_fault();
    assert!(fault.contains("can be changed by others") && fault.contains("\nhelp: "), "{fault}");
    mode(0o600);
    assert_eq!(scene.config_fault(), "");

    // The same modification time and length as before.
    scene.write_config(&scene.config_with("default_model = \"mock\"", "default_model = \"moth\""));
    assert_eq!(scene.status()["model"], "moth");
    let modified = scene.path.metadata().unwrap().modified().unwrap();
    fs::write(&scene.path, &scene.text).unwrap();
    scene.set_modified(modified);
    assert_eq!(scene.status()["model"], "mock");
}

#[test]
fn a_truncated_configuration_loosens_nothing_and_a_reload_is_reported() {
    let scene = ReloadFixture::new("readonly");
    let middle = scene.text.find("[security]").unwrap();
    for (cut, why) in [("", "config.toml is empty"), (&scene.text[..middle], "ends in the middle")] {
        scene.write_config(cut);
        let status = scene.status();
        let fault = status["config_fault"].as_str().unwrap_or_else(|| panic!("{status}"));
        assert!(fault.contains(why) && fault.contains("\nhelp: "), "{fault}");
        assert_eq!((&status["autonomy"], scene.attempt_write()), (&json!("readonly"), json!("denied")));
    }
    assert_eq!(scene.audit_records(), Vec::<Value>::new());

    scene.write_config(&scene.config_with("autonomy = \"readonly\"", "autonomy = \"full\""));
    assert_eq!(scene.attempt_write(), "done");
    scene.write_config(&scene.text);
    assert_eq!(scene.status()["autonomy"], "readonly");
    let audited = scene.audit_records();
    let actual: Vec<_> =
        audited.iter().map(|line| (&line["autonomy_before"], &line["autonomy"], &line["loosened"])).collect();
    let (readonly, full) = (json!("readonly"), json!("full"));
    assert_eq!(actual, [(&readonly, &full, &json!(true)), (&full, &readonly, &json!(false))]);
    assert_eq!(audited[0]["policy_hash_before"], audited[1]["policy_hash"]);
    assert_ne!(audited[0]["policy_hash_before"], audited[0]["policy_hash"]);
    assert_eq!(scene.gateway.test_agent.receipts().last().unwrap()["policy_hash"], audited[0]["policy_hash"]);
    let said = fs::read_to_string(scene.gateway.test_agent.path().join("gateway.err")).unwrap();
    let sentence = "the changed configuration is in force, which allows more than before (autonomy: full, before: readonly)";
    assert!(said.contains(sentence), "{said}");
}

#[test]
fn a_turn_that_continues_under_older_rules_is_counted() {
    let scene = ReloadFixture::new("supervised");
    let mut events = scene.gateway.stream_chat(&json!({ "message": "write" }));
    scene.gateway.wait_for_question();
    let turns = |scene: &ReloadFixture| scene.status()["turns"].clone();
    assert_eq!(turns(&scene), json!({ "open": 1, "older_rules": 0, "most": 4 }));
    scene.write_config(&scene.config_with("autonomy = \"supervised\"", "autonomy = \"readonly\""));
    assert_eq!(turns(&scene), json!({ "open": 1, "older_rules": 1, "most": 4 }));
    let id = scene.gateway.wait_for_question()["id"].as_str().unwrap().to_owned();
    scene.gateway.post(&format!("/approvals/{id}"), &json!({ "approve": false }));
    while events.next().is_some() {}
    assert_eq!(turns(&scene)["older_rules"], 0);
}
