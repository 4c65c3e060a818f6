//! The presets for a workspace: programs, domains and toolchain folders that people need for one kind of work.
//!
//! A preset only suggests names. The operator accepts it for a workspace, and the gate judges every call by
//! the resulting [`GatePolicy`](crate::GatePolicy) as before.

use crate::policy::ProjectPrograms;

/// A list of everything that one kind of work needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkspacePreset {
    /// The name on the command line.
    pub name: &'static str,
    /// Commands to allow, in addition to [`DEFAULT_ALLOWED_COMMANDS`](crate::DEFAULT_ALLOWED_COMMANDS).
    pub programs: &'static [&'static str],
    /// Domains to allow.
    pub domains: &'static [&'static str],
    /// Folders of the user's home that hold toolchains. The sandbox may show them for reading.
    pub toolchain_folders: &'static [&'static str],
    /// Files with passwords and tokens, inside the toolchain folders or near them. The sandbox must never show
    /// them. `*` stands for any text without a slash; in place of a whole folder, only existing files count.
    pub secret_patterns: &'static [&'static str],
    /// Whether programs of the workspace may run by their path, as in `cargo build && target/debug/app`.
    pub project_programs: ProjectPrograms,
}

impl WorkspacePreset {
    /// Returns the preset with a name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        WORKSPACE_PRESETS.iter().find(|preset| preset.name == name)
    }
}

/// Joins the tools that every project needs with others.
macro_rules! with_project_tools {
    ($($name:literal)*) => {
        &[
            "b2sum", "base32", "base64", "bash", "bunzip2", "bzcat", "bzip2", "cal", "chmod", "cksum", "column",
            "command", "csplit", "curl", "cut", "df", "diff3", "dir", "dos2unix", "du", "egrep", "env", "expand",
            "expr", "fd", "fdfind", "fgrep", "file", "fmt", "fold", "free", "gawk", "git", "groups", "gunzip",
            "gzip", "hexdump", "hostname", "iconv", "id", "install", "join", "kill", "killall", "less", "ln", "locale", "look",
            "lscpu", "lsof", "make", "man", "mawk", "mktemp", "more", "nice", "nohup", "nproc", "numfmt", "od", "openssl",
            "paste", "patch", "pgrep", "pkill", "pr", "printenv", "ps", "readlink", "rg", "rmdir", "rsync", "sh", "sha1sum",
            "sha224sum", "sha384sum", "sha512sum", "shellcheck", "shfmt", "shuf", "sleep", "split", "sqlite3",
            "ss", "stdbuf", "strings", "sum", "sync", "tar", "tee", "time", "timeout", "truncate", "tsort", "type", "tty",
            "uname", "unexpand", "unix2dos", "unxz", "unzip", "uptime", "vdir", "wget", "whereis",
            "whoami", "xargs", "xmllint", "xxd", "xz", "xzcat", "yes", "yq", "zcat", "zip", "zipinfo", "zstd",
            $($name,)*
        ]
    };
}

/// Joins the domains of source code with others.
macro_rules! with_source_domains {
    ($($name:literal)*) => {
        &[
            "github.com", "api.github.com", "codeload.github.com", "raw.githubusercontent.com",
            "objects.githubusercontent.com", "gitlab.com", "codeberg.org", $($name,)*
        ]
    };
}

/// Joins the files in which common tools keep passwords and tokens with others.
macro_rules! with_common_secrets {
    ($($name:literal)*) => {
        &[
            "~/.netrc", "~/.git-credentials", "~/.config/git/credentials", "~/.config/gh", "~/.gnupg", "~/.ssh",
            "~/.aws", "~/.azure", "~/.config/gcloud", "~/.kube", "~/.docker/config.json", "~/.wgetrc", "~/.curlrc",
            $($name,)*
        ]
    };
}

