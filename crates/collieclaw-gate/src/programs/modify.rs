//! Programs that change files.

use super::ExampleOutcome::{Blocked, Modifies, ReadOnly, Unknown};
use super::{
    FlagEffect, FlagSpec, FlagSyntax, OperandRule, ProgramKind, ProgramSpec, WordMeaning, effect_flag,
    effect_value_flag, example, input_flag, joined_flag, operand_flag, output_flag, text_flag,
};

/// The flag that gives existing files another name, which the gate doesn't check.
const BACKUP_SUFFIX_FLAG: FlagSpec = effect_value_flag("-S --suffix", "keep the old file under another name");
const TARGET_FOLDER_FLAG: FlagSpec = operand_flag("-t --target-directory", WordMeaning::WrittenPath);

pub(super) const PROGRAMS: &[ProgramSpec] = &[
    ProgramSpec {
        names: "touch",
        flags: &[text_flag("-d --date -t --time"), input_flag("-r --reference")],
        examples: &[
            example("touch -m a.txt", Modifies),
            example("touch /etc/x", Blocked),
            example("touch -m /etc/x", Blocked),
            example("touch /tmp/x", Unknown),
            example("touch .git/hooks/pre-commit", Blocked),
        ],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "mkdir",
        flags: &[text_flag("-m --mode"), joined_flag("--context")],
        examples: &[example("mkdir -p a/b", Modifies), example("mkdir -m 700 /etc/x", Blocked)],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "rmdir",
        operands: OperandRule::All(WordMeaning::MovedPath),
        examples: &[example("rmdir -p a/b", Modifies), example("rmdir /etc", Blocked)],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "install",
        flags: &[
            TARGET_FOLDER_FLAG,
            BACKUP_SUFFIX_FLAG,
            text_flag("-m --mode -o --owner -g --group"),
            joined_flag("--backup --context"),
            effect_flag("-d --directory", "create a folder for every argument"),
            effect_flag("--strip-program", "run a command"),
        ],
        operands: OperandRule::SourcesThenTarget(WordMeaning::ReadPath),
        examples: &[
            example("install -m 644 a.txt b.txt", Modifies),
            example("install -d x", Unknown),
            example("install a.txt /etc", Blocked),
        ],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "cp",
        flags: &[
            TARGET_FOLDER_FLAG,
            BACKUP_SUFFIX_FLAG,
            text_flag("--sparse --no-preserve"),
            joined_flag("--backup --reflink --preserve --context"),
            effect_flag("-L --dereference -H", "follow links"),
            effect_flag("-s --symbolic-link -l --link", "create links"),
            effect_flag("--parents", "create the parent folders, too"),
        ],
        operands: OperandRule::SourcesThenTarget(WordMeaning::ReadPath),
        examples: &[
            example("cp a.txt b.txt", Modifies),
            example("cp -r src copy", Modifies),
            example("cp -d a.txt b.txt", Modifies),
            example("cp -s .git/config x", Unknown),
            example("cp -l a.txt x", Unknown),
            example("cp /etc/passwd .", Blocked),
            example("cp a.txt /etc", Blocked),
            example("cp -t /etc a.txt", Blocked),
            example("cp --preserve /etc/passwd x", Blocked),
            example("cp a.txt .git/hooks/pre-commit", Blocked),
            example("cp -r src/.git .", Blocked),
            example("cp -b -S it a.txt .g", Unknown),
        ],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "mv",
        flags: &[TARGET_FOLDER_FLAG, BACKUP_SUFFIX_FLAG, joined_flag("--backup --context")],
        operands: OperandRule::SourcesThenTarget(WordMeaning::MovedPath),
        examples: &[
            example("mv a.txt b.txt", Modifies),
            example("mv a.txt ../b.txt", Blocked),
            example("mv -t .. a.txt", Blocked),
        ],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "ln",
        flags: &[
            FlagSpec { names: "-s --symbolic", effect: FlagEffect::LinksSymbolically },
            effect_flag("-L --logical -P --physical", "create a hard link"),
            TARGET_FOLDER_FLAG,
            BACKUP_SUFFIX_FLAG,
            joined_flag("--backup"),
        ],
        operands: OperandRule::SourcesThenTarget(WordMeaning::WrittenPath),
        examples: &[
            example("ln -s /etc/passwd x", Blocked),
            example("ln -s src x", Modifies),
            example("ln -sfn ../a.txt src/x", Modifies),
            example("ln -s ../../etc/passwd src/x", Blocked),
            example("ln -s .git/hooks x", Blocked),
        ],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "tee truncate",
        flags: &[text_flag("-s --size"), input_flag("-r --reference"), joined_flag("--output-error")],
        examples: &[example("tee out.txt", Modifies), example("tee /etc/x", Blocked)],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "chmod",
        flags: &[input_flag("--reference")],
        operands: OperandRule::All(WordMeaning::FileMode),
        examples: &[
            example("chmod 644 a.txt", Modifies),
            example("chmod +x a.txt", Modifies),
            example("chmod -R a+rX .", Modifies),
            example("chmod -x /etc/passwd", Blocked),
            example("chmod u+s a.txt", Unknown),
            example("chmod 4755 a.txt", Unknown),
            example("chmod -R 777 /", Blocked),
            example("chmod +x .git/hooks/pre-commit", Blocked),
        ],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "chown chgrp",
        flags: &[input_flag("--reference"), text_flag("--from")],
        operands: OperandRule::FirstThenRest(WordMeaning::Text, WordMeaning::WrittenPath),
        examples: &[example("chown kid a.txt", Modifies), example("chown -R kid .", Blocked)],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "rm unlink shred",
        operands: OperandRule::All(WordMeaning::MovedPath),
        examples: &[example("rm a.txt", Blocked)],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "dd",
        operands: OperandRule::All(WordMeaning::WrittenPath),
        flag_syntax: FlagSyntax::Assignments,
        flags: &[
            input_flag("if"),
            output_flag("of"),
            text_flag("bs count skip seek conv status ibs obs iflag oflag"),
        ],
        examples: &[example("dd if=/dev/zero of=x", Blocked)],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "sleep",
        kind: ProgramKind::ReadOnly,
        operands: OperandRule::All(WordMeaning::Text),
        examples: &[example("sleep 1", ReadOnly)],
        ..ProgramSpec::MODIFYING
    },
];
