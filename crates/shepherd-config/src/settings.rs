//! What the built-in drivers understand (S6.6): their settings, in one place for the loader, the schema and the host.

/// The settings of one driver.
pub(crate) struct DriverSettings {
    /// All of them.
    pub(crate) all: &'static [DriverSetting],
    /// Without one of these there is nothing to start.
    pub(crate) require_one_of: &'static [&'static str],
    /// The first of each pair does nothing without the second.
    pub(crate) depends_on: &'static [(&'static str, &'static str)],
    /// For who wrote nothing at all.
    pub(crate) example: &'static str,
}

/// One setting.
pub(crate) struct DriverSetting {
    pub(crate) key: &'static str,
    pub(crate) setting_type: SettingType,
    /// What it is, for people.
    pub(crate) meaning: &'static str,
}

/// What a setting looks like.
#[derive(Clone, Copy)]
pub(crate) enum SettingType {
    /// A size; the driver gets a number of MiB.
    Memory,
    /// A whole number from one up to this.
    Count { most: u32 },
    /// A full path.
    Path,
    /// A full path, or a list of at least one.
    PathList,
    /// Any text.
    Text,
    /// Any list of texts.
    TextList,
    /// `true` or `false`.
    Boolean,
    /// A program and its arguments.
    Program,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// The name of a Flatpak application.
    FlatpakName,
    /// The name of a snap.
    SnapName,
}

/// Types of custom entries that need no driver of the policy.
pub(crate) const BUILT_IN_TYPES: [&str; 3] = ["flatpak", "snap", "steam"];

/// `driver = "qemu"`.
const QEMU: DriverSettings = DriverSettings {
    all: &[
        setting("memory", SettingType::Memory, "How much memory the machine has. Usually \"1GiB\"."),
        setting("cpus", SettingType::Count { most: 255 }, "How many processors it has. Usually 1."),
        setting("disk", SettingType::PathList, "Its disk, or several, as full paths."),
        setting("cdrom", SettingType::PathList, "Images of discs that are only read, as full paths."),
        setting(
            "snapshot",
            SettingType::Boolean,
            "Whether what is written to its disks is forgotten. Usually not.",
        ),
        setting("kernel", SettingType::Path, "A Linux kernel to start without a boot loader."),
        setting("initrd", SettingType::Path, "The first file system for that kernel."),
        setting("append", SettingType::Text, "The command line of that kernel."),
        setting("machine", SettingType::Text, "The type of the machine, as QEMU calls it."),
        setting(
            "accel",
            SettingType::OneOf(&["kvm", "tcg"]),
            "Whether the processor helps. Without it: if it can.",
        ),
        setting(
            "display",
            SettingType::OneOf(&["gtk", "sdl", "none"]),
            "How its screen is shown. Usually \"gtk\".",
        ),
        setting(
            "network",
            SettingType::OneOf(&["none", "user"]),
            "Whether it can reach the network. Usually not.",
        ),
        setting(
            "serial",
            SettingType::OneOf(&["none", "log"]),
            "Whether its serial line is kept as output. Usually not.",
        ),
        setting("program", SettingType::Text, "The QEMU to run. Usually \"qemu-system-x86_64\"."),
        setting("extra", SettingType::TextList, "Further arguments for QEMU, as they are."),
    ],
    require_one_of: &["disk", "cdrom", "kernel"],
    depends_on: &[("initrd", "kernel"), ("append", "kernel"), ("snapshot", "disk")],
    example: "{ memory = \"1GiB\", disk = \"/srv/vm/old.qcow2\" }",
};

/// `driver = "command"`.
const COMMAND: DriverSettings = DriverSettings {
    all: &[
        setting("argv", SettingType::Program, "The program that runs the machine, and its arguments."),
        setting("cwd", SettingType::Path, "The folder it starts in, as a full path."),
        setting("stop", SettingType::Program, "A command that powers the machine down."),
    ],
    require_one_of: &["argv"],
    depends_on: &[],
    example: "{ argv = [\"/usr/bin/dosbox\", \"-fullscreen\"] }",
};

/// `type = "flatpak"`.
const FLATPAK: DriverSettings = DriverSettings {
    all: &[
        setting("app", SettingType::FlatpakName, "The application, such as \"org.tuxpaint.Tuxpaint\"."),
        ARGS,
    ],
    require_one_of: &["app"],
    depends_on: &[],
    example: "{ app = \"org.tuxpaint.Tuxpaint\" }",
};

/// `type = "snap"`.
const SNAP: DriverSettings = DriverSettings {
    all: &[
        setting(
            "app",
            SettingType::SnapName,
            "The snap, such as \"gcompris\", or one of its programs: \"gimp.help\".",
        ),
        ARGS,
    ],
    require_one_of: &["app"],
    depends_on: &[],
    example: "{ app = \"gcompris\" }",
};

/// `type = "steam"`.
const STEAM: DriverSettings = DriverSettings {
    all: &[
        setting(
            "app",
            SettingType::Count { most: u32::MAX },
            "The number in the address of its page in the shop.",
        ),
        ARGS,
    ],
    require_one_of: &["app"],
    depends_on: &[],
    example: "{ app = 620 }",
};

const ARGS: DriverSetting = setting("args", SettingType::TextList, "Its arguments.");

const fn setting(key: &'static str, form: SettingType, meaning: &'static str) -> DriverSetting {
    DriverSetting { key, setting_type: form, meaning }
}

/// The settings of a driver of virtual machines, or of a built-in type of custom entries.
pub(crate) fn driver_settings(driver: &str) -> Option<&'static DriverSettings> {
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
    driver_settings(driver).map(|settings| settings.all.iter().map(|setting| setting.key).collect())
}
