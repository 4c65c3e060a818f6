//! Reads the section `[limits]`.

use std::time::Duration;

use ward_diag::{TomlTable, TomlValue};

use super::values::set_if_some;
use crate::config::RuntimeLimits;
use crate::config::expand::parse_duration;
use crate::usage::{CostAmount, UsageBudget};

/// The highest accepted cost for a day.
const MAX_COST: f64 = 1e9;

pub(super) fn limits(table: Option<TomlTable<'_>>) -> RuntimeLimits {
    let mut limits = RuntimeLimits {
        max_tool_rounds: 5,
        project_tool_rounds: 50,
        max_response_bytes: 1 << 20,
        max_tool_output_bytes: 32 << 10,
        tool_timeout: Duration::from_secs(30),
        shell_timeout: Duration::from_secs(15),
        project_shell_timeout: Duration::from_secs(600),
        http_timeout: Duration::from_secs(20),
        provider_timeout: Duration::from_secs(120),
        stall_timeout: Duration::from_secs(60),
        budget: UsageBudget::default(),
    };
    let Some(mut table) = table else { return limits };
    let rounds = |value: TomlValue<'_>| value.integer_in(0..=100).and_then(|rounds| rounds.try_into().ok());
    set_if_some(&mut limits.max_tool_rounds, table.optional_with("max_tool_rounds", rounds));
    set_if_some(&mut limits.project_tool_rounds, table.optional_with("project_tool_rounds", rounds));
    let bytes =
        |value: TomlValue<'_>| value.integer_in(1_024..=1 << 26).and_then(|bytes| bytes.try_into().ok());
    set_if_some(&mut limits.max_response_bytes, table.optional_with("max_response_bytes", bytes));
    set_if_some(&mut limits.max_tool_output_bytes, table.optional_with("max_tool_output_bytes", bytes));
    for (key, limit) in [
        ("tool_timeout", &mut limits.tool_timeout),
        ("shell_timeout", &mut limits.shell_timeout),
        ("project_shell_timeout", &mut limits.project_shell_timeout),
        ("http_timeout", &mut limits.http_timeout),
        ("provider_timeout", &mut limits.provider_timeout),
        ("stall_timeout", &mut limits.stall_timeout),
    ] {
        set_if_some(limit, table.optional_parsed(key, parse_duration));
    }
    let budget = &mut limits.budget;
    for (key, limit) in [
        ("tokens_per_day", &mut budget.tokens_per_day),
        ("tokens_per_conversation", &mut budget.tokens_per_conversation),
        ("calls_per_day", &mut budget.calls_per_day),
        ("minutes_per_day", &mut budget.minutes_per_day),
    ] {
        let number = |value: TomlValue<'_>| value.integer_in(0..=i128::from(i64::MAX));
        *limit = table.optional_with(key, number).and_then(|number| number.try_into().ok());
    }
    let cost = |value: TomlValue<'_>| value.number_in(0.0..=MAX_COST).map(CostAmount::from_units);
    budget.cost_per_day = table.optional_with("cost_per_day", cost);
    table.finish();
    limits
}
