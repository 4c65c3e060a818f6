//! `[providers]`.

mod graph;
mod router;
mod server;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use ward_diag::{Invalid, Spanned, Table, Value};

use super::words::{filled, text_or};
use super::{Reader, looked_at};
use crate::config::expand::duration;
use crate::config::{Model, Providers};
use crate::usage::{Price, Rate};
use graph::Graph;
use server::default_server;

pub(super) use server::variable_name;

pub(in crate::config) use server::{DEFAULT_KEY_VARIABLE, DEFAULT_SERVER, DEFAULT_SERVER_MODEL};

/// One that fails three times in a row is asked last for a minute.
const FAILURES: u32 = 3;
const COOL_DOWN: Duration = Duration::from_secs(60);

/// More for a million tokens is a slip.
const DEAREST: f64 = 1e6;

#[derive(Clone, Copy)]
enum Kind {
    Mock,
    OpenAiCompatible,
    Reliable,
    Router,
}

const KINDS: &[(&str, Kind)] = &[
    ("mock", Kind::Mock),
    ("openai-compatible", Kind::OpenAiCompatible),
    ("reliable", Kind::Reliable),
    ("router", Kind::Router),
];

impl Reader<'_> {
    pub(super) fn providers(&self, table: Option<Table<'_>>) -> Providers {
        let mock = Model::Mock { model: "mock".to_owned(), fixture: None, price: Price::default() };
        let mut models =
            BTreeMap::from([("local".to_owned(), mock), ("openai_compatible".to_owned(), default_server())]);
        let Some(mut table) = table else { return Providers { currency: String::new(), models } };
        let currency = text_or(&mut table, "currency", "");
        let mut graph = Graph::new(models.keys().cloned());
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
        Providers { currency, models }
    }

    fn model(&self, name: &str, mut table: Table<'_>, graph: &mut Graph) -> Option<Model> {
        let kind = match name {
            // What is there by default need not say again what it is.
            "local" | "openai_compatible" => table
                .optional_with("kind", |value| value.one_of(KINDS))
                .or(Some(if name == "local" { Kind::Mock } else { Kind::OpenAiCompatible })),
            _ => table.required_with("kind", |value| value.one_of(KINDS)),
        };
        let model = match kind {
            None => {
                // Which keys belong here is not known: none of them is called unknown.
                table.entries();
                None
            }
            Some(Kind::Mock) => Some(Model::Mock {
                model: text_or(&mut table, "model", "mock"),
                fixture: self.fixture(&mut table),
                price: price(&mut table),
            }),
            Some(Kind::OpenAiCompatible) => self.server(&mut table, name).map(Model::OpenAiCompatible),
            Some(Kind::Reliable) => reliable(name, &mut table, graph),
            Some(Kind::Router) => router::router(name, &mut table, graph),
        };
        key_does_not_belong_here(&mut table);
        table.finish();
        model
    }
}

impl Reader<'_> {
    fn fixture(&self, table: &mut Table<'_>) -> Option<PathBuf> {
        let path = self.path(table, "fixture", &self.surroundings.home)?;
        if let Some(places) = self.places {
            let cure = "write it, or take `fixture` out: docs/collieclaw-fixtures.md tells how";
            looked_at(&path, places.fixture, cure, table.faults());
        }
        Some(path.value)
    }
}

fn reliable(name: &str, table: &mut Table<'_>, graph: &mut Graph) -> Option<Model> {
    let members = |value: Value<'_>| {
        let read: Vec<Option<Spanned<String>>> = value.filled_elements()?.into_iter().map(filled).collect();
        read.into_iter().collect::<Option<Vec<_>>>()
    };
    let members = table.required_with("providers", members);
    let failures = table.optional_with("failures", |value| value.integer_in(1..=1_000));
    let cool_down = table.optional_parsed("cool_down", duration).unwrap_or(COOL_DOWN);
    let members = members?;
    graph.lead(name, &members);
    Some(Model::Reliable {
        providers: members.into_iter().map(|member| member.value).collect(),
        failures: failures.and_then(|failures| failures.try_into().ok()).unwrap_or(FAILURES),
        cool_down,
    })
}

fn price(table: &mut Table<'_>) -> Price {
    let rate = |value: Value<'_>| value.number_in(0.0..=DEAREST).map(Rate::from_million);
    Price {
        prompt: table.optional_with("price_prompt", rate),
        completion: table.optional_with("price_completion", rate),
    }
}

pub(super) fn key_does_not_belong_here(table: &mut Table<'_>) {
    if let Some(value) = table.value("api_key") {
        value
            .refuse(Invalid::new("a key does not belong into this file").help(
                "put it into a variable of the environment, and name that: `api_key_env = \"MY_KEY\"`",
            ));
    }
}
