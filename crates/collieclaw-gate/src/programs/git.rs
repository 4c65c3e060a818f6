//! `git` and its subcommands.
//!
//! All subcommands count as modifying, because the settings of a repository can make any of them run a
//! command. The sandbox protects those settings. The facts say which flags run a command that the line itself
//! names, and which flags read or write a file, so that no flag leads out of the workspace.

use super::ExampleOutcome::{Blocked, Modifies, Unknown};
use super::{
    FlagEffect, FlagSpec, FlagSyntax, OperandRule, ProgramSpec, UnlistedFlags, WordMeaning, effect_flag,
    effect_value_flag, example, harmless_flag, input_flag, operand_flag, output_flag, text_flag,
};

const fn value_flag(names: &'static str, meaning: WordMeaning) -> FlagSpec {
    FlagSpec { names, effect: FlagEffect::Value(meaning) }
}

/// Flags of everything that prints commits or differences. `-O` names a file with the order of the files.
const PRINTED_TEXT: FlagSpec = text_flag(
    "-n --max-count --skip --grep --grep-reflog --author --committer --since --after --until --before --max-age --min-age --format --diff-filter -G -S -I --ignore-matching-lines --glob --exclude --decorate-refs --decorate-refs-exclude --word-diff-regex --src-prefix --dst-prefix --line-prefix --inter-hunk-context --anchored --diff-algorithm --ws-error-highlight --find-object -L -l -U --date --stat-width --stat-count --encoding --creation-factor --color-moved-ws --output-indicator-new --output-indicator-old --output-indicator-context",
);
const PRINTED_INPUT: FlagSpec = input_flag("-O");
const PRINTED_OUTPUT: FlagSpec = output_flag("--output");
const PRINTED_COMMAND: FlagSpec = effect_flag("--ext-diff --textconv", "possibly run a command");

const EDITOR: FlagSpec = effect_flag("-e --edit", "run an editor");
const PATHSPEC_FILE: FlagSpec = input_flag("--pathspec-from-file");
const MESSAGE: FlagSpec = text_flag("-m --message --trailer --cleanup");
const MESSAGE_FILE: FlagSpec = input_flag("-F --file");
const MERGE_TEXT: FlagSpec =
    text_flag("-s --strategy -X --strategy-option --onto --empty --whitespace --mainline --into-name");
const REMOTE_COMMAND: FlagSpec = effect_value_flag("--upload-pack --receive-pack --exec", "run a command");
const REMOTE_TEXT: FlagSpec = text_flag(
    "--depth --deepen --shallow-since --shallow-exclude --refmap -o --server-option --push-option -j --jobs --filter --negotiation-tip --origin -b --branch --ref-format",
);
const SETTINGS_EFFECT: &str =
    "change the settings of the repository, which the sandbox protects; do it by hand";

/// A subcommand whose operands are names of commits and paths.
const SUBCOMMAND: ProgramSpec = ProgramSpec::PROJECT_TOOL;
/// A subcommand that talks to another repository.
const REMOTE: ProgramSpec = ProgramSpec { operands: OperandRule::All(WordMeaning::Repository), ..SUBCOMMAND };

pub(super) const PROGRAMS: &[ProgramSpec] = &[ProgramSpec {
    names: "git",
    flags: &[
        value_flag("-C", WordMeaning::ChangedFolder),
        value_flag("--git-dir", WordMeaning::GitFolder),
        output_flag("--work-tree"),
        harmless_flag(
            "--no-pager -P -v --version -h --help --literal-pathspecs --no-literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --no-optional-locks --no-replace-objects --no-lazy-fetch --no-advice --bare --html-path --man-path --info-path",
        ),
        value_flag("-c", WordMeaning::GitSetting),
        effect_value_flag("--config-env --namespace --attr-source", "possibly run a command"),
        effect_flag("--exec-path -p --paginate", "possibly run a command"),
    ],
    unlisted_flags: UnlistedFlags::Suspect,
    operands: OperandRule::Subcommands(SUBCOMMANDS),
    flag_syntax: FlagSyntax::LeadingOnly,
    examples: &[
        example("git status --short", Modifies),
        example("git log --oneline -5", Modifies),
        example("git log --grep /etc/passwd", Modifies),
        example("git commit -m 'remove; rm -rf later'", Modifies),
        example("git commit -F /etc/passwd", Blocked),
        example("git commit --pathspec-from-file=/etc/passwd -m x", Blocked),
        example("git rm -r --cached src", Modifies),
        example("git mv a.txt .git/hooks/pre-commit", Blocked),
        example("git -c user.name=x -c core.pager=cat commit -m x", Modifies),
        example("git -c core.pager=./x log", Unknown),
        example("git -c alias.x='!id' status", Unknown),
        example("git -C src log", Modifies),
        example("git -C .. log", Blocked),
        example("git --git-dir=/etc log", Blocked),
        example("git diff --ext-diff", Unknown),
        example("git diff --no-index a.txt b.txt", Modifies),
        example("git diff --no-index a.txt /etc/passwd", Blocked),
        example("git log -- /etc", Blocked),
        example("git config core.fsmonitor ./x", Blocked),
        example("git config set core.hooksPath src", Blocked),
        example("git config user.name", Modifies),
        example("git config --get-regexp 'core.*' x", Modifies),
        example("git config user.email me@example.org", Modifies),
        example("git config rerere.unknown yes", Unknown),
        example("git init --template=src", Blocked),
        example("git clone https://example.org/x.git", Modifies),
        example("git clone ext::./x", Unknown),
        example("git clone https://example.org/x.git .git", Blocked),
        example("git fetch --upload-pack=./x origin", Unknown),
        example("git bisect run rm x", Blocked),
        example("git filter-branch", Unknown),
    ],
    ..ProgramSpec::MODIFYING
}];

