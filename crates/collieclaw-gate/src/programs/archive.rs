//! Programs that pack, unpack, cut up and mend files.

use super::Judged::{Blocked, Changes, Unknown};
use super::{
    Flag, FlagMeans, Meaning, Operands, Others, Program, Spelling, does, does_with, example, harmless,
    joined, listed, looked, text, written,
};

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        names: "tar",
        flags: &[
            harmless(
                "-c --create -x --extract -t --list -r --append -u --update -v --verbose -z --gzip -j --bzip2 -J --xz --zstd -a --auto-compress -k --keep-old-files -p -m -w -O --to-stdout",
            ),
            Flag { names: "-f --file", means: FlagMeans::Value(Meaning::Archive) },
            written("-C --directory"),
            text("--exclude --strip-components"),
            listed("-T --files-from"),
            does("-h --dereference -P --absolute-names", "leave the folder"),
            does_with(
                "--checkpoint-action --to-command -I --use-compress-program --rsh-command -F --info-script --new-volume-script --rmt-command",
                "run a command",
            ),
        ],
        others: Others::Suspect,
        operands: Operands::All(Meaning::Archive),
        spelling: Spelling::Bundle,
        examples: &[
            example("tar -czf out.tgz src", Changes),
            example("tar czf out.tgz src", Changes),
            example("tar tf out.tgz", Changes),
            example("tar cf /etc/x .", Blocked),
            example("tar cf x.tar --checkpoint=1 --checkpoint-action=exec=id .", Unknown),
            example("tar -I ./x -cf a.tar .", Unknown),
            example("tar cIf ./x a.tar .", Unknown),
            example("tar -cf host:a.tar .", Unknown),
            example("tar -cf a.tar -T list", Unknown),
        ],
        ..Program::CHANGES
    },
    Program {
        names: "rsync",
        flags: &[
            harmless("-a --archive -v --verbose -r --recursive -t -p -n --dry-run -z -h -u"),
            does("-e --rsh --rsync-path", "run a command"),
        ],
        others: Others::Suspect,
        operands: Operands::All(Meaning::Archive),
        examples: &[
            example("rsync -a src/ copy/", Changes),
            example("rsync -e ./x src host:x", Unknown),
            example("rsync -a src host:x", Unknown),
            example("rsync -a /etc/ x", Blocked),
        ],
        ..Program::CHANGES
    },
    Program {
        names: "split",
        flags: &[
            text(
                "-a --suffix-length --additional-suffix -b --bytes -C --line-bytes -l --lines -n --number -t --separator",
            ),
            joined("--numeric-suffixes --hex-suffixes"),
            does_with("--filter", "run a command"),
        ],
        operands: Operands::First(Meaning::Looked, Meaning::Written),
        examples: &[
            example("split -l 10 a.txt part-", Changes),
            example("split a.txt /etc/x", Blocked),
            example("split --filter=./x a.txt", Unknown),
        ],
        ..Program::CHANGES
    },
    Program {
        names: "csplit",
        flags: &[text("-b --suffix-format -n --digits"), written("-f --prefix")],
        operands: Operands::First(Meaning::Looked, Meaning::Text),
        examples: &[example("csplit a.txt /x/", Changes), example("csplit -f /etc/x a.txt 5", Blocked)],
        ..Program::CHANGES
    },
    Program {
        names: "gzip gunzip bzip2 bunzip2 xz unxz",
        flags: &[text("-S --suffix -b -T --threads"), listed("--files --files0")],
        examples: &[example("gzip -k a.txt", Changes), example("gzip /etc/passwd", Blocked)],
        ..Program::CHANGES
    },
    Program {
        names: "zip unzip",
        flags: &[harmless("-r -q -j -l -9 -n -o -v"), written("-d")],
        others: Others::Suspect,
        examples: &[
            example("zip -r a.zip src", Changes),
            example("zip a.zip a.txt -T -TT ./x", Unknown),
            example("unzip -q a.zip -d /etc", Blocked),
        ],
        ..Program::CHANGES
    },
    Program {
        names: "patch",
        flags: &[harmless("-u --unified --dry-run -N --forward"), text("-p --strip"), looked("-i --input")],
        others: Others::Suspect,
        examples: &[
            example("patch -p1 -i a.txt", Changes),
            example("patch -o b.txt a.txt", Unknown),
            example("patch /etc/passwd", Blocked),
        ],
        ..Program::CHANGES
    },
];
