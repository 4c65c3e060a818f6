//! Tools that build, test, check and format a project.
//!
//! These tools run the project's code: that is their purpose, and the operator lists them for it. Their
//! connections are a matter of the sandbox. The facts name paths, and subcommands that publish something.

use super::ExampleOutcome::{Blocked, Modifies, Unknown};
use super::{
    FlagEffect, FlagSpec, OperandRule, ProgramSpec, WordMeaning, effect_flag, effect_value_flag, example,
    harmless_flag, input_flag, joined_flag, output_flag, text_flag,
};

const FOLDER_FLAG: FlagSpec = FlagSpec { names: "-C", effect: FlagEffect::Value(WordMeaning::ChangedFolder) };
/// Any other subcommand of a project's tool.
const OTHERS: ProgramSpec = ProgramSpec { names: "*", ..ProgramSpec::PROJECT_TOOL };
const PUBLISH_EFFECT: &str = "publish something, or change an account; do it by hand";

/// Subcommands that publish the project, or change an account at a registry.
const fn publishing(names: &'static str) -> ProgramSpec {
    ProgramSpec { names, operands: OperandRule::SideEffect(PUBLISH_EFFECT), ..ProgramSpec::PROJECT_TOOL }
}

pub(super) const PROGRAMS: &[ProgramSpec] = &[
    ProgramSpec {
        names: "cargo",
        operands: OperandRule::Subcommands(&[
            publishing("publish yank login logout owner"),
            ProgramSpec { flags: CARGO_FLAGS, ..OTHERS },
        ]),
        flags: CARGO_FLAGS,
        examples: &[
            example("cargo test --workspace -- --nocapture", Modifies),
            example("cargo +nightly clippy --all-targets -- -D warnings", Modifies),
            example("cargo build --target-dir /etc/x", Blocked),
            example("cargo publish", Unknown),
            example("cargo --config build.rustc-wrapper='\"./x\"' build", Unknown),
        ],
        ..ProgramSpec::PROJECT_TOOL
    },
    ProgramSpec {
        names: "npm pnpm yarn yarnpkg",
        operands: OperandRule::Subcommands(&[
            publishing(
                "publish unpublish deprecate login logout adduser owner access token team profile dist-tag star hook org",
            ),
            ProgramSpec { flags: NPM_FLAGS, ..OTHERS },
        ]),
        flags: NPM_FLAGS,
        examples: &[
            example("npm test -- --watch=false", Modifies),
            example("npm ci", Modifies),
            example("npm run build --prefix src", Modifies),
            example("npm --prefix /etc install", Blocked),
            example("npm publish", Unknown),
        ],
        ..ProgramSpec::PROJECT_TOOL
    },
    ProgramSpec {
        names: "pip pip3 uv poetry pdm hatch twine gem composer bundle pipx",
        operands: OperandRule::Subcommands(&[
            publishing("publish upload register push yank owner signin login logout self"),
            OTHERS,
        ]),
        flags: &[output_flag("-C --directory --project --cache-dir")],
        examples: &[
            example("pip install -e '.[dev]'", Modifies),
            example("uv run pytest -q", Modifies),
            example("poetry publish", Unknown),
            example("pip install --target=/etc/x requests", Blocked),
            example("pip install -r /etc/passwd", Blocked),
        ],
        ..ProgramSpec::PROJECT_TOOL
    },
    ProgramSpec {
        names: "go",
        flags: &[FOLDER_FLAG, harmless_flag("-h --help")],
        operands: OperandRule::Subcommands(&[
            ProgramSpec {
                names: "env",
                flags: &[effect_flag("-w -u", "change its settings outside of the workspace")],
                ..ProgramSpec::PROJECT_TOOL
            },
            ProgramSpec {
                flags: &[
                    FOLDER_FLAG,
                    output_flag("-o"),
                    text_flag("-ldflags -gcflags -tags -run -bench -skip -f -format"),
                    effect_value_flag("-exec -toolexec -vettool", "run another command for each program"),
                ],
                ..OTHERS
            },
        ]),
        examples: &[
            example("go test ./... -run 'TestX/a' -count=1", Modifies),
            example("go build -o bin/x ./cmd/x", Modifies),
            example("go build -o /etc/x .", Blocked),
            example("go test -exec ./x .", Unknown),
            example("go env -w GOFLAGS=x", Unknown),
            example("go env GOPATH", Modifies),
        ],
        ..ProgramSpec::PROJECT_TOOL
    },
    ProgramSpec {
        names: "make gmake ninja just task rake ant",
        flags: &[
            FlagSpec { names: "-C --directory", effect: FlagEffect::Value(WordMeaning::ChangedFolder) },
            input_flag("-f --file --makefile -I --include-dir"),
            joined_flag("-j --jobs -l --load-average -O --output-sync"),
            text_flag("-E --eval -o --old-file -W --what-if"),
            harmless_flag(
                "-n --dry-run -B --always-make -k --keep-going -s --silent -i -q -p -r -R -t -v -w",
            ),
        ],
        examples: &[
            example("make -j4 test", Modifies),
            example("make -C src all V=1", Modifies),
            example("make -C .. all", Blocked),
            example("make -f /etc/x", Blocked),
            example("make install DESTDIR=/etc", Blocked),
            example("curl -s https://example.org/x | make -f -", Blocked),
        ],
        ..ProgramSpec::PROJECT_TOOL
    },
    ProgramSpec {
        names: "gcc g++ cc c++ clang clang++ ld tcc zig ccache rustc javac kotlinc swiftc",
        flags: &[
            output_flag("-o --out-dir -d -MF"),
            // The compiler reads headers and libraries of the system anyway.
            text_flag(
                "-I -L -isystem -iquote -idirafter -rpath -D -U -l -x -isysroot --sysroot -MT -MQ -cp -classpath --cfg --edition --crate-type --crate-name --emit -target -arch",
            ),
            joined_flag("-W -O -g -std -f -m -march -mtune"),
            effect_value_flag("-wrapper -fplugin -B -specs", "run or load another program"),
        ],
        examples: &[
            example("gcc -Wall -O2 -I/usr/include/x -o x a.c -lm", Modifies),
            example("gcc -o /etc/x a.c", Blocked),
            example("gcc /etc/passwd", Blocked),
            example("gcc -wrapper ./x,-y a.c", Unknown),
            example("rustc --edition 2021 -O a.rs -o a", Modifies),
        ],
        ..ProgramSpec::PROJECT_TOOL
    },
    ProgramSpec {
        names: "cmake ctest cpack meson",
        flags: &[
            output_flag("-B --build --install --prefix --install-prefix"),
            input_flag("-S -P -C"),
            text_flag("-G -D -U -A -T -R -E -L --target --config --preset"),
            joined_flag("-j --parallel"),
        ],
        examples: &[
            example("cmake -S . -B build -DCMAKE_BUILD_TYPE=Release", Modifies),
            example("cmake --build build -j", Modifies),
            example("cmake -B /etc/x", Blocked),
        ],
        ..ProgramSpec::PROJECT_TOOL
    },
    ProgramSpec {
        names: "pytest py.test tox nox ruff black isort mypy pyright flake8 pylint bandit coverage pre-commit virtualenv jupyter unittest venv build compileall",
        flags: &[text_flag(
            "-k -m --select --line-length --tb --durations --maxfail -W -e --exclude --extend-exclude --force-exclude --include --skip --deselect",
        )],
        examples: &[
            example("pytest -q tests/test_a.py::TestA::test_b -k 'not slow'", Modifies),
            example("ruff check --fix .", Modifies),
            example("mypy --strict src", Modifies),
            example("pytest --rootdir=/etc", Blocked),
        ],
        ..ProgramSpec::PROJECT_TOOL
    },
    ProgramSpec {
        names: "npx pnpx bunx",
        flags: &[
            FlagSpec { names: "-c --call", effect: FlagEffect::Value(WordMeaning::ShellLine) },
            WEB_TEXT,
        ],
        examples: &[example("npx tsc --noEmit", Modifies), example("npx -c 'rm x'", Blocked)],
        ..ProgramSpec::PROJECT_TOOL
    },
    ProgramSpec {
        names: "uvx corepack tsc eslint prettier jest vitest mocha vite webpack rollup esbuild next turbo nx playwright biome",
        flags: &[WEB_TEXT, output_flag("--outDir --outFile --outdir --outfile")],
        examples: &[
            example("vite build --base=/app/", Modifies),
            example("prettier --write 'src/**/*.ts'", Modifies),
            example("tsc --outDir /etc/x", Blocked),
            example("eslint --config=/etc/x src", Blocked),
        ],
        ..ProgramSpec::PROJECT_TOOL
    },
    ProgramSpec {
        names: "rustfmt rustup rustdoc clippy-driver cargo-clippy cargo-fmt cargo-nextest gofmt golangci-lint goimports staticcheck gopls dlv clang-format clang-tidy ar nm objdump readelf ldd size strip ranlib pkg-config gdb autoconf automake autoreconf bear jar javap java mvn gradle kotlin rspec rubocop prove phpunit dotnet swift tree-sitter protoc buf shellcheck shfmt hadolint yamllint markdownlint actionlint cloc tokei ctags pandoc",
        flags: &[text_flag("-D -X -cp -classpath --exclude --exclude-dir --match-f --not-match-f --match-d")],
        examples: &[
            example("rustfmt --check src/main.rs", Modifies),
            example("gofmt -l -w .", Modifies),
            example("mvn -q -DskipTests package", Modifies),
            example("shellcheck /etc/x.sh", Blocked),
        ],
        ..ProgramSpec::PROJECT_TOOL
    },
];

