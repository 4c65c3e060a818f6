//! `allow` and `disallow`: change the programs and scripts that may run in a workspace.

use std::path::{Path, PathBuf};

use clap::Args;
use collieclaw_agent::workspaces::{AllowReport, ProgramOrigin, RuleEditor, WorkspaceRules, WorkspaceStore};
use collieclaw_gate::{WORKSPACE_PRESETS, WorkspacePreset};
use serde_json::{Value, json};
use ward_terminal::{escape_line, format_count};

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::OutputPrinter;
use super::wiring::{self, RuleChangeError, TrustMode, WorkspaceArgs, WorkspaceChoice};
use super::workspace::escape_path;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  collieclaw allow cargo\n  collieclaw allow ./run.sh\n  collieclaw allow --preset python\n  collieclaw allow --project-programs\n\nA program outside of the system's folders is pinned: only the file that your PATH has now will run. A script is allowed with its content; after a change, allow it again."
)]
pub(crate) struct AllowArgs {
    /// Names of programs, or paths of scripts in the workspace
    #[arg(value_name = "PROGRAM", required_unless_present_any = ["preset", "project_programs"])]
    programs: Vec<String>,
    #[command(flatten)]
    presets: PresetArgs,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

#[derive(Args)]
pub(crate) struct PresetArgs {
    /// Allow everything for one kind of work: developer, python, rust, node, go or writing
    #[arg(long, value_name = "NAME", value_parser = preset_names())]
    pub(crate) preset: Vec<String>,
    /// Allow every program of the project by its path, whatever its content is (such as `target/debug/app`)
    #[arg(long)]
    pub(crate) project_programs: bool,
}

impl PresetArgs {
    fn is_empty(&self) -> bool {
        self.preset.is_empty() && !self.project_programs
    }
}

#[derive(Args)]
#[command(after_help = "Examples:\n  collieclaw disallow cargo\n  collieclaw disallow ./run.sh")]
pub(crate) struct DisallowArgs {
    /// Names of programs, or paths of scripts in the workspace
    #[arg(value_name = "PROGRAM", required_unless_present = "project_programs")]
    programs: Vec<String>,
    /// No longer allow the programs of the project as a whole
    #[arg(long)]
    project_programs: bool,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

fn preset_names() -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(WORKSPACE_PRESETS.iter().map(|preset| preset.name))
}

pub(crate) fn allow(
    arguments: &AllowArgs,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let choice = wiring::choose_workspace(&arguments.workspace, TrustMode::Require, environment, screen)?;
    let report = change_rules(&arguments.programs, &arguments.presets, &choice, environment)?;
    let rules = wiring::load_setup_in(&choice, environment)?.config.workspace;
    for warning in format_warnings(&report, &arguments.programs) {
        screen.print_remark(&warning);
    }
    screen.print_answer(&report_to_json(&report, &rules.path), || {
        let mut lines = vec![format!("Allowed in {}:", escape_path(&rules.path))];
        lines.extend(format_report(&report, &arguments.presets.preset));
        lines.join("\n")
    });
    Ok(())
}

/// Adds programs, scripts and presets to the rules of a workspace.
pub(crate) fn change_rules(
    programs: &[String],
    presets: &PresetArgs,
    choice: &WorkspaceChoice,
    environment: &CliEnvironment,
) -> Result<AllowReport, CommandFailure> {
    let setup = wiring::load_setup_in(choice, environment)?;
    let path = setup.config.workspace.path;
    let mut report = AllowReport::default();
    if programs.is_empty() && presets.is_empty() {
        return Ok(report);
    }
    let context = &environment.config_context;
    let search = wiring::program_search(&setup.base, &environment.home, context);
    let editor = RuleEditor {
        search: &search,
        forbidden_commands: &setup.base.security.forbidden_commands,
        user_home: &context.user_home,
    };
    WorkspaceStore::new(&environment.home).update(&path, |before| {
        let mut rules = before.unwrap_or_else(|| WorkspaceRules::new(&path, None));
        for preset in presets.preset.iter().filter_map(|name| WorkspacePreset::find(name)) {
            editor.apply_preset(&mut rules, preset, &mut report);
        }
        if presets.project_programs {
            editor.allow_project_programs(&mut rules, &mut report);
        }
        for program in programs {
            if program.contains('/') {
                editor.allow_script(&mut rules, Path::new(program), &mut report)?;
            } else {
                editor.allow_program(&mut rules, program, &mut report)?;
            }
        }
        Ok::<_, RuleChangeError>(rules)
    })?;
    Ok(report)
}

pub(crate) fn disallow(
    arguments: &DisallowArgs,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let choice = wiring::choose_workspace(&arguments.workspace, TrustMode::Require, environment, screen)?;
    let setup = wiring::load_setup_in(&choice, environment)?;
    let path = setup.config.workspace.path;
    let mut removed = Vec::new();
    WorkspaceStore::new(&environment.home).update(&path, |before| {
        let mut rules = before.unwrap_or_else(|| WorkspaceRules::new(&path, None));
        for program in &arguments.programs {
            let script = program.contains('/').then(|| real_script(program));
            if rules.disallow(program, script.as_deref()) {
                removed.push(program.clone());
            }
        }
        if arguments.project_programs && std::mem::take(&mut rules.project_programs) {
            removed.push(PROJECT_PROGRAMS.to_owned());
        }
        Ok::<_, CommandFailure>(rules)
    })?;
    for name in arguments.programs.iter().filter(|name| !removed.contains(name)) {
        screen.print_remark(&format!("`{}` was not allowed by this workspace", escape_line(name)));
    }
    // The list of the configuration is for all workspaces.
    for name in arguments.programs.iter().filter(|name| setup.base.security.allowed_commands.contains(*name))
    {
        screen.print_remark(&format!(
            "`{}` stays allowed: `security.allowed_commands` in the configuration lists it for all workspaces",
            escape_line(name)
        ));
    }
    screen.print_answer(&json!({ "workspace": path, "disallowed": removed }), || {
        let quote = |name: &String| match name.as_str() {
            PROJECT_PROGRAMS => name.clone(),
            name => format!("`{}`", escape_line(name)),
        };
        let names: Vec<String> = removed.iter().map(quote).collect();
        match names.as_slice() {
            [] => "Nothing was changed.".to_owned(),
            names => format!("No longer allowed in {}: {}", escape_path(&path), names.join(", ")),
        }
    });
    Ok(())
}

/// The words for all programs of a workspace.
pub(crate) const PROJECT_PROGRAMS: &str = "programs of the project";

/// Returns the real path of a script, which may be gone.
fn real_script(script: &str) -> PathBuf {
    let path = Path::new(script);
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}

/// Returns a warning for each named program that isn't there.
fn format_warnings(report: &AllowReport, named: &[String]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, origin) in report.programs.iter().filter(|(name, _)| named.contains(name)) {
        let ProgramOrigin::Missing { skipped } = origin else { continue };
        warnings.push(format!(
            "warning: no installed program is called `{}`; allow it again once it is installed",
            escape_line(name)
        ));
        for folder in skipped {
            warnings.push(format!("  not used: {}: {}", escape_path(&folder.folder), folder.why));
        }
    }
    warnings
}

