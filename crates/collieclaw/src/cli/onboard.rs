//! `onboard`: a guided set-up. Every question has a flag; without a terminal, only flags and defaults are used.

mod questions;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use collieclaw_agent::config::{SetupChoices, config_template};
use collieclaw_providers::cancel::CancelFlag;
use serde_json::json;
use ward_terminal::escape_line;

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::OutputPrinter;
use super::{init, wiring};
use questions::{SetupKey, SetupQuestions, choice_mut};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  collieclaw onboard\n  collieclaw onboard --provider openai_compatible --base-url http://localhost:8080/v1 --model smol --allow-writing"
)]
pub(crate) struct OnboardArgs {
    /// Folder that the agent works in
    #[arg(long, value_name = "DIR")]
    workspace: Option<String>,
    /// Autonomy of the agent: readonly, supervised or full
    #[arg(long, value_name = "LEVEL", value_parser = ["readonly", "supervised", "full"])]
    autonomy: Option<String>,
    /// Provider: `local` is a stand-in, `openai_compatible` a model server
    #[arg(long, value_name = "NAME", value_parser = ["local", "openai_compatible"])]
    provider: Option<String>,
    /// Address of the server
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Name of the model on the server
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Variable that holds the server's key; the key itself is never asked for
    #[arg(long, value_name = "VARIABLE")]
    api_key_env: Option<String>,
    /// Offer `file_write` to the model. At `supervised` you are asked before each write
    #[arg(long)]
    allow_writing: bool,
    /// Replace the existing configuration, which is kept as `config.toml.old`
    #[arg(long)]
    replace: bool,
}

pub(crate) fn run(
    onboard: &OnboardArgs,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let path = environment.home.config();
    if path.exists() && !onboard.replace {
        let what = format!("{} already exists", path.display());
        return Err(CommandFailure::InvalidInput {
            what,
            cure: "edit the file, or run `collieclaw onboard --replace` (keeps the old file)",
        });
    }
    let asked = std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !screen.is_json();
    let choices = onboard.collect_choices(&SetupQuestions { interactive: asked, screen, environment })?;
    let text = config_template(&choices);
    // Nothing is written before the whole configuration is valid and the workspace can be used.
    let config = wiring::parse_setup(&path, text.as_bytes(), environment)?.config;
    let mut created = Vec::new();
    init::create_folder(&config.workspace_dir, &mut created)?;
    wiring::open_workspace(&config)?;
    let made = replace_config(&path, screen, || init::create_home(environment, &text, created))?;
    let tested = test_provider(&choices.provider, environment, screen);
    let value = json!({ "made": made, "provider": choices.provider, "provider_answers": tested });
    screen.print_answer(&value, || made.render());
    Ok(())
}

/// Moves the existing configuration aside, and back if the set-up fails.
fn replace_config<T>(
    path: &Path,
    screen: &OutputPrinter,
    make: impl FnOnce() -> Result<T, CommandFailure>,
) -> Result<T, CommandFailure> {
    if !path.exists() {
        return make();
    }
    let old = unused_backup_path(path);
    std::fs::rename(path, &old)
        .map_err(CommandFailure::io(format!("keep the old configuration as {}", old.display())))?;
    let made = make();
    if made.is_err() && std::fs::rename(&old, path).is_ok() {
        return made;
    }
    screen.print_remark(&format!("the old configuration is kept as {}", old.display()));
    made
}

/// Returns an unused name beside the file, so that no older backup is overwritten.
fn unused_backup_path(path: &Path) -> PathBuf {
    let numbered = |number: u32| path.with_extension(format!("toml.old{number}"));
    let mut names = std::iter::once(path.with_extension("toml.old")).chain((2..).map(numbered));
    names.find(|name| !name.exists()).unwrap_or_else(|| path.with_extension("toml.old"))
}

