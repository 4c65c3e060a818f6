//! Variables that make programs run, read or write something else.

use crate::reason::Reason;
use crate::verdict::Findings;

/// Adds what speaks against setting a variable.
pub(super) fn judge(name: &str, findings: &mut Findings) {
    if changes_programs(name) {
        findings.add(Reason::Variable { name: name.to_owned() });
    }
}

/// Whether programs are known to run, load, read or write something else because of a variable.
fn changes_programs(name: &str) -> bool {
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
