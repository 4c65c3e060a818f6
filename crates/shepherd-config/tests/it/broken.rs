//! Invalid policies (S7.2): each file in `broken/` has a snapshot of the complete report. The comment in the first line
//! of a file names the fault.

use shepherd_config::load;

use crate::fixture;

/// Least number of fixtures, each for another fault.
const AT_LEAST: usize = 120;

pub(crate) fn fixtures() -> Vec<(String, String)> {
    let folder = fixture::path("tests/it/broken");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
        .collect();
    names.sort();
    names
        .into_iter()
        .map(|name| (fixture::text(&format!("tests/it/broken/{name}.toml")), name))
        .map(|(text, name)| (name, text))
        .collect()
}

#[test]
fn every_invalid_policy_is_refused_with_place_message_and_help() {
    let fixtures = fixtures();
    assert!(fixtures.len() >= AT_LEAST, "{}", fixtures.len());
    for (name, text) in fixtures {
        let report = load("policy.toml", &text).expect_err(&name);
        assert!(report.faults().iter().all(|fault| fault.help_text().is_some()), "{name}: {report}");
        fixture::assert_snapshot(&format!("tests/it/broken/{name}.txt"), &report.to_string());
    }
}
