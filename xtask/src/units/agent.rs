//! Checks CollieClaw's gateway as a user service, installed by its own command and started by the user's service
//! manager (C13).

use std::process::Output;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::container::TestContainer;
use super::service_scope::ServiceScope;

/// A check on an installed agent.
pub(super) type AgentCheck = (&'static str, fn(&AgentService) -> Result<()>);

/// The checks, in order: each continues from the state that the previous one left.
pub(super) const CHECKS: &[AgentCheck] = &[
    ("`service install` and `start` return when the gateway answers", starts_when_ready),
    ("a command of the agent has the same sandbox in the service as without it", same_sandbox),
    ("a gateway that is killed is restarted", restarts_after_kill),
    ("`service stop` cancels the running turn and leaves no process", stop_cancels_turn),
    ("`service uninstall` leaves no unit", uninstall_removes_unit),
    ("the commands of the documentation work in order", documented),
];

/// The documentation, whose `console systemd` block is run.
const PAGE: &str = include_str!("../../../docs/collieclaw-service.md");

/// The scripted turns of the model, and the rules for them.
const CONFIG: &str = r#"
[security]
autonomy = "full"
[limits]
shell_timeout = "29s"
[providers.models.local]
fixture = "fixture.toml"
"#;
const FIXTURE: &str = "[[round]]\n[[round.call]]\ntool = \"shell\"\nargs = { command = \"COMMAND\" }\n[[round]]\ntext = \"so\"\n";

/// A command that runs long enough to be found, with a unique argument.
const SLEEP_COMMAND: &str = "sleep 28.4711";

/// The agent of the user `kid` in a container.
pub(super) struct AgentService {
    container: TestContainer,
}

impl AgentService {
    pub(super) fn start(container: TestContainer) -> Result<Self> {
        container.start_child_user_manager()?;
        let agent = Self { container };
        agent.collieclaw(&["init"])?;
        agent.write(".collieclaw/config.toml", CONFIG)?;
        agent.set_command("ls")?;
        Ok(agent)
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let path = format!("/home/kid/{file}");
        self.container.write(&path, text)?;
        self.container.run(&["chown", "kid:kid", &path]).map(drop)
    }

    /// Makes the model run this command in each turn.
    fn set_command(&self, command: &str) -> Result<()> {
        self.write(".collieclaw/fixture.toml", &FIXTURE.replace("COMMAND", command))
    }

    fn run(&self, command: &[&str]) -> Result<Output> {
        self.container.run(&[ServiceScope::User.prefix(), command].concat())
    }

    fn collieclaw(&self, arguments: &[&str]) -> Result<Value> {
        let done = self.run(&[&["collieclaw", "--output", "json"], arguments].concat())?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "`collieclaw {}`: {said}\n{}", arguments.join(" "), self.journal());
        serde_json::from_slice(&done.stdout).with_context(|| format!("`collieclaw {}`", arguments.join(" ")))
    }

    pub(super) fn journal(&self) -> String {
        let done = self.container.run(&["journalctl", "--no-pager", "--lines=40"]);
        done.map_or_else(|error| error.to_string(), |done| String::from_utf8_lossy(&done.stdout).into_owned())
    }

    /// Sends a request to the gateway from a shell, without an HTTP client.
    fn send_http(&self, request: &str) -> Result<String> {
        let script = "exec 3<>/dev/tcp/127.0.0.1/8477 && printf '%b' \"$1\" >&3 && cat <&3";
        let done = self.run(&["bash", "-c", script, "bash", request])?;
        ensure!(
            done.status.success(),
            "the gateway does not listen: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    fn is_healthy(&self) -> bool {
        let request = "GET /health HTTP/1.1\\r\\nHost: 127.0.0.1:8477\\r\\nConnection: close\\r\\n\\r\\n";
        self.send_http(request).is_ok_and(|answer| answer.contains("{\"ok\":true}"))
    }

    fn chat(&self) -> Result<String> {
        let token = self.container.read("/home/kid/.collieclaw/gateway.token")?;
        self.send_http(&format!(
            "POST /chat HTTP/1.1\\r\\nHost: 127.0.0.1:8477\\r\\nAuthorization: Bearer {}\\r\\nConnection: close\\r\\n\
             Content-Type: application/json\\r\\nContent-Length: 16\\r\\n\\r\\n{{\"message\":\"go\"}}",
            token.trim()
        ))
    }

    fn main_pid(&self) -> Result<String> {
        let show = ["systemctl", "--user", "show", "--value", "--property=MainPID", "collieclaw-gateway"];
        Ok(String::from_utf8_lossy(&self.run(&show)?.stdout).trim().to_owned())
    }

    fn wait_until(&self, what: &str, mut is_so: impl FnMut() -> bool) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !is_so() {
            if Instant::now() > deadline {
                bail!("timed out waiting until {what}\n{}", self.journal());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

fn starts_when_ready(agent: &AgentService) -> Result<()> {
    agent.collieclaw(&["service", "install"])?;
    let status = agent.run(&["collieclaw", "service", "status"])?;
    ensure!(status.status.code() == Some(1), "the service runs before it was started");
    agent.collieclaw(&["service", "start"])?;
    ensure!(agent.is_healthy(), "the gateway does not answer");
    let status = agent.collieclaw(&["service", "status"])?;
    for word in ["installed", "enabled", "running"] {
        ensure!(status.get(word) == Some(&Value::Bool(true)), "{status}");
    }
    Ok(())
}

fn same_sandbox(agent: &AgentService) -> Result<()> {
    agent.collieclaw(&["tool", "run", "shell", "--json", "{\"command\":\"ls\"}"])?;
    let answer = agent.chat()?;
    ensure!(answer.contains("\"outcome\":\"done\""), "{answer}");
    let receipts = agent.collieclaw(&["receipt", "list"])?;
    let levels: Vec<&Value> = receipts
        .as_array()
        .context("the reply is not a list")?
        .iter()
        .filter_map(|one| one.get("sandbox"))
        .collect();
    let [without, within] = levels[..] else { bail!("{receipts}") };
    ensure!(
        without == within && within != "none",
        "the sandbox is {without} without the service and {within} in it"
    );
    Ok(())
}

fn restarts_after_kill(agent: &AgentService) -> Result<()> {
    let first = agent.main_pid()?;
    agent.container.run(&["kill", "-9", &first])?;
    agent.wait_until("another process answers", || {
        agent.main_pid().is_ok_and(|now| now != first) && agent.is_healthy()
    })
}

fn stop_cancels_turn(agent: &AgentService) -> Result<()> {
    agent.set_command(SLEEP_COMMAND)?;
    let sleeps =
        || agent.container.run(&["pgrep", "--full", SLEEP_COMMAND]).is_ok_and(|done| done.status.success());
    std::thread::scope(|scope| {
        let turn = scope.spawn(|| agent.chat());
        agent.wait_until("the command runs", sleeps)?;
        agent.collieclaw(&["service", "stop"])?;
        let answer = turn.join().map_err(|_| anyhow::anyhow!("the thread of the turn panicked"))??;
        ensure!(answer.contains("\"code\":\"cancelled\""), "{answer}");
        ensure!(!sleeps(), "the command still runs");
        ensure!(!agent.is_healthy(), "the gateway still answers");
        Ok(())
    })?;
    let receipts = agent.collieclaw(&["receipt", "list"])?;
    let last = receipts.as_array().and_then(|all| all.last()).and_then(|last| last.get("reason_code"));
    ensure!(last.is_some_and(|code| code == "cancelled"), "{receipts}");
    agent.collieclaw(&["receipt", "verify"]).map(drop)
}

fn uninstall_removes_unit(agent: &AgentService) -> Result<()> {
    agent.collieclaw(&["service", "start"])?;
    agent.collieclaw(&["service", "uninstall"])?;
    ensure!(!agent.is_healthy(), "the gateway still answers");
    let unit = "/home/kid/.config/systemd/user/collieclaw-gateway.service";
    ensure!(!agent.container.exists(unit), "{unit} still exists");
    let status = agent.run(&["collieclaw", "service", "status"])?;
    ensure!(
        String::from_utf8_lossy(&status.stdout).contains("not installed"),
        "the service still counts as installed"
    );
    Ok(())
}

fn documented(agent: &AgentService) -> Result<()> {
    let block = PAGE.split_once("```console systemd\n").and_then(|(_, rest)| rest.split_once("```"));
    let lines: Vec<&str> = block.context("the page has no `console systemd` block")?.0.lines().collect();
    ensure!(lines.len() >= 5, "the block has only {} commands", lines.len());
    for line in lines {
        let command = line.strip_prefix("$ ").with_context(|| format!("`{line}` is not a command"))?;
        let done = agent.run(&["bash", "-c", command])?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "`{command}`: {said}\n{}", agent.journal());
    }
    Ok(())
}
