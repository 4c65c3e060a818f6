//! Lines are read correctly, however the bytes are split (S11.1, S11.4).

use shepherd_ipc::{FrameDecoder, FrameTooLarge};

const LIMIT: usize = 64;

/// Returns all lines of an input that is fed in pieces of this size.
fn decoded(bytes: &[u8], piece: usize) -> Result<Vec<Vec<u8>>, FrameTooLarge> {
    let mut decoder = FrameDecoder::new(LIMIT);
    let mut lines = Vec::new();
    for piece in bytes.chunks(piece) {
        decoder.feed(piece);
        while let Some(line) = decoder.next_frame()? {
            lines.push(line.to_vec());
        }
    }
    Ok(lines)
}

/// Returns the same lines in the simplest way.
fn expected(bytes: &[u8]) -> Result<Vec<Vec<u8>>, FrameTooLarge> {
    let mut lines = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let text = line.strip_suffix(b"\n");
        if text.unwrap_or(line).len() > LIMIT {
            return Err(FrameTooLarge { limit: LIMIT });
        }
        lines.extend(text.filter(|text| !matches!(text, [] | [b'\r'])).map(<[u8]>::to_vec));
    }
    Ok(lines)
}

#[test]
fn lines_are_cut_at_their_ends_and_empty_ones_passed_over() {
    for (text, lines) in [
        ("", &[][..]),
        ("a", &[]),
        ("a\n", &["a"]),
        ("a\nb", &["a"]),
        ("a\n\n\r\nb\n", &["a", "b"]),
        ("\n\n\n", &[]),
        ("a b\r\n", &["a b\r"]),
    ] {
        for piece in 1..4 {
            let found = decoded(text.as_bytes(), piece).unwrap();
            assert_eq!(
                found,
                lines.iter().map(|line| line.as_bytes().to_vec()).collect::<Vec<_>>(),
                "{text:?}"
            );
        }
    }
}

#[test]
fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
    let fits = format!("{}\n", "x".repeat(LIMIT));
    assert_eq!(decoded(fits.as_bytes(), 7).unwrap().len(), 1);
    let too_long = format!("{}\n", "x".repeat(LIMIT + 1));
    assert_eq!(decoded(too_long.as_bytes(), 7), Err(FrameTooLarge { limit: LIMIT }));
    // A line can be too long before it ends.
    assert_eq!(decoded("x".repeat(LIMIT + 1).as_bytes(), 7), Err(FrameTooLarge { limit: LIMIT }));
}

#[test]
fn too_long_stays_too_long() {
    let mut decoder = FrameDecoder::new(4);
    decoder.feed(b"12345");
    assert!(decoder.next_frame().is_err());
    decoder.feed(b"\nok\n");
    assert!(decoder.next_frame().is_err());
}

#[test]
fn it_knows_whether_a_line_was_begun() {
    let mut decoder = FrameDecoder::new(LIMIT);
    for (piece, within) in [("{", true), ("}", true), ("\n", false), ("\n{", true), ("}\n", false)] {
        decoder.feed(piece.as_bytes());
        while decoder.next_frame().unwrap().is_some() {}
        assert_eq!(decoder.has_partial_line(), within, "after {piece:?}");
    }
}

#[test]
fn any_split_of_any_input_gives_the_same_lines() {
    let corpus = ["a\nbb\n\nccc", "\r\n\n", "{\"type\":\"hello\"}\n{\"type\":\"request\"}\n"]
        .map(|text| text.as_bytes().to_vec())
        .into_iter()
        .chain([vec![b'x'; LIMIT + 1], [vec![b'y'; LIMIT], vec![b'\n']].concat()])
        .collect::<Vec<_>>();
    let report = ward_fuzz::run("frame", &corpus, |bytes| {
        let expected = expected(bytes);
        for piece in [1, 3, 64, 4096] {
            let found = decoded(bytes, piece);
            assert_eq!(found, expected, "in pieces of {piece}");
        }
        expected.map_or(0, |lines| lines.len() + 1)
    });
    println!("{}", report.unwrap_or_else(|failure| panic!("{failure}")));
}