const SUBCOMMANDS: &[ProgramSpec] = &[
    ProgramSpec {
        names: "log show whatchanged rev-list diff-tree diff-index diff-files range-diff shortlog reflog cherry show-branch",
        flags: &[PRINTED_TEXT, PRINTED_INPUT, PRINTED_OUTPUT, PRINTED_COMMAND, text_flag("--group")],
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "diff",
        flags: &[
            PRINTED_TEXT,
            PRINTED_INPUT,
            PRINTED_OUTPUT,
            PRINTED_COMMAND,
            FlagSpec { names: "--no-index", effect: FlagEffect::OperandsBecome(WordMeaning::ReadPath) },
        ],
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "status rev-parse describe ls-tree cat-file show-ref for-each-ref merge-base name-rev check-ignore check-attr check-ref-format var version help symbolic-ref update-ref update-index read-tree write-tree commit-tree verify-commit verify-tag verify-pack merge-tree rerere count-objects gc prune repack fsck maintenance pack-refs stripspace mktree get-tar-commit-id",
        flags: &[
            MESSAGE,
            MESSAGE_FILE,
            text_flag("--format --match --exclude --candidates --sort --points-at --prefix --path"),
            effect_flag("--textconv --filters", "possibly run a command"),
        ],
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "interpret-trailers",
        flags: &[
            text_flag("--where --if-exists --if-missing --trailer"),
            FlagSpec { names: "--in-place", effect: FlagEffect::EditsInPlace },
        ],
        operands: OperandRule::All(WordMeaning::ReadPath),
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "blame annotate",
        flags: &[
            input_flag("--contents --ignore-revs-file -S"),
            text_flag("-L --ignore-rev --date"),
            effect_flag("--textconv", "possibly run a command"),
        ],
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "ls-files",
        flags: &[
            input_flag("-X --exclude-from"),
            text_flag("-x --exclude --exclude-per-directory --with-tree --format"),
        ],
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "grep",
        flags: &[
            operand_flag("-e", WordMeaning::Text),
            operand_flag("-f", WordMeaning::ReadPath),
            text_flag(
                "-A --after-context -B --before-context -C --context -m --max-count --max-depth --threads",
            ),
            effect_flag("-O --open-files-in-pager --ext-grep --textconv", "possibly run a command"),
            effect_flag("--no-index", "read files outside of the repository"),
        ],
        operands: OperandRule::FirstThenRest(WordMeaning::Text, WordMeaning::PossiblePath),
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "tag",
        flags: &[
            MESSAGE,
            MESSAGE_FILE,
            text_flag("-u --local-user --sort --format --points-at --contains --no-contains"),
            EDITOR,
        ],
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "branch",
        flags: &[
            text_flag("--sort --format --points-at --contains --no-contains"),
            effect_flag("--edit-description", "run an editor"),
            effect_value_flag("-u --set-upstream-to", SETTINGS_EFFECT),
            effect_flag("--unset-upstream", SETTINGS_EFFECT),
        ],
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "add restore checkout switch reset stash stage",
        flags: &[
            PATHSPEC_FILE,
            PRINTED_OUTPUT,
            MESSAGE,
            EDITOR,
            text_flag("--chmod --conflict --orphan"),
            harmless_flag("-p --patch -i --interactive"),
        ],
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "mv",
        operands: OperandRule::SourcesThenTarget(WordMeaning::MovedPath),
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "rm clean",
        flags: &[PATHSPEC_FILE],
        operands: OperandRule::All(WordMeaning::MovedPath),
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "commit",
        flags: &[
            MESSAGE,
            MESSAGE_FILE,
            PATHSPEC_FILE,
            text_flag("--author --date -C --reuse-message --fixup --squash"),
            input_flag("-t --template"),
            effect_flag("-c --reedit-message", "run an editor"),
            EDITOR,
        ],
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "merge cherry-pick revert",
        flags: &[MESSAGE, MESSAGE_FILE, MERGE_TEXT, EDITOR],
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "rebase",
        flags: &[
            MERGE_TEXT,
            effect_flag("--edit-todo", "run an editor"),
            // Without a variable that names an editor, `git` finds none in the sandbox.
            harmless_flag("-i --interactive"),
            value_flag("-x --exec", WordMeaning::ShellLine),
        ],
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "apply am",
        flags: &[
            output_flag("--directory --build-fake-ancestor"),
            text_flag(
                "-p -C --exclude --include --whitespace --patch-format --quoted-cr --resolvemsg --empty",
            ),
            effect_flag("--unsafe-paths", "write outside of the repository"),
        ],
        operands: OperandRule::All(WordMeaning::ReadPath),
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "format-patch",
        flags: &[
            PRINTED_TEXT,
            PRINTED_INPUT,
            PRINTED_OUTPUT,
            PRINTED_COMMAND,
            output_flag("-o --output-directory"),
            input_flag("--signature-file --description-file"),
            text_flag(
                "-v --subject-prefix --suffix --start-number --reroll-count --to --cc --add-header --in-reply-to --signature",
            ),
        ],
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "archive",
        flags: &[
            output_flag("-o --output"),
            input_flag("--add-file"),
            text_flag("--format --prefix --add-virtual-file --mtime"),
            effect_value_flag("--remote --exec", "connect to another machine or run a command"),
        ],
        ..SUBCOMMAND
    },
    ProgramSpec { names: "bundle", operands: OperandRule::Subcommands(BUNDLE), ..SUBCOMMAND },
    ProgramSpec {
        names: "hash-object",
        flags: &[
            text_flag("-t --path"),
            effect_flag("--stdin-paths", "use the files named in a list that the gate hasn't checked"),
        ],
        operands: OperandRule::All(WordMeaning::ReadPath),
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "notes",
        flags: &[MESSAGE, MESSAGE_FILE, EDITOR, text_flag("-C -c --ref")],
        ..SUBCOMMAND
    },
    ProgramSpec { names: "bisect", operands: OperandRule::Subcommands(BISECT), ..SUBCOMMAND },
    ProgramSpec {
        names: "config",
        flags: &[
            FlagSpec {
                names: "--get --get-all --get-regexp --get-urlmatch -l --list --get-color --get-colorbool",
                effect: FlagEffect::OperandsBecome(WordMeaning::Text),
            },
            output_flag("-f --file"),
            text_flag("--type --default --comment --value --url --blob"),
            effect_flag("--unset --unset-all --remove-section --rename-section -e --edit", SETTINGS_EFFECT),
        ],
        operands: OperandRule::SettingAndValue,
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "init",
        flags: &[
            value_flag("--template", WordMeaning::SteeringPath),
            output_flag("--separate-git-dir"),
            text_flag("-b --initial-branch --object-format --ref-format --shared"),
        ],
        operands: OperandRule::All(WordMeaning::WrittenPath),
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "clone",
        flags: &[
            value_flag("--template", WordMeaning::SteeringPath),
            value_flag("-c --config", WordMeaning::LastingGitSetting),
            output_flag("--separate-git-dir"),
            value_flag("--reference --reference-if-able --bundle-uri", WordMeaning::Repository),
            effect_value_flag("-u", "run a command"),
            REMOTE_COMMAND,
            REMOTE_TEXT,
        ],
        operands: OperandRule::FirstThenRest(WordMeaning::Repository, WordMeaning::WrittenPath),
        ..REMOTE
    },
    ProgramSpec {
        names: "fetch pull push ls-remote",
        flags: &[
            REMOTE_COMMAND,
            REMOTE_TEXT,
            MERGE_TEXT,
            EDITOR,
            value_flag("--repo", WordMeaning::Repository),
        ],
        ..REMOTE
    },
    ProgramSpec { names: "remote", operands: OperandRule::Subcommands(REMOTES), ..SUBCOMMAND },
    ProgramSpec { names: "submodule", operands: OperandRule::Subcommands(SUBMODULE), ..SUBCOMMAND },
    ProgramSpec { names: "worktree", flags: &[text_flag("-b -B --reason --expire")], ..SUBCOMMAND },
];