/// The presets, in the order in which they are offered.
pub const WORKSPACE_PRESETS: &[WorkspacePreset] = &[
    WorkspacePreset {
        name: "developer",
        programs: with_project_tools!(
            "python" "python3" "python3.10" "python3.11" "python3.12" "python3.13" "python3.14" "pip" "pip3" "pytest" "py.test" "uv" "uvx" "poetry" "pdm" "hatch" "tox" "nox"
            "ruff" "black" "isort" "mypy" "pyright" "flake8" "pylint" "bandit" "coverage" "pre-commit"
            "ipython" "pipx" "twine" "virtualenv" "cargo" "rustc" "rustfmt" "rustup" "rustdoc"
            "clippy-driver" "cargo-clippy" "cargo-fmt" "cargo-nextest" "node" "nodejs" "npm" "npx" "pnpm"
            "pnpx" "yarn" "yarnpkg" "corepack" "bun" "bunx" "deno" "tsc" "ts-node" "tsx" "eslint" "prettier"
            "jest" "vitest" "mocha" "vite" "webpack" "rollup" "esbuild" "next" "turbo" "nx" "playwright"
            "biome" "go" "gofmt" "golangci-lint" "goimports" "staticcheck" "gopls" "dlv" "cmake" "ctest"
            "cpack" "ninja" "meson" "gcc" "g++" "cc" "c++" "clang" "clang++" "clang-format" "clang-tidy"
            "ld" "ar" "nm" "objdump" "readelf" "ldd" "size" "strip" "ranlib" "pkg-config" "gdb" "valgrind"
            "autoconf" "automake" "autoreconf" "bear" "ccache" "java" "javac" "jar" "javap" "mvn" "gradle"
            "kotlinc" "kotlin" "ant" "ruby" "bundle" "gem" "rake" "rspec" "rubocop" "perl" "prove" "php"
            "composer" "phpunit" "dotnet" "swift" "lua" "zig" "just" "task" "jupyter" "tree-sitter" "protoc"
            "buf" "hadolint" "yamllint" "markdownlint" "actionlint" "cloc" "tokei" "bc" "dc" "m4" "ctags"
            "delta" "bat" "batcat" "eza" "pandoc"
        ),
        domains: with_source_domains!(
            "pypi.org" "files.pythonhosted.org" "docs.python.org" "crates.io" "index.crates.io"
            "static.crates.io" "static.rust-lang.org" "doc.rust-lang.org" "docs.rs" "registry.npmjs.org"
            "nodejs.org" "registry.yarnpkg.com" "developer.mozilla.org" "proxy.golang.org" "sum.golang.org"
            "go.dev" "pkg.go.dev" "repo.maven.apache.org" "repo1.maven.org" "plugins.gradle.org"
            "rubygems.org"
        ),
        toolchain_folders: &[
            "~/.local/bin",
            "~/.pyenv",
            "~/.local/pipx",
            "~/.local/share/pipx",
            "~/.local/share/uv",
            "~/.cargo/bin",
            "~/.rustup",
            "~/.nvm",
            "~/.volta",
            "~/.fnm",
            "~/.local/share/fnm",
            "~/.local/share/pnpm",
            "~/.bun/bin",
            "~/.deno/bin",
            "~/.npm-global",
            "~/go/bin",
            "~/sdk",
            "~/.asdf",
            "~/.local/share/mise",
            "~/.sdkman/candidates",
            "~/.rbenv",
        ],
        secret_patterns: with_common_secrets!(
            "~/.pypirc" "~/.config/pip/pip.conf" "~/.pip/pip.conf" "~/.config/pypoetry/auth.toml"
            "~/.local/share/uv/credentials" "~/.cargo/credentials*" "~/.npmrc" "~/.nvm/.npmrc"
            "~/.npm-global/etc/npmrc" "~/.yarnrc*" "~/.config/pnpm/rc" "~/.config/go/env"
            "~/.m2/settings*.xml" "~/.gradle/gradle.properties" "~/.gem/credentials" "~/.bundle/config"
            "~/.pyenv/versions/*/pip.conf" "~/.local/pipx/venvs/*/pip.conf" "~/.local/share/pipx/venvs/*/pip.conf"
            "~/.asdf/installs/python/*/pip.conf" "~/.local/share/mise/installs/python/*/pip.conf"
            "~/.nvm/versions/node/*/etc/npmrc" "~/.volta/tools/image/node/*/etc/npmrc"
            "~/.fnm/node-versions/*/installation/etc/npmrc"
            "~/.local/share/fnm/node-versions/*/installation/etc/npmrc" "~/.asdf/installs/nodejs/*/etc/npmrc"
            "~/.local/share/mise/installs/node/*/etc/npmrc"
        ),
        project_programs: ProjectPrograms::Allowed,
    },
    WorkspacePreset {
        name: "python",
        programs: with_project_tools!(
            "python" "python3" "python3.10" "python3.11" "python3.12" "python3.13" "python3.14" "pip" "pip3" "pytest" "py.test" "uv" "uvx" "poetry" "pdm" "hatch" "tox" "nox"
            "ruff" "black" "isort" "mypy" "pyright" "flake8" "pylint" "bandit" "coverage" "pre-commit"
            "ipython" "pipx" "twine" "virtualenv" "jupyter"
        ),
        domains: with_source_domains!("pypi.org" "files.pythonhosted.org" "docs.python.org"),
        toolchain_folders: &[
            "~/.local/bin",
            "~/.pyenv",
            "~/.local/pipx",
            "~/.local/share/pipx",
            "~/.local/share/uv",
            "~/.asdf",
            "~/.local/share/mise",
        ],
        secret_patterns: with_common_secrets!(
            "~/.pypirc" "~/.config/pip/pip.conf" "~/.pip/pip.conf" "~/.config/pypoetry/auth.toml"
            "~/.local/share/uv/credentials"
            "~/.pyenv/versions/*/pip.conf" "~/.local/pipx/venvs/*/pip.conf" "~/.local/share/pipx/venvs/*/pip.conf"
            "~/.asdf/installs/python/*/pip.conf" "~/.local/share/mise/installs/python/*/pip.conf"
        ),
        project_programs: ProjectPrograms::Allowed,
    },
    WorkspacePreset {
        name: "rust",
        programs: with_project_tools!(
            "cargo" "rustc" "rustfmt" "rustup" "rustdoc" "clippy-driver" "cargo-clippy" "cargo-fmt"
            "cargo-nextest" "gcc" "g++" "cc" "c++" "clang" "clang++" "ld" "ar" "nm" "objdump" "readelf"
            "ldd" "size" "pkg-config" "cmake" "gdb" "just" "tokei"
        ),
        domains: with_source_domains!(
            "crates.io" "index.crates.io" "static.crates.io" "static.rust-lang.org" "doc.rust-lang.org"
            "docs.rs"
        ),
        toolchain_folders: &["~/.cargo/bin", "~/.rustup"],
        secret_patterns: with_common_secrets!("~/.cargo/credentials*"),
        project_programs: ProjectPrograms::Allowed,
    },
    WorkspacePreset {
        name: "node",
        programs: with_project_tools!(
            "node" "nodejs" "npm" "npx" "pnpm" "pnpx" "yarn" "yarnpkg" "corepack" "bun" "bunx" "deno" "tsc"
            "ts-node" "tsx" "eslint" "prettier" "jest" "vitest" "mocha" "vite" "webpack" "rollup" "esbuild"
            "next" "turbo" "nx" "playwright" "biome"
        ),
        domains: with_source_domains!(
            "registry.npmjs.org" "nodejs.org" "registry.yarnpkg.com" "developer.mozilla.org"
        ),
        toolchain_folders: &[
            "~/.nvm",
            "~/.volta",
            "~/.fnm",
            "~/.local/share/fnm",
            "~/.local/share/pnpm",
            "~/.bun/bin",
            "~/.deno/bin",
            "~/.npm-global",
            "~/.local/bin",
            "~/.asdf",
            "~/.local/share/mise",
        ],
        secret_patterns: with_common_secrets!(
            "~/.npmrc" "~/.nvm/.npmrc" "~/.npm-global/etc/npmrc" "~/.yarnrc*" "~/.config/pnpm/rc"
            "~/.nvm/versions/node/*/etc/npmrc" "~/.volta/tools/image/node/*/etc/npmrc"
            "~/.fnm/node-versions/*/installation/etc/npmrc"
            "~/.local/share/fnm/node-versions/*/installation/etc/npmrc" "~/.asdf/installs/nodejs/*/etc/npmrc"
            "~/.local/share/mise/installs/node/*/etc/npmrc"
        ),
        project_programs: ProjectPrograms::Allowed,
    },
    WorkspacePreset {
        name: "go",
        programs: with_project_tools!(
            "go" "gofmt" "golangci-lint" "goimports" "staticcheck" "gopls" "dlv" "gcc" "cc" "ld" "ar"
            "pkg-config" "protoc" "buf"
        ),
        domains: with_source_domains!("proxy.golang.org" "sum.golang.org" "go.dev" "pkg.go.dev"),
        toolchain_folders: &["~/go/bin", "~/sdk", "~/.asdf", "~/.local/share/mise"],
        secret_patterns: with_common_secrets!("~/.config/go/env"),
        project_programs: ProjectPrograms::Allowed,
    },
    WorkspacePreset {
        name: "writing",
        programs: &[
            "aspell",
            "base64",
            "bc",
            "cal",
            "column",
            "command",
            "df",
            "dos2unix",
            "egrep",
            "env",
            "expand",
            "fgrep",
            "fmt",
            "fold",
            "git",
            "gunzip",
            "gzip",
            "hunspell",
            "iconv",
            "id",
            "join",
            "less",
            "look",
            "lualatex",
            "man",
            "markdownlint",
            "mktemp",
            "more",
            "numfmt",
            "pandoc",
            "paste",
            "patch",
            "pdflatex",
            "pdftotext",
            "pr",
            "readlink",
            "rg",
            "rmdir",
            "shuf",
            "sleep",
            "split",
            "tar",
            "tee",
            "time",
            "timeout",
            "tsort",
            "type",
            "uname",
            "unexpand",
            "unix2dos",
            "unzip",
            "vale",
            "whoami",
            "xargs",
            "xelatex",
            "xmllint",
            "yq",
            "zcat",
            "zip",
        ],
        domains: &["en.wikipedia.org", "en.wiktionary.org"],
        toolchain_folders: &[],
        secret_patterns: with_common_secrets!(),
        project_programs: ProjectPrograms::Refused,
    },
];

