//! `[memory]` and `[receipts]`: what the agent writes and must not rewrite.

use std::path::PathBuf;

use ward_diag::{Fault, Faults, Spanned, Table, Value, code};

use super::Reader;
use super::words::put;
use crate::config::place::real;
use crate::config::{Backend, MemoryFile, ReceiptFile};

impl Reader<'_> {
    pub(super) fn memory(&self, table: Option<Table<'_>>, workspace: &Spanned<PathBuf>) -> MemoryFile {
        let home = &self.surroundings.home;
        let mut memory =
            MemoryFile { backend: Backend::Sqlite, path: home.join("memory.db"), recent_turns: 40 };
        let Some(mut table) = table else { return memory };
        put(
            &mut memory.backend,
            table.optional_with("backend", |value| value.one_of(&[("sqlite", Backend::Sqlite)])),
        );
        let path = self.path(&mut table, "path", home);
        self.out_of_reach(path.as_ref(), workspace, table.faults());
        put(&mut memory.path, path.map(|path| path.value));
        let most = |value: Value<'_>| value.integer_in(0..=10_000).and_then(|turns| turns.try_into().ok());
        put(&mut memory.recent_turns, table.optional_with("recent_turns", most));
        table.finish();
        memory
    }

    pub(super) fn receipts(&self, table: Option<Table<'_>>, workspace: &Spanned<PathBuf>) -> ReceiptFile {
        let home = &self.surroundings.home;
        let mut receipts = ReceiptFile { enabled: true, path: home.join("tool_receipts.log"), signed: true };
        let Some(mut table) = table else { return receipts };
        put(&mut receipts.enabled, table.optional("enabled"));
        let path = self.path(&mut table, "path", home);
        self.out_of_reach(path.as_ref(), workspace, table.faults());
        put(&mut receipts.path, path.map(|path| path.value));
        put(&mut receipts.signed, table.optional("signed"));
        table.finish();
        receipts
    }

    /// What the agent writes it must not be able to rewrite (C7.4).
    pub(super) fn out_of_reach(
        &self,
        path: Option<&Spanned<PathBuf>>,
        workspace: &Spanned<PathBuf>,
        faults: &Faults,
    ) {
        let Some(path) = path else { return };
        let [file, folder, home] =
            [&path.value, &workspace.value, &self.surroundings.home].map(|path| real(path));
        if file.starts_with(folder) && !file.starts_with(home) {
            faults.push(
                Fault::new(
                    code::INVALID,
                    path.span,
                    "this lies in the workspace, where the agent could change it",
                )
                .related(workspace.span, "the workspace")
                .help("leave the key out, and it lies in CollieClaw's own folder"),
            );
        }
    }
}
