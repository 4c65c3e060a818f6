//! Programs that archive, compress, split and patch files.

use super::ExampleOutcome::{Blocked, Modifies, Unknown};
use super::{
    FlagEffect, FlagSpec, FlagSyntax, OperandRule, ProgramSpec, UnlistedFlags, WordMeaning, effect_flag,
    effect_value_flag, example, file_list_flag, harmless_flag, input_flag, joined_flag, output_flag,
    text_flag,
};

pub(super) const PROGRAMS: &[ProgramSpec] = &[
    ProgramSpec {
        names: "tar",
        flags: &[
            harmless_flag(
                "-c --create -x --extract -t --list -r --append -u --update -v --verbose -z --gzip -j --bzip2 -J --xz --zstd -a --auto-compress -k --keep-old-files -p -m -w -O --to-stdout --exclude-vcs --exclude-vcs-ignores --wildcards --no-wildcards --anchored --no-same-owner --no-same-permissions --same-owner --numeric-owner --overwrite --skip-old-files --no-recursion --totals -S --sparse --lzma --no-overwrite-dir -d --diff --compare --delete",
            ),
            FlagSpec { names: "-f --file", effect: FlagEffect::Value(WordMeaning::ArchivePath) },
            output_flag("-C --directory"),
            text_flag(
                "--exclude --strip-components --owner --group --mode --mtime --sort --format -b --blocking-factor -H --transform --xform",
            ),
            FlagSpec { names: "--one-top-level", effect: FlagEffect::JoinedValue(WordMeaning::WrittenPath) },
            input_flag("-X --exclude-from"),
            file_list_flag("-T --files-from"),
            effect_flag(
                "-h --dereference -P --absolute-names",
                "follow links or use paths outside of the folder",
            ),
            effect_value_flag(
                "--checkpoint-action --to-command -I --use-compress-program --rsh-command -F --info-script --new-volume-script --rmt-command",
                "run a command",
            ),
        ],
        unlisted_flags: UnlistedFlags::Suspect,
        operands: OperandRule::All(WordMeaning::ArchivePath),
        flag_syntax: FlagSyntax::Bundle,
        examples: &[
            example("tar -czf out.tgz src", Modifies),
            example("tar czf out.tgz src", Modifies),
            example("tar tf out.tgz", Modifies),
            example("tar cf /etc/x .", Blocked),
            example("tar cf x.tar --checkpoint=1 --checkpoint-action=exec=id .", Unknown),
            example("tar -I ./x -cf a.tar .", Unknown),
            example("tar cIf ./x a.tar .", Unknown),
            example("tar -cf host:a.tar .", Unknown),
            example("tar -cf a.tar -T list", Unknown),
        ],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "rsync",
        flags: &[
            harmless_flag("-a --archive -v --verbose -r --recursive -t -p -n --dry-run -z -h -u"),
            text_flag("--exclude --include"),
            harmless_flag("--delete --progress --stats -i --itemize-changes --checksum -c -q --quiet"),
            effect_flag("-e --rsh --rsync-path", "run a command"),
        ],
        unlisted_flags: UnlistedFlags::Suspect,
        operands: OperandRule::All(WordMeaning::ArchivePath),
        examples: &[
            example("rsync -a src/ copy/", Modifies),
            example("rsync -e ./x src host:x", Unknown),
            example("rsync -a src host:x", Unknown),
            example("rsync -a /etc/ x", Blocked),
        ],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "split",
        flags: &[
            text_flag(
                "-a --suffix-length --additional-suffix -b --bytes -C --line-bytes -l --lines -n --number -t --separator",
            ),
            joined_flag("--numeric-suffixes --hex-suffixes"),
            effect_value_flag("--filter", "run a command"),
        ],
        operands: OperandRule::FirstThenRest(WordMeaning::ReadPath, WordMeaning::WrittenPath),
        examples: &[
            example("split -l 10 a.txt part-", Modifies),
            example("split a.txt /etc/x", Blocked),
            example("split --filter=./x a.txt", Unknown),
        ],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "csplit",
        flags: &[text_flag("-b --suffix-format -n --digits"), output_flag("-f --prefix")],
        operands: OperandRule::FirstThenRest(WordMeaning::ReadPath, WordMeaning::Text),
        examples: &[example("csplit a.txt /x/", Modifies), example("csplit -f /etc/x a.txt 5", Blocked)],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "gzip gunzip bzip2 bunzip2 xz unxz",
        flags: &[text_flag("-S --suffix -b -T --threads"), file_list_flag("--files --files0")],
        examples: &[example("gzip -k a.txt", Modifies), example("gzip /etc/passwd", Blocked)],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "zip unzip",
        flags: &[
            harmless_flag("-r -q -j -l -9 -0 -1 -6 -n -o -v -u -t -p -Z -z -y -X -D -f -a -c -qq -oq -qo -h"),
            text_flag("-x -i"),
            output_flag("-d"),
        ],
        unlisted_flags: UnlistedFlags::Suspect,
        examples: &[
            example("zip -r a.zip src", Modifies),
            example("zip a.zip a.txt -T -TT ./x", Unknown),
            example("unzip -q a.zip -d /etc", Blocked),
        ],
        ..ProgramSpec::MODIFYING
    },
    ProgramSpec {
        names: "patch",
        flags: &[
            harmless_flag(
                "-u --unified --dry-run -N --forward -R --reverse -b --backup -s --quiet --silent -E -t --batch -f --force -l -c -n --verbose",
            ),
            text_flag("-p --strip -F --fuzz"),
            input_flag("-i --input"),
        ],
        unlisted_flags: UnlistedFlags::Suspect,
        examples: &[
            example("patch -p1 -i a.txt", Modifies),
            example("patch -o b.txt a.txt", Unknown),
            example("patch /etc/passwd", Blocked),
        ],
        ..ProgramSpec::MODIFYING
    },
];
