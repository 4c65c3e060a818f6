//! `onboard`: a guided set-up. Every question has a flag; without a terminal, flags and defaults are all there is.

mod asking;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use collieclaw::cancel::Cancel;
use collieclaw::channels::visible;
use collieclaw::config::{Choices, template};
use serde_json::json;

use super::environment::Environment;
use super::failure::Failure;
use super::screen::Screen;
use super::{init, open};
use asking::{Asking, Key, written};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  collieclaw onboard\n  collieclaw onboard --provider openai_compatible --base-url http://localhost:8080/v1 --model smol --allow-writing"
)]
pub(crate) struct Onboard {
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

pub(crate) fn run(onboard: &Onboard, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let path = environment.home.config();
    if path.exists() && !onboard.replace {
        let what = format!("{} is there already", path.display());
        return Err(Failure::Wrong {
            what,
            cure: "edit it, or say `collieclaw onboard --replace` (the old one is kept)",
        });
    }
    let asked =
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal() && !screen.is_for_programs();
    let choices = onboard.choices(&Asking { asked, screen, environment })?;
    let text = template(&choices);
    // Nothing is touched before the whole is known to be right, and there is a place to work in.
    let config = open::read(&path, text.as_bytes(), environment)?.config;
    let mut created = Vec::new();
    init::folder(&config.workspace_dir, &mut created)?;
    open::workspace(&config)?;
    let made = replace(&path, screen, || init::make(environment, &text, created))?;
    let tested = test(&choices.provider, environment, screen);
    let value = json!({ "made": made, "provider": choices.provider, "provider_answers": tested });
    screen.answer(&value, || made.text());
    Ok(())
}

/// Moves what is there aside for something new, and back when nothing comes of it.
fn replace<T>(path: &Path, screen: &Screen, make: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    if !path.exists() {
        return make();
    }
    let old = unused(path);
    std::fs::rename(path, &old)
        .map_err(Failure::io(format!("keep the old configuration as {}", old.display())))?;
    let made = make();
    if made.is_err() && std::fs::rename(&old, path).is_ok() {
        return made;
    }
    screen.remark(&format!("the old configuration is kept as {}", old.display()));
    made
}

/// A name beside it that nothing has: no configuration that was kept is lost to the next one.
fn unused(path: &Path) -> PathBuf {
    let numbered = |number: u32| path.with_extension(format!("toml.old{number}"));
    let mut names = std::iter::once(path.with_extension("toml.old")).chain((2..).map(numbered));
    names.find(|name| !name.exists()).unwrap_or_else(|| path.with_extension("toml.old"))
}

impl Onboard {
    fn choices(&self, asking: &Asking<'_>) -> Result<Choices, Failure> {
        let mut choices = Choices::default();
        for (key, given) in self.given() {
            *written(&mut choices, key) = given.clone();
        }
        // What is wrong on the command line is told before anything is asked.
        self.provider.as_deref().map_or(Ok(()), |provider| self.has_a_use_for_flags(provider))?;
        if self.given().any(|(key, _)| asking.tried(&choices, key).is_err()) {
            open::read(&asking.environment.home.config(), template(&choices).as_bytes(), asking.environment)?;
        }
        asking.field(&self.workspace, "Which folder may the agent work in?", &mut choices, Key::Workspace)?;
        let autonomy = asking.choice(
            &self.autonomy,
            "How much may it do on its own? readonly: only look; supervised: ask before every change; \
             full: what no rule forbids",
            &["readonly", "supervised", "full"],
            "supervised",
        )?;
        choices.autonomy = open::autonomy(&autonomy).unwrap_or(choices.autonomy);
        choices.provider = asking.choice(
            &self.provider,
            "Who answers? local: a stand-in to try things out; openai_compatible: a model server",
            &["local", "openai_compatible"],
            if self.of_a_server().is_some() { "openai_compatible" } else { "local" },
        )?;
        self.has_a_use_for_flags(&choices.provider)?;
        if choices.provider == "openai_compatible" {
            asking.field(&self.base_url, "Where is the server?", &mut choices, Key::BaseUrl)?;
            asking.field(&self.model, "What does it call the model?", &mut choices, Key::Model)?;
            let question = "Which variable holds its key?";
            asking.field(&self.api_key_env, question, &mut choices, Key::ApiKeyEnv)?;
        }
        if self.allow_writing || asking.may_write(choices.autonomy)? {
            choices.tools.push("file_write".to_owned());
        }
        Ok(choices)
    }

    fn given(&self) -> impl Iterator<Item = (Key, &String)> {
        let flags = [
            (Key::Workspace, &self.workspace),
            (Key::BaseUrl, &self.base_url),
            (Key::Model, &self.model),
            (Key::ApiKeyEnv, &self.api_key_env),
        ];
        flags.into_iter().filter_map(|(key, given)| Some((key, given.as_ref()?)))
    }

    fn has_a_use_for_flags(&self, provider: &str) -> Result<(), Failure> {
        match self.of_a_server() {
            Some(flag) if provider == "local" => Err(Failure::Wrong {
                what: format!("`{flag}` is of a server, and the provider `local` has none"),
                cure: "leave it out, or say `--provider openai_compatible`",
            }),
            _ => Ok(()),
        }
    }

    /// A flag that only a server has a use for.
    fn of_a_server(&self) -> Option<&'static str> {
        self.given().find_map(|(key, _)| match key {
            Key::Workspace => None,
            Key::BaseUrl => Some("--base-url"),
            Key::Model => Some("--model"),
            Key::ApiKeyEnv => Some("--api-key-env"),
        })
    }
}

/// Whether the provider answers. A server that is not running yet is no reason to have set up nothing.
fn test(name: &str, environment: &Environment, screen: &Screen) -> bool {
    let checked = || -> Result<String, Failure> {
        let config = open::config(environment)?;
        let events = Rc::new(open::events(&config, environment)?);
        let provider = open::provider(name, &config, environment, &events)?;
        let cancel = Cancel::new().map_err(Failure::io("set up cancelling"))?;
        Ok(provider.check(&config.default_model, &cancel).map_err(Failure::Provider)?.model)
    };
    match checked() {
        Ok(model) => {
            screen.remark(&format!("{name} answers (model {})", visible(&model)));
            true
        }
        Err(failure) => {
            screen.remark(&format!(
                "warning: {}\n`collieclaw provider test {name}` tries again",
                visible(&failure.to_string())
            ));
            false
        }
    }
}
