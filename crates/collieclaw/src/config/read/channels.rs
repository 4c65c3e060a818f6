//! `[channels]`.

use ward_diag::{Spanned, Table};

use super::Reader;
use super::words::{put, unknown};
use crate::config::CliChannel;

/// What a new installation offers to the model (C3.1).
pub(in crate::config) const DEFAULT_TOOLS: &[&str] =
    &["file_read", "file_list", "time", "memory_search", "shell"];

impl Reader<'_> {
    pub(super) fn cli(&self, table: Option<Table<'_>>) -> CliChannel {
        let mut cli = CliChannel {
            enabled: true,
            tools_allow: DEFAULT_TOOLS.iter().map(|&tool| tool.to_owned()).collect(),
        };
        let Some(mut channels) = table else { return cli };
        if let Some(mut table) = channels.table("cli") {
            put(&mut cli.enabled, table.optional("enabled"));
            let listed: Option<Vec<Spanned<String>>> = table.optional("tools_allow");
            for tool in listed.iter().flatten() {
                if !self.tools.contains(&tool.value.as_str()) {
                    table.faults().push(unknown(
                        "tool",
                        tool,
                        self.tools.iter().copied(),
                        "see `collieclaw tool list`",
                    ));
                }
            }
            put(&mut cli.tools_allow, listed.map(|tools| tools.into_iter().map(|tool| tool.value).collect()));
            table.finish();
        }
        channels.finish();
        cli
    }
}
