use std::io::Write;

use super::*;

fn file_with(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file
}

/// Returns the lines of a file, last line first, with their offsets.
fn lines_from_end(content: &[u8]) -> Vec<(Vec<u8>, u64)> {
    let file = file_with(content);
    let mut lines = LinesFromEnd::new(&file, content.len() as u64);
    let mut found = Vec::new();
    while let Some(line) = lines.next_line().unwrap() {
        found.push((line, lines.current_offset()));
    }
    found
}

#[test]
fn the_end_of_the_last_complete_line_is_found_across_chunks() {
    for torn in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
        let content = [b"first\nsecond\n".as_slice(), &vec![b'x'; torn]].concat();
        let end = find_last_line_end(&file_with(&content), content.len() as u64).unwrap();
        assert_eq!(end, 13, "{torn} bytes are torn");
    }
    let torn = vec![b'x'; 2 * CHUNK_BYTES];
    assert_eq!(find_last_line_end(&file_with(&torn), torn.len() as u64).unwrap(), 0);
    assert_eq!(find_last_line_end(&file_with(b""), 0).unwrap(), 0);
    assert_eq!(find_last_line_end(&file_with(b"\n"), 1).unwrap(), 1);
}

#[test]
fn the_end_of_the_line_around_a_byte_is_found_across_chunks() {
    for length in [1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
        let content = [b"ab\n".as_slice(), &vec![b'x'; length], b"\ncd\n"].concat();
        let (file, limit) = (file_with(&content), content.len() as u64);
        let line_end = |from| find_line_end(&file, from, limit).unwrap();
        assert_eq!([line_end(0), line_end(1), line_end(2)], [3; 3]);
        let end = limit - 3;
        assert_eq!([line_end(3), line_end(end - 2), line_end(end - 1)], [end; 3], "{length} bytes");
        assert_eq!([line_end(end), line_end(limit - 1), line_end(limit)], [limit; 3]);
    }
}

#[test]
fn lines_are_returned_from_the_end_with_their_offsets() {
    assert_eq!(lines_from_end(b""), []);
    assert_eq!(lines_from_end(b"ab\n\ncd\n"), [(b"cd".to_vec(), 4), (b"".to_vec(), 3), (b"ab".to_vec(), 0)]);
    for length in [CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
        let long: Vec<u8> = (0..length).map(|at| b'a' + u8::try_from(at % 26).unwrap()).collect();
        let content = [b"ab\n".as_slice(), &long, b"\n"].concat();
        assert_eq!(lines_from_end(&content), [(long, 3), (b"ab".to_vec(), 0)]);
    }
}

#[test]
fn a_line_that_is_longer_than_any_record_is_an_error() {
    let content = |length| [b"ab\n".as_slice(), &vec![b'x'; length], b"\n"].concat();
    let longest = content(MAX_RECORD_BYTES);
    assert_eq!(lines_from_end(&longest).len(), 2);
    let longer = content(MAX_RECORD_BYTES + 2 * CHUNK_BYTES);
    let file = file_with(&longer);
    let error = LinesFromEnd::new(&file, longer.len() as u64).next_line().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}
