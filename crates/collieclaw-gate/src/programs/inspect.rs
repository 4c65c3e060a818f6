//! Programs that print information about files and the machine.

use super::ExampleOutcome::{Blocked, Modifies, ReadOnly, Unknown};
use super::{
    FlagSyntax, OperandRule, ProgramSpec, UnlistedFlags, WordMeaning, effect_flag, effect_value_flag,
    example, file_list_flag, harmless_flag, input_flag, joined_flag, output_flag, text_flag,
};

const TEXT: OperandRule = OperandRule::All(WordMeaning::Text);

pub(super) const PROGRAMS: &[ProgramSpec] = &[
    ProgramSpec {
        names: "echo printf true false dirname yes expr whoami id uname arch nproc tty groups logname",
        operands: TEXT,
        examples: &[example("echo /etc/passwd", ReadOnly), example("printf '%s\\n' a b", ReadOnly)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "pwd",
        operands: TEXT,
        examples: &[example("pwd -P", ReadOnly)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "date",
        operands: OperandRule::All(WordMeaning::DateFormat),
        flags: &[
            text_flag("-d --date"),
            input_flag("-r --reference -f --file"),
            joined_flag("-I --iso-8601"),
            text_flag("--rfc-3339"),
            effect_value_flag("-s --set", "set the clock"),
        ],
        examples: &[
            example("date -u +%F", ReadOnly),
            example("date -s 2020-01-01", Unknown),
            example("date 010100002020", Unknown),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "ls dir vdir",
        flags: &[
            text_flag(
                "-I --ignore --hide -w --width -T --tabsize --block-size --format --sort --time --time-style --quoting-style --indicator-style",
            ),
            joined_flag("--color --hyperlink --classify"),
        ],
        examples: &[
            example("ls -la src", ReadOnly),
            example("ls /etc", Blocked),
            example("ls ..", Blocked),
            example("ls -w /etc src", ReadOnly),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "od",
        flags: &[
            text_flag("-A --address-radix -j --skip-bytes -N --read-bytes -S -t --format --endian"),
            joined_flag("--strings -w --width"),
        ],
        examples: &[
            example("od -c README.md", ReadOnly),
            example("od -A x -c /etc/passwd", Blocked),
            example("od -w /etc/passwd", Blocked),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "hexdump",
        flags: &[text_flag("-e --format -n --length -s --skip"), input_flag("-f --format-file")],
        examples: &[example("hexdump -C README.md", ReadOnly)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "strings",
        flags: &[text_flag(
            "-n --bytes -t --radix -e --encoding -T --target -s --output-separator -U --unicode",
        )],
        examples: &[example("strings -n 8 README.md", ReadOnly), example("strings -a /etc/passwd", Blocked)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "stat",
        flags: &[text_flag("-c --format --printf --cached")],
        examples: &[example("stat -c %s README.md", ReadOnly), example("stat -L /etc/passwd", Blocked)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "readlink realpath",
        flags: &[input_flag("--relative-to --relative-base")],
        examples: &[example("realpath src", ReadOnly)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "file",
        flags: &[
            text_flag("-e --exclude -F --separator -P --parameter"),
            file_list_flag("-f --files-from"),
            // The value is a list of files separated by colons.
            file_list_flag("-m --magic-file"),
            effect_flag("-C --compile", "write a file"),
            effect_flag("-z --uncompress -Z --uncompress-noreport", "run a command"),
        ],
        examples: &[
            example("file -b README.md", ReadOnly),
            example("file -f /etc/passwd", Blocked),
            example("file -m /etc/passwd a.txt", Blocked),
            example("file -z README.md", Unknown),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "du",
        flags: &[
            text_flag("-B --block-size -d --max-depth -t --threshold --exclude"),
            joined_flag("--time"),
            text_flag("--time-style"),
            input_flag("-X --exclude-from"),
            file_list_flag("--files0-from"),
        ],
        examples: &[example("du -sh src", ReadOnly), example("du -X /etc/passwd src", Blocked)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "test [",
        flags: &[input_flag("-b -c -d -e -f -g -G -h -k -L -N -O -p -r -s -S -u -w -x -nt -ot -ef")],
        // Operators such as `-nt` have a path on either side.
        operands: OperandRule::All(WordMeaning::PossiblePath),
        flag_syntax: FlagSyntax::WholeWords,
        examples: &[
            example("test -f README.md", ReadOnly),
            example("[ -d src ]", ReadOnly),
            example("[ -z '' ]", ReadOnly),
            example("[ ! -e /etc/passwd ]", Blocked),
            example("test /etc/passwd -nt README.md", Blocked),
            example("test -f -ot /etc/passwd", Blocked),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "tree",
        flags: &[
            text_flag("-L -P -I -H -T --filelimit --charset --timefmt --sort"),
            output_flag("-o"),
            input_flag("--fromfile --gitfile --infofile --hintro --houtro"),
            effect_flag("-R", "possibly write a file in every folder"),
        ],
        examples: &[
            example("tree -L 2", ReadOnly),
            example("tree -o out.txt", Modifies),
            example("tree -al", ReadOnly),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "which whereis",
        operands: TEXT,
        examples: &[example("which ls", ReadOnly)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "basename",
        operands: TEXT,
        flags: &[text_flag("-s --suffix")],
        examples: &[example("basename /usr/lib/x.so .so", ReadOnly)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "seq",
        operands: TEXT,
        flags: &[text_flag("-f --format -s --separator")],
        examples: &[example("seq -s , 1 10", ReadOnly)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "df",
        flags: &[text_flag("-B --block-size -t --type -x --exclude-type -F"), joined_flag("--output")],
        examples: &[example("df -h .", ReadOnly), example("df /etc", Blocked)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "xxd",
        flags: &[
            harmless_flag("-a -b -C -E -e -i -p -ps -plain -d -u -v"),
            text_flag("-c -cols -g -l -len -n -o -s"),
            effect_flag("-r -revert", "write a file from a hex dump"),
        ],
        unlisted_flags: UnlistedFlags::Suspect,
        operands: OperandRule::FirstThenRest(WordMeaning::ReadPath, WordMeaning::WrittenPath),
        flag_syntax: FlagSyntax::WholeWords,
        examples: &[
            example("xxd -l 64 a.txt", ReadOnly),
            example("xxd a.txt b.txt", Modifies),
            example("xxd a.txt /etc/x", Blocked),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "zcat bzcat xzcat",
        examples: &[example("zcat a.gz", ReadOnly), example("zcat /etc/x.gz", Blocked)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "man",
        flags: &[harmless_flag("-k -f -w --where")],
        unlisted_flags: UnlistedFlags::Suspect,
        examples: &[example("man ls", ReadOnly), example("man -P ./x ls", Unknown)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "ps uptime free",
        operands: TEXT,
        examples: &[example("ps aux", ReadOnly), example("free -m", ReadOnly)],
        ..ProgramSpec::READ_ONLY
    },
];
