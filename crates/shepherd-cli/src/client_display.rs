//! The display of the desktop that this program runs on. The daemon shows a child's programs there (S6.8).

use std::path::Path;

use shepherd_api::{ClientDisplay, Command, CommandReply, ErrorCode};
use shepherd_ipc::{BlockingClient, CallError};
use shepherd_util::EnvironmentVariables;

/// The longest value that is sent. Three of them fit into a line of the protocol, even if every byte is escaped.
const MAX_VALUE: usize = 2048;

/// Returns the display that the environment names, if it names one.
pub(crate) fn from_environment(environment: &EnvironmentVariables) -> Option<ClientDisplay> {
    let text = |name: &str| environment.get(name)?.to_str().filter(|value| !value.is_empty());
    let sent = |value: String| {
        Some(value).filter(|value| value.len() <= MAX_VALUE && !value.contains(char::is_control))
    };
    // A name of a socket is relative to this program's runtime folder, which may not be the one that the daemon expects.
    let wayland = text("WAYLAND_DISPLAY").and_then(|name| match text("XDG_RUNTIME_DIR") {
        Some(folder) => Path::new(folder).join(name).to_str().map(str::to_owned),
        None => Some(name.to_owned()),
    });
    let display = ClientDisplay {
        wayland: wayland.and_then(sent),
        x11: text("DISPLAY").map(str::to_owned).and_then(sent),
        x11_authority: text("XAUTHORITY").map(str::to_owned).and_then(sent),
    };
    (display.wayland.is_some() || display.x11.is_some()).then_some(display)
}

/// Sends a command. An older daemon refuses a launch with a display, so it gets the launch again without one.
pub(crate) fn call_daemon(client: &mut BlockingClient, command: Command) -> Result<CommandReply, CallError> {
    let Command::Launch { entry_id, profile, display: Some(_) } = &command else {
        return client.call(command);
    };
    let without_display =
        Command::Launch { entry_id: entry_id.clone(), profile: profile.clone(), display: None };
    match client.call(command) {
        Err(CallError::Refused(error)) if error.code == ErrorCode::InvalidCommand => {
            client.call(without_display)
        }
        reply => reply,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(variables: &[(&str, &str)]) -> Option<ClientDisplay> {
        from_environment(
            &variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect(),
        )
    }

    fn display(
        wayland: Option<&str>,
        x11: Option<&str>,
        x11_authority: Option<&str>,
    ) -> Option<ClientDisplay> {
        let [wayland, x11, x11_authority] =
            [wayland, x11, x11_authority].map(|value| value.map(str::to_owned));
        Some(ClientDisplay { wayland, x11, x11_authority })
    }

    #[test]
    fn the_display_is_the_one_that_the_environment_names() {
        let desktop = [
            ("DISPLAY", ":0"),
            ("XAUTHORITY", "/run/user/1001/.mutter-Xwaylandauth.N1"),
            ("WAYLAND_DISPLAY", "wayland-0"),
            ("XDG_RUNTIME_DIR", "/run/user/1001"),
            ("LD_PRELOAD", "/tmp/evil.so"),
        ];
        let keys = Some("/run/user/1001/.mutter-Xwaylandauth.N1");
        assert_eq!(named(&desktop), display(Some("/run/user/1001/wayland-0"), Some(":0"), keys));
        assert_eq!(named(&[("DISPLAY", ":1")]), display(None, Some(":1"), None));
        let absolute = [("WAYLAND_DISPLAY", "/tmp/wayland-1"), ("XDG_RUNTIME_DIR", "/run/user/1001")];
        assert_eq!(named(&absolute), display(Some("/tmp/wayland-1"), None, None));
        assert_eq!(named(&[("WAYLAND_DISPLAY", "wayland-0")]), display(Some("wayland-0"), None, None));
    }

    #[test]
    fn without_a_desktop_nothing_is_sent() {
        assert_eq!(named(&[]), None);
        assert_eq!(named(&[("DISPLAY", ""), ("XAUTHORITY", "/home/anna/.Xauthority")]), None);
        for long in [":0".repeat(100_000), "\u{1}".repeat(2_000)] {
            assert_eq!(named(&[("DISPLAY", &long)]), None, "the daemon would end the connection");
        }
    }
}
