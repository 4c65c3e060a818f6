//! Programs that look at files and at the machine, and print.

use super::Judged::{Blocked, Changes, Looks, Unknown};
use super::{
    Meaning, Operands, Others, Program, Spelling, does, does_with, example, harmless, joined, listed, looked,
    text, written,
};

const TEXT: Operands = Operands::All(Meaning::Text);

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        names: "echo printf true false dirname yes expr whoami id uname arch nproc tty groups logname",
        operands: TEXT,
        examples: &[example("echo /etc/passwd", Looks), example("printf '%s\\n' a b", Looks)],
        ..Program::LOOKS
    },
    Program { names: "pwd", operands: TEXT, examples: &[example("pwd -P", Looks)], ..Program::LOOKS },
    Program {
        names: "date",
        operands: Operands::All(Meaning::Clock),
        flags: &[
            text("-d --date"),
            looked("-r --reference -f --file"),
            joined("-I --iso-8601"),
            text("--rfc-3339"),
            does_with("-s --set", "set the clock"),
        ],
        examples: &[
            example("date -u +%F", Looks),
            example("date -s 2020-01-01", Unknown),
            example("date 010100002020", Unknown),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "ls dir vdir",
        flags: &[
            text(
                "-I --ignore --hide -w --width -T --tabsize --block-size --format --sort --time --time-style --quoting-style --indicator-style",
            ),
            joined("--color --hyperlink --classify"),
            does("-L --dereference", "follow links"),
        ],
        examples: &[
            example("ls -la src", Looks),
            example("ls /etc", Blocked),
            example("ls ..", Blocked),
            example("ls -w /etc src", Looks),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "od",
        flags: &[
            text("-A --address-radix -j --skip-bytes -N --read-bytes -S -t --format --endian"),
            joined("--strings -w --width"),
        ],
        examples: &[
            example("od -c README.md", Looks),
            example("od -A x -c /etc/passwd", Blocked),
            example("od -w /etc/passwd", Blocked),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "hexdump",
        flags: &[text("-e --format -n --length -s --skip"), looked("-f --format-file")],
        examples: &[example("hexdump -C README.md", Looks)],
        ..Program::LOOKS
    },
    Program {
        names: "strings",
        flags: &[text("-n --bytes -t --radix -e --encoding -T --target -s --output-separator -U --unicode")],
        examples: &[example("strings -n 8 README.md", Looks), example("strings -a /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "stat",
        flags: &[text("-c --format --printf --cached")],
        examples: &[example("stat -c %s README.md", Looks), example("stat -L /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "readlink realpath",
        flags: &[looked("--relative-to --relative-base")],
        examples: &[example("realpath src", Looks)],
        ..Program::LOOKS
    },
    Program {
        names: "file",
        flags: &[
            text("-e --exclude -F --separator -P --parameter"),
            listed("-f --files-from"),
            // Several, with colons between them.
            listed("-m --magic-file"),
            does("-C --compile", "write a file"),
            does("-z --uncompress -Z --uncompress-noreport", "run a command"),
        ],
        examples: &[
            example("file -b README.md", Looks),
            example("file -f /etc/passwd", Blocked),
            example("file -m /etc/passwd a.txt", Blocked),
            example("file -z README.md", Unknown),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "du",
        flags: &[
            text("-B --block-size -d --max-depth -t --threshold --exclude"),
            joined("--time"),
            text("--time-style"),
            looked("-X --exclude-from"),
            listed("--files0-from"),
            does("-L --dereference", "follow links"),
        ],
        examples: &[example("du -sh src", Looks), example("du -X /etc/passwd src", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "test [",
        flags: &[looked("-b -c -d -e -f -g -G -h -k -L -N -O -p -r -s -S -u -w -x -nt -ot -ef")],
        // `-nt` and its like have a path on either side.
        operands: Operands::All(Meaning::Perhaps),
        spelling: Spelling::Words,
        examples: &[
            example("test -f README.md", Looks),
            example("[ -d src ]", Looks),
            example("[ -z '' ]", Looks),
            example("[ ! -e /etc/passwd ]", Blocked),
            example("test /etc/passwd -nt README.md", Blocked),
            example("test -f -ot /etc/passwd", Blocked),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "tree",
        flags: &[
            text("-L -P -I -H -T --filelimit --charset --timefmt --sort"),
            written("-o"),
            looked("--fromfile --gitfile --infofile --hintro --houtro"),
            does("-R", "write a file in every folder, perhaps"),
            does("-l", "follow links"),
        ],
        examples: &[
            example("tree -L 2", Looks),
            example("tree -o out.txt", Changes),
            example("tree -al", Unknown),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "which whereis",
        operands: TEXT,
        examples: &[example("which ls", Looks)],
        ..Program::LOOKS
    },
    Program {
        names: "basename",
        operands: TEXT,
        flags: &[text("-s --suffix")],
        examples: &[example("basename /usr/lib/x.so .so", Looks)],
        ..Program::LOOKS
    },
    Program {
        names: "seq",
        operands: TEXT,
        flags: &[text("-f --format -s --separator")],
        examples: &[example("seq -s , 1 10", Looks)],
        ..Program::LOOKS
    },
    Program {
        names: "df",
        flags: &[text("-B --block-size -t --type -x --exclude-type -F"), joined("--output")],
        examples: &[example("df -h .", Looks), example("df /etc", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "xxd",
        flags: &[
            harmless("-a -b -C -E -e -i -p -ps -plain -d -u -v"),
            text("-c -cols -g -l -len -n -o -s"),
            does("-r -revert", "write a file from its text"),
        ],
        others: Others::Suspect,
        operands: Operands::First(Meaning::Looked, Meaning::Written),
        spelling: Spelling::Words,
        examples: &[
            example("xxd -l 64 a.txt", Looks),
            example("xxd a.txt b.txt", Changes),
            example("xxd a.txt /etc/x", Blocked),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "zcat bzcat xzcat",
        examples: &[example("zcat a.gz", Looks), example("zcat /etc/x.gz", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "man",
        flags: &[harmless("-k -f -w --where")],
        others: Others::Suspect,
        examples: &[example("man ls", Looks), example("man -P ./x ls", Unknown)],
        ..Program::LOOKS
    },
    Program {
        names: "ps uptime free",
        operands: TEXT,
        examples: &[example("ps aux", Looks), example("free -m", Looks)],
        ..Program::LOOKS
    },
];
