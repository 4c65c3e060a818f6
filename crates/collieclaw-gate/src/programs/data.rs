//! Programs that query, convert and find data, and small tools of the system.

use super::ExampleOutcome::{Blocked, Modifies, ReadOnly, Unknown};
use super::{
    FlagEffect, FlagSpec, FlagSyntax, OperandRule, ProgramSpec, UnlistedFlags, WordMeaning, effect_flag,
    effect_value_flag, example, harmless_flag, input_flag, joined_flag, operand_flag, output_flag, text_flag,
};

const TEXT: OperandRule = OperandRule::All(WordMeaning::Text);

pub(super) const PROGRAMS: &[ProgramSpec] = &[
    ProgramSpec {
        names: "sqlite3",
        flags: &[
            harmless_flag(
                "-header -headers -noheader -csv -column -line -list -json -html -markdown -table -box -tabs -quote -ascii -readonly -batch -bail -echo -stats -version -help -interactive -safe -nofollow",
            ),
            text_flag("-separator -nullvalue -newline -mmap -maxsize -escape"),
            FlagSpec { names: "-cmd", effect: FlagEffect::Value(WordMeaning::SqliteInput) },
            effect_value_flag("-init", "run commands from a file"),
        ],
        unlisted_flags: UnlistedFlags::Suspect,
        operands: OperandRule::FirstThenRest(WordMeaning::WrittenPath, WordMeaning::SqliteInput),
        flag_syntax: FlagSyntax::WholeWords,
        examples: &[
            example("sqlite3 a.db 'SELECT 1'", Modifies),
            example("sqlite3 -header -csv a.db .schema", Modifies),
            example("sqlite3 a.db '.shell id'", Unknown),
            example("sqlite3 a.db \"ATTACH '/etc/x' AS x\"", Unknown),
            example("sqlite3 a.db \"SELECT writefile('x', 1)\"", Unknown),
            example("sqlite3 /etc/x .tables", Blocked),
        ],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "openssl",
        operands: OperandRule::Subcommands(OPENSSL),
        unlisted_flags: UnlistedFlags::Suspect,
        flag_syntax: FlagSyntax::LeadingOnly,
        examples: &[
            example("openssl dgst -sha256 a.txt", Modifies),
            example("openssl rand -hex 16", Modifies),
            example("openssl x509 -in a.pem -noout -text", Modifies),
            example(
                "openssl req -x509 -newkey rsa:2048 -nodes -keyout k.pem -out c.pem -subj /CN=x",
                Modifies,
            ),
            example("openssl enc -in /etc/passwd", Blocked),
            example("openssl dgst -engine ./x.so a.txt", Unknown),
            example("openssl s_client -connect example.org:443", Unknown),
        ],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "yq",
        flags: &[
            FlagSpec { names: "-i --inplace --in-place", effect: FlagEffect::EditsInPlace },
            text_flag("-o --output-format -p --input-format -I --indent --arg --argjson"),
            operand_flag("--from-file", WordMeaning::ReadPath),
        ],
        operands: OperandRule::FirstThenRest(WordMeaning::Text, WordMeaning::ReadPath),
        examples: &[
            example("yq -r .name a.yaml", ReadOnly),
            example("yq -i '.a = 1' a.yaml", Modifies),
            example("yq .x /etc/passwd", Blocked),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "xmllint",
        flags: &[
            text_flag("--xpath --pattern --maxmem --encode"),
            output_flag("-o --output"),
            input_flag("--schema --dtdvalid --relaxng --path"),
            harmless_flag("--format --noout --html --valid --nonet --huge --recover --noblanks"),
            effect_flag("--shell --load-trace --xinclude --noent --loaddtd", "possibly read other files"),
        ],
        unlisted_flags: UnlistedFlags::Suspect,
        examples: &[
            example("xmllint --xpath '//a' a.xml", ReadOnly),
            example("xmllint --noent a.xml", Unknown),
            example("xmllint /etc/passwd", Blocked),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "fd fdfind",
        flags: &[
            text_flag(
                "-t --type -e --extension -E --exclude -d --max-depth --min-depth --exact-depth -S --size --changed-within --changed-before -c --color -j --threads --max-results -g --format",
            ),
            input_flag("--search-path --base-directory --ignore-file"),
            harmless_flag(
                "-H --hidden -I --no-ignore -u --unrestricted -s -i -F --fixed-strings -a --absolute-path -l --list-details -p --full-path -0 --print0 -1 -q --glob --regex --no-ignore-vcs",
            ),
            FlagSpec { names: "-L --follow", effect: FlagEffect::Harmless },
            FlagSpec { names: "-x --exec -X --exec-batch", effect: FlagEffect::CommandUntilEnd },
        ],
        unlisted_flags: UnlistedFlags::Suspect,
        operands: OperandRule::FirstThenRest(WordMeaning::Text, WordMeaning::ReadPath),
        examples: &[
            example("fd -e rs todo src", ReadOnly),
            example("fd -e txt -x wc -l {}", ReadOnly),
            example("fd . -x rm", Blocked),
            example("fd x /etc", Blocked),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "bat batcat eza exa",
        flags: &[
            text_flag("-l --language -r --line-range -H --theme --style --color -L --level --sort -I"),
            effect_flag("--pager", "run a command"),
        ],
        examples: &[
            example("bat -p README.md", ReadOnly),
            example("bat /etc/passwd", Blocked),
            example("bat --pager=./x README.md", Unknown),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "iconv",
        flags: &[text_flag("-f --from-code -t --to-code"), output_flag("-o --output")],
        examples: &[
            example("iconv -f latin1 -t utf-8 a.txt", ReadOnly),
            example("iconv -o b.txt -t utf-8 a.txt", Modifies),
            example("iconv -t utf-8 /etc/passwd", Blocked),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "mktemp",
        flags: &[joined_flag("--tmpdir"), output_flag("-p"), text_flag("--suffix")],
        examples: &[example("mktemp -d", Modifies), example("mktemp /etc/x.XXXX", Blocked)],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "dos2unix unix2dos",
        flags: &[harmless_flag("-n -o -k -q")],
        unlisted_flags: UnlistedFlags::Suspect,
        examples: &[example("dos2unix a.txt", Modifies), example("dos2unix /etc/passwd", Blocked)],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "kill",
        operands: TEXT,
        flags: &[text_flag("-s --signal -n")],
        // The sandbox has processes of its own, and no signal leaves it.
        examples: &[example("kill -9 1234", Modifies), example("kill %1", Modifies)],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "pkill killall",
        operands: TEXT,
        flags: &[input_flag("-F --pidfile")],
        examples: &[
            example("pkill -f 'npm run dev'", Modifies),
            example("killall -9 node", Modifies),
            example("pkill -F /etc/x", Blocked),
        ],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "lsof ss",
        operands: OperandRule::All(WordMeaning::PossiblePath),
        flags: &[output_flag("-D --diag"), effect_flag("-K --kill", "close connections")],
        examples: &[
            example("lsof -i :3000", ReadOnly),
            example("lsof -ti:3000", ReadOnly),
            example("ss -tlnp", ReadOnly),
            example("ss -D /etc/x", Blocked),
            example("ss -K dst 1.2.3.4", Unknown),
        ],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "pgrep printenv locale lscpu cal hostname tsort sync bc",
        operands: OperandRule::All(WordMeaning::PossiblePath),
        examples: &[example("pgrep -fl node", ReadOnly), example("tsort /etc/passwd", Blocked)],
        ..ProgramSpec::READ_ONLY
    },
    ProgramSpec {
        names: "diff3 sdiff look zgrep zipinfo",
        flags: &[output_flag("-o --output")],
        operands: OperandRule::All(WordMeaning::PossiblePath),
        examples: &[example("diff3 a.txt b.txt a.txt", ReadOnly), example("look x /etc/passwd", Blocked)],
        ..ProgramSpec::READ_ONLY
    },
];

/// The flags of `openssl` are whole words with one dash, and are the same for most subcommands.
const OPENSSL: &[ProgramSpec] = &[ProgramSpec {
    names: "dgst md5 sha1 sha224 sha256 sha384 sha512 enc base64 rand x509 req genrsa rsa pkey genpkey ec ecparam verify version passwd prime asn1parse crl pkcs8 pkcs12 dhparam",
    flags: &[
        input_flag(
            "-in -key -CAfile -CA -CAkey -signkey -certfile -prverify -verify -sigfile -signature -sign -extfile -inkey -untrusted",
        ),
        output_flag("-out -keyout -outform-file -writerand"),
        text_flag(
            "-subj -newkey -days -set_serial -passin -passout -pass -k -K -iv -S -iter -inform -outform -pkeyopt -algorithm -name -addext -mac -macopt -hmac -salt -nameopt -checkend -extensions -reqexts -purpose",
        ),
        harmless_flag(
            "-noout -text -nodes -noenc -x509 -new -base64 -hex -binary -a -A -d -e -p -P -pbkdf2 -sha1 -sha224 -sha256 -sha384 -sha512 -md5 -sha3-256 -blake2b512 -r -c -n -dates -subject -issuer -fingerprint -serial -enddate -startdate -modulus -pubkey -pubin -pubout -check -batch -help -v -aes256 -aes-256-cbc -aes-128-cbc -aes-256-gcm -des3 -1 -5 -6 -apr1 -topk8 -nocrypt -export -clcerts -nokeys -genkey -traditional -CAcreateserial -req",
        ),
        effect_value_flag(
            "-engine -provider -provider-path -config -rand",
            "load a library or other settings",
        ),
    ],
    unlisted_flags: UnlistedFlags::Suspect,
    operands: OperandRule::All(WordMeaning::ReadPath),
    flag_syntax: FlagSyntax::WholeWords,
    ..ProgramSpec::MODIFYING
}];
