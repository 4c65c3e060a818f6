//! `onboard`: a guided set-up. Every question has a flag; without a terminal, flags and defaults are all there is.

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;
use collieclaw::cancel::Cancel;
use collieclaw::channels::visible;
use collieclaw::config::template;
use serde_json::json;

use super::environment::Environment;
use super::failure::Failure;
use super::screen::Screen;
use super::{init, open};

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
    /// Tells the model of `file_write` as well; every write still needs your yes.
    #[arg(long)]
    allow_writing: bool,
    /// Replaces a configuration that is there; it is kept as `config.toml.old`.
    #[arg(long)]
    replace: bool,
}

struct Answers {
    workspace: String,
    autonomy: String,
    provider: String,
    server: Option<Server>,
    writing: bool,
}

struct Server {
    base_url: String,
    model: String,
    api_key_env: String,
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
    let answers = onboard.answers(&Asking { asked, screen })?;
    let text = answers.config();
    // Nothing is touched before the whole is known to be right.
    open::read(&path, text.as_bytes(), environment)?;
    if path.exists() {
        let old = path.with_extension("toml.old");
        std::fs::rename(&path, &old)
            .map_err(Failure::io(format!("keep the old configuration as {}", old.display())))?;
        screen.remark(&format!("the old configuration is kept as {}", old.display()));
    }
    let made = init::make(environment, &text)?;
    let tested = test(&answers.provider, environment, screen);
    let value = json!({ "made": made, "provider": answers.provider, "provider_answers": tested });
    screen.answer(&value, || made.text());
    Ok(())
}

impl Onboard {
    fn answers(&self, asking: &Asking<'_>) -> Result<Answers, Failure> {
        let given = |flag: &Option<String>| flag.clone();
        let workspace = asking.text(
            given(&self.workspace),
            "Which folder may the agent work in?",
            "~/collieclaw-workspace",
        )?;
        let levels = ["readonly", "supervised", "full"];
        let autonomy = asking.choice(
            given(&self.autonomy),
            "How much may it do on its own? readonly: only look; supervised: ask before every change; full: what no rule forbids",
            &levels,
            "supervised",
        )?;
        let provider = asking.choice(
            given(&self.provider),
            "Who answers? local: a stand-in to try things out; openai_compatible: a model server",
            &["local", "openai_compatible"],
            if self.base_url.is_some() { "openai_compatible" } else { "local" },
        )?;
        let server = if provider == "openai_compatible" {
            Some(Server {
                base_url: asking.text(
                    given(&self.base_url),
                    "Where is the server?",
                    "http://localhost:1234/v1",
                )?,
                model: asking.text(given(&self.model), "What does it call the model?", "local-model")?,
                api_key_env: asking.text(
                    given(&self.api_key_env),
                    "Which variable holds its key?",
                    "OPENAI_API_KEY",
                )?,
            })
        } else {
            None
        };
        let writing = self.allow_writing
            || (asking.asked
                && asking.choice(
                    None,
                    "May the model ask to write files? Every write still needs your yes",
                    &["yes", "no"],
                    "no",
                )? == "yes");
        Ok(Answers { workspace, autonomy, provider, server, writing })
    }
}

impl Answers {
    /// The usual configuration, with what was answered in its place.
    fn config(&self) -> String {
        let mut text = template();
        let mut put = |from: &str, to: String| text = text.replacen(from, &to, 1);
        put(
            "workspace_dir = \"~/collieclaw-workspace\"",
            format!("workspace_dir = {}", quoted(&self.workspace)),
        );
        put("autonomy = \"supervised\"", format!("autonomy = {}", quoted(&self.autonomy)));
        put("default_provider = \"local\"", format!("default_provider = {}", quoted(&self.provider)));
        if let Some(server) = &self.server {
            put("default_model = \"mock\"", format!("default_model = {}", quoted(&server.model)));
            put(
                "base_url = \"http://localhost:1234/v1\"",
                format!("base_url = {}", quoted(&server.base_url)),
            );
            put("model = \"local-model\"", format!("model = {}", quoted(&server.model)));
            put("api_key_env = \"OPENAI_API_KEY\"", format!("api_key_env = {}", quoted(&server.api_key_env)));
        }
        if self.writing {
            put("tools_allow = [", "tools_allow = [\"file_write\", ".to_owned());
        }
        text
    }
}

/// As TOML writes a text.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

struct Asking<'a> {
    asked: bool,
    screen: &'a Screen,
}

impl Asking<'_> {
    fn text(&self, given: Option<String>, question: &str, usual: &str) -> Result<String, Failure> {
        match given {
            Some(given) => Ok(given),
            None if !self.asked => Ok(usual.to_owned()),
            None => {
                let _ = write!(anstream::stderr().lock(), "{question}\n  [{usual}] ");
                let mut line = String::new();
                let read =
                    std::io::stdin().lock().read_line(&mut line).map_err(Failure::io("read the answer"))?;
                if read == 0 {
                    return Err(Failure::Wrong {
                        what: "there was no answer".to_owned(),
                        cure: "nothing was changed",
                    });
                }
                let answer = line.trim();
                Ok(if answer.is_empty() { usual.to_owned() } else { answer.to_owned() })
            }
        }
    }

    fn choice(
        &self,
        given: Option<String>,
        question: &str,
        words: &[&str],
        usual: &str,
    ) -> Result<String, Failure> {
        let mut given = given;
        loop {
            let answer = self.text(given.take(), question, usual)?;
            match words.iter().find(|word| **word == answer) {
                Some(word) => return Ok((*word).to_owned()),
                None => self.screen.remark(&format!("it can be {}", words.join(" or "))),
            }
        }
    }
}

/// Whether the provider answers. A server that is not running yet is no reason to have set up nothing.
fn test(name: &str, environment: &Environment, screen: &Screen) -> bool {
    let checked = || -> Result<String, Failure> {
        let config = open::config(environment)?;
        let provider = open::provider(name, &config, environment)?;
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
