//! `doctor`: checks which parts of the sandbox work on this machine, and how to get the others.

use std::path::Path;

use clap::Args;
use collieclaw_agent::config::Config;
use collieclaw_agent::estop;
use collieclaw_agent::security::SystemFacts;
use collieclaw_agent::tools::SandboxProbe;
use collieclaw_agent::workspaces::plan_toolchain_access;
use collieclaw_gate::MachineFacts;
use collieclaw_mcp::McpFailure;
use serde::Serialize;
use ward_diag::ErrorChain;
use ward_terminal::{TextTone, escape_line, paint};

use super::environment::CliEnvironment;
use super::failure::{CommandFailure, mcp_help};
use super::output::OutputPrinter;
use super::wiring::{self, TrustMode, WorkspaceArgs};
use super::workspace::escape_path;

#[derive(Args)]
#[command(after_help = "Examples:\n  collieclaw doctor\n  collieclaw doctor --output json")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

#[derive(Serialize)]
struct DoctorFinding {
    what: String,
    ok: bool,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cure: Option<String>,
}

pub(crate) fn run(
    arguments: &DoctorArgs,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let setup = wiring::choose_workspace(&arguments.workspace, TrustMode::Never, environment, screen)
        .and_then(|choice| wiring::load_setup_in(&choice, environment))
        .and_then(|setup| wiring::open_workspace(&setup.config).map(|_| setup));
    let mut findings = vec![check_setup(setup.as_ref().map(|setup| &setup.config), environment)];
    findings.extend(setup.as_ref().map(|setup| check_receipts(&setup.config, environment)));
    findings.extend(setup.as_ref().map(|setup| check_listed_tools(setup, environment)));
    if let Ok(setup) = &setup {
        findings.extend(check_workspace(&setup.config, environment));
    }
    findings.push(check_mcp_adapter());
    findings.extend(check_sandbox());
    if let Ok(setup) = &setup {
        findings.extend(check_commands(&setup.config, environment));
    }
    findings.push(check_bash());
    let stopped = estop::is_set(&environment.home) && environment.home.folder().is_dir();
    findings.push(DoctorFinding {
        what: "emergency stop".to_owned(),
        ok: !stopped,
        detail: if stopped { "active: no tool runs" } else { "not active" }.to_owned(),
        cure: stopped.then(|| "collieclaw estop --clear".to_owned()),
    });
    screen.print_answer(&findings, || findings.iter().map(format_finding).collect::<Vec<_>>().join("\n"));
    Ok(())
}

fn format_finding(finding: &DoctorFinding) -> String {
    let mark = if finding.ok { paint(TextTone::Good, "✓") } else { paint(TextTone::Bad, "✗") };
    let cure = finding.cure.as_ref().map(|cure| format!("\n    {cure}")).unwrap_or_default();
    format!("{mark} {}: {}{cure}", finding.what, finding.detail)
}

fn check_setup(config: Result<&Config, &CommandFailure>, environment: &CliEnvironment) -> DoctorFinding {
    let what = "set up".to_owned();
    match config {
        Ok(config) => {
            let detail = format!(
                "{}, workspace {}, autonomy {}",
                environment.home.config().display(),
                config.workspace_dir.display(),
                config.security.autonomy
            );
            DoctorFinding { what, ok: true, detail, cure: None }
        }
        Err(CommandFailure::Config { report }) => {
            let detail =
                format!("the configuration is not valid\n{}", report.render(ward_diag::ReportStyle::Plain));
            DoctorFinding { what, ok: false, detail, cure: None }
        }
        Err(failure) => DoctorFinding {
            what,
            ok: false,
            detail: failure.to_string(),
            cure: failure.help().map(str::to_owned),
        },
    }
}

/// Checks whether calls leave receipts, and whether the receipts are signed.
fn check_receipts(config: &Config, environment: &CliEnvironment) -> DoctorFinding {
    let what = "receipts".to_owned();
    let path = config.receipts.path.display();
    if !config.receipts.enabled {
        let cure = Some("set `receipts.enabled = true`".to_owned());
        return DoctorFinding { what, ok: false, detail: "OFF: calls leave no receipts".to_owned(), cure };
    }
    let key = config.receipts.signing(&environment.home).key();
    let (ok, detail, cure) = match key {
        Ok(Some(key)) => (true, format!("in {path}, signed with key {}", key.id()), None),
        Ok(None) if config.receipts.signed => {
            (true, format!("in {path}, signed; the first call creates the key"), None)
        }
        Ok(None) => {
            (false, format!("in {path}, not signed"), Some("set `receipts.signed = true`".to_owned()))
        }
        Err(error) => {
            let failure = CommandFailure::Receipt(error);
            let cure = failure.help().map(str::to_owned);
            (false, ErrorChain(&failure).to_string(), cure)
        }
    };
    DoctorFinding { what, ok, detail, cure }
}

/// Checks the programs and scripts of the workspace, and shows its toolchains and network.
fn check_workspace(config: &Config, environment: &CliEnvironment) -> Vec<DoctorFinding> {
    let rules = &config.workspace;
    let finding = |what: String, ok: bool, detail: String, cure: Option<String>| DoctorFinding {
        what,
        ok,
        detail,
        cure,
    };
    let mut findings = vec![finding("network of commands".to_owned(), true, rules.network.to_string(), None)];
    for (name, pinned) in &rules.programs {
        let name = escape_line(name);
        let is_there = SystemFacts.is_trusted_program(&pinned.real);
        let cure = (!is_there).then(|| format!("collieclaw allow {name}"));
        let state = if is_there { "" } else { " is gone, or others can change it" };
        findings.push(finding(
            format!("program {name}"),
            is_there,
            format!("pinned to {}{state}", escape_path(&pinned.real)),
            cure,
        ));
    }
    for (script, hash) in &rules.scripts {
        let is_same = SystemFacts.read_script(script).is_some_and(|now| now.sha256 == *hash);
        let name = escape_path(script.strip_prefix(&rules.path).unwrap_or(script));
        let detail = if is_same { "allowed with its content" } else { "changed since it was allowed" };
        let cure = (!is_same).then(|| format!("collieclaw allow ./{name}"));
        findings.push(finding(format!("script {name}"), is_same, detail.to_owned(), cure));
    }
    let readable = plan_toolchain_access(rules, &wiring::toolchain_places(environment)).read;
    if !readable.is_empty() {
        let folders: Vec<String> = readable.iter().map(|folder| escape_path(folder)).collect();
        findings.push(finding("toolchain folders".to_owned(), true, folders.join(", "), None));
    }
    findings
}

