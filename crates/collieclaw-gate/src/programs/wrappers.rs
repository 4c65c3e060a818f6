//! Programs that run others: wrappers, shells and interpreters.

use super::ExampleOutcome::{Blocked, ReadOnly, Unknown};
use super::{
    FlagEffect, FlagSpec, FlagSyntax, OperandRule, ProgramKind, ProgramSpec, UnlistedFlags, WordMeaning,
    effect_flag, effect_value_flag, example, harmless_flag, input_flag, joined_flag, text_flag,
};

const fn shell_line_flag(names: &'static str) -> FlagSpec {
    FlagSpec { names, effect: FlagEffect::ReplacesOperand(WordMeaning::ShellLine) }
}

pub(super) const PROGRAMS: &[ProgramSpec] = &[
    ProgramSpec {
        names: "env",
        operands: OperandRule::VariablesThenCommand,
        flags: &[
            harmless_flag("-i --ignore-environment -0 --null -v --debug"),
            FlagSpec { names: "-u --unset", effect: FlagEffect::Value(WordMeaning::RemovedVariable) },
            effect_value_flag("-C --chdir", "run in another folder"),
            FlagSpec {
                names: "-S --split-string",
                effect: FlagEffect::ReplacesOperand(WordMeaning::EnvLine),
            },
        ],
        examples: &[
            example("env FOO=1 ls", ReadOnly),
            example("env LD_PRELOAD=./x.so ls", Unknown),
            example("env -u PAGER ls", ReadOnly),
            example("env -u GIT_CONFIG_GLOBAL ls", Unknown),
            example("env --unset=GIT_CONFIG_GLOBAL ls", Unknown),
            example("env -S 'rm -rf /'", Blocked),
            example("env -i rm x", Blocked),
            example("env - rm x", Blocked),
        ],
        ..ProgramSpec::WRAPPER
    },
    ProgramSpec {
        names: "nohup time",
        flags: &[harmless_flag("-p --portability -v --verbose")],
        examples: &[example("nohup rm x", Blocked), example("time ls", ReadOnly)],
        ..ProgramSpec::WRAPPER
    },
    ProgramSpec {
        names: "nice",
        flags: &[text_flag("-n --adjustment")],
        examples: &[example("nice -n 5 ls", ReadOnly), example("nice rm x", Blocked)],
        ..ProgramSpec::WRAPPER
    },
    ProgramSpec {
        names: "ionice",
        flags: &[text_flag("-c --class -n --classdata -p --pid"), harmless_flag("-t --ignore")],
        examples: &[example("ionice -c 3 rm x", Blocked)],
        ..ProgramSpec::WRAPPER
    },
    ProgramSpec {
        names: "timeout",
        flags: &[
            text_flag("-s --signal -k --kill-after"),
            harmless_flag("--foreground --preserve-status -v --verbose"),
        ],
        operands: OperandRule::Command { after: 1 },
        examples: &[example("timeout 5 ls", ReadOnly), example("timeout -k 1 5 rm x", Blocked)],
        ..ProgramSpec::WRAPPER
    },
    ProgramSpec {
        names: "stdbuf",
        flags: &[text_flag("-i --input -o --output -e --error")],
        examples: &[example("stdbuf -oL ls", ReadOnly)],
        ..ProgramSpec::WRAPPER
    },
    ProgramSpec {
        names: "xargs",
        flags: &[
            harmless_flag(
                "-0 --null -r --no-run-if-empty -t --verbose -x --exit -p --interactive -o --open-tty",
            ),
            text_flag(
                "-n --max-args -L -P --max-procs -d --delimiter -s --max-chars -E -I --process-slot-var",
            ),
            joined_flag("-i --replace -e --eof -l --max-lines"),
            input_flag("-a --arg-file"),
        ],
        kind: ProgramKind::AppendsArguments,
        examples: &[
            example("ls | xargs rm", Blocked),
            example("ls | xargs --replace rm x", Blocked),
            example("find . -name '*.rs' | xargs wc -l", Unknown),
            example("xargs -a /etc/passwd echo", Blocked),
        ],
        ..ProgramSpec::ELEVATING
    },
    ProgramSpec {
        names: "sudo doas",
        operands: OperandRule::VariablesThenCommand,
        flags: &[
            text_flag(
                "-u --user -g --group -h --host -p --prompt -C --close-from -r --role -t --type -R --chroot -T --command-timeout -U --other-user -D --chdir -a --auth-type -c --login-class",
            ),
            harmless_flag(
                "-n --non-interactive -S --stdin -E --preserve-env -H --set-home -P --preserve-groups -b --background -A --askpass -k --reset-timestamp -v --validate -l --list",
            ),
            effect_flag("-e --edit -i --login -s --shell", "run an editor or a shell"),
        ],
        examples: &[
            example("sudo rm x", Blocked),
            example("sudo -u kid rm x", Blocked),
            example("sudo -n -u kid -- rm x", Blocked),
            example("sudo ls", Unknown),
        ],
        ..ProgramSpec::ELEVATING
    },
    ProgramSpec {
        names: "su runuser",
        flags: &[
            shell_line_flag("-c --command --session-command"),
            text_flag("-s --shell -g --group -G --supp-group -w --whitelist-environment -u --user"),
        ],
        operands: OperandRule::All(WordMeaning::Text),
        flag_syntax: FlagSyntax::Gnu,
        examples: &[example("su -c 'rm x'", Blocked), example("su kid -c 'rm x'", Blocked)],
        ..ProgramSpec::ELEVATING
    },
    ProgramSpec {
        names: "pkexec",
        flags: &[text_flag("--user")],
        examples: &[example("pkexec --user kid rm x", Blocked)],
        ..ProgramSpec::ELEVATING
    },
    ProgramSpec {
        names: "setsid setpriv unshare nsenter chrt taskset systemd-run systemd-inhibit bwrap proot firejail strace ltrace watch parallel numactl unbuffer catchsegv linux32 linux64 i386 x86_64 setarch prlimit dbus-run-session dbus-launch fakeroot torsocks torify proxychains proxychains4 rlwrap cpulimit chronic eatmydata faketime valgrind xvfb-run start-stop-daemon capsh runcon aa-exec ssh-agent envdir setuidgid softlimit chpst sem entr",
        operands: OperandRule::CommandAnywhere,
        examples: &[
            example("setsid -w rm x", Blocked),
            example("unshare -r --map-users=0,0,1 rm x", Blocked),
            example("strace -f -o out rm x", Blocked),
            example("watch -n 5 rm x", Blocked),
            example("setsid ls", Unknown),
        ],
        ..ProgramSpec::ELEVATING
    },
    ProgramSpec {
        names: "chroot flock",
        flags: &[
            text_flag("--userspec --groups -w --wait --timeout -E --conflict-exit-code"),
            shell_line_flag("-c --command"),
            harmless_flag("-n -x -s -u -o --nonblock --exclusive --shared --unlock --close --skip-chdir"),
        ],
        operands: OperandRule::Command { after: 1 },
        examples: &[
            example("chroot . rm x", Blocked),
            example("flock a.txt rm x", Blocked),
            example("flock a.txt -c 'rm x'", Blocked),
        ],
        flag_syntax: FlagSyntax::Gnu,
        ..ProgramSpec::ELEVATING
    },
    ProgramSpec {
        names: "busybox toybox",
        operands: OperandRule::Applet,
        examples: &[example("busybox rm x", Blocked), example("busybox sh -c 'rm x'", Blocked)],
        ..ProgramSpec::ELEVATING
    },
    ProgramSpec {
        names: "command exec builtin",
        flags: &[harmless_flag("-p -v -V -c -l"), text_flag("-a")],
        examples: &[
            example("command -p rm x", Blocked),
            example("exec -a y rm x", Blocked),
            example("exec ls", Unknown),
            example("exec cat /etc/passwd", Blocked),
        ],
        ..ProgramSpec::ELEVATING
    },
    ProgramSpec {
        names: "script",
        flags: &[
            shell_line_flag("-c --command"),
            text_flag(
                "-E --echo -I --log-in -O --log-out -B --log-io -T --log-timing -m --logging-format -o --output-limit",
            ),
        ],
        operands: OperandRule::All(WordMeaning::WrittenPath),
        flag_syntax: FlagSyntax::Gnu,
        examples: &[example("script -qc 'rm x' /dev/null", Blocked)],
        ..ProgramSpec::ELEVATING
    },
    ProgramSpec {
        names: "sh bash rbash dash zsh ksh ash fish mksh csh tcsh yash",
        kind: ProgramKind::Shell,
        downloads: false,
        flags: &[
            shell_line_flag("-c"),
            text_flag("-o -O"),
            input_flag("--rcfile --init-file"),
            harmless_flag("-e -u -x -n -v -l -s --login --norc --noprofile --posix --version"),
        ],
        unlisted_flags: UnlistedFlags::Suspect,
        operands: OperandRule::FirstThenRest(WordMeaning::ReadPath, WordMeaning::PossiblePath),
        flag_syntax: FlagSyntax::LeadingOnly,
        examples: &[
            example("sh -c 'rm -rf /'", Blocked),
            example("bash -lc 'ls; rm x'", Blocked),
            example("bash -c ls", Unknown),
            example("sh script.sh", Unknown),
        ],
    },
];
