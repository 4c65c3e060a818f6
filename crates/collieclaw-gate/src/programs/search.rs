//! Programs that search and compare.

use super::Judged::{Blocked, Changes, Looks, Unknown};
use super::{
    Flag, FlagMeans, Meaning, Operands, Others, Program, Spelling, does, example, harmless, instead, joined,
    looked, text, writes,
};

/// Runs a command on what it finds, in other folders than its own or after a question.
const fn runs_otherwise(names: &'static str, what: &'static str) -> Flag {
    Flag { names, means: FlagMeans::DoesUntilEnd(what) }
}

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        names: "grep egrep fgrep",
        flags: &[
            instead("-e --regexp", Meaning::Text),
            instead("-f --file", Meaning::Looked),
            text(
                "-A --after-context -B --before-context -C --context -m --max-count -d --directories -D --devices --label --include --exclude --exclude-dir --binary-files --group-separator -X",
            ),
            joined("--color --colour"),
            does("-R --dereference-recursive", "follow links; `-r` doesn't"),
            looked("--exclude-from"),
        ],
        operands: Operands::First(Meaning::Text, Meaning::Looked),
        examples: &[
            example("grep -rn 'rm -rf' src", Looks),
            example("grep -e x -f pats.txt README.md", Looks),
            example("grep root /etc/passwd", Blocked),
            example("grep -f /etc/passwd README.md", Blocked),
            example("grep -R x .", Unknown),
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
            does("-L --follow", "follow links"),
            does("--pre --pre-glob --hostname-bin -z --search-zip", "run a command"),
        ],
        // With `--files` also the first one is a path.
        operands: Operands::First(Meaning::Perhaps, Meaning::Looked),
        examples: &[
            example("rg -n todo src", Looks),
            example("rg --files /etc", Blocked),
            example("rg --pre ./x todo", Unknown),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "find",
        flags: &[
            text(
                "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime -mmin -atime -amin -ctime -cmin -perm -user -group -uid -gid -links -inum -maxdepth -mindepth -printf -newermt -newerat -newerct -lname -ilname -fstype -used -context",
            ),
            looked("-newer -anewer -cnewer -samefile"),
            harmless(
                "-print -print0 -ls -prune -quit -true -false -empty -not -o -or -a -and -readable -writable -executable -nouser -nogroup -depth -d -mount -xdev -daystart -noleaf -warn -nowarn -ignore_readdir_race -noignore_readdir_race -P",
            ),
            does("-H -L -follow", "follow links"),
            does("-delete", "delete what it finds"),
            writes("-fprint -fprint0 -fprintf -fls"),
            does("-files0-from", "take its folders from elsewhere"),
            Flag { names: "-exec", means: FlagMeans::CommandUntilEnd },
            runs_otherwise("-execdir -okdir", "run a command in folders that are known only when it runs"),
            runs_otherwise("-ok", "ask before it runs a command"),
        ],
        others: Others::Suspect,
        spelling: Spelling::Words,
        examples: &[
            example("find . -name '*.rs' -type f", Looks),
            example("find . -name '*.rs' -exec grep -n todo {} +", Looks),
            example("find src -exec rm {} ';'", Blocked),
            example("find . -exec uniq a.txt + ';'", Changes),
            example("find . -execdir cat {} +", Unknown),
            example("find . -follow -name x", Unknown),
            example("find . -delete", Unknown),
            example("find / -name x", Blocked),
            example("find . -fprint out", Unknown),
            example("find . -fprint /tmp/x", Blocked),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "diff",
        flags: &[
            text(
                "-U -C -D --ifdef -F --show-function-line --line-format --GTYPE-group-format --LTYPE-line-format --horizon-lines --palette -S --starting-file -I --ignore-matching-lines -L --label -W --width -x --exclude --tabsize",
            ),
            looked("-X --exclude-from --from-file --to-file"),
            joined("--color --unified --context"),
            does("-l --paginate", "run a command"),
        ],
        examples: &[
            example("diff -u a.txt b.txt", Looks),
            example("diff --unified a.txt /etc/passwd", Blocked),
            example("diff -l a.txt b.txt", Unknown),
        ],
        ..Program::LOOKS
    },
    Program {
        names: "cmp",
        flags: &[text("-i --ignore-initial -n --bytes")],
        operands: Operands::All(Meaning::Looked),
        examples: &[example("cmp a.txt b.txt", Looks), example("cmp -l a.txt /etc/passwd", Blocked)],
        ..Program::LOOKS
    },
];
