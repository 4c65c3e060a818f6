//! `[limits]`.

use std::time::Duration;

use ward_diag::{Table, Value};

use super::words::put;
use crate::config::Limits;
use crate::config::expand::duration;

pub(super) fn limits(table: Option<Table<'_>>) -> Limits {
    let mut limits = Limits {
        max_tool_rounds: 5,
        max_response_bytes: 1 << 20,
        tool_timeout: Duration::from_secs(30),
        shell_timeout: Duration::from_secs(15),
        http_timeout: Duration::from_secs(20),
        provider_timeout: Duration::from_secs(120),
        stall_timeout: Duration::from_secs(60),
    };
    let Some(mut table) = table else { return limits };
    let rounds = |value: Value<'_>| value.integer_in(0..=100).and_then(|rounds| rounds.try_into().ok());
    put(&mut limits.max_tool_rounds, table.optional_with("max_tool_rounds", rounds));
    let bytes = |value: Value<'_>| value.integer_in(1_024..=1 << 26).and_then(|bytes| bytes.try_into().ok());
    put(&mut limits.max_response_bytes, table.optional_with("max_response_bytes", bytes));
    for (key, limit) in [
        ("tool_timeout", &mut limits.tool_timeout),
        ("shell_timeout", &mut limits.shell_timeout),
        ("http_timeout", &mut limits.http_timeout),
        ("provider_timeout", &mut limits.provider_timeout),
        ("stall_timeout", &mut limits.stall_timeout),
    ] {
        put(limit, table.optional_parsed(key, duration));
    }
    table.finish();
    limits
}
