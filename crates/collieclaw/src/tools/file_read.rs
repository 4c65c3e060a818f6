//! `file_read`: the text of a file, or a part of it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use collieclaw_gate::Call;
use schemars::JsonSchema;
use serde::Deserialize;

use super::in_time::with_files;
use super::{BuiltIn, Context, Prepared, ToolResult};
use crate::runtime::Granted;
use crate::security::{Access, FileError};

/// The longest letter of UTF-8: what a part may lack at its beginning and have too much at its end.
const LONGEST_LETTER: usize = 4;

/// See the module.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FileRead {
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
struct Passage {
    text: String,
    /// Where it begins: the next whole letter.
    offset: u64,
}

impl BuiltIn for FileRead {
    const NAME: &'static str = "file_read";
    const DESCRIPTION: &'static str =
        "Reads a text file (UTF-8). A long one comes in parts: go on with `offset` where `next_offset` says.";
}

impl Prepared for FileRead {
    fn call(&self) -> Call<'_> {
        Call::FileRead(&self.path)
    }

    fn invoke(self: Box<Self>, _: Granted, context: &Context<'_>) -> ToolResult {
        let path = self.path.clone();
        let bound = context.bounds.max_response_bytes;
        with_files(context, &path, move |access| self.read(access, bound))
    }
}

impl FileRead {
    fn read(&self, access: Access<'_>, bound: usize) -> Result<ToolResult, FileError> {
        let file = File::from(access.read(&access.place(&self.path)?)?);
        let most = self.limit.map_or(bound, |limit| limit.min(bound));
        let failed = |error: std::fmt::Arguments<'_>| ToolResult::failed(format!("`{}` {error}", self.path));
        let passage = part(&file, self.offset, most);
        let size = file.metadata().map(|status| status.len());
        Ok(match (passage, size) {
            (Ok(Ok(passage)), Ok(size)) => told(passage, size),
            (Ok(Err(byte)), _) => failed(format_args!("is not UTF-8 text (byte {byte})")),
            (Err(error), _) | (_, Err(error)) => failed(format_args!("can't be read: {error}")),
        })
    }
}

fn told(passage: Passage, size: u64) -> ToolResult {
    let end = passage.offset + passage.text.len() as u64;
    let result = ToolResult::done(passage.text)
        .with("size", size)
        .with("offset", passage.offset)
        .with("truncated", end < size);
    if end < size { result.with("next_offset", end).with("bytes_left", size - end) } else { result }
}

/// Reads whole letters from `offset` on, at most so many bytes. The inner error is the place of the first byte that is
/// no text.
fn part(file: &File, offset: u64, most: usize) -> io::Result<Result<Passage, u64>> {
    let bytes = bytes_at(file, offset, most.saturating_add(LONGEST_LETTER))?;
    let in_a_letter = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
    // An offset inside a letter begins with the next one; at the very beginning of a file that can't be.
    let skipped =
        if offset == 0 { 0 } else { bytes.iter().take(LONGEST_LETTER - 1).take_while(in_a_letter).count() };
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
    Ok(Ok(Passage { text: text.to_owned(), offset }))
}

fn bytes_at(file: &File, offset: u64, most: usize) -> io::Result<Vec<u8>> {
    /// A small file costs little memory, whatever the bound is.
    const AT_ONCE: usize = 64 * 1024;
    let mut bytes = Vec::new();
    while bytes.len() < most {
        let from = bytes.len();
        bytes.resize(most.min(from + AT_ONCE), 0);
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

    fn parts(content: &[u8], most: usize) -> Result<Vec<String>, u64> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        let mut offset = 0;
        let mut parts = Vec::new();
        while offset < content.len() as u64 {
            let passage = part(&file, offset, most).unwrap()?;
            offset = passage.offset + passage.text.len() as u64;
            parts.push(passage.text);
        }
        Ok(parts)
    }

    #[test]
    fn parts_are_whole_letters_and_together_the_whole_text() {
        let text = "aäb€c😀".repeat(3);
        for most in 0..40 {
            let parts = parts(text.as_bytes(), most).unwrap();
            let fits = |part: &String| part.len() <= most || part.chars().count() == 1;
            assert!(parts.iter().all(|part| !part.is_empty() && fits(part)), "{most}: {parts:?}");
            assert_eq!(parts.concat(), text);
        }
    }

    #[test]
    fn what_is_no_text_is_named_by_its_place() {
        assert_eq!(parts(b"abc\xffdef", 100), Err(3));
        assert_eq!(parts(b"\x80abc", 100), Err(0));
        assert_eq!(
            parts("ab\u{20ac}".as_bytes().get(..4).unwrap(), 100),
            Err(2),
            "cut at the end of the file"
        );
        assert_eq!(parts(b"aaaa\xff", 4), Err(4));
    }

    #[test]
    fn an_offset_inside_a_letter_begins_with_the_next_one() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all("€x".as_bytes()).unwrap();
        let passage = part(&file, 1, 10).unwrap().unwrap();
        assert_eq!(passage, Passage { text: "x".into(), offset: 3 });
        assert_eq!(part(&file, 99, 10).unwrap().unwrap().text, "");
    }
}