const BUNDLE: &[ProgramSpec] = &[
    ProgramSpec {
        names: "create",
        operands: OperandRule::FirstThenRest(WordMeaning::WrittenPath, WordMeaning::PossiblePath),
        ..SUBCOMMAND
    },
    ProgramSpec {
        names: "verify list-heads unbundle",
        operands: OperandRule::FirstThenRest(WordMeaning::ReadPath, WordMeaning::PossiblePath),
        ..SUBCOMMAND
    },
];

const BISECT: &[ProgramSpec] = &[
    ProgramSpec { names: "run", ..ProgramSpec::WRAPPER },
    ProgramSpec { names: "replay", operands: OperandRule::All(WordMeaning::ReadPath), ..SUBCOMMAND },
    ProgramSpec { names: "start bad good new old terms skip reset log next", ..SUBCOMMAND },
];

/// Other subcommands of `git remote` change the settings of the repository.
const REMOTES: &[ProgramSpec] = &[ProgramSpec { names: "show get-url update prune set-head", ..SUBCOMMAND }];

const SUBMODULE: &[ProgramSpec] = &[
    ProgramSpec { names: "status summary", ..SUBCOMMAND },
    ProgramSpec {
        names: "foreach",
        flags: &[harmless_flag("--recursive -q --quiet")],
        operands: OperandRule::FirstThenRest(WordMeaning::ShellLine, WordMeaning::Text),
        ..SUBCOMMAND
    },
];
