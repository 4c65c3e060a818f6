//! Environment variables that make programs run, read or write something else.

use std::path::Path;

use crate::path::normalize_path;
use crate::policy::GatePolicy;
use crate::reason::GateReason;
use crate::verdict::GateFindings;

/// Adds a reason if the variable can change what programs do. `value` is `None` if it is known only at run
/// time.
pub(super) fn judge(name: &str, value: Option<&str>, policy: &GatePolicy, findings: &mut GateFindings) {
    if is_harmless(name, value, policy) {
        return;
    }
    if alters_programs(name) || is_locale_variable(name) && !value.is_some_and(is_safe_locale) {
        findings.add(GateReason::Variable { name: name.to_owned() });
    }
}

/// Adds a reason if a variable of an executed program can change what the program does. Variables that matter only to
/// shells and to the search for programs are left out: every program is judged when it is executed.
pub(super) fn judge_executed(name: &str, value: &str, policy: &GatePolicy, findings: &mut GateFindings) {
    const FOR_SHELLS: [&str; 12] = [
        "PATH",
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
        "PS1",
        "PS2",
        "IFS",
        "CDPATH",
        "GLOBIGNORE",
        "HISTFILE",
        "SHELLOPTS",
    ];
    let is_function = name.starts_with("BASH_FUNC_") && name.ends_with("%%");
    if !FOR_SHELLS.contains(&name) && !is_function {
        judge(name, Some(value), policy, findings);
    }
}

/// Returns true for variables of the dangerous families that only change what a program prints, how a test behaves, or
/// which of the workspace's own files it loads.
fn is_harmless(name: &str, value: Option<&str>, policy: &GatePolicy) -> bool {
    const NAMES: [&str; 30] = [
        "CARGO_INCREMENTAL",
        "CARGO_NET_OFFLINE",
        "CARGO_PROFILE_RELEASE_DEBUG",
        "CARGO_TERM_COLOR",
        "CARGO_TERM_PROGRESS_WHEN",
        "CARGO_TERM_QUIET",
        "CARGO_TERM_VERBOSE",
        "GIT_AUTHOR_DATE",
        "GIT_AUTHOR_EMAIL",
        "GIT_AUTHOR_NAME",
        "GIT_COMMITTER_DATE",
        "GIT_COMMITTER_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_MERGE_AUTOEDIT",
        "GIT_OPTIONAL_LOCKS",
        "GIT_TERMINAL_PROMPT",
        "NODE_DISABLE_COLORS",
        "NODE_ENV",
        "NODE_NO_WARNINGS",
        "NPM_CONFIG_COLOR",
        "PYTHONASYNCIODEBUG",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONFAULTHANDLER",
        "PYTHONHASHSEED",
        "PYTHONIOENCODING",
        "PYTHONNOUSERSITE",
        "PYTHONUNBUFFERED",
        "PYTHONUTF8",
        "npm_config_color",
        "npm_config_yes",
    ];
    /// Programs that only print, as pagers and editors of others.
    const PRINTING: [&str; 4] = ["", "cat", "true", ":"];
    let inside = |path: &str| {
        let place = normalize_path(&policy.workspace.join(path));
        path.is_empty() || !path.starts_with('~') && place.starts_with(&policy.workspace)
    };
    NAMES.contains(&name)
        || (matches!(name, "PAGER" | "GIT_PAGER" | "MANPAGER" | "EDITOR" | "GIT_EDITOR" | "VISUAL")
            && value.is_some_and(|value| PRINTING.contains(&value)))
        || (matches!(name, "PYTHONPATH" | "NODE_PATH")
            && value.is_some_and(|value| value.split(':').all(inside)))
        || (name == "PYTHONWARNINGS" && value.is_some_and(|value| !value.contains('.')))
        || (name == "TMPDIR" && value.is_some_and(|value| Path::new(value).starts_with("/tmp")))
}

fn is_locale_variable(name: &str) -> bool {
    name == "LANG" || name.starts_with("LC_")
}

/// Returns true for locales in UTF-8 or ASCII. In encodings such as Shift-JIS, the second byte of a letter
/// can be a backslash or a bracket, so a program may parse its script differently from the gate.
fn is_safe_locale(value: &str) -> bool {
    let encoding = value.rsplit_once('.').map(|(_, encoding)| encoding.to_ascii_uppercase());
    matches!(value, "" | "C" | "POSIX") || matches!(encoding.as_deref(), Some("UTF-8" | "UTF8"))
}

/// Returns true for variables that make some program run, load, read or write something else.
fn alters_programs(name: &str) -> bool {
    const BEGINNINGS: [&str; 24] = [
        "LESSKEY", "RSYNC_", "UNZIP", "ZIPINFO", "CURL_", "GLIBC_", "MALLOC_", "LD_", "DYLD_", "GIT_",
        "BASH_", "PYTHON", "PERL", "RUBY", "NODE_", "NPM_", "npm_", "CARGO", "RUSTC", "RUSTUP_", "JAVA",
        "LUA_", "XDG_", "SSH_",
    ];
    const ENDINGS: [&str; 10] = [
        "_ASKPASS", "PAGER", "EDITOR", "BROWSER", "_COMMAND", "_OPTIONS", "OPTS", "PATH", "_PROXY", "_proxy",
    ];
    const NAMES: [&str; 59] = [
        "BZIP",
        "LANGUAGE",
        "MAGIC",
        "SIMPLE_BACKUP_SUFFIX",
        "SSLKEYLOGFILE",
        "SYSTEM_WGETRC",
        "VERSION_CONTROL",
        "BZIP2",
        "GOFLAGS",
        "GOROOT",
        "GZIP",
        "MAKEFILES",
        "MANOPT",
        "TAPE",
        "TZDIR",
        "WGETRC",
        "XZ_DEFAULTS",
        "XZ_OPT",
        "ZIPOPT",
        "AR",
        "AS",
        "AWKLIBPATH",
        "CC",
        "CDPATH",
        "CFLAGS",
        "CLASSPATH",
        "CPP",
        "CXX",
        "ENV",
        "FCEDIT",
        "GCONV_PATH",
        "GLOBIGNORE",
        "HISTFILE",
        "HOME",
        "HOSTALIASES",
        "IFS",
        "INPUTRC",
        "LD",
        "LESS",
        "LESSCLOSE",
        "LESSOPEN",
        "LOCPATH",
        "MAKEFLAGS",
        "MALLOC_TRACE",
        "NLSPATH",
        "OPENSSL_CONF",
        "POSIXLY_CORRECT",
        "PROMPT_COMMAND",
        "PS1",
        "PS4",
        "PWD",
        "RESOLV_HOST_CONF",
        "SHELL",
        "SHELLOPTS",
        "TERMCAP",
        "TERMINFO",
        "TMPDIR",
        "VISUAL",
        "_JAVA_OPTIONS",
    ];
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || NAMES.contains(&name)
}