/// Checks that every tool in the `tools_allow` lists exists.
fn check_listed_tools(setup: &wiring::LoadedSetup, environment: &CliEnvironment) -> DoctorFinding {
    let absent = setup.missing_tools(environment);
    let cure =
        "remove it from the list, install its plugin, or approve its server (`collieclaw mcp approve`)";
    DoctorFinding {
        what: "tools".to_owned(),
        ok: absent.is_empty(),
        detail: if absent.is_empty() {
            "every tool in `tools_allow` exists".to_owned()
        } else {
            absent.join("\n    ")
        },
        cure: (!absent.is_empty()).then(|| cure.to_owned()),
    }
}

/// Checks the adapter program for MCP servers and clients.
fn check_mcp_adapter() -> DoctorFinding {
    let (ok, detail, cure) =
        match collieclaw_mcp::locate_adapter().and_then(|program| check_adapter_version(&program)) {
            Ok(program) => (true, format!("adapter {program}"), None),
            Err(why) => {
                let cure = mcp_help(&why).map(str::to_owned);
                (false, why.to_string(), cure)
            }
        };
    DoctorFinding { what: "MCP".to_owned(), ok, detail, cure }
}

/// Checks that the adapter starts and has our version.
fn check_adapter_version(program: &Path) -> Result<String, McpFailure> {
    let path = program.display();
    let output = std::process::Command::new(program).arg("--version").output();
    let output = output.map_err(|error| format!("could not start {path}: {error}"))?;
    let expected = format!("collieclaw-mcp {}", collieclaw_mcp_ipc::VERSION);
    match String::from_utf8_lossy(&output.stdout).strip_suffix('\n') {
        Some(version) if version == expected => Ok(path.to_string()),
        _ => Err(McpFailure::AdapterUnusable(format!(
            "{path} has the version `{}` instead of `{expected}`",
            escape_line(String::from_utf8_lossy(&output.stdout).trim())
        ))),
    }
}

fn check_sandbox() -> Vec<DoctorFinding> {
    let report = ward_process::sandbox::probe();
    let finding = |(name, part): (&'static str, &ward_process::sandbox::SandboxPartStatus)| {
        DoctorFinding {
        what: format!("sandbox: {name}"),
        ok: part.is_enforced(),
        detail: part.to_string(),
        cure: (!part.is_enforced()).then(|| {
            "Linux 6.12 with Landlock, seccomp and user namespaces has every part; see docs/collieclaw-security.md".to_owned()
        }),
    }
    };
    report.parts().into_iter().map(finding).collect()
}

/// Checks the sandbox of a real command by running one.
fn check_commands(config: &Config, environment: &CliEnvironment) -> Vec<DoctorFinding> {
    let policy = config.gate_policy(config.workspace_dir.clone(), &environment.config_context);
    let trial = match SandboxProbe::run(&policy) {
        Ok(trial) => trial,
        Err(why) => {
            let what = "commands".to_owned();
            let cure = Some("see docs/collieclaw-security.md for what the sandbox needs".to_owned());
            return vec![DoctorFinding {
                what,
                ok: false,
                detail: format!("no command can run: {why}"),
                cure,
            }];
        }
    };
    let held = trial.containment;
    let mut findings = vec![DoctorFinding {
        what: "process trees".to_owned(),
        ok: !held.is_escapable(),
        detail: format!("a {held} keeps each command and everything it starts together"),
        cure: held
            .is_escapable()
            .then(|| "enable user namespaces or run as root, so that no process can escape".to_owned()),
    }];
    findings.push(check_exec_judging(trial.exec_judging_fault()));
    findings.extend(trial.unenforced_limits().map(|(limit, reason)| DoctorFinding {
        what: format!("limit of {limit}"),
        ok: false,
        detail: format!("not enforced by the kernel: {reason}"),
        cure: Some(
            "run CollieClaw as an ordinary user; as root it counts processes itself, every 50 ms".to_owned(),
        ),
    }));
    findings
}

/// Tells if lines that need a real shell can run below `full`.
fn check_exec_judging(fault: Option<&str>) -> DoctorFinding {
    DoctorFinding {
        what: "programs judged when they are executed".to_owned(),
        ok: fault.is_none(),
        detail: match fault {
            None => {
                "every program of a shell line is stopped and judged before its first instruction".to_owned()
            }
            Some(fault) => format!("{fault}; until then, lines that need a real shell run at `full` only"),
        },
        cure: None,
    }
}

fn check_bash() -> DoctorFinding {
    let bash = ward_process::find_program("bash".as_ref(), "/usr/bin:/bin".as_ref());
    DoctorFinding {
        what: "shell lines that need a real shell".to_owned(),
        ok: bash.is_some(),
        detail: bash.map_or_else(
            || "bash is not installed, so these lines are denied".to_owned(),
            |bash| format!("run by {} in the sandbox", bash.display()),
        ),
        cure: None,
    }
}
