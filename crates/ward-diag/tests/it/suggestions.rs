//! Suggestions for misspelt names are good, or absent.

use ward_diag::closest;

const KEYS: [&str; 8] = ["id", "label", "max_run", "daily_quota", "cooldown_after_run", "argv", "to", "from"];

#[test]
fn near_names_are_found_and_nonsense_is_not_suggested() {
    for (written, meant) in [
        ("lable", Some("label")),
        ("labels", Some("label")),
        ("Label", Some("label")),
        ("max-run", Some("max_run")),
        ("maxrun", Some("max_run")),
        ("max_rum", Some("max_run")),
        ("dailyquota", Some("daily_quota")),
        ("cooldown_after_runs", Some("cooldown_after_run")),
        ("ID", Some("id")),
        ("frm", Some("from")),
        ("x", None),
        ("", None),
        ("of", None),
        ("ip", None),
        ("colour", None),
        ("quota", None),
        ("arg", Some("argv")),
        ("volume", None),
        ("🦀", None),
    ] {
        assert_eq!(closest(written, KEYS), meant, "{written}");
    }
}

#[test]
fn the_nearest_of_several_names_is_suggested() {
    assert_eq!(closest("warnings", ["warming", "warning"]), Some("warning"));
}
