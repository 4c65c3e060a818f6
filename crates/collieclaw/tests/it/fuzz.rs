//! Fuzz targets; longer with `cargo xtask fuzz collieclaw`.

use collieclaw::net::{EventReader, StreamEvent};

/// What a reader finds in bytes that come in pieces of these sizes.
fn read(bytes: &[u8], sizes: impl Iterator<Item = usize>) -> Result<Vec<StreamEvent>, &'static str> {
    let mut reader = EventReader::new(4096);
    let mut events = Vec::new();
    let mut rest = bytes;
    for size in sizes {
        if rest.is_empty() {
            break;
        }
        let (piece, later) = rest.split_at(size.clamp(1, rest.len()));
        events.extend(reader.take(piece).map_err(|_| "too long")?);
        rest = later;
    }
    events.extend(reader.finish());
    Ok(events)
}

#[test]
fn events_are_the_same_wherever_a_stream_is_cut() {
    let corpus: Vec<Vec<u8>> = [
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hä🐑\"}}]}\n\n: ping\n\ndata: [DONE]\n\n",
        "\u{feff}event: error\r\ndata: a\r\ndata: b\r\rdata\n\nid: 7\nretry: 3\ndata:x\r\n\r\n",
        "data:\n\ndata: \n\n\n\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    let report = ward_fuzz::run("event_stream", &corpus, |bytes| {
        let whole = read(bytes, std::iter::repeat(usize::MAX));
        assert_eq!(read(bytes, std::iter::repeat(1)), whole, "byte by byte");
        assert_eq!(read(bytes, [3, 1, 7, 2].into_iter().cycle()), whole, "in pieces");
        let events = whole.as_ref().map_or(0, Vec::len);
        for event in whole.iter().flatten() {
            assert!(!event.data.contains(&b'\r') && event.data.len() <= 4096);
        }
        (whole.is_ok(), events.min(8))
    })
    .unwrap();
    println!("{report}");
}
