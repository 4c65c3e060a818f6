//! The tool `pdf_extract`, which returns the text of a PDF.
//!
//! PDF readers have a long history of security holes. So the system's `pdftotext` reads the file in a sandbox
//! without access to anything else: it gets the opened file as its standard input and can only print, within
//! the limits of every tool.

use collieclaw_gate::plan::{PlannedAction, PlannedCommand, PlannedRedirection, PlannedTarget};
use collieclaw_gate::{GateRequest, MachineFacts};
use schemars::JsonSchema;
use serde::Deserialize;
use ward_process::ProcessExit;
use ward_process::sandbox::SandboxNetwork;

use super::shell::{ExecutionOutput, LineEnd, PlanExecutor, exit_code};
use super::tool_sandbox::{SandboxAccess, ToolSandbox, WorkspaceAccess};
use super::toolchain_access::ToolchainAccess;
use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult, truncate_text};
use crate::runtime::CallGrant;
use crate::security::SystemFacts;

const PDF_READER: &str = "pdftotext";

/// The exit code of the reader for pages that don't exist.
const NO_SUCH_PAGE: i32 = 99;

/// The character that ends a page in the reader's output.
const PAGE_END: char = '\u{c}';

/// The maximum length of the reader's error message in a result.
const MAX_COMPLAINT_BYTES: usize = 300;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PdfExtractCall {
    /// The file, relative to the workspace.
    path: String,
    /// The first page to read; 1 if absent.
    #[serde(default = "first")]
    first_page: u32,
    /// The last page to read; the last page of the file if absent.
    #[serde(default)]
    last_page: Option<u32>,
}

fn first() -> u32 {
    1
}

impl BuiltInTool for PdfExtractCall {
    const NAME: &'static str = "pdf_extract";
    const DESCRIPTION: &'static str =
        "Reads the text of a PDF file, page by page. Read long files a few pages at a time.";

    fn validate(&self) -> Result<(), String> {
        if self.first_page == 0 || self.last_page.is_some_and(|last| last < self.first_page) {
            return Err("page numbers start at 1, and `last_page` must not be before `first_page`".to_owned());
        }
        Ok(())
    }
}

impl PreparedCall for PdfExtractCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::FileRead(&self.path)
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        match self.run(context) {
            Ok(output) => self.format_result(output, context),
            Err(error) => ToolResult::failed(error),
        }
    }
}

impl PdfExtractCall {
    fn run(&self, context: &ToolContext<'_>) -> Result<ExecutionOutput, String> {
        let Some(program) = SystemFacts.find_program(PDF_READER) else {
            return Err(format!("`{PDF_READER}` is not installed; it is part of the package poppler-utils"));
        };
        let access = context.workspace.access_under(context.policy);
        // A file that can't be opened is reported here; otherwise it would look like an error of the reader.
        let place =
            access.absolute_path(&self.path).and_then(|place| access.open_for_reading(&place).map(|_| place));
        let place = place.map_err(|error| format!("`{}` {error}", self.path))?;
        let place = place.to_str().ok_or("the path is not valid UTF-8")?.to_owned();
        let time = context.bounds.tool_timeout;
        let sandbox_access = SandboxAccess {
            workspace: WorkspaceAccess::Closed,
            network: SandboxNetwork::Off,
            own_program: None,
            programs: Vec::new(),
            toolchain: ToolchainAccess::default(),
            timeout: time,
        };
        let mut words: Vec<String> =
            [PDF_READER, "-enc", "UTF-8", "-f"].into_iter().map(str::to_owned).collect();
        words.push(self.first_page.to_string());
        if let Some(last) = self.last_page {
            words.extend(["-l".to_owned(), last.to_string()]);
        }
        words.extend(["-", "-"].map(str::to_owned));
        let command = PlannedCommand {
            action: PlannedAction::Run { program, words, variables: Vec::new() },
            folder: "/".into(),
            redirections: vec![PlannedRedirection { descriptor: 0, target: PlannedTarget::Read(place) }],
        };
        Ok(PlanExecutor::new(context, ToolSandbox::new(&sandbox_access, context.policy)?, time)?
            .run_command(command))
    }

    fn format_result(&self, output: ExecutionOutput, context: &ToolContext<'_>) -> ToolResult {
        let message = String::from_utf8_lossy(&output.stderr.bytes).into_owned();
        let message =
            truncate_text(message.lines().next().unwrap_or("no error message").trim(), MAX_COMPLAINT_BYTES);
        let result = match output.end {
            Err(error) => ToolResult::failed(error),
            Ok(LineEnd::Cancelled) => ToolResult::cancelled(),
            Ok(LineEnd::TimedOut(time)) => {
                ToolResult::failed(format!("reading the PDF took longer than {} s", time.as_secs_f64()))
                    .with_metadata("timed_out", true)
            }
            Ok(LineEnd::Exited(exit)) if exit_code(exit) == 0 => {
                let text = String::from_utf8_lossy(&output.stdout.bytes);
                let (text, pages) = number_pages(&text, self.first_page);
                let cut = output.stdout.total > context.bounds.max_response_bytes as u64;
                ToolResult::done(text).with_metadata("pages", pages).with_metadata("truncated", cut)
            }
            Ok(
                LineEnd::Exited(ProcessExit::Signal(_))
                | LineEnd::TooManyProcesses(_)
                | LineEnd::TooMuchMemory(_),
            ) => ToolResult::failed(format!("`{}` is not a readable PDF: the reader crashed", self.path)),
            Ok(LineEnd::Exited(exit)) if exit_code(exit) == NO_SUCH_PAGE => {
                ToolResult::failed(self.missing_page_error(&message))
            }
            Ok(LineEnd::Exited(_)) => {
                ToolResult::failed(format!("`{}` is not a readable PDF: {message}", self.path))
            }
        };
        ToolResult { sandbox: output.sandbox, ..result }
    }

    /// Returns the error for a page that doesn't exist.
    fn missing_page_error(&self, message: &str) -> String {
        let Self { path, first_page, .. } = self;
        match parse_last_page(message) {
            Some(1) => format!("`{path}` has 1 page, so there is no page {first_page}"),
            Some(pages) => format!("`{path}` has {pages} pages, so there is no page {first_page}"),
            None => format!("`{path}` has no page {first_page}: {message}"),
        }
    }
}

/// Parses the number in the last brackets.
fn parse_last_page(message: &str) -> Option<u32> {
    message.rsplit_once('(')?.1.split_once(')')?.0.parse().ok()
}

/// Puts the page number before each page, and returns the number of pages.
fn number_pages(text: &str, first: u32) -> (String, usize) {
    let pages: Vec<&str> = text.split_terminator(PAGE_END).collect();
    let numbered =
        pages.iter().zip(first..).map(|(page, number)| format!("[page {number}]\n{}\n", page.trim_end()));
    (numbered.collect(), pages.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_pages_is_parsed_from_the_readers_message() {
        let message = "Wrong page range given: the first page (5) can not be after the last page (2).";
        assert_eq!([message, "Wrong pages", "(x)"].map(parse_last_page), [Some(2), None, None]);
    }

    #[test]
    fn pages_have_their_numbers() {
        assert_eq!(number_pages("one\n\u{c}two\u{c}", 1), ("[page 1]\none\n[page 2]\ntwo\n".to_owned(), 2));
        assert_eq!(number_pages("cut o", 7), ("[page 7]\ncut o\n".to_owned(), 1));
        assert_eq!(number_pages("\u{c}", 1), ("[page 1]\n\n".to_owned(), 1));
        assert_eq!(number_pages("", 1), (String::new(), 0));
    }
}
