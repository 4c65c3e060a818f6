//! The tool `file_read`, which returns the text of a file or a part of it.

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

/// The maximum length of a UTF-8 character, by which a part may miss its bounds.
const MAX_UTF8_BYTES: usize = 4;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileReadCall {
    /// The file, relative to the workspace.
    path: String,
    /// The byte to start at. To read on, use the `next_offset` of the previous result.
    #[serde(default)]
    offset: u64,
    /// The maximum number of bytes to return.
    #[serde(default)]
    limit: Option<usize>,
}

#[derive(Debug, PartialEq, Eq)]
struct FileExcerpt {
    text: String,
    /// The offset of the first whole character.
    offset: u64,
}

impl BuiltInTool for FileReadCall {
    const NAME: &'static str = "file_read";
    const DESCRIPTION: &'static str = "Reads a text file (UTF-8). Long files are returned in parts. To read on, call again with `offset` set to `next_offset`.";
}

impl PreparedCall for FileReadCall {
    fn call(&self) -> GateRequest<'_> {
        GateRequest::FileRead(&self.path)
    }

    fn invoke(self: Box<Self>, _: CallGrant, context: &ToolContext<'_>) -> ToolResult {
        let path = self.path.clone();
        let bound = context.bounds.max_output_bytes;
        run_with_files(context, &path, move |access| self.read(access, bound))
    }
}

impl FileReadCall {
    fn read(&self, access: FileAccess<'_>, bound: usize) -> Result<ToolResult, FileError> {
        let file = File::from(access.open_for_reading(&access.absolute_path(&self.path)?)?);
        let max_bytes = self.limit.map_or(bound, |limit| limit.min(bound));
        let failed = |error: std::fmt::Arguments<'_>| ToolResult::failed(format!("`{}` {error}", self.path));
        let excerpt = read_excerpt(&file, self.offset, max_bytes);
        let size = file.metadata().map(|status| status.len());
        Ok(match (excerpt, size) {
            (Ok(Ok(excerpt)), Ok(size)) => format_excerpt(self.cut_excerpt(excerpt, size), size),
            (Ok(Err(byte)), _) => failed(format_args!("is not UTF-8 text (byte {byte})")),
            (Err(error), _) | (_, Err(error)) => failed(format_args!("can't be read: {error}")),
        })
    }
}

impl FileReadCall {
    /// Cuts a part at a line, unless the call has set the limit or the part reaches to the end.
    fn cut_excerpt(&self, excerpt: FileExcerpt, size: u64) -> FileExcerpt {
        let is_last = excerpt.offset + excerpt.text.len() as u64 >= size;
        match excerpt.text.rfind('\n') {
            Some(at) if self.limit.is_none() && !is_last && at >= excerpt.text.len() / 2 => {
                let text = excerpt.text.get(..=at).unwrap_or_default().to_owned();
                FileExcerpt { text, ..excerpt }
            }
            _ => excerpt,
        }
    }
}

fn format_excerpt(excerpt: FileExcerpt, size: u64) -> ToolResult {
    let end = excerpt.offset + excerpt.text.len() as u64;
    let result = ToolResult::done(excerpt.text)
        .with_metadata("size", size)
        .with_metadata("offset", excerpt.offset)
        .with_metadata("truncated", end < size);
    if end < size {
        let rest = format!("for the rest, call again with `offset` set to {end}");
        result
            .with_metadata("next_offset", end)
            .with_metadata("bytes_left", size - end)
            .with_metadata("rest", rest)
    } else {
        result
    }
}

/// Reads whole characters from `offset` on, up to `max_bytes`. The inner error is the offset of the first
/// byte that is not UTF-8.
fn read_excerpt(file: &File, offset: u64, max_bytes: usize) -> io::Result<Result<FileExcerpt, u64>> {
    let bytes = read_bytes_at(file, offset, max_bytes.saturating_add(MAX_UTF8_BYTES))?;
    let is_continuation = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    // An offset inside a character is moved to the next one. A continuation byte at the start of the file is
    // invalid instead.
    let skipped = if offset == 0 {
        0
    } else {
        bytes.iter().take(MAX_UTF8_BYTES - 1).take_while(is_continuation).count()
    };
    let offset = offset + skipped as u64;
    let bytes = bytes.get(skipped..).unwrap_or_default();
    // A part has at least one character; otherwise reading on would never reach the end.
    let first = bytes.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
    let max_bytes = max_bytes.max(first.map_or(0, char::len_utf8));
    let is_all = bytes.len() <= max_bytes;
    let bytes = bytes.get(..max_bytes).unwrap_or(bytes);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        // A character that is cut off by the limit belongs to the next part.
        Err(error) if error.error_len().is_none() && !is_all => {
            let whole = bytes.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(whole).unwrap_or_default()
        }
        Err(error) => return Ok(Err(offset + error.valid_up_to() as u64)),
    };
    Ok(Ok(FileExcerpt { text: text.to_owned(), offset }))
}

fn read_bytes_at(file: &File, offset: u64, max_bytes: usize) -> io::Result<Vec<u8>> {
    /// The buffer grows in chunks, so that a small file needs little memory even with a large limit.
    const CHUNK_BYTES: usize = 64 * 1024;
    let mut bytes = Vec::new();
    while bytes.len() < max_bytes {
        let from = bytes.len();
        bytes.resize(max_bytes.min(from + CHUNK_BYTES), 0);
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

    fn read_in_parts(content: &[u8], max_bytes: usize) -> Result<Vec<String>, u64> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        let mut offset = 0;
        let mut parts = Vec::new();
        while offset < content.len() as u64 {
            let excerpt = read_excerpt(&file, offset, max_bytes).unwrap()?;
            offset = excerpt.offset + excerpt.text.len() as u64;
            parts.push(excerpt.text);
        }
        Ok(parts)
    }

    #[test]
    fn parts_are_whole_characters_and_add_up_to_the_text() {
        let text = "aäb€c😀".repeat(3);
        for max_bytes in 0..40 {
            let parts = read_in_parts(text.as_bytes(), max_bytes).unwrap();
            let fits = |part: &String| part.len() <= max_bytes || part.chars().count() == 1;
            assert!(parts.iter().all(|part| !part.is_empty() && fits(part)), "{max_bytes}: {parts:?}");
            assert_eq!(parts.concat(), text);
        }
    }

    #[test]
    fn invalid_utf8_is_reported_with_its_offset() {
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
    fn an_offset_inside_a_character_is_moved_to_the_next() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all("€x".as_bytes()).unwrap();
        let excerpt = read_excerpt(&file, 1, 10).unwrap().unwrap();
        assert_eq!(excerpt, FileExcerpt { text: "x".into(), offset: 3 });
        assert_eq!(read_excerpt(&file, 99, 10).unwrap().unwrap().text, "");
    }
}
