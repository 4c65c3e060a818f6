//! Environment variables that make programs run, read or write something else.

use crate::reason::GateReason;
use crate::verdict::GateFindings;

/// Adds a reason if the variable can change what programs do. `value` is `None` if it is known only at run
/// time.
pub(super) fn judge(name: &str, value: Option<&str>, findings: &mut GateFindings) {
    if alters_programs(name) || is_locale_variable(name) && !value.is_some_and(is_safe_locale) {
        findings.add(GateReason::Variable { name: name.to_owned() });
    }
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
