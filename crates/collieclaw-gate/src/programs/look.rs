//! Programs that read and print.

use super::Judged::{Blocked, Changes, Looks, Unknown};
use super::{
    Flag, FlagMeans, Meaning, Operands, Others, Program, Spelling, does, example, harmless, instead, joined,
    looked, text, written,
};

const TEXT: Operands = Operands::All(Meaning::Text);

/// Runs a command on what it finds.
const fn runs_command(names: &'static str) -> Flag {
    Flag { names, means: FlagMeans::CommandUntilEnd }
}

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        names: "echo printf true false seq basename dirname yes expr whoami id uname arch nproc tty groups logname",
        operands: TEXT,
        examples: &[
            example("echo /etc/passwd", Looks),
            example("printf '%s\\n' a b", Looks),
            example("basename /usr/lib/x.so .so", Looks),
        ],
        ..Program::LOOKS
    },
    Program { names: "pwd", operands: TEXT, examples: &[example("pwd -P", Looks)], ..Program::LOOKS },
    Program {
        names: "date",
        operands: TEXT,
        flags: &[
            text("-d --date"),
            looked("-r --reference -f --file"),
            joined("-I --iso-8601 --rfc-3339"),
            does("-s --set", "set the clock"),
        ],
        examples: &[example("date -u +%F", Looks), example("date -s 2020-01-01", Unknown)],
        ..Program::LOOKS
    },
    Program {
        names: "ls dir vdir",
        flags: &[
            text(
                "-I --ignore --hide -w --width -T --tabsize --block-size --format --sort --time --time-style --quoting-style --indicator-style",
            ),
            joined("--color --hyperlink"),
        ],
        examples: &[example("ls -la src", Looks), example("ls /etc", Blocked), example("ls ..", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "cat tac rev",
        flags: &[text("-s --separator")],
        examples: &[example("cat -n README.md", Looks), example("cat /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "head tail",
        flags: &[
            text("-n --lines -c --bytes -s --sleep-interval --pid --max-unchanged-stats"),
            joined("--follow"),
        ],
        examples: &[
            example("head -n 5 README.md", Looks),
            example("tail -5 README.md", Looks),
            example("head -n 5 /etc/passwd", Blocked),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "wc",
        flags: &[looked("--files0-from"), joined("--total")],
        examples: &[
            example("wc -l README.md", Looks),
            example("wc -l /etc/passwd", Blocked),
            example("wc -l --files0-from=/etc/passwd", Blocked),
            example("wc --files0 /etc/passwd", Blocked),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "nl",
        flags: &[text(
            "-b --body-numbering -d --section-delimiter -f --footer-numbering -h --header-numbering -i --line-increment -l --join-blank-lines -n --number-format -s --number-separator -v --starting-line-number -w --number-width",
        )],
        examples: &[example("nl -b a README.md", Looks), example("nl -p /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "cut",
        flags: &[text("-b --bytes -c --characters -d --delimiter -f --fields --output-delimiter")],
        examples: &[example("cut -d: -f1 README.md", Looks), example("cut -f 1 /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "paste",
        flags: &[text("-d --delimiters")],
        examples: &[example("paste -sd, README.md", Looks), example("paste -s /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "expand unexpand",
        flags: &[text("-t --tabs")],
        examples: &[example("expand -t 4 README.md", Looks)],
        ..Program::LOOKS
    },
    Program {
        names: "fold fmt",
        flags: &[text("-w --width -p --prefix -g --goal")],
        examples: &[example("fold -s -w 72 README.md", Looks), example("fold -s /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "cksum sum md5sum sha1sum sha256sum sha512sum b2sum",
        flags: &[text("-a --algorithm -l --length")],
        examples: &[example("sha256sum README.md", Looks), example("sha256sum -c /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "od",
        flags: &[text(
            "-A --address-radix -j --skip-bytes -N --read-bytes -S --strings -t --format -w --width",
        )],
        examples: &[example("od -c README.md", Looks), example("od -A x -c /etc/passwd", Blocked)],
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
        flags: &[text("-c --format --printf"), joined("--cached")],
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
            looked("-f --files-from -m --magic-file"),
            does("-C --compile", "write a file"),
            does("-z --uncompress -Z --uncompress-noreport", "run a command"),
        ],
        examples: &[
            example("file -b README.md", Looks),
            example("file -f /etc/passwd", Blocked),
            example("file -z README.md", Unknown),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "du",
        flags: &[
            text("-B --block-size -d --max-depth -t --threshold --exclude"),
            joined("--time --time-style"),
            looked("-X --exclude-from --files0-from"),
        ],
        examples: &[example("du -sh src", Looks), example("du -X /etc/passwd src", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "cmp",
        flags: &[text("-i --ignore-initial -n --bytes")],
        operands: Operands::All(Meaning::Looked),
        examples: &[example("cmp a.txt b.txt", Looks), example("cmp -l a.txt /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "comm",
        flags: &[text("--output-delimiter")],
        examples: &[example("comm -12 a.txt b.txt", Looks)],
        ..Program::LOOKS
    },
    Program {
        names: "join",
        flags: &[text("-a -e -j -o -t -v -1 -2")],
        examples: &[example("join -t , a.txt b.txt", Looks), example("join -i a.txt /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "base64 base32",
        flags: &[text("-w --wrap")],
        examples: &[example("base64 -d a.txt", Looks), example("base64 -w 0 /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "column",
        flags: &[text(
            "-s --separator -o --output-separator -N --table-columns -R --table-right -c --output-width -l --table-columns-limit -n --table-name -E --table-noextreme -T --table-truncate -H --table-hide -O --table-order -W --table-wrap",
        )],
        examples: &[example("column -t -s , a.txt", Looks), example("column -t /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "test [",
        operands: Operands::All(Meaning::Looked),
        spelling: Spelling::Words,
        examples: &[example("test -f README.md", Looks), example("[ -d src ]", Looks)],
        ..Program::LOOKS
    },
    Program {
        names: "tree",
        flags: &[
            text("-L -P -I --filelimit --charset --timefmt --sort"),
            written("-o"),
            looked("--fromfile --gitfile --infofile"),
            does("-R", "write a file in every folder, perhaps"),
        ],
        examples: &[example("tree -L 2", Looks), example("tree -o out.txt", Changes)],
        ..Program::LOOKS
    },
    Program {
        names: "which whereis",
        operands: TEXT,
        examples: &[example("which ls", Looks)],
        ..Program::LOOKS
    },
    Program { names: "tr", operands: TEXT, examples: &[example("tr a-z A-Z", Looks)], ..Program::LOOKS },
    Program {
        names: "uniq",
        flags: &[text("-f --skip-fields -s --skip-chars -w --check-chars"), joined("--group --all-repeated")],
        operands: Operands::First(Meaning::Looked, Meaning::Written),
        examples: &[example("uniq -c", Looks), example("uniq a.txt b.txt", Changes)],
        ..Program::LOOKS
    },
    Program {
        names: "sort",
        flags: &[
            text("-k --key -t --field-separator -S --buffer-size --parallel --batch-size"),
            joined("--check --sort"),
            looked("--files0-from --random-source -T --temporary-directory"),
            written("-o --output"),
            does("--compress-program", "run a command"),
        ],
        examples: &[
            example("sort -u a.txt", Looks),
            example("sort -o b.txt a.txt", Changes),
            example("sort --compress-program=./x a.txt", Unknown),
            example("sort --compress-pro ./x a.txt", Unknown),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "grep egrep fgrep",
        flags: &[
            instead("-e --regexp", Meaning::Text),
            instead("-f --file", Meaning::Looked),
            text(
                "-A --after-context -B --before-context -C --context -m --max-count -d --directories -D --devices --label --include --exclude --exclude-dir --binary-files --group-separator",
            ),
            joined("--color --colour"),
            looked("--exclude-from"),
        ],
        operands: Operands::First(Meaning::Text, Meaning::Looked),
        examples: &[
            example("grep -rn 'rm -rf' src", Looks),
            example("grep -e x -f pats.txt README.md", Looks),
            example("grep root /etc/passwd", Blocked),
            example("grep -f /etc/passwd README.md", Blocked),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "rg",
        flags: &[
            instead("-e --regexp", Meaning::Text),
            instead("-f --file", Meaning::Looked),
            text(
                "-A --after-context -B --before-context -C --context -m --max-count -g --glob --iglob -t --type -T --type-not -r --replace -j --threads -M --max-columns -d --max-depth --sort --sortr --colors --color -E --encoding --context-separator",
            ),
            looked("--ignore-file"),
            does("--pre --pre-glob --hostname-bin -z --search-zip", "run a command"),
        ],
        operands: Operands::First(Meaning::Text, Meaning::Looked),
        examples: &[example("rg -n todo src", Looks), example("rg --pre ./x todo", Unknown)],
        ..Program::LOOKS
    },
    Program {
        names: "diff",
        flags: &[
            text(
                "-U --unified -C --context -I --ignore-matching-lines -L --label -W --width -x --exclude --tabsize",
            ),
            looked("-X --exclude-from --from-file --to-file"),
            joined("--color"),
        ],
        examples: &[example("diff -u a.txt b.txt", Looks)],
        ..Program::LOOKS
    },
    Program {
        names: "jq",
        flags: &[
            instead("-f --from-file", Meaning::Looked),
            text("--indent --tab"),
            does(
                "-L --slurpfile --rawfile --argfile --args --jsonargs --arg --argjson",
                "read other files, perhaps",
            ),
        ],
        operands: Operands::First(Meaning::Text, Meaning::Looked),
        examples: &[
            example("jq .name package.json", Looks),
            example("jq --slurpfile x b.json . a.json", Unknown),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "sed",
        flags: &[
            instead("-e --expression", Meaning::Sed),
            does("-f --file", "follow a script in a file"),
            does("-i --in-place", "write the files that it reads"),
            text("-l --line-length"),
            harmless(
                "-n --quiet --silent -E -r --regexp-extended -s --separate -u --unbuffered -z --null-data --posix --debug --sandbox --follow-symlinks",
            ),
        ],
        others: Others::Suspect,
        operands: Operands::First(Meaning::Sed, Meaning::Looked),
        examples: &[
            example("sed -n '1,20p' README.md", Looks),
            example("sed 's/a/b/g' README.md", Looks),
            example("sed '1e id' README.md", Unknown),
            example("sed 's/a/b/e' README.md", Unknown),
            example("sed 's/a/b/w /tmp/x' README.md", Unknown),
            example("sed -i s/a/b/ README.md", Unknown),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "awk gawk mawk nawk",
        flags: &[
            text("-F --field-separator"),
            does("-v --assign", "set a variable of its own, perhaps one that runs"),
            does(
                "-f --file -i --include -l --load -E --exec -o --pretty-print -d --dump-variables -D --debug -p --profile",
                "follow a program in a file, or write one",
            ),
        ],
        others: Others::Suspect,
        operands: Operands::First(Meaning::Awk, Meaning::Looked),
        spelling: Spelling::Leading,
        examples: &[
            example("awk '{print $1}' README.md", Looks),
            example("awk -F: '$3 > 10 {print $1}' README.md", Looks),
            example("awk 'BEGIN{system(\"id\")}'", Unknown),
            example("awk '{print > \"x\"}' README.md", Unknown),
            example("awk '{print | \"sh\"}' README.md", Unknown),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "find",
        flags: &[
            text(
                "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime -mmin -atime -amin -ctime -cmin -perm -user -group -uid -gid -links -inum -maxdepth -mindepth -printf -lname -ilname -fstype -used -context",
            ),
            looked("-newer -anewer -cnewer -samefile"),
            harmless(
                "-print -print0 -ls -prune -quit -true -false -empty -not -o -or -a -and -readable -writable -executable -nouser -nogroup -depth -d -mount -xdev -daystart -follow -noleaf -warn -nowarn -ignore_readdir_race -noignore_readdir_race -P",
            ),
            does("-H -L", "follow links"),
            does("-delete", "delete what it finds"),
            does("-fprint -fprint0 -fprintf -fls", "write another file"),
            does("-files0-from", "take its folders from elsewhere"),
            runs_command("-exec -execdir -ok -okdir"),
        ],
        others: Others::Suspect,
        spelling: Spelling::Words,
        examples: &[
            example("find . -name '*.rs' -type f", Looks),
            example("find . -name '*.rs' -exec grep -n todo {} +", Looks),
            example("find src -exec rm {} ';'", Blocked),
            example("find . -delete", Unknown),
            example("find / -name x", Blocked),
            example("find . -fprint out", Unknown),
        ],
        ..Program::LOOKS
    },
];
