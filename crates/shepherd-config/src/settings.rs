//! What the built-in drivers understand (S6.6): their settings, in one place for the loader, the schema and the host.

/// The settings of one driver.
pub(crate) struct Settings {
    /// All of them.
    pub(crate) all: &'static [Setting],
    /// Without one of these there is nothing to start.
    pub(crate) one_of: &'static [&'static str],
    /// The first of each pair does nothing without the second.
    pub(crate) together: &'static [(&'static str, &'static str)],
    /// For who wrote nothing at all.
    pub(crate) example: &'static str,
}

/// One setting.
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    pub(crate) form: Form,
    /// What it is, for people.
    pub(crate) meaning: &'static str,
}

/// What a setting looks like.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// A size; the driver gets a number of MiB.
    Memory,
    /// A whole number from one up to this.
    Count { most: u32 },
    /// A full path.
    Path,
    /// A full path, or a list of at least one.
    Paths,
    /// Any text.
    Text,
    /// Any list of texts.
    Texts,
    /// `true` or `false`.
    Truth,
    /// A program and its arguments.
    Program,
    /// One of these words.
    Word(&'static [&'static str]),
    /// The name of a Flatpak application.
    FlatpakName,
    /// The name of a snap.
    SnapName,
}

/// Types of custom entries that need no driver of the policy.
pub(crate) const BUILT_IN_TYPES: [&str; 3] = ["flatpak", "snap", "steam"];

/// `driver = "qemu"`.
const QEMU: Settings = Settings {
    all: &[
        setting("memory", Form::Memory, "How much memory the machine has. Usually \"1GiB\"."),
        setting("cpus", Form::Count { most: 255 }, "How many processors it has. Usually 1."),
        setting("disk", Form::Paths, "Its disk, or several, as full paths."),
        setting("cdrom", Form::Paths, "Images of discs that are only read, as full paths."),
        setting("snapshot", Form::Truth, "Whether what is written to its disks is forgotten. Usually not."),
        setting("kernel", Form::Path, "A Linux kernel to start without a boot loader."),
        setting("initrd", Form::Path, "The first file system for that kernel."),
        setting("append", Form::Text, "The command line of that kernel."),
        setting("machine", Form::Text, "The type of the machine, as QEMU calls it."),
        setting("accel", Form::Word(&["kvm", "tcg"]), "Whether the processor helps. Without it: if it can."),
        setting("display", Form::Word(&["gtk", "sdl", "none"]), "How its screen is shown. Usually \"gtk\"."),
        setting("network", Form::Word(&["none", "user"]), "Whether it can reach the network. Usually not."),
        setting(
            "serial",
            Form::Word(&["none", "log"]),
            "Whether its serial line is kept as output. Usually not.",
        ),
        setting("program", Form::Text, "The QEMU to run. Usually \"qemu-system-x86_64\"."),
        setting("extra", Form::Texts, "Further arguments for QEMU, as they are."),
    ],
    one_of: &["disk", "cdrom", "kernel"],
    together: &[("initrd", "kernel"), ("append", "kernel"), ("snapshot", "disk")],
    example: "{ memory = \"1GiB\", disk = \"/srv/vm/old.qcow2\" }",
};

/// `driver = "command"`.
const COMMAND: Settings = Settings {
    all: &[
        setting("argv", Form::Program, "The program that runs the machine, and its arguments."),
        setting("cwd", Form::Path, "The folder it starts in, as a full path."),
        setting("stop", Form::Program, "A command that powers the machine down."),
    ],
    one_of: &["argv"],
    together: &[],
    example: "{ argv = [\"/usr/bin/dosbox\", \"-fullscreen\"] }",
};

/// `type = "flatpak"`.
const FLATPAK: Settings = Settings {
    all: &[setting("app", Form::FlatpakName, "The application, such as \"org.tuxpaint.Tuxpaint\"."), ARGS],
    one_of: &["app"],
    together: &[],
    example: "{ app = \"org.tuxpaint.Tuxpaint\" }",
};

/// `type = "snap"`.
const SNAP: Settings = Settings {
    all: &[
        setting(
            "app",
            Form::SnapName,
            "The snap, such as \"gcompris\", or one of its programs: \"gimp.help\".",
        ),
        ARGS,
    ],
    one_of: &["app"],
    together: &[],
    example: "{ app = \"gcompris\" }",
};

/// `type = "steam"`.
const STEAM: Settings = Settings {
    all: &[
        setting("app", Form::Count { most: u32::MAX }, "The number in the address of its page in the shop."),
        ARGS,
    ],
    one_of: &["app"],
    together: &[],
    example: "{ app = 620 }",
};

const ARGS: Setting = setting("args", Form::Texts, "Its arguments.");

const fn setting(key: &'static str, form: Form, meaning: &'static str) -> Setting {
    Setting { key, form, meaning }
}

/// The settings of a driver of virtual machines, or of a built-in type of custom entries.
pub(crate) fn settings(driver: &str) -> Option<&'static Settings> {
    match driver {
        "qemu" => Some(&QEMU),
        "command" => Some(&COMMAND),
        "flatpak" => Some(&FLATPAK),
        "snap" => Some(&SNAP),
        "steam" => Some(&STEAM),
        _ => None,
    }
}

/// The keys that an entry can give to a built-in driver: `qemu` or `command` in `args`, `flatpak`, `snap` or `steam`
/// in `payload`. No other key ever reaches a host. `None` for a driver that is not built in.
///
/// What is written as a size (`memory`) reaches the host as a number of MiB, all else as it is written.
#[must_use]
pub fn setting_keys(driver: &str) -> Option<Vec<&'static str>> {
    settings(driver).map(|settings| settings.all.iter().map(|setting| setting.key).collect())
}
