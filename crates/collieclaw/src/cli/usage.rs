//! `usage`: shows the calls, tokens and cost of models, and what is left of the limits.

use clap::{Args, ValueEnum};
use collieclaw_agent::config::Config;
use collieclaw_agent::usage::{UsageBudget, UsageDatabase, UsageGrouping, UsageReport, UsageTotals};
use jiff::{ToSpan, Zoned};
use serde_json::{Value, json};
use ward_terminal::{align_columns, escape_line};

use super::environment::CliEnvironment;
use super::failure::CommandFailure;
use super::output::OutputPrinter;
use super::wiring;

#[derive(Args)]
#[command(
    after_help = "Examples:\n  collieclaw usage\n  collieclaw usage --days 30 --by model\n  collieclaw usage --conversation trip --output json"
)]
pub(crate) struct ModelUsageArgs {
    /// Number of days to show, today included
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// Show only this conversation
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Group the totals by this
    #[arg(long, value_enum, default_value_t = UsageGroupArg::Day)]
    by: UsageGroupArg,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UsageGroupArg {
    /// Show a line for each day
    Day,
    /// Show a line for each conversation
    Conversation,
    /// Show a line for each model of each provider
    Model,
}

pub(crate) fn run(
    asked: &ModelUsageArgs,
    environment: &CliEnvironment,
    screen: &OutputPrinter,
) -> Result<(), CommandFailure> {
    let config = wiring::load_config(environment)?;
    let accounts = UsageDatabase::open(&environment.home.usage())?;
    let now = Zoned::now();
    let first = now.start_of_day().and_then(|day| day.checked_sub((i64::from(asked.days) - 1).days()));
    let first = first.unwrap_or_else(|_| now.clone());
    let by = match asked.by {
        UsageGroupArg::Day => UsageGrouping::Day,
        UsageGroupArg::Conversation => UsageGrouping::Conversation,
        UsageGroupArg::Model => UsageGrouping::Model,
    };
    let usage = accounts.usage_since(&first, asked.conversation.as_deref(), by)?;
    let today = accounts.today_totals(&now)?;
    let conversation =
        asked.conversation.as_deref().map(|id| accounts.conversation_totals(id)).transpose()?;
    if let Some((id, _)) =
        asked.conversation.as_ref().zip(conversation).filter(|(_, totals)| totals.calls == 0)
    {
        return Err(CommandFailure::InvalidInput {
            what: format!("no such conversation `{}` among the recorded calls", escape_line(id)),
            cure: "run `collieclaw usage --by conversation` to see the conversations",
        });
    }
    let limits = limit_usage(&config.limits.budget, &today, conversation.as_ref());
    let currency = &config.providers.currency;
    let value = json!({
        "since": first.date().to_string(),
        "currency": currency,
        "usage": usage.shares,
        "total": usage.total,
        "limits": limits.iter().map(LimitUsage::to_json).collect::<Vec<_>>(),
    });
    screen.print_answer(&value, || format_usage(&usage, &limits, &config, asked.by));
    if usage.shares.is_empty() {
        screen.print_remark("no calls in this period");
    }
    Ok(())
}

/// A limit, and how much of it is used.
struct LimitUsage {
    name: &'static str,
    used: Value,
    limit: Value,
}

impl LimitUsage {
    fn to_json(&self) -> Value {
        json!({ "name": self.name, "used": self.used, "limit": self.limit })
    }
}

fn limit_usage(
    budget: &UsageBudget,
    today: &UsageTotals,
    conversation: Option<&UsageTotals>,
) -> Vec<LimitUsage> {
    let of = |name, used: Value, limit: Option<Value>| limit.map(|limit| LimitUsage { name, used, limit });
    let number = |limit: Option<u64>| limit.map(Value::from);
    let in_conversation = conversation.and_then(|conversation| {
        let limit = number(budget.tokens_per_conversation);
        of("tokens_per_conversation", conversation.tokens().into(), limit)
    });
    [
        of("calls_per_day", today.calls.into(), number(budget.calls_per_day)),
        of("tokens_per_day", today.tokens().into(), number(budget.tokens_per_day)),
        of("minutes_per_day", (today.milliseconds / 60_000).into(), number(budget.minutes_per_day)),
        of("cost_per_day", json!(today.cost), budget.cost_per_day.map(|cost| json!(cost))),
        in_conversation,
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn format_usage(usage: &UsageReport, limits: &[LimitUsage], config: &Config, by: UsageGroupArg) -> String {
    let first = match by {
        UsageGroupArg::Day => "DAY",
        UsageGroupArg::Conversation => "CONVERSATION",
        UsageGroupArg::Model => "MODEL",
    };
    let mut cost = "COST".to_owned();
    if !config.providers.currency.is_empty() {
        cost = format!("{cost} ({})", escape_line(&config.providers.currency));
    }
    let heads = [first, "CALLS", "FAILED", "INPUT", "OUTPUT", "TIME", cost.as_str()];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(usage.shares.iter().map(|share| usage_row(&escape_line(&share.name), &share.totals)));
    if usage.shares.len() > 1 {
        rows.push(usage_row("total", &usage.total));
    }
    align_right(&mut rows);
    let mut text = align_columns(&rows);
    if usage.total.estimated > 0 {
        text.push_str("\n~ partly estimated: not every server counts tokens");
    }
    for limit in limits {
        text.push_str(&format!("\n{}: {} of {}", limit.name, limit.used, limit.limit));
    }
    text
}

fn usage_row(name: &str, totals: &UsageTotals) -> Vec<String> {
    let mark = if totals.estimated > 0 { "~" } else { "" };
    vec![
        name.to_owned(),
        totals.calls.to_string(),
        totals.failed.to_string(),
        format!("{mark}{}", group_digits(totals.prompt_tokens)),
        format!("{mark}{}", group_digits(totals.completion_tokens)),
        format_wait(totals.milliseconds),
        format!("{mark}{}", totals.cost),
    ]
}

/// Right-aligns columns of numbers.
fn align_right(rows: &mut [Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    for column in 1..columns {
        let widest = rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0);
        for cell in rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            *cell = format!("{cell:>widest$}");
        }
    }
}

/// Formats a number with thousands separators: `12,345`.
fn group_digits(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn format_wait(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    match seconds {
        0..60 => format!("{seconds}.{} s", milliseconds % 1_000 / 100),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_for_people() {
        assert_eq!([7, 1_234, 1_234_567].map(group_digits), ["7", "1,234", "1,234,567"]);
        assert_eq!([0, 1_250, 61_000].map(format_wait), ["0.0 s", "1.2 s", "1 min 1 s"]);
    }
}