impl OnboardArgs {
    fn collect_choices(&self, asking: &SetupQuestions<'_>) -> Result<SetupChoices, CommandFailure> {
        let mut choices = SetupChoices::default();
        for (key, given) in self.given_flags() {
            *choice_mut(&mut choices, key) = given.clone();
        }
        // Errors on the command line are reported before the first question.
        self.provider.as_deref().map_or(Ok(()), |provider| self.check_server_flags(provider))?;
        if self.given_flags().any(|(key, _)| asking.validate_key(&choices, key).is_err()) {
            wiring::parse_setup(
                &asking.environment.home.config(),
                config_template(&choices).as_bytes(),
                asking.environment,
            )?;
        }
        asking.ask_text(
            &self.workspace,
            "Which folder may the agent work in?",
            &mut choices,
            SetupKey::Workspace,
        )?;
        let autonomy = asking.ask_choice(
            &self.autonomy,
            "How much may it do on its own? readonly: only look; supervised: ask before every change; \
             full: everything that no rule forbids",
            &["readonly", "supervised", "full"],
            "supervised",
        )?;
        choices.autonomy = wiring::parse_autonomy(&autonomy).unwrap_or(choices.autonomy);
        choices.provider = asking.ask_choice(
            &self.provider,
            "Which provider? local: a stand-in to try things out; openai_compatible: a model server",
            &["local", "openai_compatible"],
            if self.server_flag().is_some() { "openai_compatible" } else { "local" },
        )?;
        self.check_server_flags(&choices.provider)?;
        if choices.provider == "openai_compatible" {
            asking.ask_text(
                &self.base_url,
                "What is the address of the server?",
                &mut choices,
                SetupKey::BaseUrl,
            )?;
            asking.ask_text(
                &self.model,
                "What is the model called on the server?",
                &mut choices,
                SetupKey::Model,
            )?;
            let question = "Which variable holds the server's key?";
            asking.ask_text(&self.api_key_env, question, &mut choices, SetupKey::ApiKeyEnv)?;
        }
        if self.allow_writing || asking.ask_may_write(choices.autonomy)? {
            choices.tools.push("file_write".to_owned());
        }
        Ok(choices)
    }

    fn given_flags(&self) -> impl Iterator<Item = (SetupKey, &String)> {
        let flags = [
            (SetupKey::Workspace, &self.workspace),
            (SetupKey::BaseUrl, &self.base_url),
            (SetupKey::Model, &self.model),
            (SetupKey::ApiKeyEnv, &self.api_key_env),
        ];
        flags.into_iter().filter_map(|(key, given)| Some((key, given.as_ref()?)))
    }

    fn check_server_flags(&self, provider: &str) -> Result<(), CommandFailure> {
        match self.server_flag() {
            Some(flag) if provider == "local" => Err(CommandFailure::InvalidInput {
                what: format!("`{flag}` can't be used with the provider `local`"),
                cure: "leave it out, or pass `--provider openai_compatible`",
            }),
            _ => Ok(()),
        }
    }

    /// Returns the first given flag that only applies to a server.
    fn server_flag(&self) -> Option<&'static str> {
        self.given_flags().find_map(|(key, _)| match key {
            SetupKey::Workspace => None,
            SetupKey::BaseUrl => Some("--base-url"),
            SetupKey::Model => Some("--model"),
            SetupKey::ApiKeyEnv => Some("--api-key-env"),
        })
    }
}

/// Tests the provider. A server that isn't running yet is only a warning.
fn test_provider(name: &str, environment: &CliEnvironment, screen: &OutputPrinter) -> bool {
    let checked = || -> Result<String, CommandFailure> {
        let config = wiring::load_config(environment)?;
        let events = Rc::new(wiring::open_event_log(&config, environment)?);
        let provider = wiring::build_provider(name, &config, environment, &events)?;
        let cancel = CancelFlag::new().map_err(CommandFailure::io("set up cancelling"))?;
        Ok(provider.check(&config.default_model, &cancel).map_err(CommandFailure::Provider)?.model)
    };
    match checked() {
        Ok(model) => {
            screen.print_remark(&format!("{name} answers (model {})", escape_line(&model)));
            true
        }
        Err(failure) => {
            screen.print_remark(&format!(
                "warning: {}\nrun `collieclaw provider test {name}` to try again",
                escape_line(&failure.to_string())
            ));
            false
        }
    }
}
