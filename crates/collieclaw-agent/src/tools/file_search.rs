//! The tool `file_search`, which finds lines in files with a regular expression. The search is done by the libraries of
//! ripgrep, in time that grows only linearly with the text; the files are opened through the workspace's handle.

mod match_sink;

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use collieclaw_gate::GateRequest;
use globset::{Glob, GlobBuilder, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use schemars::JsonSchema;
use serde::Deserialize;

use super::timeout::run_with_files;
use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult};
use crate::runtime::CallGrant;
use crate::security::{FileAccess, FileError, WalkFilter, WalkStep};
use match_sink::{MatchCollector, MatchSink};

/// The number of matching lines in one result, unless the call sets another limit.
const DEFAULT_MATCHES: usize = 200;

/// The maximum number of matching lines in one result.
const MAX_MATCHES: usize = 5_000;

/// The maximum number of lines around each match.
const MAX_CONTEXT: usize = 20;

/// The maximum length of a pattern.
const MAX_PATTERN_BYTES: usize = 4_096;

/// The maximum memory of a compiled pattern. A larger one is rejected before anything is read.
const MAX_REGEX_BYTES: usize = 2 << 20;

/// The maximum length of a line in memory. Files with longer lines are skipped.
const MAX_LINE_BYTES: usize = 8 << 20;

/// The size of the first read of a file: all of most source files.
const FIRST_READ_BYTES: usize = 16 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileSearchCall {
    /// The regular expression that a line has to contain, such as `fn \w+_test`.
    pattern: String,
    /// The file or folder to search, relative to the workspace.
    #[serde(default = "default_path")]
    path: String,
    /// Searches only files whose path matches this pattern, such as `*.rs` or `src/**/*.py`.
    #[serde(default)]
    glob: Option<String>,
    /// If true, the pattern is plain text and not a regular expression.
    #[serde(default)]
    fixed: bool,
    /// If true, upper and lower case are the same.
    #[serde(default)]
    ignore_case: bool,
    /// The number of lines to show before and after each match.
    #[serde(default)]
    context: usize,
    /// If true, files and folders whose names start with a dot are searched as well.
    #[serde(default)]
    hidden: bool,
    /// If true, files that `.gitignore` excludes are searched as well.
    #[serde(default)]
    ignored: bool,
    /// The maximum number of matching lines to return.
    #[serde(default)]
    limit: Option<usize>,
    /// The number of matching lines to skip. To read on, use the `next_offset` of the previous result.
    #[serde(default)]
    offset: usize,
}

fn default_path() -> String {
    ".".to_owned()
}

impl BuiltInTool for FileSearchCall {
    const NAME: &'static str = "file_search";
    const DESCRIPTION: &'static str = "Searches the text of files for a regular expression, and returns the matching lines as `path:line:text`. \
     Hidden files, binary files and files that .gitignore excludes are skipped.";

    fn validate(&self) -> Result<(), String> {
        self.matcher()?;
        self.glob.as_deref().map(compile_glob).transpose()?;
        match self.context {
            0..=MAX_CONTEXT => Ok(()),
            _ => Err(format!("`context` must be at most {MAX_CONTEXT}")),
        }
    }
}

impl PreparedCall for FileSearchCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::FileList(&self.path)
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        let (path, max_bytes) = (self.path.clone(), context.bounds.max_output_bytes);
        run_with_files(context, &path, move |access| self.search(access, max_bytes))
    }
}

impl FileSearchCall {
    fn matcher(&self) -> Result<RegexMatcher, String> {
        if self.pattern.is_empty() || self.pattern.len() > MAX_PATTERN_BYTES {
            return Err(format!("`pattern` must have between 1 and {MAX_PATTERN_BYTES} bytes"));
        }
        let mut builder = RegexMatcherBuilder::new();
        builder
            .line_terminator(Some(b'\n'))
            .case_insensitive(self.ignore_case)
            .fixed_strings(self.fixed)
            .size_limit(MAX_REGEX_BYTES)
            .dfa_size_limit(MAX_REGEX_BYTES);
        builder.build(&self.pattern).map_err(|error| {
            format!(
                "`pattern` is not a usable regular expression: {error}; for plain text, set `fixed` to true"
            )
        })
    }

    fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .line_number(true)
            .before_context(self.context)
            .after_context(self.context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_LINE_BYTES))
            .build()
    }

    fn search(&self, access: FileAccess<'_>, max_bytes: usize) -> Result<ToolResult, FileError> {
        // Both were checked before the call was judged.
        let (Ok(matcher), Ok(glob)) = (self.matcher(), self.glob.as_deref().map(compile_glob).transpose())
        else {
            return Ok(ToolResult::failed("the pattern can't be used"));
        };
        let limit = self.limit.unwrap_or(DEFAULT_MATCHES).clamp(1, MAX_MATCHES);
        let mut found = MatchCollector::new(self.offset, limit, max_bytes);
        let mut searcher = self.searcher();
        let mut search_file = |file: File, shown: PathBuf, found: &mut MatchCollector| {
            found.begin_file(shown);
            // The searcher asks for the first three bytes alone, to tell the encoding.
            let reader = BufReader::with_capacity(FIRST_READ_BYTES, TimedReader { file, access });
            match searcher.search_reader(&matcher, reader, MatchSink::new(&matcher, found)) {
                Ok(()) => {}
                Err(_) => found.skip_file(),
            }
            // An error of the reader may be the deadline, which ends the whole call.
            access.check_deadline()
        };
        let path = access.absolute_path(&self.path)?;
        let mut incomplete = false;
        match access.open_for_reading(&path) {
            Ok(file) => search_file(file.into(), PathBuf::from(&self.path), &mut found)?,
            Err(FileError::IsAFolder) => {
                let filter = WalkFilter { hidden: self.hidden, ignored: self.ignored };
                let base = shown_base(&self.path);
                let extent = access.walk(&path, filter, &mut |file| {
                    if !file.is_regular() || !glob.as_ref().is_none_or(|glob| glob.is_match(&file.path)) {
                        return Ok(WalkStep::Continue);
                    }
                    // A file that can't be opened is skipped; it may be another user's.
                    let Ok(opened) = file.open() else { return Ok(WalkStep::Continue) };
                    search_file(opened, base.join(&file.path), &mut found)?;
                    Ok(if found.is_full() { WalkStep::Stop } else { WalkStep::Continue })
                })?;
                incomplete = extent.incomplete;
            }
            Err(error) => return Err(error),
        }
        Ok(found.into_result(incomplete))
    }
}

/// Returns the path before the names in a result, so that other tools can use them as they are.
pub(super) fn shown_base(path: &str) -> &Path {
    match path {
        "." | "./" => Path::new(""),
        path => Path::new(path),
    }
}

/// Compiles a pattern for paths. A pattern without a slash matches names in every folder.
pub(super) fn compile_glob(pattern: &str) -> Result<GlobMatcher, String> {
    if pattern.is_empty() || pattern.len() > MAX_PATTERN_BYTES {
        return Err(format!("a pattern for paths must have between 1 and {MAX_PATTERN_BYTES} bytes"));
    }
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let everywhere;
    let whole = if pattern.contains('/') {
        pattern
    } else {
        everywhere = format!("**/{pattern}");
        &everywhere
    };
    let compiled: Result<Glob, _> =
        GlobBuilder::new(whole).literal_separator(true).backslash_escape(true).build();
    compiled.map(|glob| glob.compile_matcher()).map_err(|error| format!("invalid pattern for paths: {error}"))
}

/// A reader that fails as soon as the call has to stop, so that a huge file doesn't delay it.
struct TimedReader<'a> {
    file: File,
    access: FileAccess<'a>,
}

impl Read for TimedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.access.check_deadline().map_err(io::Error::other)?;
        self.file.read(buffer)
    }
}
