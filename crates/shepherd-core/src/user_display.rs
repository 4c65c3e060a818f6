//! The display of a client's desktop, on which a program of the same user may be shown (S6.8).
//!
//! A client names its display in a launch request. The values end up in the environment of the program, so only names of
//! displays on this machine are accepted, in the few forms that desktops use. Nothing else of a client's environment
//! reaches a program.

use shepherd_api::{ClientDisplay, EntryKind};
use shepherd_util::MAX_SOCKET_PATH;

/// The longest accepted path: the kernel's `PATH_MAX`, without the zero at its end.
const MAX_PATH: usize = 4095;

/// The most digits of a display number and of a screen number. Display numbers are TCP ports above 6000.
const MAX_DISPLAY_DIGITS: usize = 5;

/// A display of this machine, and the user whose client named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserDisplay {
    uid: u32,
    /// The socket's name in the runtime folder of the user, or its path if it is in a folder there.
    wayland: Option<String>,
    x11: Option<X11Display>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct X11Display {
    name: String,
    authority: Option<String>,
}

impl UserDisplay {
    /// Checks the display that a client of this user named. Invalid values are left out: a program without a display is
    /// better than a refused launch. Returns `None` if nothing is left.
    #[must_use]
    pub fn from_client(named: &ClientDisplay, uid: u32) -> Option<Self> {
        let wayland = named.wayland.as_deref().and_then(|value| wayland_socket(value, uid));
        let x11 = named.x11.as_deref().filter(|name| is_local_x11_display(name)).map(|name| X11Display {
            name: name.to_owned(),
            authority: named.x11_authority.clone().filter(|path| is_plain_path(path)),
        });
        (wayland.is_some() || x11.is_some()).then_some(Self { uid, wayland, x11 })
    }

    /// Returns the environment variables for a program that runs as this user. A program of another user gets none: its
    /// user may not use the display, and must not be led to a display that somebody else controls.
    #[must_use]
    pub fn variables_for(&self, uid: u32) -> Vec<(&'static str, String)> {
        let mut variables = Vec::new();
        if uid != self.uid {
            return variables;
        }
        if let Some(wayland) = &self.wayland {
            variables.push(("WAYLAND_DISPLAY", wayland.clone()));
            variables.push(("XDG_RUNTIME_DIR", runtime_folder(uid)));
        }
        if let Some(X11Display { name, authority }) = &self.x11 {
            variables.push(("DISPLAY", name.clone()));
            variables.extend(authority.clone().map(|path| ("XAUTHORITY", path)));
        }
        variables
    }
}

/// Returns true if the policy says where an entry is shown. The client's display is then not used at all, so that no
/// program gets one display from the policy and another from the client.
pub(crate) fn has_own_display(kind: &EntryKind) -> bool {
    match kind {
        EntryKind::Process { env, .. } => {
            ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env.contains_key(*name))
        }
        EntryKind::Vm { .. } | EntryKind::Media { .. } | EntryKind::Custom { .. } => false,
    }
}

fn runtime_folder(uid: u32) -> String {
    format!("/run/user/{uid}")
}

/// Returns the value for `WAYLAND_DISPLAY`, if the socket is in the runtime folder of the user. A name is preferred to a
/// path, because not every program accepts a path.
fn wayland_socket(value: &str, uid: u32) -> Option<String> {
    let folder = format!("{}/", runtime_folder(uid));
    let within = value.strip_prefix(&folder);
    let socket = within.unwrap_or(value);
    let is_name = !socket.contains('/');
    let is_valid = (is_name || within.is_some())
        && has_plain_components(socket)
        && folder.len() + socket.len() <= MAX_SOCKET_PATH;
    is_valid.then(|| if is_name { socket } else { value }.to_owned())
}

