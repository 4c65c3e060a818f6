//! Benchmark: loads a policy of a thousand entries, each with windows, budgets and warnings.

use std::fmt::Write as _;

use shepherd_config::load;
use ward_bench::{BenchmarkBaseline, BenchmarkLimit, BenchmarkRow, median, millis, report, timed};

/// More entries than any household has.
const ENTRIES: usize = 1_000;
const ROUNDS: usize = 31;

fn policy() -> String {
    let mut text = String::from(
        "config_version = 1\ntimezone = \"Europe/Berlin\"\n\
         expect = [\"sat 10:00 game-7: allow\", \"mon 08:00 game-999: outside-hours\"]\n\
         [modes]\nnames = [\"school\", \"holiday\"]\n\
         [profiles.anna]\n[profiles.ben]\n\
         [budgets.games]\ndaily = { weekdays = \"1h\", weekends = \"2h\" }\n[budgets.screen]\nweekly = \"10h\"\n",
    );
    for number in 0..ENTRIES {
        let _ = write!(
            text,
            "\n[[entries]]\nid = \"game-{number}\"\nlabel = \"Game {number}\"\nicon = \"game-{number}\"\n\
             argv = [\"/usr/games/game-{number}\", \"--fullscreen\"]\nenv = {{ LANG = \"C.UTF-8\" }}\n\
             profiles = [\"anna\", \"ben\"]\nbudgets = [\"games\", \"screen\"]\n\
             max_run = \"45m\"\ndaily_quota = \"1h\"\ncooldown_after_run = \"10m\"\n\
             windows = [\n  {{ days = \"weekdays\", from = \"15:00\", to = \"18:30\" }},\n  \
             {{ days = [\"sat\", \"sun\"], from = \"09:00\", to = \"12:00\" }},\n  \
             {{ days = \"all\", from = \"18:00\", to = \"20:00\", modes = [\"holiday\"] }},\n]\n\
             warnings = [{{ before = \"5m\", message = \"{{remaining}} left\" }}, {{ before = \"1m\", severity = \"critical\" }}]\n",
        );
    }
    text
}

fn main() -> std::io::Result<()> {
    let text = policy();
    let mut loading = Vec::new();
    let mut parsing = Vec::new();
    for _ in 0..ROUNDS {
        let (loaded, took) = timed(|| load("policy.toml", &text));
        assert_eq!(loaded.map(|loaded| loaded.policy.entries().len()).ok(), Some(ENTRIES));
        loading.push(millis(took));
        let (tree, took) = timed(|| toml::de::DeTable::parse(&text));
        assert!(tree.is_ok());
        parsing.push(millis(took));
    }
    report(&BenchmarkRow {
        bench: format!("policy: load {ENTRIES} entries"),
        unit: "ms".to_owned(),
        figure: median(&mut loading),
        baseline: Some(BenchmarkBaseline {
            name: "toml: the same text as a tree".to_owned(),
            figure: median(&mut parsing),
        }),
        bar: BenchmarkLimit::AtMost(50.0),
    })
}
