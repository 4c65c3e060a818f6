//! `[providers]`.

use std::collections::BTreeMap;

use ward_diag::{Faults, Invalid, Shape, Spanned, Table, Value};

use super::Reader;
use super::words::{all_filled, filled, text_or, unknown};
use crate::config::expand::duration;
use crate::config::{Model, Providers, Server};
use crate::net::Link;

impl Reader<'_> {
    pub(super) fn providers(&self, table: Option<Table<'_>>) -> Providers {
        let mut models = BTreeMap::from([
            ("local".to_owned(), Model::Mock { model: "mock".to_owned(), fixture: None }),
            ("openai_compatible".to_owned(), default_server()),
        ]);
        let Some(mut table) = table else { return Providers { models } };
        let mut members = Vec::new();
        if let Some(mut named) = table.table("models") {
            for (name, value) in named.entries() {
                if let Some(model) =
                    value.table().and_then(|table| self.model(name.value, table, &mut members))
                {
                    models.insert(name.value.to_owned(), model);
                }
            }
            named.finish();
        }
        for reliable in &members {
            lead_to_models(reliable, &models, table.faults());
        }
        table.finish();
        Providers { models }
    }

    fn model(
        &self,
        name: &str,
        mut table: Table<'_>,
        members: &mut Vec<Spanned<(String, Vec<String>)>>,
    ) -> Option<Model> {
        let kinds = [
            ("mock", Kind::Mock),
            ("openai-compatible", Kind::OpenAiCompatible),
            ("reliable", Kind::Reliable),
        ];
        let kind = match name {
            // What is there by default need not say again what it is.
            "local" | "openai_compatible" => table
                .optional_with("kind", |value| value.one_of(&kinds))
                .or(Some(if name == "local" { Kind::Mock } else { Kind::OpenAiCompatible })),
            _ => table.required_with("kind", |value| value.one_of(&kinds)),
        };
        let model = match kind {
            None => {
                // Which keys belong here is not known: none of them is called unknown.
                table.entries();
                None
            }
            Some(Kind::Mock) => Some(Model::Mock {
                model: text_or(&mut table, "model", "mock"),
                fixture: self.path(&mut table, "fixture", &self.surroundings.home).map(|path| path.value),
            }),
            Some(Kind::OpenAiCompatible) => self.server(&mut table, name),
            Some(Kind::Reliable) => {
                let listed = |value: Value<'_>| {
                    let span = value.span();
                    let names = all_filled(value)?;
                    members.push(Spanned::new((name.to_owned(), names.clone()), span));
                    Some(Model::Reliable { providers: names })
                };
                table.required_with("providers", listed)
            }
        };
        key_does_not_belong_here(&mut table);
        table.finish();
        model
    }

    fn server(&self, table: &mut Table<'_>, name: &str) -> Option<Model> {
        let faults = table.faults();
        let base_url = |value: Value<'_>| {
            // Somebody may have put a password before the host.
            if matches!(value.shape(), Shape::Text(text) if text.contains('@')) {
                faults.hide(value.span());
            }
            value.parse(|text| self.surroundings.expand(text).and_then(|url| server_url(&url)))
        };
        let (base_url, model) = if name == "openai_compatible" {
            let base_url =
                table.optional_with("base_url", base_url).unwrap_or_else(|| DEFAULT_SERVER.to_owned());
            (Some(base_url), Some(text_or(table, "model", DEFAULT_SERVER_MODEL)))
        } else {
            let model = table.required_with("model", filled).map(|model| model.value);
            (table.required_with("base_url", base_url), model)
        };
        let variable = |value: Value<'_>| value.parse(variable_name);
        let usual = if name == "openai_compatible" { DEFAULT_KEY_VARIABLE } else { "" };
        let api_key_env = table.optional_with("api_key_env", variable).unwrap_or_else(|| usual.to_owned());
        let stream = table.optional("stream").unwrap_or(true);
        let timeout = table.optional_parsed("timeout", duration);
        let stall_timeout = table.optional_parsed("stall_timeout", duration);
        let (base_url, model) = (base_url?, model?);
        Some(Model::OpenAiCompatible(Server { base_url, model, api_key_env, stream, timeout, stall_timeout }))
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Mock,
    OpenAiCompatible,
    Reliable,
}

pub(in crate::config) const DEFAULT_SERVER: &str = "http://localhost:1234/v1";
pub(in crate::config) const DEFAULT_SERVER_MODEL: &str = "local-model";
pub(in crate::config) const DEFAULT_KEY_VARIABLE: &str = "OPENAI_API_KEY";

fn default_server() -> Model {
    Model::OpenAiCompatible(Server {
        base_url: DEFAULT_SERVER.to_owned(),
        model: DEFAULT_SERVER_MODEL.to_owned(),
        api_key_env: DEFAULT_KEY_VARIABLE.to_owned(),
        stream: true,
        timeout: None,
        stall_timeout: None,
    })
}

fn server_url(url: &str) -> Result<String, Invalid> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    let host = rest.and_then(|rest| rest.split('/').next()).unwrap_or_default();
    if host.contains('@') {
        return Err(Invalid::new("a name or a password does not belong into an address")
            .help("put the key into a variable of the environment, and name that in `api_key_env`"));
    }
    if host.is_empty() || url.contains(['?', '#']) || Link::read(url).is_err() {
        return Err(
            Invalid::new("this is no address of a server").help("write it like `http://localhost:1234/v1`")
        );
    }
    Ok(url.trim_end_matches('/').to_owned())
}

pub(super) fn key_does_not_belong_here(table: &mut Table<'_>) {
    if let Some(value) = table.value("api_key") {
        value
            .refuse(Invalid::new("a key does not belong into this file").help(
                "put it into a variable of the environment, and name that: `api_key_env = \"MY_KEY\"`",
            ));
    }
}

/// What is refused is not quoted: somebody may have put the key itself here.
pub(super) fn variable_name(text: &str) -> Result<String, Invalid> {
    let is_name = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if is_name || text.is_empty() {
        Ok(text.to_owned())
    } else {
        Err(Invalid::new("this is no name of a variable")
            .help("name the variable that holds the key, like `OPENAI_API_KEY`"))
    }
}

/// Members answer themselves: a list of lists could go round in a circle.
fn lead_to_models(
    reliable: &Spanned<(String, Vec<String>)>,
    models: &BTreeMap<String, Model>,
    faults: &Faults,
) {
    let (name, members) = &reliable.value;
    for member in members {
        let known = models.iter().filter(|(_, model)| !matches!(model, Model::Reliable { .. }));
        if !known.clone().any(|(known, _)| known == member) {
            let member = Spanned::new(member.clone(), reliable.span);
            let what = format!("provider for `{name}` to fall back on called");
            faults.push(unknown(
                &what,
                &member,
                known.map(|(name, _)| name.as_str()),
                "a `reliable` one can't be a member",
            ));
        }
    }
}
