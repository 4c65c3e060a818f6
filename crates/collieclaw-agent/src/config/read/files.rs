//! Reads the sections `[memory]` and `[receipts]`: files that tools must not be able to change.

use std::path::{Path, PathBuf};

use ward_diag::{ConfigFault, FaultCollector, Spanned, TomlTable, TomlValue, code};

use super::ConfigReader;
use super::values::set_if_some;
use crate::config::real_path::resolve_real_path;
use crate::config::{MemoryBackendKind, MemorySettings, ReceiptSettings};

/// The name of the database, and the name that earlier versions gave it.
const MEMORY_NAME: &str = "memory.sqlite";
const OLD_MEMORY_NAME: &str = "memory.db";

/// Returns the path of the database. A database of an earlier version is used as long as there is no other.
fn default_memory_path(home: &Path) -> PathBuf {
    let exists = |name: &str| home.join(name).symlink_metadata().is_ok();
    let is_old = exists(OLD_MEMORY_NAME) && !exists(MEMORY_NAME);
    home.join(if is_old { OLD_MEMORY_NAME } else { MEMORY_NAME })
}

impl ConfigReader<'_> {
    pub(super) fn memory(
        &self,
        table: Option<TomlTable<'_>>,
        workspace: &Spanned<PathBuf>,
    ) -> MemorySettings {
        let home = &self.context.home;
        let mut memory = MemorySettings {
            backend: MemoryBackendKind::Sqlite,
            path: default_memory_path(home),
            recent_turns: 40,
        };
        let Some(mut table) = table else { return memory };
        set_if_some(
            &mut memory.backend,
            table.optional_with("backend", |value| value.one_of(&[("sqlite", MemoryBackendKind::Sqlite)])),
        );
        let path = self.read_path(&mut table, "path", home);
        self.check_outside_workspace(path.as_ref(), workspace, table.faults());
        set_if_some(&mut memory.path, path.map(|path| path.value));
        let recent_turns =
            |value: TomlValue<'_>| value.integer_in(0..=10_000).and_then(|turns| turns.try_into().ok());
        set_if_some(&mut memory.recent_turns, table.optional_with("recent_turns", recent_turns));
        table.finish();
        memory
    }

    pub(super) fn receipts(
        &self,
        table: Option<TomlTable<'_>>,
        workspace: &Spanned<PathBuf>,
    ) -> ReceiptSettings {
        let home = &self.context.home;
        let mut receipts =
            ReceiptSettings { enabled: true, path: home.join("tool_receipts.log"), signed: true };
        let Some(mut table) = table else { return receipts };
        set_if_some(&mut receipts.enabled, table.optional("enabled"));
        let path = self.read_path(&mut table, "path", home);
        self.check_outside_workspace(path.as_ref(), workspace, table.faults());
        set_if_some(&mut receipts.path, path.map(|path| path.value));
        set_if_some(&mut receipts.signed, table.optional("signed"));
        table.finish();
        receipts
    }

    /// Rejects a file in the workspace, where the agent's tools could change it (C7.4).
    pub(super) fn check_outside_workspace(
        &self,
        path: Option<&Spanned<PathBuf>>,
        workspace: &Spanned<PathBuf>,
        faults: &FaultCollector,
    ) {
        let Some(path) = path else { return };
        let [file, folder, home] =
            [&path.value, &workspace.value, &self.context.home].map(|path| resolve_real_path(path));
        if file.starts_with(folder) && !file.starts_with(home) {
            faults.push(
                ConfigFault::new(
                    code::INVALID,
                    path.span,
                    "this path is in the workspace, where the agent could change it",
                )
                .related(workspace.span, "the workspace")
                .help("remove the key to use the default in CollieClaw's own folder"),
            );
        }
    }
}
