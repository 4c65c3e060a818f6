//! The systemd user unit of the service.

use super::GatewayService;

/// Returns the unit. Restrictions of the unit also apply to the tools, so it restricts only features that no tool needs,
/// and leaves those that their sandbox uses: namespaces, mounts, Landlock and seccomp.
pub(super) fn unit_file(service: &GatewayService) -> String {
    format!(
        r#"# Written by `collieclaw service install`; changes belong into `systemctl --user edit collieclaw-gateway`.
[Unit]
Description=CollieClaw: an agent over HTTP, for this user on this machine alone
Documentation=man:collieclaw(1)

[Service]
Type=notify
NotifyAccess=main
ExecStart={program} gateway
# A configuration that was changed holds from the next turn on; this tells whether it can.
ExecReload={program} config validate
Environment={home}
# Keys of providers, NAME=value; readable for you alone.
EnvironmentFile=-{variables}
Restart=on-failure
RestartSec=1s
# Turns that go on are cancelled, and kept as such; this takes ten seconds at most.
TimeoutStopSec=20s
# The gateway alone is asked: a command that is asked with it would end by itself, and nobody could tell why.
KillMode=mixed
# A command that used up its memory is no reason to stop the agent.
OOMPolicy=continue
UMask=0077

NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
KeyringMode=private
SystemCallArchitectures=native
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallFilter=@system-service @mount seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self
SystemCallFilter=~@clock @cpu-emulation @debug @module @obsolete @raw-io @reboot @swap
SystemCallErrorNumber=EPERM
# What is left out, and why:
# RestrictSUIDSGID: it forbids openat2, with which files are opened beneath the workspace and nowhere else.
# CapabilityBoundingSet: a user's manager can't drop what it does not have.
# RestrictNamespaces, ProtectKernelTunables, ProtectKernelLogs, ProtectHostname, ProtectProc: the sandbox of the tools
#   is made of namespaces, and can't mount a /proc where parts of it are covered.
# ProtectSystem, ProtectHome, PrivateTmp, PrivateDevices: a user's manager would make a namespace for them in which
#   the sandbox has less to work with; the sandbox itself shows tools the workspace and a read-only system.
# PrivateNetwork, IPAddressDeny: models are asked over the network; tools have none unless allowed.
# MemoryDenyWriteExecute: programs that tools start translate code while they run.

[Install]
WantedBy=default.target
"#,
        // `$` is special only in commands.
        program = quote_word(&service.program.display().to_string()).replace('$', "$$"),
        home = quote_word(&format!("COLLIECLAW_HOME={}", service.home.display())),
        variables = escape_specifiers(&service.environment_file().display().to_string()),
    )
}

/// Quotes text as one word for systemd.
fn quote_word(text: &str) -> String {
    format!("\"{}\"", escape_specifiers(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// Escapes the specifiers that systemd would expand.
fn escape_specifiers(text: &str) -> String {
    text.replace('%', "%%")
}
