//! The environment of programs: a short list of the daemon's variables, and the display on which the program is shown
//! (S6.5, S6.8).
//!
//! The list leaves out everything that changes how programs are loaded (`LD_*`, `GCONV_PATH`, …), and everything that
//! the daemon keeps for itself. It doesn't keep a program away from its user's message bus and service manager: if the
//! user is logged in or lingers, both are in the runtime folder, under well-known names. (So is the sound server. This is
//! why no program needs `DBUS_SESSION_BUS_ADDRESS`.) Processes that they move to another cgroup stay contained; processes
//! that they start don't.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::user::UnixUser;

/// Language and time zone, for programs of every user.
const LOCALE_VARIABLES: &[&str] = &["LANG", "LANGUAGE", "TZ"];

/// The daemon's displays. They are also passed on to other users, who may or may not have access.
const DISPLAY_VARIABLES: &[&str] = &["DISPLAY", "WAYLAND_DISPLAY"];

/// Variables of the daemon's own user, passed on only to programs that run as that user.
const OWN_USER_VARIABLES: &[&str] =
    &["HOME", "USER", "LOGNAME", "XDG_RUNTIME_DIR", "XAUTHORITY", "PULSE_SERVER", "PIPEWIRE_REMOTE"];

/// The prefix of detailed language settings: `LC_ALL`, `LC_TIME`, …
const LOCALE_PREFIX: &str = "LC_";

/// Returns the environment of a program, before its entry adds variables.
pub(crate) fn base(
    daemon: &[(OsString, OsString)],
    search_path: &OsStr,
    user: Option<&UnixUser>,
) -> Vec<(OsString, OsString)> {
    let mut environment: Vec<_> = daemon
        .iter()
        .filter(|(name, _)| {
            name.to_str().is_some_and(|name| {
                let own = user.is_none() && OWN_USER_VARIABLES.contains(&name);
                own || LOCALE_VARIABLES.contains(&name)
                    || DISPLAY_VARIABLES.contains(&name)
                    || name.starts_with(LOCALE_PREFIX)
            })
        })
        .cloned()
        .collect();
    if let Some(user) = user {
        environment.push(("HOME".into(), user.home.clone().into_os_string()));
        environment.extend(["USER", "LOGNAME"].map(|name| (name.into(), user.name.clone().into())));
        let runtime = PathBuf::from(format!("/run/user/{}", user.uid));
        if runtime.is_dir() {
            environment.push(("XDG_RUNTIME_DIR".into(), runtime.into_os_string()));
        }
    }
    environment.push(("PATH".into(), search_path.to_owned()));
    environment
}

/// Replaces the daemon's display by another one, if there is another one. The daemon's goes as a whole, so that no program
/// gets parts of two displays.
pub(crate) fn replace_display(
    environment: &mut Vec<(OsString, OsString)>,
    display: Vec<(OsString, OsString)>,
) {
    if display.is_empty() {
        return;
    }
    let is_of_daemon =
        |name: &OsString| DISPLAY_VARIABLES.iter().chain(&["XAUTHORITY"]).any(|variable| name == *variable);
    environment
        .retain(|(name, _)| !is_of_daemon(name) && display.iter().all(|(replaced, _)| replaced != name));
    environment.extend(display);
}

/// Returns the value of a variable.
pub(crate) fn get<'a>(environment: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    environment.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
}

/// Returns the user's home if it exists, else the root folder.
pub(crate) fn home(environment: &[(OsString, OsString)]) -> PathBuf {
    let home = get(environment, "HOME").map(Path::new).filter(|home| home.is_absolute() && home.is_dir());
    home.unwrap_or(Path::new("/")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(environment: &[(OsString, OsString)]) -> Vec<&str> {
        environment.iter().map(|(name, _)| name.to_str().unwrap()).collect()
    }

    fn daemon() -> Vec<(OsString, OsString)> {
        let names = [
            "HOME",
            "LANG",
            "LC_TIME",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "SHEPHERD_PIN",
            "PATH",
            "XAUTHORITY",
            "WAYLAND_DISPLAY",
            "DBUS_SESSION_BUS_ADDRESS",
        ];
        names.map(|name| (name.into(), "value".into())).into()
    }

    #[test]
    fn only_listed_variables_are_passed_on_and_the_path_is_fixed() {
        let environment = base(&daemon(), OsStr::new("/bin"), None);
        assert_eq!(names(&environment), ["HOME", "LANG", "LC_TIME", "XAUTHORITY", "WAYLAND_DISPLAY", "PATH"]);
        assert_eq!(get(&environment, "PATH"), Some(OsStr::new("/bin")));
    }

    #[test]
    fn another_user_gets_its_own_home_and_not_our_keys() {
        let user =
            UnixUser { name: "kid".into(), uid: 54_321, gid: 9, gids: vec![9], home: "/home/kid".into() };
        let environment = base(&daemon(), OsStr::new("/bin"), Some(&user));
        assert_eq!(
            names(&environment),
            ["LANG", "LC_TIME", "WAYLAND_DISPLAY", "HOME", "USER", "LOGNAME", "PATH"]
        );
        assert_eq!(get(&environment, "HOME"), Some(OsStr::new("/home/kid")));
    }

    #[test]
    fn another_display_replaces_the_whole_display_of_the_daemon() {
        let base = base(&daemon(), OsStr::new("/bin"), None);
        let mut replaced = base.clone();
        replace_display(&mut replaced, Vec::new());
        assert_eq!(replaced, base);
        replace_display(
            &mut replaced,
            vec![("DISPLAY".into(), ":1".into()), ("HOME".into(), "/home/kid".into())],
        );
        assert_eq!(names(&replaced), ["LANG", "LC_TIME", "PATH", "DISPLAY", "HOME"]);
        assert_eq!(get(&replaced, "HOME"), Some(OsStr::new("/home/kid")));
    }

    #[test]
    fn without_a_home_a_program_starts_at_the_root() {
        let with = |folder: &str| home(&[("HOME".into(), folder.into())]);
        assert_eq!(with("/usr"), Path::new("/usr"));
        assert_eq!(with("/nonexistent/home"), Path::new("/"));
        assert_eq!(with("usr"), Path::new("/"));
        assert_eq!(home(&[]), Path::new("/"));
    }
}
