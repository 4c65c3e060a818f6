//! Settings of the built-in drivers (S6.6), shared by the loader, the schema and the host.

/// The settings of one driver.
pub(crate) struct DriverSettings {
    pub(crate) all: &'static [DriverSetting],
    /// At least one of these keys is required.
    pub(crate) require_one_of: &'static [&'static str],
    /// Pairs of keys; the first has no effect without the second.
    pub(crate) depends_on: &'static [(&'static str, &'static str)],
    /// An example for the help text of faults.
    pub(crate) example: &'static str,
}

pub(crate) struct DriverSetting {
    pub(crate) key: &'static str,
    pub(crate) setting_type: SettingType,
    /// Description for the schema.
    pub(crate) meaning: &'static str,
}

/// The type of a setting's value.
#[derive(Clone, Copy)]
pub(crate) enum SettingType {
    /// A size; the driver gets a number of MiB.
    Memory,
    /// A whole number from 1 to `most`.
    Count {
        most: u32,
    },
    Path,
    /// A full path, or a list of at least one.
    PathList,
    Text,
    TextList,
    Boolean,
    /// A program and its arguments.
    Program,
    /// A word of this list.
    OneOf(&'static [&'static str]),
    /// The name of a Flatpak application.
    FlatpakName,
    /// The name of a snap.
    SnapName,
}

/// Types of custom entries with a built-in driver.
pub(crate) const BUILT_IN_TYPES: [&str; 3] = ["flatpak", "snap", "steam"];

/// Settings for entries with `driver = "qemu"`.
const QEMU: DriverSettings = DriverSettings {
    all: &[
        setting("memory", SettingType::Memory, "Memory of the virtual machine. Default: \"1GiB\"."),
        setting("cpus", SettingType::Count { most: 255 }, "Number of processors. Default: 1."),
        setting("disk", SettingType::PathList, "Disk image or list of disk images, as full paths."),
        setting(
            "cdrom",
            SettingType::PathList,
            "Read-only disc image or list of disc images, as full paths.",
        ),
        setting(
            "snapshot",
            SettingType::Boolean,
            "Discard changes of the disks when the machine stops. Default: false.",
        ),
        setting("kernel", SettingType::Path, "Linux kernel to start without a boot loader, as a full path."),
        setting("initrd", SettingType::Path, "Initial file system for the kernel, as a full path."),
        setting("append", SettingType::Text, "Command line of the kernel."),
        setting("machine", SettingType::Text, "QEMU's name for the type of machine."),
        setting(
            "accel",
            SettingType::OneOf(&["kvm", "tcg"]),
            "Hardware (\"kvm\") or software (\"tcg\") virtualisation. Default: hardware if available.",
        ),
        setting(
            "display",
            SettingType::OneOf(&["gtk", "sdl", "none"]),
            "How the screen of the machine is shown. Default: \"gtk\".",
        ),
        setting(
            "network",
            SettingType::OneOf(&["none", "user"]),
            "Network access of the machine. Default: \"none\".",
        ),
        setting(
            "serial",
            SettingType::OneOf(&["none", "log"]),
            "Keep the serial console as output. Default: \"none\".",
        ),
        setting("program", SettingType::Text, "QEMU program. Default: \"qemu-system-x86_64\"."),
        setting("extra", SettingType::TextList, "More arguments for QEMU, passed on unchanged."),
    ],
    require_one_of: &["disk", "cdrom", "kernel"],
    depends_on: &[("initrd", "kernel"), ("append", "kernel"), ("snapshot", "disk")],
    example: "{ memory = \"1GiB\", disk = \"/srv/vm/old.qcow2\" }",
};

/// Settings for entries with `driver = "command"`.
const COMMAND: DriverSettings = DriverSettings {
    all: &[
        setting("argv", SettingType::Program, "Program that runs the machine, and its arguments."),
        setting("cwd", SettingType::Path, "Working folder of the program, as a full path."),
        setting("stop", SettingType::Program, "Command that shuts the machine down."),
    ],
    require_one_of: &["argv"],
    depends_on: &[],
    example: "{ argv = [\"/usr/bin/dosbox\", \"-fullscreen\"] }",
};

/// Settings for entries with `type = "flatpak"`.
const FLATPAK: DriverSettings = DriverSettings {
    all: &[
        setting(
            "app",
            SettingType::FlatpakName,
            "Name of the application, such as \"org.tuxpaint.Tuxpaint\".",
        ),
        ARGS,
    ],
    require_one_of: &["app"],
    depends_on: &[],
    example: "{ app = \"org.tuxpaint.Tuxpaint\" }",
};

/// Settings for entries with `type = "snap"`.
const SNAP: DriverSettings = DriverSettings {
    all: &[
        setting(
            "app",
            SettingType::SnapName,
            "Name of the snap, such as \"gcompris\", or of one of its programs, such as \"gimp.help\".",
        ),
        ARGS,
    ],
    require_one_of: &["app"],
    depends_on: &[],
    example: "{ app = \"gcompris\" }",
};

/// Settings for entries with `type = "steam"`.
const STEAM: DriverSettings = DriverSettings {
    all: &[
        setting(
            "app",
            SettingType::Count { most: u32::MAX },
            "Number in the address of the game's store page.",
        ),
        ARGS,
    ],
    require_one_of: &["app"],
    depends_on: &[],
    example: "{ app = 620 }",
};

const ARGS: DriverSetting = setting("args", SettingType::TextList, "Arguments of the program.");

const fn setting(key: &'static str, setting_type: SettingType, meaning: &'static str) -> DriverSetting {
    DriverSetting { key, setting_type, meaning }
}

/// Returns the settings of a driver for virtual machines or of a built-in type of custom entries.
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

/// Returns the keys that an entry can set for a built-in driver, or `None` for any other driver. Keys of `qemu` and
/// `command` are in `args`, keys of `flatpak`, `snap` and `steam` in `payload`. No other key reaches a host.
///
/// A size (`memory`) reaches the host as a number of MiB, any other value unchanged.
#[must_use]
pub fn setting_keys(driver: &str) -> Option<Vec<&'static str>> {
    driver_settings(driver).map(|settings| settings.all.iter().map(|setting| setting.key).collect())
}
