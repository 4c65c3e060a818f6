//! `onboard`: a guided set-up. Every question has a flag; without a terminal, flags and defaults are all there is.

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
    /// The folder the agent works in.
    #[arg(long, value_name = "DIR")]
    workspace: Option<String>,
    /// How much it may do on its own.
    #[arg(long, value_name = "LEVEL", value_parser = ["readonly", "supervised", "full"])]
    autonomy: Option<String>,
    /// Who answers: `local` is a stand-in, `openai_compatible` a server.
    #[arg(long, value_name = "NAME", value_parser = ["local", "openai_compatible"])]
    provider: Option<String>,
    /// Where the server is.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// What the server calls the model.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The variable that holds the server's key; the key itself is never asked for.
    #[arg(long, value_name = "VARIABLE")]
    api_key_env: Option<String>,
    /// Tells the model of `file_write` as well. At `supervised` you are asked before each.
    #[arg(long)]
    allow_writing: bool,
    /// Replaces a configuration that is there; it is kept as `config.toml.old`.
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
        let what = format!("{} is there already", path.display());
        return Err(CommandFailure::InvalidInput {
            what,
            cure: "edit it, or say `collieclaw onboard --replace` (the old one is kept)",
        });
    }
    let asked = std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !screen.is_json();
    let choices = onboard.collect_choices(&SetupQuestions { interactive: asked, screen, environment })?;
    let text = config_template(&choices);
    // Nothing is touched before the whole is known to be right, and there is a place to work in.
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

/// Moves what is there aside for something new, and back when nothing comes of it.
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

/// A name beside it that nothing has: no configuration that was kept is lost to the next one.
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
        // What is wrong on the command line is told before anything is asked.
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
             full: what no rule forbids",
            &["readonly", "supervised", "full"],
            "supervised",
        )?;
        choices.autonomy = wiring::parse_autonomy(&autonomy).unwrap_or(choices.autonomy);
        choices.provider = asking.ask_choice(
            &self.provider,
            "Who answers? local: a stand-in to try things out; openai_compatible: a model server",
            &["local", "openai_compatible"],
            if self.server_flag().is_some() { "openai_compatible" } else { "local" },
        )?;
        self.check_server_flags(&choices.provider)?;
        if choices.provider == "openai_compatible" {
            asking.ask_text(&self.base_url, "Where is the server?", &mut choices, SetupKey::BaseUrl)?;
            asking.ask_text(&self.model, "What does it call the model?", &mut choices, SetupKey::Model)?;
            let question = "Which variable holds its key?";
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
                what: format!("`{flag}` is of a server, and the provider `local` has none"),
                cure: "leave it out, or say `--provider openai_compatible`",
            }),
            _ => Ok(()),
        }
    }

    /// A flag that only a server has a use for.
    fn server_flag(&self) -> Option<&'static str> {
        self.given_flags().find_map(|(key, _)| match key {
            SetupKey::Workspace => None,
            SetupKey::BaseUrl => Some("--base-url"),
            SetupKey::Model => Some("--model"),
            SetupKey::ApiKeyEnv => Some("--api-key-env"),
        })
    }
}

/// Whether the provider answers. A server that is not running yet is no reason to have set up nothing.
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
                "warning: {}\n`collieclaw provider test {name}` tries again",
                escape_line(&failure.to_string())
            ));
            false
        }
    }
}
