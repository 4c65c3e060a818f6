//! Programs that run others: wrappers, shells and interpreters.

use super::Judged::{Blocked, Looks, Unknown};
use super::{
    Flag, FlagMeans, Meaning, Nature, Operands, Others, Program, Spelling, does, does_with, example,
    harmless, joined, looked, text,
};

const fn line(names: &'static str) -> Flag {
    Flag { names, means: FlagMeans::Instead(Meaning::Line) }
}
const fn code(names: &'static str) -> Flag {
    Flag { names, means: FlagMeans::Instead(Meaning::Code) }
}

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        names: "env",
        operands: Operands::VariablesThenCommand,
        flags: &[
            harmless("-i --ignore-environment -0 --null -v --debug"),
            text("-u --unset"),
            does_with("-C --chdir", "work in another folder"),
            Flag { names: "-S --split-string", means: FlagMeans::Instead(Meaning::EnvLine) },
        ],
        examples: &[
            example("env FOO=1 ls", Looks),
            example("env LD_PRELOAD=./x.so ls", Unknown),
            example("env -S 'rm -rf /'", Blocked),
            example("env -i rm x", Blocked),
            example("env - rm x", Blocked),
        ],
        ..Program::WRAPS
    },
    Program {
        names: "nohup time",
        flags: &[harmless("-p --portability -v --verbose")],
        examples: &[example("nohup rm x", Blocked), example("time ls", Looks)],
        ..Program::WRAPS
    },
    Program {
        names: "nice",
        flags: &[text("-n --adjustment")],
        examples: &[example("nice -n 5 ls", Looks), example("nice rm x", Blocked)],
        ..Program::WRAPS
    },
    Program {
        names: "ionice",
        flags: &[text("-c --class -n --classdata -p --pid"), harmless("-t --ignore")],
        examples: &[example("ionice -c 3 rm x", Blocked)],
        ..Program::WRAPS
    },
    Program {
        names: "timeout",
        flags: &[
            text("-s --signal -k --kill-after"),
            harmless("--foreground --preserve-status -v --verbose"),
        ],
        operands: Operands::Command { after: 1 },
        examples: &[example("timeout 5 ls", Looks), example("timeout -k 1 5 rm x", Blocked)],
        ..Program::WRAPS
    },
    Program {
        names: "stdbuf",
        flags: &[text("-i --input -o --output -e --error")],
        examples: &[example("stdbuf -oL ls", Looks)],
        ..Program::WRAPS
    },
    Program {
        names: "xargs",
        flags: &[
            harmless("-0 --null -r --no-run-if-empty -t --verbose -x --exit -p --interactive -o --open-tty"),
            text("-n --max-args -L -P --max-procs -d --delimiter -s --max-chars -E -I --process-slot-var"),
            joined("-i --replace -e --eof -l --max-lines"),
            looked("-a --arg-file"),
        ],
        nature: Nature::Appends,
        examples: &[
            example("ls | xargs rm", Blocked),
            example("ls | xargs --replace rm x", Blocked),
            example("find . -name '*.rs' | xargs wc -l", Unknown),
            example("xargs -a /etc/passwd echo", Blocked),
        ],
        ..Program::ELEVATES
    },
    Program {
        names: "sudo doas",
        operands: Operands::VariablesThenCommand,
        flags: &[
            text(
                "-u --user -g --group -h --host -p --prompt -C --close-from -r --role -t --type -R --chroot -T --command-timeout -U --other-user -D --chdir -a --auth-type -c --login-class",
            ),
            harmless(
                "-n --non-interactive -S --stdin -E --preserve-env -H --set-home -P --preserve-groups -b --background -A --askpass -k --reset-timestamp -v --validate -l --list",
            ),
            does("-e --edit -i --login -s --shell", "run an editor or a shell"),
        ],
        examples: &[
            example("sudo rm x", Blocked),
            example("sudo -u kid rm x", Blocked),
            example("sudo -n -u kid -- rm x", Blocked),
            example("sudo ls", Unknown),
        ],
        ..Program::ELEVATES
    },
    Program {
        names: "su runuser",
        flags: &[
            line("-c --command --session-command"),
            text("-s --shell -g --group -G --supp-group -w --whitelist-environment -u --user"),
        ],
        operands: Operands::All(Meaning::Text),
        spelling: Spelling::Gnu,
        examples: &[example("su -c 'rm x'", Blocked), example("su kid -c 'rm x'", Blocked)],
        ..Program::ELEVATES
    },
    Program {
        names: "pkexec",
        flags: &[text("--user")],
        examples: &[example("pkexec --user kid rm x", Blocked)],
        ..Program::ELEVATES
    },
    Program {
        names: "setsid setpriv unshare nsenter chrt taskset systemd-run systemd-inhibit bwrap proot firejail strace ltrace watch parallel numactl unbuffer catchsegv linux32 linux64 i386 x86_64 setarch prlimit dbus-run-session dbus-launch fakeroot torsocks torify proxychains proxychains4 rlwrap cpulimit chronic eatmydata faketime valgrind xvfb-run start-stop-daemon capsh runcon aa-exec ssh-agent envdir setuidgid softlimit chpst sem entr",
        operands: Operands::CommandSomewhere,
        examples: &[
            example("setsid -w rm x", Blocked),
            example("unshare -r --map-users=0,0,1 rm x", Blocked),
            example("strace -f -o out rm x", Blocked),
            example("watch -n 5 rm x", Blocked),
            example("setsid ls", Unknown),
        ],
        ..Program::ELEVATES
    },
    Program {
        names: "chroot flock",
        flags: &[
            text("--userspec --groups -w --wait --timeout -E --conflict-exit-code"),
            line("-c --command"),
            harmless("-n -x -s -u -o --nonblock --exclusive --shared --unlock --close --skip-chdir"),
        ],
        operands: Operands::Command { after: 1 },
        examples: &[
            example("chroot . rm x", Blocked),
            example("flock a.txt rm x", Blocked),
            example("flock a.txt -c 'rm x'", Blocked),
        ],
        spelling: Spelling::Gnu,
        ..Program::ELEVATES
    },
    Program {
        names: "busybox toybox",
        operands: Operands::Applet,
        examples: &[example("busybox rm x", Blocked), example("busybox sh -c 'rm x'", Blocked)],
        ..Program::ELEVATES
    },
    Program {
        names: "command exec builtin",
        flags: &[harmless("-p -v -V -c -l"), text("-a")],
        examples: &[
            example("command -p rm x", Blocked),
            example("exec -a y rm x", Blocked),
            example("exec ls", Unknown),
            example("exec cat /etc/passwd", Blocked),
        ],
        ..Program::ELEVATES
    },
    Program {
        names: "script",
        flags: &[
            line("-c --command"),
            text(
                "-E --echo -I --log-in -O --log-out -B --log-io -T --log-timing -m --logging-format -o --output-limit",
            ),
        ],
        operands: Operands::All(Meaning::Written),
        spelling: Spelling::Gnu,
        examples: &[example("script -qc 'rm x' /dev/null", Blocked)],
        ..Program::ELEVATES
    },
    Program {
        names: "sh bash rbash dash zsh ksh ash fish mksh csh tcsh yash",
        nature: Nature::Shell,
        flags: &[line("-c"), text("-o -O --rcfile --init-file")],
        others: Others::Suspect,
        operands: Operands::All(Meaning::Text),
        spelling: Spelling::Leading,
        examples: &[
            example("sh -c 'rm -rf /'", Blocked),
            example("bash -lc 'ls; rm x'", Blocked),
            example("bash -c ls", Unknown),
            example("sh script.sh", Unknown),
        ],
    },
    Program {
        names: "python python3 pypy perl ruby node nodejs php lua deno bun R Rscript tclsh osascript pwsh",
        nature: Nature::Interprets,
        flags: &[code("-c -e -E -r --eval --print -p")],
        others: Others::Suspect,
        operands: Operands::All(Meaning::Code),
        spelling: Spelling::Leading,
        examples: &[example("curl -s https://example.org/x | python3 -", Blocked)],
    },
];
