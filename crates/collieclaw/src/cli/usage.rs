//! `usage`: what was asked of models, and what is left of the limits.

use clap::{Args, ValueEnum};
use collieclaw::channels::visible;
use collieclaw::config::Config;
use collieclaw::usage::{Accounts, Budget, By, Totals, Usage};
use jiff::{ToSpan, Zoned};
use serde_json::{Value, json};

use super::environment::Environment;
use super::failure::Failure;
use super::open;
use super::screen::{Screen, table};

#[derive(Args)]
#[command(
    after_help = "Examples:\n  collieclaw usage\n  collieclaw usage --days 30 --by model\n  collieclaw usage --conversation trip --output json"
)]
pub(crate) struct Counted {
    /// Of so many days, today included.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,
    /// Of one conversation only.
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// What is added up together.
    #[arg(long, value_enum, default_value_t = Together::Day)]
    by: Together,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Together {
    /// A line for each day.
    Day,
    /// A line for each conversation.
    Conversation,
    /// A line for each model of each provider.
    Model,
}

pub(crate) fn run(asked: &Counted, environment: &Environment, screen: &Screen) -> Result<(), Failure> {
    let config = open::config(environment)?;
    let accounts = Accounts::open(&environment.home.usage())?;
    let now = Zoned::now();
    let first = now.start_of_day().and_then(|day| day.checked_sub((i64::from(asked.days) - 1).days()));
    let first = first.unwrap_or_else(|_| now.clone());
    let by = match asked.by {
        Together::Day => By::Day,
        Together::Conversation => By::Conversation,
        Together::Model => By::Model,
    };
    let usage = accounts.since(&first, asked.conversation.as_deref(), by)?;
    let today = accounts.today(&now)?;
    let conversation = asked.conversation.as_deref().map(|id| accounts.conversation(id)).transpose()?;
    if let Some((id, _)) =
        asked.conversation.as_ref().zip(conversation).filter(|(_, totals)| totals.calls == 0)
    {
        return Err(Failure::Wrong {
            what: format!("there is no call of a conversation `{}`", visible(id)),
            cure: "`collieclaw usage --by conversation` shows them",
        });
    }
    let limits = used(&config.limits.budget, &today, conversation.as_ref());
    let currency = &config.providers.currency;
    let value = json!({
        "since": first.date().to_string(),
        "currency": currency,
        "usage": usage.shares,
        "total": usage.total,
        "limits": limits.iter().map(Limit::json).collect::<Vec<_>>(),
    });
    screen.answer(&value, || told(&usage, &limits, &config, asked.by));
    if usage.shares.is_empty() {
        screen.remark("nothing was asked in this time");
    }
    Ok(())
}

/// A limit, and what is used of it.
struct Limit {
    name: &'static str,
    used: Value,
    limit: Value,
}

impl Limit {
    fn json(&self) -> Value {
        json!({ "name": self.name, "used": self.used, "limit": self.limit })
    }
}

fn used(budget: &Budget, today: &Totals, conversation: Option<&Totals>) -> Vec<Limit> {
    let of = |name, used: Value, limit: Option<Value>| limit.map(|limit| Limit { name, used, limit });
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

fn told(usage: &Usage, limits: &[Limit], config: &Config, by: Together) -> String {
    let first = match by {
        Together::Day => "DAY",
        Together::Conversation => "CONVERSATION",
        Together::Model => "MODEL",
    };
    let mut cost = "COST".to_owned();
    if !config.providers.currency.is_empty() {
        cost = format!("{cost} ({})", visible(&config.providers.currency));
    }
    let heads = [first, "CALLS", "FAILED", "READ", "WRITTEN", "WAITED", cost.as_str()];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(usage.shares.iter().map(|share| row(&visible(&share.name), &share.totals)));
    if usage.shares.len() > 1 {
        rows.push(row("total", &usage.total));
    }
    to_the_right(&mut rows);
    let mut text = table(&rows);
    if usage.total.estimated > 0 {
        text.push_str("\n~ in part an estimate: not every server counts tokens");
    }
    for limit in limits {
        text.push_str(&format!("\n{}: {} of {}", limit.name, limit.used, limit.limit));
    }
    text
}

fn row(name: &str, totals: &Totals) -> Vec<String> {
    let mark = if totals.estimated > 0 { "~" } else { "" };
    vec![
        name.to_owned(),
        totals.calls.to_string(),
        totals.failed.to_string(),
        format!("{mark}{}", grouped(totals.prompt_tokens)),
        format!("{mark}{}", grouped(totals.completion_tokens)),
        waited(totals.milliseconds),
        format!("{mark}{}", totals.cost),
    ]
}

/// Numbers are compared by their ends.
fn to_the_right(rows: &mut [Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    for column in 1..columns {
        let widest = rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0);
        for cell in rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            *cell = format!("{cell:>widest$}");
        }
    }
}

/// `12,345`
fn grouped(number: u64) -> String {
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

fn waited(milliseconds: u64) -> String {
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
        assert_eq!([7, 1_234, 1_234_567].map(grouped), ["7", "1,234", "1,234,567"]);
        assert_eq!([0, 1_250, 61_000].map(waited), ["0.0 s", "1.2 s", "1 min 1 s"]);
    }
}