/// Returns the additions for people. The programs of presets are many, so only their number and the pinned ones are
/// shown.
pub(crate) fn format_report(report: &AllowReport, presets: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    let is_installed = |origin: &ProgramOrigin| !matches!(origin, ProgramOrigin::Missing { .. });
    if !presets.is_empty() {
        let installed = report.programs.iter().filter(|(_, origin)| is_installed(origin)).count();
        lines.push(format!(
            "  {} ({}), {} of them installed",
            format_count(report.programs.len() as u64, "program", "programs"),
            presets.join(", "),
            installed
        ));
    }
    for (name, origin) in &report.programs {
        let name = escape_line(name);
        match origin {
            ProgramOrigin::Pinned(pinned) => {
                lines.push(format!("  {name}: {}, pinned", escape_path(&pinned.found)));
            }
            ProgramOrigin::System(path) if presets.is_empty() => {
                lines.push(format!("  {name}: {}", escape_path(path)));
            }
            ProgramOrigin::Missing { .. } if presets.is_empty() => {
                lines.push(format!("  {name}: not installed"));
            }
            ProgramOrigin::System(_) | ProgramOrigin::Missing { .. } => {}
        }
    }
    for (script, _) in &report.scripts {
        lines.push(format!("  {}, with its current content", escape_path(script)));
    }
    if report.project_programs {
        lines.push(format!("  {PROJECT_PROGRAMS}, by their path"));
    }
    if !report.domains.is_empty() {
        lines.push(format!("  domains: {}", report.domains.join(", ")));
    }
    if !report.folders.is_empty() {
        let folders: Vec<String> = report.folders.iter().map(|folder| escape_path(folder)).collect();
        lines.push(format!("  readable: {}", folders.join(", ")));
    }
    lines
}

fn report_to_json(report: &AllowReport, workspace: &Path) -> Value {
    let program = |(name, origin): &(String, ProgramOrigin)| match origin {
        ProgramOrigin::System(path) => json!({ "name": name, "path": path, "pinned": false }),
        ProgramOrigin::Pinned(pinned) => {
            json!({ "name": name, "path": pinned.found, "real_path": pinned.real, "pinned": true })
        }
        ProgramOrigin::Missing { .. } => json!({ "name": name, "path": null, "pinned": false }),
    };
    let script = |(path, hash): &(PathBuf, String)| json!({ "path": path, "sha256": hash });
    json!({
        "workspace": workspace,
        "programs": report.programs.iter().map(program).collect::<Vec<_>>(),
        "scripts": report.scripts.iter().map(script).collect::<Vec<_>>(),
        "domains": report.domains,
        "toolchain_folders": report.folders,
        "project_programs": report.project_programs,
    })
}