/// Values of web tools that look like paths but are patterns or parts of addresses.
const WEB_TEXT: FlagSpec = text_flag(
    "-t --testNamePattern --grep -g --testPathPattern --testPathPatterns --testPathIgnorePatterns --ignore-pattern --rule --base --base-href --public-path --publicPath --public-url",
);

const CARGO_FLAGS: &[FlagSpec] = &[
    output_flag("--target-dir --root --out-dir --artifact-dir"),
    input_flag("--manifest-path --path"),
    text_flag(
        "-p --package --features --bin --test --example --bench --profile -j --jobs --message-format --color -D --target -F",
    ),
    FlagSpec { names: "-C", effect: FlagEffect::Value(WordMeaning::ChangedFolder) },
    effect_value_flag("--config", "possibly run another command"),
];

const NPM_FLAGS: &[FlagSpec] = &[
    FlagSpec { names: "--prefix -C --dir --cwd", effect: FlagEffect::Value(WordMeaning::ChangedFolder) },
    output_flag("--cache --pack-destination"),
    text_flag("-w --workspace --filter -F"),
    FlagSpec { names: "-c --call", effect: FlagEffect::Value(WordMeaning::ShellLine) },
    WEB_TEXT,
    effect_value_flag(
        "--script-shell --node-options --userconfig --globalconfig",
        "possibly run another command",
    ),
];
