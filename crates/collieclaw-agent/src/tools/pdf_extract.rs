//! `pdf_extract`: the text of a PDF.
//!
//! A PDF is a program in all but name, and readers of it have had holes for as long as they exist. So the reading is done
//! by `pdftotext` of the system in a room where nothing is: it gets the opened file as its input, and all that it can do
//! is print, for as long and as much as any tool may.

use collieclaw_gate::plan::{PlannedAction, PlannedCommand, PlannedRedirection, PlannedTarget};
use collieclaw_gate::{GateRequest, MachineFacts};
use schemars::JsonSchema;
use serde::Deserialize;
use ward_process::ProcessExit;
use ward_process::sandbox::SandboxNetwork;

use super::shell::{ExecutionOutput, LineEnd, PlanExecutor, exit_code};
use super::tool_sandbox::{SandboxAccess, ToolSandbox, WorkspaceAccess};
use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult, truncate_text};
use crate::runtime::CallGrant;
use crate::security::SystemFacts;

const PDF_READER: &str = "pdftotext";

/// What the reader ends with when it is asked for pages that there aren't.
const NO_SUCH_PAGE: i32 = 99;

/// What the reader ends a page with.
const PAGE_END: char = '\u{c}';

/// Of what the reader complained about.
const MAX_COMPLAINT_BYTES: usize = 300;

/// See the module.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PdfExtractCall {
    /// The file, relative to the workspace.
    path: String,
    /// The first page to read; 1 if absent.
    #[serde(default = "first")]
    first_page: u32,
    /// The last page to read; the last there is if absent.
    #[serde(default)]
    last_page: Option<u32>,
}

fn first() -> u32 {
    1
}

impl BuiltInTool for PdfExtractCall {
    const NAME: &'static str = "pdf_extract";
    const DESCRIPTION: &'static str =
        "Reads the text of a PDF file, page by page. Of a long one ask for some pages at a time.";

    fn validate(&self) -> Result<(), String> {
        if self.first_page == 0 || self.last_page.is_some_and(|last| last < self.first_page) {
            return Err("pages are counted from 1, and the last does not come before the first".to_owned());
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
            Ok(ran) => self.format_result(ran, context),
            Err(why) => ToolResult::failed(why),
        }
    }
}

impl PdfExtractCall {
    fn run(&self, context: &ToolContext<'_>) -> Result<ExecutionOutput, String> {
        let Some(program) = SystemFacts.find_program(PDF_READER) else {
            return Err(format!(
                "there is no `{PDF_READER}` on this machine; it is in the package poppler-utils"
            ));
        };
        let access = context.workspace.access_under(context.policy);
        // What can't be opened is told of here: the reader would be blamed for it.
        let place =
            access.absolute_path(&self.path).and_then(|place| access.open_for_reading(&place).map(|_| place));
        let place = place.map_err(|error| format!("`{}` {error}", self.path))?;
        let place = place.to_str().ok_or("the path is no text")?.to_owned();
        let time = context.bounds.tool_timeout;
        let reach = SandboxAccess {
            workspace: WorkspaceAccess::Closed,
            network: SandboxNetwork::Off,
            own_program: None,
            programs: Vec::new(),
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
        Ok(PlanExecutor::new(context, ToolSandbox::new(&reach, context.policy)?, time)?.run_command(command))
    }

    fn format_result(&self, ran: ExecutionOutput, context: &ToolContext<'_>) -> ToolResult {
        let complaint = String::from_utf8_lossy(&ran.stderr.bytes).into_owned();
        let complaint =
            truncate_text(complaint.lines().next().unwrap_or("it says nothing").trim(), MAX_COMPLAINT_BYTES);
        let result = match ran.end {
            Err(why) => ToolResult::failed(why),
            Ok(LineEnd::Cancelled) => ToolResult::cancelled(),
            Ok(LineEnd::TimedOut(time)) => {
                ToolResult::failed(format!("reading it took longer than {} s", time.as_secs_f64()))
                    .with_metadata("timed_out", true)
            }
            Ok(LineEnd::Exited(exit)) if exit_code(exit) == 0 => {
                let text = String::from_utf8_lossy(&ran.stdout.bytes);
                let (text, pages) = number_pages(&text, self.first_page);
                let cut = ran.stdout.total > context.bounds.max_response_bytes as u64;
                ToolResult::done(text).with_metadata("pages", pages).with_metadata("truncated", cut)
            }
            Ok(LineEnd::Exited(ProcessExit::Signal(_)) | LineEnd::TooManyProcesses(_)) => ToolResult::failed(
                format!("`{}` is not a PDF that can be read: the reader broke down", self.path),
            ),
            Ok(LineEnd::Exited(exit)) if exit_code(exit) == NO_SUCH_PAGE => {
                ToolResult::failed(self.missing_page_error(&complaint))
            }
            Ok(LineEnd::Exited(_)) => {
                ToolResult::failed(format!("`{}` is not a PDF that can be read: {complaint}", self.path))
            }
        };
        ToolResult { sandbox: ran.sandbox, ..result }
    }

    /// What the reader says of pages that there aren't, in our words.
    fn missing_page_error(&self, complaint: &str) -> String {
        let Self { path, first_page, .. } = self;
        match parse_last_page(complaint) {
            Some(1) => format!("`{path}` has 1 page, and none is page {first_page}"),
            Some(pages) => format!("`{path}` has {pages} pages, and none is page {first_page}"),
            None => format!("`{path}` has no page {first_page}: {complaint}"),
        }
    }
}

/// The number in the last brackets.
fn parse_last_page(complaint: &str) -> Option<u32> {
    complaint.rsplit_once('(')?.1.split_once(')')?.0.parse().ok()
}

/// Each page under its number, and how many were begun.
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
    fn the_reader_tells_how_many_pages_there_are() {
        let complaint = "Wrong page range given: the first page (5) can not be after the last page (2).";
        assert_eq!([complaint, "Wrong pages", "(x)"].map(parse_last_page), [Some(2), None, None]);
    }

    #[test]
    fn pages_have_their_numbers() {
        assert_eq!(number_pages("one\n\u{c}two\u{c}", 1), ("[page 1]\none\n[page 2]\ntwo\n".to_owned(), 2));
        assert_eq!(number_pages("cut o", 7), ("[page 7]\ncut o\n".to_owned(), 1));
        assert_eq!(number_pages("\u{c}", 1), ("[page 1]\n\n".to_owned(), 1));
        assert_eq!(number_pages("", 1), (String::new(), 0));
    }
}
