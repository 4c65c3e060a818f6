//! Policies as text. The fixture replaces `TOKEN` by its own number, so that its processes can be found.

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

/// An entry like `sleep_entry!` whose program ignores SIGTERM, so that it uses its whole grace.
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
