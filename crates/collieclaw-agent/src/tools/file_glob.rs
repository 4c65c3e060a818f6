//! The tool `file_glob`, which finds files by a pattern for their paths.

use std::path::PathBuf;

use collieclaw_gate::GateRequest;
use schemars::JsonSchema;
use serde::Deserialize;

use super::file_list::escape_path;
use super::file_search::{compile_glob, shown_base};
use super::timeout::run_with_files;
use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult};
use crate::runtime::CallGrant;
use crate::security::{FileAccess, FileError, WalkFilter, WalkStep};

/// The number of paths in one result, unless the call sets another limit.
const DEFAULT_PATHS: usize = 500;

/// The maximum number of paths in one result.
const MAX_PATHS: usize = 10_000;

/// Space for the facts about the search.
const NOTE_BYTES: usize = 256;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileGlobCall {
    /// The pattern, such as `**/*.rs`, `src/*.{js,ts}` or `Cargo.toml`. Without a slash it matches names in every folder.
    pattern: String,
    /// The folder to look in, relative to the workspace.
    #[serde(default = "default_path")]
    path: String,
    /// The order of the paths.
    #[serde(default)]
    sort: GlobOrder,
    /// If true, files and folders whose names start with a dot are included.
    #[serde(default)]
    hidden: bool,
    /// If true, files that `.gitignore` excludes are included.
    #[serde(default)]
    ignored: bool,
    /// The maximum number of paths to return.
    #[serde(default)]
    limit: Option<usize>,
    /// The number of paths to skip. To read on, use the `next_offset` of the previous result.
    #[serde(default)]
    offset: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum GlobOrder {
    #[default]
    Name,
    /// The file that was changed last comes first.
    Newest,
}

fn default_path() -> String {
    ".".to_owned()
}

impl BuiltInTool for FileGlobCall {
    const NAME: &'static str = "file_glob";
    const DESCRIPTION: &'static str = "Finds files whose paths match a pattern such as `**/*.rs`. Hidden files and files that .gitignore excludes are \
     skipped.";

    fn validate(&self) -> Result<(), String> {
        compile_glob(&self.pattern).map(drop)
    }
}

impl PreparedCall for FileGlobCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::FileList(&self.path)
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        let (path, max_bytes) = (self.path.clone(), context.bounds.max_output_bytes);
        run_with_files(context, &path, move |access| self.find(access, max_bytes.saturating_sub(NOTE_BYTES)))
    }
}

/// A file that matches, with the time of its last change in nanoseconds.
struct MatchingFile {
    path: PathBuf,
    changed: i128,
}

impl FileGlobCall {
    fn find(&self, access: FileAccess<'_>, max_bytes: usize) -> Result<ToolResult, FileError> {
        // The pattern was checked before the call was judged.
        let Ok(glob) = compile_glob(&self.pattern) else {
            return Ok(ToolResult::failed("the pattern can't be used"));
        };
        let filter = WalkFilter { hidden: self.hidden, ignored: self.ignored };
        let base = shown_base(&self.path);
        let mut files = Vec::new();
        let extent = access.walk(&access.absolute_path(&self.path)?, filter, &mut |file| {
            if glob.is_match(&file.path) {
                let status = &file.status;
                let changed = i128::from(status.st_mtime) * 1_000_000_000 + i128::from(status.st_mtime_nsec);
                files.push(MatchingFile { path: base.join(&file.path), changed });
            }
            Ok(WalkStep::Continue)
        })?;
        if self.sort == GlobOrder::Newest {
            files.sort_by(|one, other| {
                other.changed.cmp(&one.changed).then_with(|| one.path.cmp(&other.path))
            });
        }
        Ok(self.format(&files, max_bytes, extent.incomplete))
    }

    fn format(&self, files: &[MatchingFile], max_bytes: usize, incomplete: bool) -> ToolResult {
        let limit = self.limit.unwrap_or(DEFAULT_PATHS).clamp(1, MAX_PATHS);
        let mut output = String::new();
        let mut shown = 0;
        for file in files.iter().skip(self.offset).take(limit) {
            let line = escape_path(&file.path);
            if !output.is_empty() && output.len() + line.len() >= max_bytes {
                break;
            }
            output.push_str(&line);
            output.push('\n');
            shown += 1;
        }
        if files.is_empty() {
            output.push_str("no files match\n");
        }
        let next = self.offset.saturating_add(shown);
        let truncated = next < files.len();
        let mut result = ToolResult::done(output)
            .with_metadata("files", shown)
            .with_metadata("total", files.len())
            .with_metadata("truncated", truncated);
        if incomplete {
            let note = "there are too many files; look in a subfolder with `path`";
            result = result.with_metadata("incomplete", note);
        }
        if truncated {
            let rest = format!("for more paths, call again with `offset` set to {next}");
            result = result.with_metadata("next_offset", next).with_metadata("rest", rest);
        }
        result
    }
}
