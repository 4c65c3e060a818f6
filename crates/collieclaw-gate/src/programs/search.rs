//! Programs that search and compare.

use super::ExampleOutcome::{Blocked, Modifies, ReadOnly, Unknown};
use super::{
    FlagEffect, FlagSpec, FlagSyntax, OperandRule, ProgramSpec, UnlistedFlags, WordMeaning, effect_flag,
    example, harmless_flag, input_flag, joined_flag, operand_flag, text_flag, write_file_flag,
};

/// Describes a flag that runs a command on the found files, in other folders or after a question.
const fn exec_effect_flag(names: &'static str, effect: &'static str) -> FlagSpec {
    FlagSpec { names, effect: FlagEffect::SideEffectUntilEnd(effect) }
}

pub(super) const PROGRAMS: &[ProgramSpec] = &[
    ProgramSpec {
        names: "grep egrep fgrep",
        flags: &[
            operand_flag("-e --regexp", WordMeaning::Text),
            operand_flag("-f --file", WordMeaning::ReadPath),
            text_flag(
                "-A --after-context -B --before-context -C --context -m --max-count -d --directories -D --devices --label --include --exclude --exclude-dir --binary-files --group-separator -X",
            ),
            joined_flag("--color --colour"),
            // Links on the way lead out only to files of the system: the sandbox shows no others.
            harmless_flag("-R --dereference-recursive"),
            input_flag("--exclude-from"),
        ],
        operands: OperandRule::FirstThenRest(WordMeaning::Text, WordMeaning::ReadPath),
        examples: &[
            example("grep -rn 'rm -rf' src", ReadOnly),
            example("grep -e x -f pats.txt README.md", ReadOnly),
            example("grep root /etc/passwd", Blocked),
            example("grep -f /etc/passwd README.md", Blocked),
            example("grep -R x .", ReadOnly),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "rg",
        flags: &[
            operand_flag("-e --regexp", WordMeaning::Text),
            operand_flag("-f --file", WordMeaning::ReadPath),
            text_flag(
                "-A --after-context -B --before-context -C --context -m --max-count -g --glob --iglob -t --type -T --type-not -r --replace -j --threads -M --max-columns -d --max-depth --sort --sortr --colors --color -E --encoding --context-separator",
            ),
            text_flag(
                "--type-add --type-clear --max-filesize --path-separator --engine --field-match-separator --field-context-separator --dfa-size-limit --regex-size-limit --stop-on-nonmatch --hyperlink-format --max-depth",
            ),
            input_flag("--ignore-file"),
            harmless_flag("-L --follow"),
            effect_flag("--pre --pre-glob --hostname-bin -z --search-zip", "run a command"),
            // With `--files`, the first operand is a path, too.
            FlagSpec { names: "--files", effect: FlagEffect::OperandsBecome(WordMeaning::ReadPath) },
        ],
        operands: OperandRule::FirstThenRest(WordMeaning::Text, WordMeaning::ReadPath),
        examples: &[
            example("rg -n todo src", ReadOnly),
            example("rg /etc/passwd src", ReadOnly),
            example("rg -e x /etc/passwd", Blocked),
            example("rg --files /etc", Blocked),
            example("rg --pre ./x todo", Unknown),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "find",
        flags: &[
            text_flag(
                "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime -mmin -atime -amin -ctime -cmin -perm -user -group -uid -gid -links -inum -maxdepth -mindepth -printf -newermt -newerat -newerct -lname -ilname -fstype -used -context",
            ),
            input_flag("-newer -anewer -cnewer -samefile"),
            harmless_flag(
                "-print -print0 -ls -prune -quit -true -false -empty -not -o -or -a -and -readable -writable -executable -nouser -nogroup -depth -d -mount -xdev -daystart -noleaf -warn -nowarn -ignore_readdir_race -noignore_readdir_race -P",
            ),
            harmless_flag("-H -L -follow"),
            FlagSpec { names: "-delete", effect: FlagEffect::OperandsBecome(WordMeaning::WrittenPath) },
            write_file_flag("-fprint -fprint0 -fprintf -fls"),
            effect_flag("-files0-from", "read the names of its folders from a file"),
            FlagSpec { names: "-exec", effect: FlagEffect::CommandUntilEnd },
            exec_effect_flag(
                "-execdir -okdir",
                "run a command in folders that are known only when it runs; use `-exec`",
            ),
            exec_effect_flag("-ok", "ask before it runs a command; use `-exec`"),
        ],
        unlisted_flags: UnlistedFlags::Suspect,
        flag_syntax: FlagSyntax::WholeWords,
        examples: &[
            example("find . -name '*.rs' -type f", ReadOnly),
            example("find . -name '*.rs' -exec grep -n todo {} +", ReadOnly),
            example("find src -exec rm {} ';'", Blocked),
            example("find . -exec uniq a.txt + ';'", Modifies),
            example("find . -execdir cat {} +", Unknown),
            example("find -L . -name x", ReadOnly),
            example("find . -delete", Unknown),
            example("find . -name '*.pyc' -delete", Modifies),
            example("find /etc -name x -delete", Blocked),
            example("find / -name x", Blocked),
            example("find . -fprint out", Unknown),
            example("find . -fprint /etc/x", Blocked),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "diff",
        flags: &[
            text_flag(
                "-U -C -D --ifdef -F --show-function-line --line-format --old-line-format --new-line-format --unchanged-line-format --old-group-format --new-group-format --unchanged-group-format --changed-group-format --GTYPE-group-format --LTYPE-line-format --horizon-lines --palette -S --starting-file -I --ignore-matching-lines -L --label -W --width -x --exclude --tabsize",
            ),
            input_flag("-X --exclude-from --from-file --to-file"),
            joined_flag("--color --unified --context"),
            effect_flag("-l --paginate", "run a command"),
        ],
        examples: &[
            example("diff -u a.txt b.txt", ReadOnly),
            example("diff --unified a.txt /etc/passwd", Blocked),
            example("diff --unchanged-line-format '' --old-line-format '' a.txt b.txt", ReadOnly),
            example("diff -l a.txt b.txt", Unknown),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "cmp",
        flags: &[text_flag("-i --ignore-initial -n --bytes")],
        operands: OperandRule::All(WordMeaning::ReadPath),
        examples: &[example("cmp a.txt b.txt", ReadOnly), example("cmp -l a.txt /etc/passwd", Blocked)],
        ..ProgramSpec::READ_ONLY
    },
];
