//! Programs that change files.

use super::Judged::{Blocked, Changes, Looks, Unknown};
use super::{
    Flag, Meaning, Nature, Operands, Program, Spelling, does, does_with, example, instead, joined, looked,
    text, written,
};

/// What is there already gets a name that nobody has looked at.
const KEEPS_BEFORE: Flag = does_with("-S --suffix", "give what was there another name");
const INTO: Flag = instead("-t --target-directory", Meaning::Written);

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        names: "touch",
        flags: &[text("-d --date -t --time"), looked("-r --reference")],
        examples: &[
            example("touch -m a.txt", Changes),
            example("touch /tmp/x", Blocked),
            example("touch -m /tmp/x", Blocked),
            example("touch .git/hooks/pre-commit", Unknown),
        ],
        ..Program::CHANGES
    },
    Program {
        names: "mkdir",
        flags: &[text("-m --mode"), joined("--context")],
        examples: &[example("mkdir -p a/b", Changes), example("mkdir -m 700 /tmp/x", Blocked)],
        ..Program::CHANGES
    },
    Program {
        names: "rmdir",
        operands: Operands::All(Meaning::Moved),
        examples: &[example("rmdir -p a/b", Changes), example("rmdir /tmp", Blocked)],
        ..Program::CHANGES
    },
    Program {
        names: "install",
        flags: &[
            INTO,
            KEEPS_BEFORE,
            text("-m --mode -o --owner -g --group"),
            joined("--backup --context"),
            does("-d --directory", "make folders of all that it names"),
            does("--strip-program", "run a command"),
        ],
        operands: Operands::Into(Meaning::Looked),
        examples: &[
            example("install -m 644 a.txt b.txt", Changes),
            example("install -d x", Unknown),
            example("install a.txt /etc", Blocked),
        ],
        ..Program::CHANGES
    },
    Program {
        names: "cp",
        flags: &[
            INTO,
            KEEPS_BEFORE,
            text("--sparse --no-preserve"),
            joined("--backup --reflink --preserve --context"),
            does("-L --dereference -H", "follow links"),
            does("-s --symbolic-link -l --link", "make links"),
            does("--parents", "make the folders on the way"),
        ],
        operands: Operands::Into(Meaning::Looked),
        examples: &[
            example("cp a.txt b.txt", Changes),
            example("cp -r src copy", Changes),
            example("cp -d a.txt b.txt", Changes),
            example("cp -s .git/config x", Unknown),
            example("cp -l a.txt x", Unknown),
            example("cp /etc/passwd .", Blocked),
            example("cp a.txt /etc", Blocked),
            example("cp -t /etc a.txt", Blocked),
            example("cp --preserve /etc/passwd x", Blocked),
            example("cp a.txt .git/hooks/pre-commit", Unknown),
            example("cp -r src/.git .", Unknown),
            example("cp -b -S it a.txt .g", Unknown),
        ],
        ..Program::CHANGES
    },
    Program {
        names: "mv",
        flags: &[INTO, KEEPS_BEFORE, joined("--backup --context")],
        operands: Operands::Into(Meaning::Moved),
        examples: &[
            example("mv a.txt b.txt", Changes),
            example("mv a.txt ../b.txt", Blocked),
            example("mv -t .. a.txt", Blocked),
        ],
        ..Program::CHANGES
    },
    Program {
        names: "ln",
        flags: &[
            does("-s --symbolic", "make a link that may lead elsewhere"),
            INTO,
            KEEPS_BEFORE,
            joined("--backup"),
        ],
        operands: Operands::Into(Meaning::Written),
        examples: &[example("ln -s /etc/passwd x", Blocked), example("ln -s src x", Unknown)],
        ..Program::CHANGES
    },
    Program {
        names: "tee truncate",
        flags: &[text("-s --size"), looked("-r --reference"), joined("--output-error")],
        examples: &[example("tee out.txt", Changes), example("tee /tmp/x", Blocked)],
        ..Program::CHANGES
    },
    Program {
        names: "chmod chown chgrp",
        flags: &[looked("--reference"), text("--from")],
        operands: Operands::First(Meaning::Text, Meaning::Written),
        examples: &[example("chmod 644 a.txt", Changes), example("chown -R kid .", Blocked)],
        ..Program::CHANGES
    },
    Program {
        names: "rm unlink shred",
        operands: Operands::All(Meaning::Moved),
        examples: &[example("rm a.txt", Blocked)],
        ..Program::CHANGES
    },
    Program {
        names: "dd",
        operands: Operands::All(Meaning::Written),
        spelling: Spelling::Assignments,
        flags: &[looked("if"), written("of"), text("bs count skip seek conv status ibs obs iflag oflag")],
        examples: &[example("dd if=/dev/zero of=x", Blocked)],
        ..Program::CHANGES
    },
    Program {
        names: "sleep",
        nature: Nature::Looks,
        operands: Operands::All(Meaning::Text),
        examples: &[example("sleep 1", Looks)],
        ..Program::CHANGES
    },
];
