//! The systemd user unit of the service.

use super::GatewayService;

/// Returns the unit. Restrictions of the unit also apply to the tools, so it restricts only features that no tool needs,
/// and leaves those that their sandbox uses: namespaces, mounts, Landlock and seccomp.
pub(super) fn unit_file(service: &GatewayService) -> String {
    format!(
        r#"# Written by `collieclaw service install`. Use `systemctl --user edit collieclaw-gateway` to change it.
[Unit]
Description=CollieClaw: agent gateway over HTTP, for this user on this machine
Documentation=man:collieclaw(1)

[Service]
Type=notify
NotifyAccess=main
ExecStart={program} gateway
# A changed configuration takes effect with the next turn. A reload only checks that it is valid.
ExecReload={program} config validate
Environment={home}
# Keys of providers, one NAME=value per line. Only you should be able to read this file.
EnvironmentFile=-{variables}
Restart=on-failure
RestartSec=1s
# Stopping cancels running turns and records them as cancelled, within ten seconds.
TimeoutStopSec=20s
# Send SIGTERM only to the gateway. If commands got the signal as well, they would seem to fail for no reason.
KillMode=mixed
# Keep the agent running if a command is killed for using too much memory.
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
# Restrictions that are left out on purpose:
# RestrictSUIDSGID: forbids openat2, which keeps file access inside the workspace.
# CapabilityBoundingSet: the user's service manager has no capabilities to drop.
# RestrictNamespaces, ProtectKernelTunables, ProtectKernelLogs, ProtectHostname, ProtectProc: the sandbox of the tools
#   needs namespaces, and can't mount /proc if parts of it are covered.
# ProtectSystem, ProtectHome, PrivateTmp, PrivateDevices: the service manager would create a namespace that limits the
#   sandbox. The sandbox itself shows tools only the workspace and a read-only system.
# PrivateNetwork, IPAddressDeny: the gateway needs the network for models. Tools have no network unless it is allowed.
# MemoryDenyWriteExecute: programs with a just-in-time compiler, such as node, would not run in tools.

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
