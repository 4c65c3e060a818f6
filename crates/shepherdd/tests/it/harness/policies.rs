//! Policies as text. `TOKEN` in a policy is replaced by the number of its fixture.

/// Concatenates the parts of a policy: settings and entries.
macro_rules! policy {
    ($($part:tt)*) => { concat!("config_version = 1\n", $($part)*) };
}
pub(crate) use policy;

/// An entry that is always available and sleeps until it is stopped, with further settings.
macro_rules! sleep_entry {
    ($id:literal, $settings:literal) => {
        concat!(
            "\n[[entries]]\nid = \"",
            $id,
            "\"\nargv = [\"sleep\", \"TOKEN\"]\nalways = true\n",
            $settings,
            "\n"
        )
    };
}
pub(crate) use sleep_entry;

/// The same, but the program ignores SIGTERM, so it uses its whole grace.
macro_rules! stubborn_entry {
    ($id:literal, $settings:literal) => {
        concat!(
            "\n[[entries]]\nid = \"",
            $id,
            "\"\nargv = [\"sh\", \"-c\", \"trap '' TERM; exec sleep TOKEN\"]\n",
            "always = true\n",
            $settings,
            "\n"
        )
    };
}
pub(crate) use stubborn_entry;
