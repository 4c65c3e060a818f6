//! Programs that read text, and print it otherwise.

use super::Judged::{Blocked, Changes, Looks, Unknown};
use super::{
    Flag, FlagMeans, Meaning, Operands, Others, Program, Spelling, does, does_with, example, harmless,
    instead, joined, listed, looked, text, written,
};

const TEXT: Operands = Operands::All(Meaning::Text);

pub(super) const PROGRAMS: &[Program] = &[
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
            example("head -5c /etc/passwd", Blocked),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "wc",
        flags: &[listed("--files0-from"), joined("--total")],
        examples: &[
            example("wc -l README.md", Looks),
            example("wc -l /etc/passwd", Blocked),
            example("wc -l --files0-from=a.txt", Unknown),
            example("wc --files0 a.txt", Unknown),
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
            joined("--check"),
            text("--sort"),
            listed("--files0-from"),
            looked("--random-source -T --temporary-directory"),
            written("-o --output"),
            does_with("--compress-program", "run a command"),
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
        names: "shuf",
        flags: &[text("-i --input-range -n --head-count"), written("-o --output"), looked("--random-source")],
        examples: &[example("shuf -n 1 a.txt", Looks), example("shuf -o b.txt a.txt", Changes)],
        ..Program::LOOKS
    },
    Program {
        names: "pr",
        flags: &[
            text(
                "--columns --pages -D --date-format -h --header -l --length -N --first-line-number -o --indent -w --width -W --page-width",
            ),
            joined("-e --expand-tabs -i --output-tabs -n --number-lines -s --separator -S --sep-string"),
        ],
        examples: &[example("pr -t -2 a.txt", Looks), example("pr -n /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "numfmt",
        operands: TEXT,
        flags: &[
            text(
                "-d --delimiter --field --format --from --from-unit --invalid --padding --round --suffix --to --to-unit",
            ),
            joined("--header"),
        ],
        examples: &[example("numfmt --to=iec 4096", Looks)],
        ..Program::LOOKS
    },
    Program {
        names: "join",
        flags: &[text("-a -e -j -o -t -v -1 -2")],
        examples: &[example("join -t , a.txt b.txt", Looks), example("join -i a.txt /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "comm",
        flags: &[text("--output-delimiter")],
        examples: &[example("comm -12 a.txt b.txt", Looks)],
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
        names: "base64 base32",
        flags: &[text("-w --wrap")],
        examples: &[example("base64 -d a.txt", Looks), example("base64 -w 0 /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum",
        flags: &[text("-a --algorithm -l --length"), does("-c --check", "use files that a list names")],
        examples: &[
            example("sha256sum README.md", Looks),
            example("sha256sum -c a.txt", Unknown),
            example("sha256sum -c /etc/passwd", Blocked),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "sed",
        flags: &[
            instead("-e --expression", Meaning::Sed),
            does_with("-f --file", "follow a script in a file"),
            Flag { names: "-i --in-place", means: FlagMeans::InPlace },
            does("--follow-symlinks", "write where links lead"),
            text("-l --line-length"),
            harmless(
                "-n --quiet --silent -E -r --regexp-extended -s --separate -u --unbuffered -z --null-data --debug --sandbox",
            ),
        ],
        others: Others::Suspect,
        operands: Operands::First(Meaning::Sed, Meaning::Looked),
        examples: &[
            example("sed -n '1,20p' README.md", Looks),
            example("sed 's/a/b/g' README.md", Looks),
            example("sed '1e id' README.md", Unknown),
            example("sed 's/a/b/e' README.md", Unknown),
            example("sed 's/a/b/w /tmp/x' README.md", Blocked),
            example("sed 's/a/b/w x' README.md", Unknown),
            example("sed -i s/a/b/ README.md", Changes),
            example("sed -i s/a/b/ /etc/passwd", Blocked),
            example("sed -iit s/a/b/ .g", Unknown),
            example("sed -e 'a\\' -e 's/x/y\n1e id/' README.md", Unknown),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "awk gawk mawk nawk",
        flags: &[
            text("-F --field-separator"),
            Flag { names: "-v --assign", means: FlagMeans::Value(Meaning::AwkVariable) },
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
            example("awk '{print \"a;b\" > \"x\"}' README.md", Unknown),
            example("awk '/a|b/ {print $2}' README.md", Looks),
            example("awk -v x=1 '{print x}' README.md", Looks),
            example("awk -v ARGV=1 '{print}' README.md", Unknown),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "jq",
        flags: &[
            does_with("-f --from-file", "follow a program in a file"),
            text("--indent"),
            Flag { names: "--arg --argjson", means: FlagMeans::Named(Meaning::Text) },
            Flag { names: "--slurpfile --rawfile --argfile", means: FlagMeans::Named(Meaning::Looked) },
            does("-L --library-path --args --jsonargs", "read other files, perhaps"),
            harmless(
                "-n --null-input -r --raw-output --raw-output0 -j --join-output -a --ascii-output -s --slurp -c --compact-output -C --color-output -M --monochrome-output -S --sort-keys -e --exit-status -R --raw-input --tab --unbuffered --stream --seq -h --help -V --version",
            ),
        ],
        // One that takes a value would make another word the program.
        others: Others::Suspect,
        operands: Operands::First(Meaning::Jq, Meaning::Looked),
        examples: &[
            example("jq .name package.json", Looks),
            example("jq 'include \"x\"; .' package.json", Unknown),
            example("jq --arg n x '.[$n]' a.json", Looks),
            example("jq --slurpfile x /etc/passwd . a.json", Blocked),
            example("jq -L . . a.json", Unknown),
            example("jq --library-path lib 'import \"x\" as $x; $x' a.json", Unknown),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "tac rev",
        flags: &[text("-s --separator")],
        examples: &[example("tac README.md", Looks), example("tac -s x /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
    Program {
        names: "cat",
        examples: &[
            example("cat -n README.md", Looks),
            example("cat /etc/passwd", Blocked),
            example("cat -s /etc/passwd", Blocked),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "less more",
        flags: &[harmless("-N -S -R -r -F -X -E -e -i -I -n -s -m -M -q")],
        others: Others::Suspect,
        spelling: Spelling::Plus,
        examples: &[
            example("less -R README.md", Looks),
            example("less '+!id' README.md", Unknown),
            example("less -o out.txt README.md", Unknown),
            example("less /etc/passwd", Blocked),
        ],
        ..Program::LOOKS
    },
];