/// Returns true for `:0` and `:0.0`, and false for a display of another machine.
fn is_local_x11_display(name: &str) -> bool {
    let is_number = |text: &str| {
        (1..=MAX_DISPLAY_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    name.strip_prefix(':').is_some_and(|numbers| match numbers.split_once('.') {
        Some((display, screen)) => is_number(display) && is_number(screen),
        None => is_number(numbers),
    })
}

/// Returns true for an absolute path of a bounded length without `..` and control characters. The path isn't looked at:
/// the program opens it with the rights of the user who named it.
fn is_plain_path(path: &str) -> bool {
    path.len() <= MAX_PATH && path.strip_prefix('/').is_some_and(has_plain_components)
}

fn has_plain_components(path: &str) -> bool {
    !path.contains(char::is_control) && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANNA: u32 = 1001;

    fn variables(wayland: Option<&str>, x11: Option<&str>, authority: Option<&str>) -> String {
        let [wayland, x11, x11_authority] = [wayland, x11, authority].map(|value| value.map(str::to_owned));
        let named = ClientDisplay { wayland, x11, x11_authority };
        let variables = UserDisplay::from_client(&named, ANNA).map(|display| display.variables_for(ANNA));
        let words = variables.unwrap_or_default().into_iter().map(|(name, value)| format!("{name}={value}"));
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_wayland_display_is_a_socket_in_the_runtime_folder_of_its_user() {
        let check = |value: &str, expected: Option<&str>| {
            let expected =
                expected.map(|name| format!("WAYLAND_DISPLAY={name} XDG_RUNTIME_DIR=/run/user/1001"));
            assert_eq!(variables(Some(value), None, None), expected.unwrap_or_default(), "{value:?}");
        };
        check("wayland-0", Some("wayland-0"));
        check("/run/user/1001/wayland-0", Some("wayland-0"));
        check("/run/user/1001/gamescope/wayland-0", Some("/run/user/1001/gamescope/wayland-0"));
        for wrong in [
            "",
            ".",
            "..",
            "../wayland-0",
            "gamescope/wayland-0",
            "/run/user/1001",
            "/run/user/1001/",
            "/run/user/1001/..",
            "/run/user/1001/../1002/wayland-0",
            "/run/user/1001//wayland-0",
            "/run/user/10011/wayland-0",
            "/run/user/1002/wayland-0",
            "/tmp/wayland-0",
            "wayland-0\nLD_PRELOAD=/tmp/evil.so",
            "wayland-0\0",
            "wayland\u{1b}[2J",
        ] {
            check(wrong, None);
        }
        check(&"w".repeat(92), Some(&"w".repeat(92)));
        check(&"w".repeat(93), None);
    }

    #[test]
    fn an_x11_display_is_one_of_this_machine() {
        let check = |value: &str, is_accepted: bool| {
            let expected = if is_accepted { format!("DISPLAY={value}") } else { String::new() };
            assert_eq!(variables(None, Some(value), None), expected, "{value:?}");
        };
        for name in [":0", ":1", ":1.0", ":99999.0"] {
            check(name, true);
        }
        for name in [
            "",
            ":",
            "0",
            ":-1",
            ":0.",
            ":.0",
            ":0.0.0",
            ":0 ",
            ":0\n",
            ":0/../x",
            "::0",
            ":100000",
            ":\u{664}",
            "evil.example:0",
            "localhost:10.0",
            "tcp/evil.example:0",
            "unix:0",
            "/tmp/socket",
        ] {
            check(name, false);
        }
        check(&format!(":{}", "1".repeat(100_000)), false);
    }

    #[test]
    fn the_keys_of_an_x11_display_are_an_absolute_path() {
        let check = |path: &str, is_accepted: bool| {
            let expected =
                if is_accepted { format!("DISPLAY=:0 XAUTHORITY={path}") } else { "DISPLAY=:0".to_owned() };
            assert_eq!(variables(None, Some(":0"), Some(path)), expected, "{path:?}");
        };
        check("/run/user/1001/gdm/Xauthority", true);
        check("/home/anna/.Xauthority", true);
        check("/tmp/xauth_Übung 1", true);
        for wrong in [
            "",
            "/",
            "keys",
            "./keys",
            "../keys",
            "/home/anna/../ben/keys",
            "/tmp/a\nb",
            "/tmp/\u{85}",
            "/tmp/\0",
        ] {
            check(wrong, false);
        }
        check(&format!("/{}", "k".repeat(4094)), true);
        check(&format!("/{}", "k".repeat(4095)), false);
        assert_eq!(
            variables(None, None, Some("/home/anna/.Xauthority")),
            "",
            "keys without a display are useless"
        );
    }

    #[test]
    fn one_wrong_value_does_not_spoil_the_others() {
        assert_eq!(variables(Some("/etc/passwd"), Some(":0"), Some("keys")), "DISPLAY=:0");
        assert_eq!(
            variables(Some("wayland-0"), Some("evil.example:0"), Some("/home/anna/.Xauthority")),
            "WAYLAND_DISPLAY=wayland-0 XDG_RUNTIME_DIR=/run/user/1001"
        );
    }

    #[test]
    fn a_program_of_another_user_gets_no_display() {
        let named =
            ClientDisplay { wayland: Some("wayland-0".into()), x11: Some(":0".into()), x11_authority: None };
        let display = UserDisplay::from_client(&named, ANNA).unwrap();
        assert_eq!(display.variables_for(ANNA).len(), 3);
        for other in [0, ANNA + 1] {
            assert_eq!(display.variables_for(other), []);
        }
    }
}
