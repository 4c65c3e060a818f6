//! Programs that read text and print it in another form.

use super::ExampleOutcome::{Blocked, Modifies, ReadOnly, Unknown};
use super::{
    FlagEffect, FlagSpec, FlagSyntax, OperandRule, ProgramSpec, UnlistedFlags, WordMeaning, effect_flag,
    effect_value_flag, example, file_list_flag, harmless_flag, input_flag, joined_flag, operand_flag,
    output_flag, text_flag,
};

const TEXT: OperandRule = OperandRule::All(WordMeaning::Text);

pub(super) const PROGRAMS: &[ProgramSpec] = &[
    ProgramSpec {
        names: "head tail",
        flags: &[
            text_flag("-n --lines -c --bytes -s --sleep-interval --pid --max-unchanged-stats"),
            joined_flag("--follow"),
        ],
        examples: &[
            example("head -n 5 README.md", ReadOnly),
            example("tail -5 README.md", ReadOnly),
            example("head -n 5 /etc/passwd", Blocked),
            example("head -5c /etc/passwd", Blocked),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "wc",
        flags: &[file_list_flag("--files0-from"), joined_flag("--total")],
        examples: &[
            example("wc -l README.md", ReadOnly),
            example("wc -l /etc/passwd", Blocked),
            example("wc -l --files0-from=a.txt", Unknown),
            example("wc --files0 a.txt", Unknown),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "nl",
        flags: &[text_flag(
            "-b --body-numbering -d --section-delimiter -f --footer-numbering -h --header-numbering -i --line-increment -l --join-blank-lines -n --number-format -s --number-separator -v --starting-line-number -w --number-width",
        )],
        examples: &[example("nl -b a README.md", ReadOnly), example("nl -p /etc/passwd", Blocked)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "cut",
        flags: &[text_flag("-b --bytes -c --characters -d --delimiter -f --fields --output-delimiter")],
        examples: &[example("cut -d: -f1 README.md", ReadOnly), example("cut -f 1 /etc/passwd", Blocked)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "paste",
        flags: &[text_flag("-d --delimiters")],
        examples: &[example("paste -sd, README.md", ReadOnly), example("paste -s /etc/passwd", Blocked)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "expand unexpand",
        flags: &[text_flag("-t --tabs")],
        examples: &[example("expand -t 4 README.md", ReadOnly)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "fold fmt",
        flags: &[text_flag("-w --width -p --prefix -g --goal")],
        examples: &[example("fold -s -w 72 README.md", ReadOnly), example("fold -s /etc/passwd", Blocked)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "tr",
        operands: TEXT,
        examples: &[example("tr a-z A-Z", ReadOnly)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "uniq",
        flags: &[
            text_flag("-f --skip-fields -s --skip-chars -w --check-chars"),
            joined_flag("--group --all-repeated"),
        ],
        operands: OperandRule::FirstThenRest(WordMeaning::ReadPath, WordMeaning::WrittenPath),
        examples: &[example("uniq -c", ReadOnly), example("uniq a.txt b.txt", Modifies)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "sort",
        flags: &[
            text_flag("-k --key -t --field-separator -S --buffer-size --parallel --batch-size"),
            joined_flag("--check"),
            text_flag("--sort"),
            file_list_flag("--files0-from"),
            input_flag("--random-source -T --temporary-directory"),
            output_flag("-o --output"),
            effect_value_flag("--compress-program", "run a command"),
        ],
        examples: &[
            example("sort -u a.txt", ReadOnly),
            example("sort -o b.txt a.txt", Modifies),
            example("sort --compress-program=./x a.txt", Unknown),
            example("sort --compress-pro ./x a.txt", Unknown),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "shuf",
        flags: &[
            text_flag("-i --input-range -n --head-count"),
            output_flag("-o --output"),
            input_flag("--random-source"),
        ],
        examples: &[example("shuf -n 1 a.txt", ReadOnly), example("shuf -o b.txt a.txt", Modifies)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "pr",
        flags: &[
            text_flag(
                "--columns --pages -D --date-format -h --header -l --length -N --first-line-number -o --indent -w --width -W --page-width",
            ),
            joined_flag("-e --expand-tabs -i --output-tabs -n --number-lines -s --separator -S --sep-string"),
        ],
        examples: &[example("pr -t -2 a.txt", ReadOnly), example("pr -n /etc/passwd", Blocked)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "numfmt",
        operands: TEXT,
        flags: &[
            text_flag(
                "-d --delimiter --field --format --from --from-unit --invalid --padding --round --suffix --to --to-unit",
            ),
            joined_flag("--header"),
        ],
        examples: &[example("numfmt --to=iec 4096", ReadOnly)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "join",
        flags: &[text_flag("-a -e -j -o -t -v -1 -2")],
        examples: &[
            example("join -t , a.txt b.txt", ReadOnly),
            example("join -i a.txt /etc/passwd", Blocked),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "comm",
        flags: &[text_flag("--output-delimiter")],
        examples: &[example("comm -12 a.txt b.txt", ReadOnly)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "column",
        flags: &[text_flag(
            "-s --separator -o --output-separator -N --table-columns -R --table-right -c --output-width -l --table-columns-limit -n --table-name -E --table-noextreme -T --table-truncate -H --table-hide -O --table-order -W --table-wrap",
        )],
        examples: &[example("column -t -s , a.txt", ReadOnly), example("column -t /etc/passwd", Blocked)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "base64 base32",
        flags: &[text_flag("-w --wrap")],
        examples: &[example("base64 -d a.txt", ReadOnly), example("base64 -w 0 /etc/passwd", Blocked)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "cksum sum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum",
        flags: &[text_flag("-a --algorithm -l --length"), harmless_flag("-c --check")],
        examples: &[
            example("sha256sum README.md", ReadOnly),
            // It prints only which of the named files have changed.
            example("sha256sum -c a.txt", ReadOnly),
            example("sha256sum -c /etc/passwd", Blocked),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "sed",
        flags: &[
            operand_flag("-e --expression", WordMeaning::SedScript),
            effect_value_flag("-f --file", "run a script from a file"),
            FlagSpec { names: "-i --in-place", effect: FlagEffect::EditsInPlace },
            effect_flag("--follow-symlinks", "follow links when it writes"),
            text_flag("-l --line-length"),
            harmless_flag(
                "-n --quiet --silent -E -r --regexp-extended -s --separate -u --unbuffered -z --null-data --debug --sandbox",
            ),
        ],
        unlisted_flags: UnlistedFlags::Suspect,
        operands: OperandRule::FirstThenRest(WordMeaning::SedScript, WordMeaning::ReadPath),
        examples: &[
            example("sed -n '1,20p' README.md", ReadOnly),
            example("sed 's/a/b/g' README.md", ReadOnly),
            example("sed '1e id' README.md", Unknown),
            example("sed 's/a/b/e' README.md", Unknown),
            example("sed 's/a/b/w /etc/x' README.md", Blocked),
            example("sed 's/a/b/w x' README.md", Unknown),
            example("sed -i s/a/b/ README.md", Modifies),
            example("sed -i s/a/b/ /etc/passwd", Blocked),
            example("sed -iit s/a/b/ .g", Blocked),
            example("sed '/x/r b.txt' a.txt", Unknown),
            example("sed -e 'a\\' -e 's/x/y\n1e id/' README.md", Unknown),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "awk gawk mawk nawk",
        flags: &[
            text_flag("-F --field-separator"),
            FlagSpec { names: "-v --assign", effect: FlagEffect::Value(WordMeaning::AwkVariable) },
            effect_flag(
                "-f --file -i --include -l --load -E --exec -o --pretty-print -d --dump-variables -D --debug -p --profile",
                "run a program from a file, or write a file",
            ),
        ],
        unlisted_flags: UnlistedFlags::Suspect,
        operands: OperandRule::FirstThenRest(WordMeaning::AwkProgram, WordMeaning::ReadPath),
        flag_syntax: FlagSyntax::LeadingOnly,
        examples: &[
            example("awk '{print $1}' README.md", ReadOnly),
            example("awk -F: '$3 > 10 {print $1}' README.md", ReadOnly),
            example("awk 'BEGIN{system(\"id\")}'", Unknown),
            example("awk '{print > \"x\"}' README.md", Unknown),
            example("awk '{print | \"sh\"}' README.md", Unknown),
            example("awk '{print \"a;b\" > \"x\"}' README.md", Unknown),
            example("awk '/a|b/ {print $2}' README.md", ReadOnly),
            example("awk -v x=1 '{print x}' README.md", ReadOnly),
            example("awk -v ARGV=1 '{print}' README.md", Unknown),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "jq",
        flags: &[
            operand_flag("-f --from-file", WordMeaning::ReadPath),
            text_flag("--indent"),
            FlagSpec { names: "--arg --argjson", effect: FlagEffect::NamedValue(WordMeaning::Text) },
            FlagSpec {
                names: "--slurpfile --rawfile --argfile",
                effect: FlagEffect::NamedValue(WordMeaning::ReadPath),
            },
            effect_flag("-L --library-path --args --jsonargs", "possibly read other files"),
            harmless_flag(
                "-n --null-input -r --raw-output --raw-output0 -j --join-output -a --ascii-output -s --slurp -c --compact-output -C --color-output -M --monochrome-output -S --sort-keys -e --exit-status -R --raw-input --tab --unbuffered --stream --seq -h --help -V --version",
            ),
        ],
        // An unknown flag with a value would make another word the program.
        unlisted_flags: UnlistedFlags::Suspect,
        operands: OperandRule::FirstThenRest(WordMeaning::JqProgram, WordMeaning::ReadPath),
        examples: &[
            example("jq .name package.json", ReadOnly),
            example("jq 'include \"x\"; .' package.json", Unknown),
            example("jq --arg n x '.[$n]' a.json", ReadOnly),
            example("jq --slurpfile x /etc/passwd . a.json", Blocked),
            example("jq -f a.txt package.json", ReadOnly),
            example("jq -rf /etc/passwd package.json", Blocked),
            example("jq -L . . a.json", Unknown),
            example("jq --library-path lib 'import \"x\" as $x; $x' a.json", Unknown),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "tac rev",
        flags: &[text_flag("-s --separator")],
        examples: &[example("tac README.md", ReadOnly), example("tac -s x /etc/passwd", Blocked)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "cat",
        examples: &[
            example("cat -n README.md", ReadOnly),
            example("cat /etc/passwd", Blocked),
            example("cat -s /etc/passwd", Blocked),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "less more",
        flags: &[harmless_flag("-N -S -R -r -F -X -E -e -i -I -n -s -m -M -q")],
        unlisted_flags: UnlistedFlags::Suspect,
        flag_syntax: FlagSyntax::GnuAndPlus,
        examples: &[
            example("less -R README.md", ReadOnly),
            example("less '+!id' README.md", Unknown),
            example("less -o out.txt README.md", Unknown),
            example("less /etc/passwd", Blocked),
        ],
        ..ProgramSpec::READ_ONLY
    },
];
