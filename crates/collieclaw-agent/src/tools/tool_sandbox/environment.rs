//! The environment variables of a program in the sandbox.

use std::ffi::OsString;
use std::path::Path;

use collieclaw_gate::GatePolicy;
use ward_process::sandbox::SandboxNetwork;

use super::SandboxAccess;
use crate::security::PROGRAM_FOLDERS;

/// Variables that tell programs to use a proxy: common ones, then those of npm, pip and cargo. The lower-case
/// forms are the ones that curl and git read.
const PROXY_VARIABLES: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "npm_config_proxy",
    "npm_config_https_proxy",
    "PIP_PROXY",
    "CARGO_HTTP_PROXY",
];

/// Variables that name the hosts to which programs connect without the proxy.
const NO_PROXY_VARIABLES: &[&str] = &["no_proxy", "NO_PROXY", "npm_config_noproxy"];

/// The hosts of the sandbox's own loopback interface.
const OWN_HOSTS: &[&str] = &["localhost", "127.0.0.1", "::1"];

/// Returns the whole environment of a program. Only the time zone is inherited, so no keys, proxies or
/// sockets leak.
pub(super) fn build_environment(access: &SandboxAccess, policy: &GatePolicy) -> Vec<(OsString, OsString)> {
    let mut environment: Vec<(OsString, OsString)> = vec![
        ("PATH".into(), program_path(access)),
        ("LANG".into(), "C.UTF-8".into()),
        ("LC_ALL".into(), "C.UTF-8".into()),
        ("TERM".into(), "dumb".into()),
        // In a forbidden `/etc` the system settings can't be read, which `git` treats as an error.
        ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
    ];
    if let Some(zone) = std::env::var_os("TZ") {
        environment.push(("TZ".into(), zone));
    }
    if let SandboxNetwork::LoopbackWithListener { port } = access.network {
        environment.extend(proxy_variables(port, &policy.allowed_domains));
    }
    let toolchain = access.toolchain.environment.iter();
    environment.extend(toolchain.map(|(name, value)| (name.into(), value.clone())));
    environment
}

/// Returns the folders of the toolchains, then those of the system.
fn program_path(access: &SandboxAccess) -> OsString {
    let of_system = PROGRAM_FOLDERS.iter().map(Path::new);
    let folders: Vec<&Path> =
        access.toolchain.program_folders.iter().map(AsRef::as_ref).chain(of_system).collect();
    // A folder with a colon in its name can't be in `PATH`; the toolchain is left out then.
    std::env::join_paths(folders).unwrap_or_else(|_| PROGRAM_FOLDERS.join(":").into())
}

fn proxy_variables(port: u16, allowed_domains: &[String]) -> Vec<(OsString, OsString)> {
    let proxy = format!("http://127.0.0.1:{port}");
    // A service of this machine that is listed with its port is reached through the proxy.
    let is_listed = |host: &str| allowed_domains.iter().any(|rule| names_host(rule, host));
    let own_hosts: Vec<&str> = OWN_HOSTS.iter().copied().filter(|host| !is_listed(host)).collect();
    let proxies = PROXY_VARIABLES.iter().map(|name| (OsString::from(name), OsString::from(&proxy)));
    let exceptions = NO_PROXY_VARIABLES.iter().map(|name| (OsString::from(name), own_hosts.join(",").into()));
    // Node uses the proxy for its own requests if it is told so.
    proxies.chain(exceptions).chain([("NODE_USE_ENV_PROXY".into(), "1".into())]).collect()
}

/// Returns true for the rule `host:port` of this host.
fn names_host(rule: &str, host: &str) -> bool {
    rule.rsplit_once(':').is_some_and(|(name, _)| name.trim_matches(['[', ']']) == host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_services_of_this_machine_are_reached_through_the_proxy() {
        let exceptions = |allowed: &[&str]| {
            let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            let variables = proxy_variables(3128, &allowed);
            variables.into_iter().find(|(name, _)| name == "NO_PROXY").unwrap().1
        };
        assert_eq!(exceptions(&["example.org"]), "localhost,127.0.0.1,::1");
        assert_eq!(exceptions(&["127.0.0.1:8080", "localhost.example:1"]), "localhost,::1");
        assert_eq!(exceptions(&["localhost:8080", "[::1]:1"]), "127.0.0.1");
    }
}
