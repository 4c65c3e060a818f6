//! Reads the section `[providers]`.

mod graph;
mod router;
mod server;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use ward_diag::{InvalidValue, Spanned, TomlTable, TomlValue};

use super::values::{nonempty_text, text_or};
use super::{ConfigReader, report_path_faults};
use crate::config::expand::parse_duration;
use crate::config::{ProviderSettings, ProviderTable};
use crate::usage::{TokenPrice, TokenRate};
use graph::ProviderGraph;
use server::default_server;

pub(super) use server::parse_variable_name;

pub(in crate::config) use server::{DEFAULT_KEY_VARIABLE, DEFAULT_SERVER, DEFAULT_SERVER_MODEL};

/// By default, a provider that fails three times in a row is tried last for a minute.
const DEFAULT_FAILURES: u32 = 3;
const DEFAULT_COOL_DOWN: Duration = Duration::from_secs(60);

/// The highest accepted price for a million tokens. A higher number is a typing error.
const MAX_RATE: f64 = 1e6;

#[derive(Clone, Copy)]
enum ProviderKind {
    Mock,
    OpenAiCompatible,
    Reliable,
    Router,
}

const PROVIDER_KINDS: &[(&str, ProviderKind)] = &[
    ("mock", ProviderKind::Mock),
    ("openai-compatible", ProviderKind::OpenAiCompatible),
    ("reliable", ProviderKind::Reliable),
    ("router", ProviderKind::Router),
];

impl ConfigReader<'_> {
    pub(super) fn providers(&self, table: Option<TomlTable<'_>>) -> ProviderTable {
        let mock =
            ProviderSettings::Mock { model: "mock".to_owned(), fixture: None, price: TokenPrice::default() };
        let mut models =
            BTreeMap::from([("local".to_owned(), mock), ("openai_compatible".to_owned(), default_server())]);
        let Some(mut table) = table else { return ProviderTable { currency: String::new(), models } };
        let currency = text_or(&mut table, "currency", "");
        let mut graph = ProviderGraph::new(models.keys().cloned());
        if let Some(mut named) = table.table("models") {
            for (name, value) in named.entries() {
                graph.declare(name.value);
                if let Some(model) = value.table().and_then(|table| self.model(name.value, table, &mut graph))
                {
                    models.insert(name.value.to_owned(), model);
                }
            }
            named.finish();
        }
        graph.check(table.faults());
        table.finish();
        ProviderTable { currency, models }
    }

    fn model(
        &self,
        name: &str,
        mut table: TomlTable<'_>,
        graph: &mut ProviderGraph,
    ) -> Option<ProviderSettings> {
        let kind = match name {
            // The built-in providers have a default kind.
            "local" | "openai_compatible" => table
                .optional_with("kind", |value| value.one_of(PROVIDER_KINDS))
                .or(Some(if name == "local" { ProviderKind::Mock } else { ProviderKind::OpenAiCompatible })),
            _ => table.required_with("kind", |value| value.one_of(PROVIDER_KINDS)),
        };
        let model = match kind {
            None => {
                // The valid keys depend on the kind, so without a kind no key is reported as unknown.
                table.entries();
                None
            }
            Some(ProviderKind::Mock) => Some(ProviderSettings::Mock {
                model: text_or(&mut table, "model", "mock"),
                fixture: self.fixture(&mut table),
                price: read_price(&mut table),
            }),
            Some(ProviderKind::OpenAiCompatible) => {
                self.server(&mut table, name).map(ProviderSettings::OpenAiCompatible)
            }
            Some(ProviderKind::Reliable) => read_reliable(name, &mut table, graph),
            Some(ProviderKind::Router) => router::read_router(name, &mut table, graph),
        };
        reject_inline_key(&mut table);
        table.finish();
        model
    }
}

impl ConfigReader<'_> {
    fn fixture(&self, table: &mut TomlTable<'_>) -> Option<PathBuf> {
        let path = self.read_path(table, "fixture", &self.context.home)?;
        if let Some(checks) = self.path_checks {
            let help = "create the file (see docs/collieclaw-fixtures.md), or remove `fixture`";
            report_path_faults(&path, checks.fixture, help, table.faults());
        }
        Some(path.value)
    }
}

fn read_reliable(
    name: &str,
    table: &mut TomlTable<'_>,
    graph: &mut ProviderGraph,
) -> Option<ProviderSettings> {
    let members = |value: TomlValue<'_>| {
        let read: Vec<Option<Spanned<String>>> =
            value.non_empty_elements()?.into_iter().map(nonempty_text).collect();
        read.into_iter().collect::<Option<Vec<_>>>()
    };
    let members = table.required_with("providers", members);
    let failures = table.optional_with("failures", |value| value.integer_in(1..=1_000));
    let cool_down = table.optional_parsed("cool_down", parse_duration).unwrap_or(DEFAULT_COOL_DOWN);
    let members = members?;
    graph.add_members(name, &members);
    Some(ProviderSettings::Reliable {
        providers: members.into_iter().map(|member| member.value).collect(),
        failures: failures.and_then(|failures| failures.try_into().ok()).unwrap_or(DEFAULT_FAILURES),
        cool_down,
    })
}

fn read_price(table: &mut TomlTable<'_>) -> TokenPrice {
    let rate = |value: TomlValue<'_>| value.number_in(0.0..=MAX_RATE).map(TokenRate::from_million);
    TokenPrice {
        prompt: table.optional_with("price_prompt", rate),
        completion: table.optional_with("price_completion", rate),
    }
}

pub(super) fn reject_inline_key(table: &mut TomlTable<'_>) {
    if let Some(value) = table.value("api_key") {
        value.reject(InvalidValue::new("a key must not be written into this file").help(
            "put the key into an environment variable and name the variable: `api_key_env = \"MY_KEY\"`",
        ));
    }
}
