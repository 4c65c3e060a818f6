//! The paths that each environment leads to.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use shepherd_util::{EnvironmentVariables, MAX_SOCKET_PATH, PathError, ShepherdPaths};

fn environment(variables: &[(&str, &str)]) -> EnvironmentVariables {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect()
}

fn paths(policy: &str, data: &str, socket: &str) -> ShepherdPaths {
    ShepherdPaths { policy: policy.into(), data: data.into(), socket: socket.into() }
}

#[test]
fn a_system_service_uses_system_paths() {
    let standard = paths("/etc/shepherd/policy.toml", "/var/lib/shepherd", "/run/shepherd/shepherd.sock");
    assert_eq!(ShepherdPaths::system(&EnvironmentVariables::new()), Ok(standard.clone()));
    let user_variables =
        environment(&[("HOME", "/home/ann"), ("XDG_CONFIG_HOME", "/x"), ("XDG_RUNTIME_DIR", "/y")]);
    assert_eq!(ShepherdPaths::system(&user_variables), Ok(standard));
}

#[test]
fn an_ordinary_user_has_xdg_paths() {
    assert_eq!(
        ShepherdPaths::user(&environment(&[("HOME", "/home/ann"), ("XDG_RUNTIME_DIR", "/run/user/1000")])),
        Ok(paths(
            "/home/ann/.config/shepherd/policy.toml",
            "/home/ann/.local/share/shepherd",
            "/run/user/1000/shepherd.sock"
        ))
    );
    assert_eq!(
        ShepherdPaths::user(&environment(&[
            ("HOME", "/home/ann"),
            ("XDG_CONFIG_HOME", "/c"),
            ("XDG_DATA_HOME", "/d")
        ])),
        Ok(paths("/c/shepherd/policy.toml", "/d/shepherd", "/d/shepherd/shepherd.sock"))
    );
}

#[test]
fn relative_and_empty_xdg_values_are_ignored() {
    let plain = ShepherdPaths::user(&environment(&[("HOME", "/h")]));
    for value in ["", "relative", "./x", "~/x"] {
        let variables = [
            ("HOME", "/h"),
            ("XDG_CONFIG_HOME", value),
            ("XDG_DATA_HOME", value),
            ("XDG_RUNTIME_DIR", value),
        ];
        assert_eq!(ShepherdPaths::user(&environment(&variables)), plain, "{value}");
    }
}

#[test]
fn overrides_win_and_must_be_absolute() {
    let variables =
        [("HOME", "/h"), ("SHEPHERD_POLICY", "/p.toml"), ("SHEPHERD_DATA", "/d"), ("SHEPHERD_SOCKET", "/s")];
    let expected = Ok(paths("/p.toml", "/d", "/s"));
    assert_eq!(ShepherdPaths::user(&environment(&variables)), expected);
    assert_eq!(ShepherdPaths::system(&environment(&variables)), expected);
    let error = ShepherdPaths::system(&environment(&[("SHEPHERD_DATA", "data")])).unwrap_err();
    assert_eq!(error, PathError::Relative { variable: "SHEPHERD_DATA", value: PathBuf::from("data") });
    assert_eq!(error.to_string(), "SHEPHERD_DATA must be an absolute path, not `data`");
}

#[test]
fn a_missing_or_relative_home_is_an_error() {
    for variables in [&[][..], &[("HOME", "")], &[("HOME", "home")]] {
        assert_eq!(ShepherdPaths::user(&environment(variables)), Err(PathError::NoHome));
    }
}

#[test]
fn a_socket_path_longer_than_the_kernel_allows_is_an_error() {
    let longest = format!("/{}", "s".repeat(MAX_SOCKET_PATH - 1));
    assert!(ShepherdPaths::system(&environment(&[("SHEPHERD_SOCKET", &longest)])).is_ok());
    std::os::unix::net::SocketAddr::from_pathname(&longest).unwrap();
    let longer = format!("{longest}s");
    assert_eq!(
        ShepherdPaths::system(&environment(&[("SHEPHERD_SOCKET", &longer)])),
        Err(PathError::SocketTooLong { length: MAX_SOCKET_PATH + 1 })
    );
    std::os::unix::net::SocketAddr::from_pathname(&longer).unwrap_err();
}

proptest! {
    #[test]
    fn every_path_is_absolute(values in prop::collection::vec(prop::option::of("/?[a-z./~]{0,12}"), 7)) {
        let names = ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "SHEPHERD_POLICY", "SHEPHERD_DATA", "SHEPHERD_SOCKET"];
        let environment: EnvironmentVariables =
            names.iter().zip(values).filter_map(|(name, value)| Some(((*name).to_owned(), value?.into()))).collect();
        for paths in [ShepherdPaths::user(&environment), ShepherdPaths::system(&environment)].into_iter().flatten() {
            prop_assert!([&paths.policy, &paths.data, &paths.socket].into_iter().all(|path| Path::is_absolute(path)));
        }
    }
}
