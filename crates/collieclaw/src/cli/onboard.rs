//! `onboard`: a guided set-up. Every question has a flag; without a terminal, flags and defaults are all there is.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use collieclaw::cancel::Cancel;
use collieclaw::channels::visible;
use collieclaw::config::{Choices, template};
use collieclaw_gate::Autonomy;
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
    let choices = onboard.choices(&Asking { asked, screen })?;
    let text = template(&choices);
    // Nothing is touched before the whole is known to be right.
    open::read(&path, text.as_bytes(), environment)?;
    if path.exists() {
        let old = unused(&path);
        std::fs::rename(&path, &old)
            .map_err(Failure::io(format!("keep the old configuration as {}", old.display())))?;
        screen.remark(&format!("the old configuration is kept as {}", old.display()));
    }
    let made = init::make(environment, &text)?;
    let tested = test(&choices.provider, environment, screen);
    let value = json!({ "made": made, "provider": choices.provider, "provider_answers": tested });
    screen.answer(&value, || made.text());
    Ok(())
}

/// A name beside it that nothing has: no configuration that was kept is lost to the next one.
fn unused(path: &Path) -> PathBuf {
    let numbered = |number: u32| path.with_extension(format!("toml.old{number}"));
    let mut names = std::iter::once(path.with_extension("toml.old")).chain((2..).map(numbered));
    names.find(|name| !name.exists()).unwrap_or_else(|| path.with_extension("toml.old"))
}

impl Onboard {
    fn choices(&self, asking: &Asking<'_>) -> Result<Choices, Failure> {
        let usual = Choices::default();
        let workspace_dir =
            asking.text(&self.workspace, "Which folder may the agent work in?", &usual.workspace_dir)?;
        let autonomy = asking.choice(
            &self.autonomy,
            "How much may it do on its own? readonly: only look; supervised: ask before every change; \
             full: what no rule forbids",
            &["readonly", "supervised", "full"],
            "supervised",
        )?;
        let autonomy = open::autonomy(&autonomy).unwrap_or(usual.autonomy);
        let provider = asking.choice(
            &self.provider,
            "Who answers? local: a stand-in to try things out; openai_compatible: a model server",
            &["local", "openai_compatible"],
            if self.base_url.is_some() { "openai_compatible" } else { "local" },
        )?;
        let mut choices = Choices { workspace_dir, autonomy, provider, ..usual };
        if choices.provider == "openai_compatible" {
            choices.base_url = asking.text(&self.base_url, "Where is the server?", &choices.base_url)?;
            choices.model = asking.text(&self.model, "What does it call the model?", &choices.model)?;
            let question = "Which variable holds its key?";
            choices.api_key_env = asking.text(&self.api_key_env, question, &choices.api_key_env)?;
        }
        if self.allow_writing || asking.may_write(autonomy)? {
            choices.tools.push("file_write".to_owned());
        }
        Ok(choices)
    }
}

struct Asking<'a> {
    asked: bool,
    screen: &'a Screen,
}

impl Asking<'_> {
    fn may_write(&self, autonomy: Autonomy) -> Result<bool, Failure> {
        let question = match autonomy {
            // It never would.
            Autonomy::ReadOnly => return Ok(false),
            Autonomy::Supervised => "May the model ask to write files? You are asked before each",
            Autonomy::Full => "May the model write files in that folder? At this level you are not asked",
        };
        Ok(self.asked && self.choice(&None, question, &["yes", "no"], "no")? == "yes")
    }

    fn text(&self, given: &Option<String>, question: &str, usual: &str) -> Result<String, Failure> {
        match given {
            Some(given) => Ok(given.clone()),
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
        given: &Option<String>,
        question: &str,
        words: &[&str],
        usual: &str,
    ) -> Result<String, Failure> {
        loop {
            let answer = self.text(given, question, usual)?;
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
