//! `init`: creates the home, the workspace, the configuration, the signing key of the receipts, and the memory.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use collieclaw_agent::config::{Config, ProviderSettings, SetupChoices, config_template};
use serde::Serialize;

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::OutputPrinter;
use super::wiring;

/// The files and folders of the set-up, and which of them are new.
#[derive(Serialize)]
pub(crate) struct InitReport {
    home: PathBuf,
    config: PathBuf,
    workspace: PathBuf,
    memory: PathBuf,
    receipts_key: Option<PathBuf>,
    created: Vec<PathBuf>,
    /// The name of the default provider.
    provider: String,
    #[serde(skip)]
    answers: AnswerSource,
}

/// The source of the agent's answers: a real model, or the built-in mock.
#[derive(Clone, Copy)]
enum AnswerSource {
    StandIn,
    Model,
}

pub(crate) fn run(environment: &CliEnvironment, screen: &OutputPrinter) -> Result<(), CommandFailure> {
    let made = create_home(environment, &config_template(&SetupChoices::default()), Vec::new())?;
    screen.print_answer(&made, || made.render());
    Ok(())
}

/// Creates everything that is missing, with `text` as the configuration. `created` lists files that the caller made.
pub(crate) fn create_home(
    environment: &CliEnvironment,
    text: &str,
    mut created: Vec<PathBuf>,
) -> Result<InitReport, CommandFailure> {
    let home = environment.home.folder();
    let path = environment.home.config();
    if environment.home.create().map_err(CommandFailure::io(format!("make {}", home.display())))? {
        created.push(home.to_owned());
    }
    match create_file(&path, text) {
        Ok(()) => created.push(path.clone()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(CommandFailure::io(format!("write {}", path.display()))(error)),
    }
    // An existing configuration may differ from the default one, so it is read back.
    let environment = CliEnvironment::read()?;
    let config = wiring::load_config(&environment)?;
    let receipts_key = create_receipt_key(&config, &environment, &mut created)?;
    let made = create_workspace_and_memory(&config, created)?;
    Ok(InitReport { home: home.to_owned(), config: path, receipts_key, ..made })
}

/// Creates the signing key of the receipts, if signing is on.
fn create_receipt_key(
    config: &Config,
    environment: &CliEnvironment,
    created: &mut Vec<PathBuf>,
) -> Result<Option<PathBuf>, CommandFailure> {
    if !(config.receipts.enabled && config.receipts.signed) {
        return Ok(None);
    }
    let key = environment.home.receipts_key();
    let is_new = !key.exists();
    config.receipts.signing(&environment.home).create_key(&config.receipts.path)?;
    if is_new {
        created.push(key.clone());
    }
    Ok(Some(key))
}

/// Creates workspace and memory where the configuration places them.
fn create_workspace_and_memory(
    config: &Config,
    mut created: Vec<PathBuf>,
) -> Result<InitReport, CommandFailure> {
    create_folder(&config.workspace_dir, &mut created)?;
    let memory = &config.memory.path;
    let is_new = !memory.exists();
    wiring::open_memory(config)?;
    if is_new {
        created.push(memory.clone());
    }
    Ok(InitReport {
        home: PathBuf::new(),
        config: PathBuf::new(),
        workspace: config.workspace_dir.clone(),
        memory: memory.clone(),
        receipts_key: None,
        created,
        provider: config.default_provider.clone(),
        answers: match config.providers.models.get(&config.default_provider) {
            Some(ProviderSettings::Mock { .. }) => AnswerSource::StandIn,
            _ => AnswerSource::Model,
        },
    })
}

pub(crate) fn create_folder(path: &Path, created: &mut Vec<PathBuf>) -> Result<(), CommandFailure> {
    if path.is_dir() {
        return Ok(());
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(CommandFailure::io(format!("make the folder {}", path.display())))?;
    created.push(path.to_owned());
    Ok(())
}

fn create_file(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

impl InitReport {
    pub(crate) fn render(&self) -> String {
        let state = |path: &PathBuf| if self.created.contains(path) { "created" } else { "already exists" };
        let line = |what: &str, path: &PathBuf| format!("{what:<14} {} ({})", path.display(), state(path));
        let mut lines = vec![
            line("home", &self.home),
            line("configuration", &self.config),
            line("workspace", &self.workspace),
            line("memory", &self.memory),
        ];
        lines.extend(self.receipts_key.iter().map(|key| line("receipts key", key)));
        lines.push(String::new());
        lines.extend(self.next_steps());
        lines.join("\n")
    }
    /// Returns the suggested next commands.
    fn next_steps(&self) -> Vec<String> {
        let model = match self.answers {
            AnswerSource::StandIn => [
                "Next: run `collieclaw agent` to talk to the agent (a stand-in answers until you configure a model)."
                    .to_owned(),
                "      run `collieclaw onboard --replace` to set up a model.".to_owned(),
            ],
            AnswerSource::Model => [
                "Next: run `collieclaw agent` to talk to the agent.".to_owned(),
                format!("      run `collieclaw provider test {}` to check that the model answers.", self.provider),
            ],
        };
        let rules = "      run `collieclaw policy explain` to see what the gate decides.".to_owned();
        model.into_iter().chain([rules]).collect()
    }
}
