//! `kind = "router"`: rules, and who answers where none holds.

use std::collections::BTreeMap;

use ward_diag::{Fault, Shape, Spanned, Table, Value, code};

use super::graph::Graph;
use crate::config::read::words::{all_filled, filled};
use crate::config::{Model, Rule};
use crate::providers::When;

pub(super) fn router(name: &str, table: &mut Table<'_>, graph: &mut Graph) -> Option<Model> {
    let default = table.required_with("default", filled);
    table.if_missing("default", "say who answers where no rule holds: `default = \"local\"`");
    let _ = table.required::<Value<'_>>("rules");
    table.if_missing("rules", "add `[[providers.models.NAME.rules]]`, with `when` and `provider`");
    let rules: Vec<Option<(Spanned<String>, When)>> = table.tables("rules").into_iter().map(rule).collect();
    let rules: Vec<(Spanned<String>, When)> = rules.into_iter().collect::<Option<_>>()?;
    let default = default?;
    graph.lead(name, std::slice::from_ref(&default));
    let mut read = Vec::new();
    for (provider, when) in rules {
        graph.lead(name, std::slice::from_ref(&provider));
        read.push(Rule { provider: provider.value, when });
    }
    Some(Model::Router { default: default.value, rules: read })
}

fn rule(mut table: Table<'_>) -> Option<(Spanned<String>, When)> {
    let provider = table.required_with("provider", filled);
    let when = table.required_with("when", when);
    table.if_missing("when", "say which requests it is for: `when = { hint = \"fast\" }`");
    table.finish();
    Some((provider?, when?))
}

fn when(value: Value<'_>) -> Option<When> {
    let span = value.span();
    let mut table = value.table()?;
    let hints = |value: Value<'_>| match value.shape() {
        Shape::Array => all_filled(value),
        _ => value.filled_text().map(|hint| vec![hint.to_owned()]),
    };
    let longer = |value: Value<'_>| value.integer_in(0..=i128::from(i64::MAX));
    let when = When {
        hint: table.optional_with("hint", hints).unwrap_or_default(),
        tools: table.optional("tools"),
        longer_than: table.optional_with("longer_than", longer).and_then(|tokens| tokens.try_into().ok()),
        metadata: table.table("metadata").map(metadata).unwrap_or_default(),
    };
    let (faults, before) = (table.faults(), table.faults().len());
    table.finish();
    if when == When::default() && faults.len() == before {
        faults.push(Fault::new(code::INVALID, span, "this holds for every request").help(
            "say which ones: `hint`, `tools`, `longer_than` or `metadata`; for all others there is `default`",
        ));
    }
    Some(when)
}

fn metadata(mut table: Table<'_>) -> BTreeMap<String, String> {
    let entries = table.entries();
    let read =
        |(name, value): (Spanned<&str>, Value<'_>)| Some((name.value.to_owned(), value.text()?.to_owned()));
    let entries = entries.into_iter().filter_map(read).collect();
    table.finish();
    entries
}
