//! Environment variables that make programs run, read or write something else.

use std::path::Path;

use crate::path::{is_command_folder, normalize_path};
use crate::policy::GatePolicy;
use crate::reason::GateReason;
use crate::verdict::GateFindings;

/// The variable that names the settings of `git`. Without it, `git` obeys settings in the commands' own home, which any
/// line can write.
pub(super) const GIT_SETTINGS: &str = "GIT_CONFIG_GLOBAL";

/// Adds a reason if the variable can change what programs do. `value` is `None` if it is known only at run
/// time.
pub(super) fn judge(name: &str, value: Option<&str>, policy: &GatePolicy, findings: &mut GateFindings) {
    if is_harmless(name, value, policy) {
        return;
    }
    if chooses_code(name, value, policy) {
        return findings.add(GateReason::ChoosesCode { name: name.to_owned() });
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
    if !FOR_SHELLS.contains(&name) && !is_function && !is_home_of_commands(name, value, policy) {
        judge(name, Some(value), policy, findings);
    }
}

/// Returns true for variables of the dangerous families that only change what a program prints, how a test behaves, or
/// where results go.
fn is_harmless(name: &str, value: Option<&str>, policy: &GatePolicy) -> bool {
    const NAMES: [&str; 50] = [
        "CARGO_BUILD_JOBS",
        "CARGO_BUILD_TARGET",
        "CARGO_INCREMENTAL",
        "CARGO_LOG",
        "CARGO_NET_OFFLINE",
        "CARGO_NET_RETRY",
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
        "GIT_LFS_SKIP_SMUDGE",
        "GIT_MERGE_AUTOEDIT",
        "GIT_OPTIONAL_LOCKS",
        "GIT_TERMINAL_PROMPT",
        "MALLOC_ARENA_MAX",
        "NODE_DEBUG",
        "NODE_DISABLE_COLORS",
        "NODE_ENV",
        "NODE_NO_WARNINGS",
        "NODE_TLS_REJECT_UNAUTHORIZED",
        "NO_PROXY",
        "NPM_CONFIG_COLOR",
        "NPM_CONFIG_LOGLEVEL",
        "PERL_MM_USE_DEFAULT",
        "PYTHONASYNCIODEBUG",
        "PYTHONDEVMODE",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONFAULTHANDLER",
        "PYTHONHASHSEED",
        "PYTHONIOENCODING",
        "PYTHONNOUSERSITE",
        "PYTHONOPTIMIZE",
        "PYTHONSAFEPATH",
        "PYTHONTRACEMALLOC",
        "PYTHONUNBUFFERED",
        "PYTHONUTF8",
        "RUSTC_BOOTSTRAP",
        "no_proxy",
        "npm_config_audit",
        "npm_config_color",
        "npm_config_fund",
        "npm_config_legacy_peer_deps",
        "npm_config_loglevel",
        "npm_config_yes",
    ];
    /// Variables with a folder in which toolchains keep their results.
    const RESULT_FOLDERS: [&str; 6] = [
        "CARGO_HOME",
        "CARGO_TARGET_DIR",
        "GOPATH",
        "NPM_CONFIG_CACHE",
        "XDG_CACHE_HOME",
        "npm_config_cache",
    ];
    /// Variables of which only some values are harmless.
    const HARMLESS_VALUES: [(&str, &[&str]); 7] = [
        ("GIT_TRACE", &["0", "1", "2", "true", "false"]),
        ("HTTPS_PROXY", &[""]),
        ("HTTP_PROXY", &[""]),
        ("LESS", &["", "-F", "-R", "-FR", "-FRX", "FRX", "-FX", "-RS"]),
        ("PYTHONBREAKPOINT", &["0"]),
        ("http_proxy", &[""]),
        ("https_proxy", &[""]),
    ];
    /// Programs that only print, as pagers and editors of others.
    const PRINTING: [&str; 4] = ["", "cat", "true", ":"];
    NAMES.contains(&name)
        || name.starts_with("CARGO_PROFILE_")
        || HARMLESS_VALUES
            .iter()
            .any(|(known, values)| *known == name && value.is_some_and(|value| values.contains(&value)))
        || (is_pager_or_editor(name) && value.is_some_and(|value| PRINTING.contains(&value)))
        || (RESULT_FOLDERS.contains(&name) && value.is_some_and(|path| is_inside(path, policy)))
        || (name == "LD_PRELOAD" && value.is_some_and(is_library_of_stdbuf))
        || (name == "PYTHONWARNINGS" && value.is_some_and(|value| !value.contains('.')))
        || (name == "TMPDIR" && value.is_some_and(|value| Path::new(value).starts_with("/tmp")))
}

/// Returns true for variables that choose code of the workspace for programs which run the project's code anyway.
fn chooses_code(name: &str, value: Option<&str>, policy: &GatePolicy) -> bool {
    /// Variables that only compilers, build tools and runtimes obey. Where these are listed, they run the project's code
    /// anyway, also the program that such a variable names.
    const OF_TOOLCHAINS: [&str; 15] = [
        "CLASSPATH",
        "CMAKE_PREFIX_PATH",
        "CPATH",
        "CPLUS_INCLUDE_PATH",
        "C_INCLUDE_PATH",
        "GRADLE_OPTS",
        "JAVA_HOME",
        "JAVA_OPTS",
        "JAVA_TOOL_OPTIONS",
        "LIBRARY_PATH",
        "MAVEN_OPTS",
        "NODE_OPTIONS",
        "PKG_CONFIG_PATH",
        "RUSTC_WRAPPER",
        "RUSTUP_TOOLCHAIN",
    ];
    /// Variables with folders in which toolchains look for code.
    const CODE_FOLDERS: [&str; 6] =
        ["MYPYPATH", "NODE_PATH", "PERL5LIB", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "RUBYLIB"];
    OF_TOOLCHAINS.contains(&name)
        || CODE_FOLDERS.contains(&name)
            && value.is_some_and(|value| value.split(':').all(|path| is_inside(path, policy)))
}

/// Returns true if a variable tells a program of the project where the project's own libraries are. A program of the
/// system would run their code unseen.
pub(super) fn names_own_libraries(name: &str, value: Option<&str>, policy: &GatePolicy) -> bool {
    let is_inside = |value: &str| value.split(':').all(|path| is_inside(path, policy));
    name == "LD_LIBRARY_PATH" && value.is_some_and(is_inside)
}

/// Returns true for a folder of the workspace, or one that only commands use.
fn is_inside(path: &str, policy: &GatePolicy) -> bool {
    let place = normalize_path(&policy.workspace.join(path));
    path.is_empty()
        || !path.starts_with('~')
            && (place.starts_with(&policy.workspace) || is_command_folder(&place, policy))
}

/// Returns true if a variable names a home that only commands use. They can write to their usual home, too, so the settings
/// in another one have no effect that those of the usual home can't have.
pub(super) fn is_home_of_commands(name: &str, value: &str, policy: &GatePolicy) -> bool {
    name == "HOME" && value.starts_with('/') && is_command_folder(&normalize_path(Path::new(value)), policy)
}

/// Returns true for the library with which `stdbuf` changes the buffers of a program. A blank or a colon would begin
/// another library.
fn is_library_of_stdbuf(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    path.starts_with("/usr/lib")
        && path.ends_with("/coreutils/libstdbuf.so")
        && !path.contains("/..")
        && path.bytes().all(is_plain)
}

fn is_pager_or_editor(name: &str) -> bool {
    const NAMES: [&str; 7] =
        ["EDITOR", "GIT_EDITOR", "GIT_PAGER", "GIT_SEQUENCE_EDITOR", "MANPAGER", "PAGER", "VISUAL"];
    NAMES.contains(&name)
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
    const BEGINNINGS: [&str; 26] = [
        "LESSKEY", "RSYNC_", "UNZIP", "ZIPINFO", "CURL_", "GLIBC_", "MALLOC_", "LD_", "DYLD_", "GIT_",
        "BASH_", "PYTHON", "PERL", "RUBY", "NODE_", "NPM_", "npm_", "CARGO", "RUSTC", "RUSTUP_", "JAVA",
        "LUA_", "XDG_", "SSH_", "GROFF_", "MANROFF",
    ];
    const ENDINGS: [&str; 10] = [
        "_ASKPASS", "PAGER", "EDITOR", "BROWSER", "_COMMAND", "_OPTIONS", "OPTS", "PATH", "_PROXY", "_proxy",
    ];
    const NAMES: [&str; 54] = [
        "BZIP",
        "LANGUAGE",
        "MAGIC",
        "SIMPLE_BACKUP_SUFFIX",
        "SSLKEYLOGFILE",
        "SYSTEM_WGETRC",
        "VERSION_CONTROL",
        "BZIP2",
        "GOROOT",
        "GREP",
        "GZIP",
        "MAKEFILES",
        "MANOPT",
        "TAPE",
        "TZDIR",
        "WGETRC",
        "XZ_DEFAULTS",
        "XZ_OPT",
        "ZIP",
        "ZIPOPT",
        "AWKLIBPATH",
        "CDPATH",
        "ENV",
        "FCEDIT",
        "GAWK_PERSIST_FILE",
        "GCONV_PATH",
        "GLOBIGNORE",
        "HISTFILE",
        "HOME",
        "HOSTALIASES",
        "IFS",
        "INPUTRC",
        "LESS",
        "LESSCLOSE",
        "LESSOPEN",
        "LOCPATH",
        "MALLOC_TRACE",
        "NLSPATH",
        "OPENSSL_CONF",
        "OPENSSL_ENGINES",
        "OPENSSL_MODULES",
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
