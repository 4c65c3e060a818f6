//! `doctor`: what of the sandbox is in force here, and how to get more.

use std::path::Path;

use collieclaw::channels::visible;
use collieclaw::config::Config;
use collieclaw::estop;
use collieclaw::mcp::{self, serve::ServeError};
use collieclaw::tools::Trial;
use serde::Serialize;
use ward_diag::Chain;

use super::environment::Environment;
use super::failure::Failure;
use super::open;
use super::screen::Screen;

#[derive(Serialize)]
struct Finding {
    what: String,
    ok: bool,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cure: Option<String>,
}

pub(crate) fn run(environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let setup = open::setup(environment).and_then(|setup| open::workspace(&setup.config).map(|_| setup));
    let mut findings = vec![set_up(setup.as_ref().map(|setup| &setup.config), environment)];
    findings.extend(setup.as_ref().map(|setup| receipts(&setup.config, environment)));
    findings.extend(setup.as_ref().map(|setup| listed(setup, environment)));
    findings.push(speaker());
    findings.extend(sandbox());
    if let Ok(setup) = &setup {
        findings.extend(commands(&setup.config, environment));
    }
    findings.push(shell());
    let stopped = estop::is_set(&environment.home) && environment.home.folder().is_dir();
    findings.push(Finding {
        what: "emergency stop".to_owned(),
        ok: !stopped,
        detail: if stopped { "active: no tool runs" } else { "not active" }.to_owned(),
        cure: stopped.then(|| "collieclaw estop --clear".to_owned()),
    });
    screen.answer(&findings, || findings.iter().map(told).collect::<Vec<_>>().join("\n"));
    Ok(())
}

fn told(finding: &Finding) -> String {
    let mark = if finding.ok { "\x1b[32m✓\x1b[0m" } else { "\x1b[31m✗\x1b[0m" };
    let cure = finding.cure.as_ref().map(|cure| format!("\n    {cure}")).unwrap_or_default();
    format!("{mark} {}: {}{cure}", finding.what, finding.detail)
}

fn set_up(config: Result<&Config, &Failure>, environment: &Environment) -> Finding {
    let what = "set up".to_owned();
    match config {
        Ok(config) => {
            let detail = format!(
                "{}, workspace {}, autonomy {}",
                environment.home.config().display(),
                config.workspace_dir.display(),
                config.security.autonomy
            );
            Finding { what, ok: true, detail, cure: None }
        }
        Err(Failure::Config { report }) => {
            let detail =
                format!("the configuration is not valid\n{}", report.render(ward_diag::Style::Plain));
            Finding { what, ok: false, detail, cure: None }
        }
        Err(failure) => {
            Finding { what, ok: false, detail: failure.to_string(), cure: failure.cure().map(str::to_owned) }
        }
    }
}

/// Whether calls leave receipts, and whether these show who wrote them.
fn receipts(config: &Config, environment: &Environment) -> Finding {
    let what = "receipts".to_owned();
    let path = config.receipts.path.display();
    if !config.receipts.enabled {
        let cure = Some("set `receipts.enabled = true`".to_owned());
        return Finding { what, ok: false, detail: "OFF: calls leave none".to_owned(), cure };
    }
    let key = config.receipts.signing(&environment.home).key();
    let (ok, detail, cure) = match key {
        Ok(Some(key)) => (true, format!("in {path}, signed with key {}", key.id()), None),
        Ok(None) if config.receipts.signed => {
            (true, format!("in {path}, signed from the first call on, which makes the key"), None)
        }
        Ok(None) => {
            (false, format!("in {path}, not signed"), Some("set `receipts.signed = true`".to_owned()))
        }
        Err(error) => {
            let failure = Failure::Receipt(error);
            let cure = failure.cure().map(str::to_owned);
            (false, Chain(&failure).to_string(), cure)
        }
    };
    Finding { what, ok, detail, cure }
}

/// Whether the model is told of what there is.
fn listed(setup: &open::Setup, environment: &Environment) -> Finding {
    let absent = setup.absent_tools(environment);
    let cure = "take it out of the list; or put the plugin in that has it, or approve the server (`collieclaw mcp approve`)";
    Finding {
        what: "tools".to_owned(),
        ok: absent.is_empty(),
        detail: if absent.is_empty() {
            "all that are listed are there".to_owned()
        } else {
            absent.join("\n    ")
        },
        cure: (!absent.is_empty()).then(|| cure.to_owned()),
    }
}

/// Whether there is what speaks with MCP servers and clients.
fn speaker() -> Finding {
    let (ok, detail, cure) = match mcp::speaker().and_then(|program| answers(&program)) {
        Ok(program) => (true, format!("spoken by {program}"), None),
        Err(why) => {
            let cure = Failure::Serve(ServeError::Speaker(why.clone())).cure().map(str::to_owned);
            (false, why, cure)
        }
    };
    Finding { what: "MCP".to_owned(), ok, detail, cure }
}

/// Whether it can be started, and is of our version.
fn answers(program: &Path) -> Result<String, String> {
    let path = program.display();
    let said = std::process::Command::new(program).arg("--version").output();
    let said = said.map_err(|error| format!("{path} can't be started: {error}"))?;
    let ours = format!("collieclaw-mcp {}\n", mcp::line::VERSION);
    match String::from_utf8_lossy(&said.stdout) {
        said if said == ours => Ok(path.to_string()),
        said => Err(format!("{path} has the version `{}`, not ours", visible(said.trim()))),
    }
}

fn sandbox() -> Vec<Finding> {
    let report = ward_process::sandbox::probe();
    let finding = |(name, part): (&'static str, &ward_process::sandbox::Part)| {
        Finding {
        what: format!("sandbox: {name}"),
        ok: part.holds(),
        detail: part.to_string(),
        cure: (!part.holds()).then(|| {
            "Linux 6.12 with Landlock, seccomp and user namespaces has every part; see docs/collieclaw-security.md".to_owned()
        }),
    }
    };
    report.parts().into_iter().map(finding).collect()
}

/// What a command really gets, by running one.
fn commands(config: &Config, environment: &Environment) -> Vec<Finding> {
    let policy = config.gate_policy(config.workspace_dir.clone(), &environment.surroundings);
    let trial = match Trial::run(&policy) {
        Ok(trial) => trial,
        Err(why) => {
            let what = "commands".to_owned();
            let cure = Some("docs/collieclaw-security.md says what the sandbox needs".to_owned());
            return vec![Finding { what, ok: false, detail: format!("none can run: {why}"), cure }];
        }
    };
    let held = trial.containment;
    let mut findings = vec![Finding {
        what: "process trees".to_owned(),
        ok: !held.is_escapable(),
        detail: format!("of commands are held by a {held}"),
        cure: held.is_escapable().then(|| "user namespaces, or root, contain them for certain".to_owned()),
    }];
    findings.extend(trial.unkept().map(|(limit, reason)| Finding {
        what: format!("limit of {limit}"),
        ok: false,
        detail: format!("not kept by the kernel: {reason}"),
        cure: Some("run it as an ordinary user; until then we count them ourselves, every 50 ms".to_owned()),
    }));
    findings
}

fn shell() -> Finding {
    let bash = ward_process::find_program("bash".as_ref(), "/usr/bin:/bin".as_ref());
    Finding {
        what: "lines beyond the plan (full only)".to_owned(),
        ok: bash.is_some(),
        detail: bash.map_or_else(
            || "there is no bash: such lines are refused".to_owned(),
            |bash| format!("run by {} in the sandbox", bash.display()),
        ),
        cure: None,
    }
}
