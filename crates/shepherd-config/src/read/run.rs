//! Reads how entries run: user, resource limits and window display (S6.5, S6.7).

use shepherd_core::policy::{CompositorConfig, WindowDisplay};
use ward_diag::{ConfigFault, InvalidValue, TomlTable, TomlValue, ValueKind, code};

use super::key_advice::{self, PolicySection};
use super::{entry_kind, household, report_contradiction, size, values};
use crate::raw::{RawResources, RawRun};

/// Largest number of processes on Linux.
const MAX_PROCESSES: u32 = 4_194_304;

/// Least limit on open files; a program needs this many to start.
const LEAST_OPEN_FILES: u32 = 16;

/// Largest number of open files per process on Linux by default.
const MAX_OPEN_FILES: u32 = 1_048_576;

pub(crate) const DISPLAYS: [(&str, WindowDisplay); 3] = [
    ("fullscreen", WindowDisplay::Fullscreen),
    ("foreground", WindowDisplay::Foreground),
    ("as-it-is", WindowDisplay::Unchanged),
];

/// Reads the run settings of an entry or of `[defaults]`.
pub(super) fn read_run(table: &mut TomlTable<'_>) -> RawRun {
    RawRun {
        user: table.optional_with("user", read_user),
        stop_grace: table
            .optional_with("stop_grace", |value| Some(value.spanned(household::read_stop_grace(value)?))),
        output_limit: table.optional_with("output_limit", |value| size::read_size(value, &size::OUTPUT)),
        display: table.optional_with("display", |value| Some(value.spanned(value.one_of(&DISPLAYS)?))),
        resources: table.optional_with("resources", read_resources).unwrap_or_default(),
    }
}

fn read_user(value: TomlValue<'_>) -> Option<String> {
    let root = InvalidValue::new("an entry can't run as root, because its time limit could not be enforced");
    read_user_except_root(value, root.help("write the child's user name"))
}

fn read_compositor_user(value: TomlValue<'_>) -> Option<String> {
    let root = InvalidValue::new("the compositor can't run as root: Sway refuses to");
    read_user_except_root(value, root.help("write the name of a user that runs nothing else"))
}

/// Reads the name of a user. Rejects root with the given message.
fn read_user_except_root(value: TomlValue<'_>, root: InvalidValue) -> Option<String> {
    let name = match value.kind() {
        ValueKind::Integer(_) => "",
        _ => value.non_empty_text()?,
    };
    if name == "root" {
        value.reject(root.code(code::NOT_ALLOWED));
        return None;
    }
    if !values::is_account_name(name) || name.bytes().all(|byte| byte.is_ascii_digit()) {
        let message = format!("`user` is not the name of a user: {}", value.quoted());
        value.reject(
            InvalidValue::new(message).help("write a name, such as \"anna\"; the command `id` shows yours"),
        );
        return None;
    }
    Some(name.to_owned())
}

fn read_resources(value: TomlValue<'_>) -> Option<RawResources> {
    if !matches!(value.kind(), ValueKind::Table) {
        let message = "`resources` must be a table";
        let help = "write `resources = { memory = \"2GiB\", processes = 200 }`";
        value.reject(InvalidValue::new(message).code(code::WRONG_TYPE).help(help));
        return None;
    }
    let mut table = value.table()?;
    let bytes = |table: &mut TomlTable<'_>, key, limits| {
        table.optional_with(key, |value| size::read_limit(value, |value| size::read_size(value, limits)))
    };
    let count = |table: &mut TomlTable<'_>, key, least, most| {
        table
            .optional_with(key, |value| size::read_limit(value, |value| size::read_count(value, least, most)))
    };
    let resources = RawResources {
        memory: bytes(&mut table, "memory", &size::MEMORY),
        processes: count(&mut table, "processes", 1, MAX_PROCESSES),
        cpu: table.optional_with("cpu", |value| size::read_limit(value, size::read_percent)),
        open_files: count(&mut table, "open_files", LEAST_OPEN_FILES, MAX_OPEN_FILES),
        file_size: bytes(&mut table, "file_size", &size::FILE),
    };
    key_advice::finish_table(table, PolicySection::Resources);
    Some(resources)
}

/// Reads the table `[compositor]`.
pub(super) fn read_compositor(mut table: TomlTable<'_>) -> Option<CompositorConfig> {
    let connect = table.optional_with("sway", |value| value.one_of(&[("connect", ())]));
    let socket = table.optional_with("socket", values::read_absolute_path);
    let start = table.optional_with("start", entry_kind::read_argv);
    let user = table.optional_with("user", read_compositor_user);
    let clash = report_contradiction(
        &table,
        &["sway", "start"],
        "keep `sway = \"connect\"` for a running compositor, or `start` for one that Shepherd starts",
    ) || report_contradiction(
        &table,
        &["socket", "start"],
        "remove `socket`: Shepherd knows the socket of a compositor that it starts",
    ) || report_contradiction(
        &table,
        &["sway", "user"],
        "remove `user`: it applies to a compositor that Shepherd starts, and this one is already running",
    );
    let is_set = |key| table.key_span(key).is_some();
    if !clash && !is_set("sway") && !is_set("start") && !table.is_incomplete() {
        let message = "`sway` or `start` is missing in `compositor`";
        table.faults().push(
            ConfigFault::new(code::MISSING_KEY, table.span(), message)
                .help("add `sway = \"connect\"` for a running compositor, or `start = [\"sway\"]`"),
        );
    }
    key_advice::finish_table(table, PolicySection::Compositor);
    match start {
        Some(argv) => Some(CompositorConfig::Start { argv, user }),
        None => connect.map(|()| CompositorConfig::Connect { socket: socket.map(Into::into) }),
    }
}