#[cfg(test)]
mod tests {
    use super::{WORKSPACE_PRESETS, WorkspacePreset};
    use crate::{DEFAULT_FORBIDDEN_COMMANDS, DEFAULT_FORBIDDEN_PATHS};

    #[test]
    fn the_presets_are_those_of_the_command_line() {
        let names: Vec<_> = WORKSPACE_PRESETS.iter().map(|preset| preset.name).collect();
        assert_eq!(names, ["developer", "python", "rust", "node", "go", "writing"]);
        assert!(WorkspacePreset::find("rust").is_some() && WorkspacePreset::find("root").is_none());
    }

    #[test]
    fn the_developer_preset_covers_the_languages() {
        let developer = WorkspacePreset::find("developer").expect("a preset");
        for preset in WORKSPACE_PRESETS.iter().filter(|preset| preset.name != "writing") {
            for (all, some) in [
                (developer.programs, preset.programs),
                (developer.domains, preset.domains),
                (developer.toolchain_folders, preset.toolchain_folders),
                (developer.secret_patterns, preset.secret_patterns),
            ] {
                let missing: Vec<_> = some.iter().filter(|name| !all.contains(name)).collect();
                assert!(missing.is_empty(), "{}: {missing:?}", preset.name);
            }
        }
    }

    #[test]
    fn no_preset_allows_what_a_new_installation_forbids() {
        // Containers and their services are roots of the machine; a database client reaches other machines.
        const NEVER: &[&str] = &[
            "docker",
            "podman",
            "kubectl",
            "sudo",
            "doas",
            "su",
            "ssh",
            "scp",
            "psql",
            "mysql",
            "systemctl",
            "crontab",
            "at",
            "mount",
            "chroot",
            "nsenter",
        ];
        for preset in WORKSPACE_PRESETS {
            let forbidden = DEFAULT_FORBIDDEN_COMMANDS.iter().chain(NEVER);
            let listed: Vec<_> = forbidden.filter(|name| preset.programs.contains(name)).collect();
            assert!(listed.is_empty(), "{}: {listed:?}", preset.name);
            let shown =
                preset.toolchain_folders.iter().filter(|folder| DEFAULT_FORBIDDEN_PATHS.contains(folder));
            assert_eq!(shown.count(), 0, "{}", preset.name);
        }
    }

    #[test]
    fn no_list_names_anything_twice() {
        for preset in WORKSPACE_PRESETS {
            for list in [preset.programs, preset.domains, preset.toolchain_folders, preset.secret_patterns] {
                let mut sorted = list.to_vec();
                sorted.sort_unstable();
                sorted.dedup();
                assert_eq!(sorted.len(), list.len(), "{}", preset.name);
            }
        }
    }
}
