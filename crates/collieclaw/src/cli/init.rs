//! `init`: home, workspace, configuration, the key of the receipts, memory.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use collieclaw::config::{Choices, Config, Model, template};
use serde::Serialize;

use super::environment::Environment;
use super::failure::Failure;
use super::open;
use super::screen::Screen;

/// What there is now, and what of it is new.
#[derive(Serialize)]
pub(crate) struct Made {
    home: PathBuf,
    config: PathBuf,
    workspace: PathBuf,
    memory: PathBuf,
    receipts_key: Option<PathBuf>,
    created: Vec<PathBuf>,
    /// Who answers.
    provider: String,
    #[serde(skip)]
    answers: Answers,
}

/// Whether there is a model.
#[derive(Clone, Copy)]
enum Answers {
    StandIn,
    Model,
}

pub(crate) fn run(environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let made = make(environment, &template(&Choices::default()), Vec::new())?;
    screen.answer(&made, || made.text());
    Ok(())
}

/// Makes what is not there; the configuration with this text. Some of it may have been `created` before.
pub(crate) fn make(
    environment: &Environment,
    text: &str,
    mut created: Vec<PathBuf>,
) -> Result<Made, Failure> {
    let home = environment.home.folder();
    let path = environment.home.config();
    if environment.home.make().map_err(Failure::io(format!("make {}", home.display())))? {
        created.push(home.to_owned());
    }
    match new_file(&path, text) {
        Ok(()) => created.push(path.clone()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(Failure::io(format!("write {}", path.display()))(error)),
    }
    // What was there may differ from what we would have written.
    let environment = Environment::read()?;
    let config = open::config(&environment)?;
    let receipts_key = key(&config, &environment, &mut created)?;
    let made = furnish(&config, created)?;
    Ok(Made { home: home.to_owned(), config: path, receipts_key, ..made })
}

/// The key of the receipts, if they are to be signed.
fn key(
    config: &Config,
    environment: &Environment,
    created: &mut Vec<PathBuf>,
) -> Result<Option<PathBuf>, Failure> {
    if !(config.receipts.enabled && config.receipts.signed) {
        return Ok(None);
    }
    let key = environment.home.receipts_key();
    let is_new = !key.exists();
    config.receipts.signing(&environment.home).make_key(&config.receipts.path)?;
    if is_new {
        created.push(key.clone());
    }
    Ok(Some(key))
}

/// Workspace and memory, as the configuration says.
fn furnish(config: &Config, mut created: Vec<PathBuf>) -> Result<Made, Failure> {
    folder(&config.workspace_dir, &mut created)?;
    let memory = &config.memory.path;
    let is_new = !memory.exists();
    open::memory(config)?;
    if is_new {
        created.push(memory.clone());
    }
    Ok(Made {
        home: PathBuf::new(),
        config: PathBuf::new(),
        workspace: config.workspace_dir.clone(),
        memory: memory.clone(),
        receipts_key: None,
        created,
        provider: config.default_provider.clone(),
        answers: match config.providers.models.get(&config.default_provider) {
            Some(Model::Mock { .. }) => Answers::StandIn,
            _ => Answers::Model,
        },
    })
}

pub(crate) fn folder(path: &Path, created: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if path.is_dir() {
        return Ok(());
    }
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(Failure::io(format!("make the folder {}", path.display())))?;
    created.push(path.to_owned());
    Ok(())
}

fn new_file(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

impl Made {
    pub(crate) fn text(&self) -> String {
        let state = |path: &PathBuf| if self.created.contains(path) { "made" } else { "there already" };
        let line = |what: &str, path: &PathBuf| format!("{what:<14} {} ({})", path.display(), state(path));
        let mut lines = vec![
            line("home", &self.home),
            line("configuration", &self.config),
            line("workspace", &self.workspace),
            line("memory", &self.memory),
        ];
        lines.extend(self.receipts_key.iter().map(|key| line("receipts key", key)));
        lines.push(String::new());
        lines.extend(self.next());
        lines.join("\n")
    }
    /// What to do now.
    fn next(&self) -> Vec<String> {
        let model = match self.answers {
            Answers::StandIn => [
                "Next: `collieclaw agent` talks to it (a stand-in answers until you configure a model)."
                    .to_owned(),
                "      `collieclaw onboard --replace` sets up a model.".to_owned(),
            ],
            Answers::Model => [
                "Next: `collieclaw agent` talks to it.".to_owned(),
                format!("      `collieclaw provider test {}` asks whether the model answers.", self.provider),
            ],
        };
        let rules = "      `collieclaw policy explain` shows what the gate decides.".to_owned();
        model.into_iter().chain([rules]).collect()
    }
}
