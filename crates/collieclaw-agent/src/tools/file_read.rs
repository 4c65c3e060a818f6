//! `file_read`: the text of a file, or a part of it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use collieclaw_gate::GateRequest;
use schemars::JsonSchema;
use serde::Deserialize;

use super::timeout::run_with_files;
use super::{BuiltInTool, PreparedCall, ToolContext, ToolResult};
use crate::runtime::CallGrant;
use crate::security::{FileAccess, FileError};

/// The longest letter of UTF-8: what a part may lack at its beginning and have too much at its end.
const MAX_UTF8_BYTES: usize = 4;

/// See the module.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileReadCall {
    /// The file, relative to the workspace.
    path: String,
    /// The byte to begin with; an earlier answer tells it as `next_offset`.
    #[serde(default)]
    offset: u64,
    /// How many bytes at most.
    #[serde(default)]
    limit: Option<usize>,
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
struct FileExcerpt {
    text: String,
    /// Where it begins: the next whole letter.
    offset: u64,
}

impl BuiltInTool for FileReadCall {
    const NAME: &'static str = "file_read";
    const DESCRIPTION: &'static str =
        "Reads a text file (UTF-8). A long one comes in parts: go on with `offset` where `next_offset` says.";
}

impl PreparedCall for FileReadCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::FileRead(&self.path)
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        let path = self.path.clone();
        let bound = context.bounds.max_response_bytes;
        run_with_files(context, &path, move |access| self.read(access, bound))
    }
}

impl FileReadCall {
    fn read(&self, access: FileAccess<'_>, bound: usize) -> Result<ToolResult, FileError> {
        let file = File::from(access.open_for_reading(&access.absolute_path(&self.path)?)?);
        let most = self.limit.map_or(bound, |limit| limit.min(bound));
        let failed = |error: std::fmt::Arguments<'_>| ToolResult::failed(format!("`{}` {error}", self.path));
        let passage = read_excerpt(&file, self.offset, most);
        let size = file.metadata().map(|status| status.len());
        Ok(match (passage, size) {
            (Ok(Ok(passage)), Ok(size)) => format_excerpt(passage, size),
            (Ok(Err(byte)), _) => failed(format_args!("is not UTF-8 text (byte {byte})")),
            (Err(error), _) | (_, Err(error)) => failed(format_args!("can't be read: {error}")),
        })
    }
}

fn format_excerpt(passage: FileExcerpt, size: u64) -> ToolResult {
    let end = passage.offset + passage.text.len() as u64;
    let result = ToolResult::done(passage.text)
        .with_metadata("size", size)
        .with_metadata("offset", passage.offset)
        .with_metadata("truncated", end < size);
    if end < size {
        result.with_metadata("next_offset", end).with_metadata("bytes_left", size - end)
    } else {
        result
    }
}

/// Reads whole letters from `offset` on, at most so many bytes. The inner error is the place of the first byte that is
/// no text.
fn read_excerpt(file: &File, offset: u64, most: usize) -> io::Result<Result<FileExcerpt, u64>> {
    let bytes = read_bytes_at(file, offset, most.saturating_add(MAX_UTF8_BYTES))?;
    let in_a_letter = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    // An offset inside a letter begins with the next one; at the very beginning of a file that can't be.
    let skipped =
        if offset == 0 { 0 } else { bytes.iter().take(MAX_UTF8_BYTES - 1).take_while(in_a_letter).count() };
    let offset = offset + skipped as u64;
    let bytes = bytes.get(skipped..).unwrap_or_default();
    // Whoever goes on with less than a letter each time would never come to an end.
    let first = bytes.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
    let most = most.max(first.map_or(0, char::len_utf8));
    let is_all = bytes.len() <= most;
    let bytes = bytes.get(..most).unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // A letter that is cut by the bound belongs to the next part.
        Err(error) if error.error_len().is_none() && !is_all => {
            let whole = bytes.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(whole).unwrap_or_default()
        }
        Err(error) => return Ok(Err(offset + error.valid_up_to() as u64)),
    };
    Ok(Ok(FileExcerpt { text: text.to_owned(), offset }))
}

fn read_bytes_at(file: &File, offset: u64, most: usize) -> io::Result<Vec<u8>> {
    /// A small file costs little memory, whatever the bound is.
    const CHUNK_BYTES: usize = 64 * 1024;
    let mut bytes = Vec::new();
    while bytes.len() < most {
        let from = bytes.len();
        bytes.resize(most.min(from + CHUNK_BYTES), 0);
        let buffer = bytes.get_mut(from..).unwrap_or_default();
        match file.read_at(buffer, offset.saturating_add(from as u64)) {
            Ok(count) => {
                bytes.truncate(from + count);
                if count == 0 {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => bytes.truncate(from),
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read_in_parts(content: &[u8], most: usize) -> Result<Vec<String>, u64> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        let mut offset = 0;
        let mut parts = Vec::new();
        while offset < content.len() as u64 {
            let passage = read_excerpt(&file, offset, most).unwrap()?;
            offset = passage.offset + passage.text.len() as u64;
            parts.push(passage.text);
        }
        Ok(parts)
    }

    #[test]
    fn parts_are_whole_letters_and_together_the_whole_text() {
        let text = "aäb€c😀".repeat(3);
        for most in 0..40 {
            let parts = read_in_parts(text.as_bytes(), most).unwrap();
            let fits = |part: &String| part.len() <= most || part.chars().count() == 1;
            assert!(parts.iter().all(|part| !part.is_empty() && fits(part)), "{most}: {parts:?}");
            assert_eq!(parts.concat(), text);
        }
    }

    #[test]
    fn what_is_no_text_is_named_by_its_place() {
        assert_eq!(read_in_parts(b"abc\xffdef", 100), Err(3));
        assert_eq!(read_in_parts(b"\x80abc", 100), Err(0));
        assert_eq!(
            read_in_parts("ab\u{20ac}".as_bytes().get(..4).unwrap(), 100),
            Err(2),
            "cut at the end of the file"
        );
        assert_eq!(read_in_parts(b"aaaa\xff", 4), Err(4));
    }

    #[test]
    fn an_offset_inside_a_letter_begins_with_the_next_one() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all("€x".as_bytes()).unwrap();
        let passage = read_excerpt(&file, 1, 10).unwrap().unwrap();
        assert_eq!(passage, FileExcerpt { text: "x".into(), offset: 3 });
        assert_eq!(read_excerpt(&file, 99, 10).unwrap().unwrap().text, "");
    }
}
