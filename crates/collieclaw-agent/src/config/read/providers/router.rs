//! Reads providers with `kind = "router"`: rules, and a default for requests that no rule matches.

use std::collections::BTreeMap;

use collieclaw_providers::RouteCondition;
use ward_diag::{ConfigFault, Spanned, TomlTable, TomlValue, ValueKind, code};

use super::graph::ProviderGraph;
use crate::config::read::values::{nonempty_text, nonempty_texts};
use crate::config::{ProviderSettings, RoutingRule};

pub(super) fn read_router(
    name: &str,
    table: &mut TomlTable<'_>,
    graph: &mut ProviderGraph,
) -> Option<ProviderSettings> {
    let default = table.required_with("default", nonempty_text);
    table.help_if_missing(
        "default",
        "name the provider that answers if no rule matches: `default = \"local\"`",
    );
    let _ = table.required::<TomlValue<'_>>("rules");
    table.help_if_missing("rules", "add `[[providers.models.NAME.rules]]` with `when` and `provider`");
    let rules: Vec<Option<(Spanned<String>, RouteCondition)>> =
        table.tables("rules").into_iter().map(read_rule).collect();
    let rules: Vec<(Spanned<String>, RouteCondition)> = rules.into_iter().collect::<Option<_>>()?;
    let default = default?;
    graph.add_members(name, std::slice::from_ref(&default));
    let mut read = Vec::new();
    for (provider, when) in rules {
        graph.add_members(name, std::slice::from_ref(&provider));
        read.push(RoutingRule { provider: provider.value, when });
    }
    Some(ProviderSettings::Router { default: default.value, rules: read })
}

fn read_rule(mut table: TomlTable<'_>) -> Option<(Spanned<String>, RouteCondition)> {
    let provider = table.required_with("provider", nonempty_text);
    let when = table.required_with("when", read_condition);
    table.help_if_missing("when", "say which requests the rule is for: `when = { hint = \"fast\" }`");
    table.finish();
    Some((provider?, when?))
}

fn read_condition(value: TomlValue<'_>) -> Option<RouteCondition> {
    let span = value.span();
    let mut table = value.table()?;
    let hints = |value: TomlValue<'_>| match value.kind() {
        ValueKind::Array => nonempty_texts(value),
        _ => value.non_empty_text().map(|hint| vec![hint.to_owned()]),
    };
    let longer = |value: TomlValue<'_>| value.integer_in(0..=i128::from(i64::MAX));
    let when = RouteCondition {
        hint: table.optional_with("hint", hints).unwrap_or_default(),
        tools: table.optional("tools"),
        longer_than: table.optional_with("longer_than", longer).and_then(|tokens| tokens.try_into().ok()),
        metadata: table.table("metadata").map(read_metadata).unwrap_or_default(),
    };
    let (faults, before) = (table.faults(), table.faults().len());
    table.finish();
    if when == RouteCondition::default() && faults.len() == before {
        faults.push(
            ConfigFault::new(code::INVALID, span, "this condition matches every request").help(
                "add `hint`, `tools`, `longer_than` or `metadata`; `default` is for all other requests",
            ),
        );
    }
    Some(when)
}

fn read_metadata(mut table: TomlTable<'_>) -> BTreeMap<String, String> {
    let entries = table.entries();
    let read = |(name, value): (Spanned<&str>, TomlValue<'_>)| {
        Some((name.value.to_owned(), value.text()?.to_owned()))
    };
    let entries = entries.into_iter().filter_map(read).collect();
    table.finish();
    entries
}
