use std::io::Write;

use super::*;
use crate::chain::seal;
use crate::hash::Sha256Hash;

#[test]
fn the_search_finds_the_offset_of_each_number() {
    let format = LedgerFormat::new("receipt_hash").unwrap();
    let mut file = tempfile::tempfile().unwrap();
    let mut offsets = vec![0];
    // Every third number is missing.
    let numbers: Vec<u64> = (1..=30).filter(|number| number % 3 != 0).collect();
    for number in &numbers {
        let line = seal(&format, None, (*number, Sha256Hash::GENESIS), Map::new()).unwrap().line;
        file.write_all(&line).unwrap();
        offsets.push(offsets.last().unwrap() + line.len() as u64);
    }
    file.write_all(b"{\"torn").unwrap();
    let length = file.metadata().unwrap().len();
    let parser = EntryParser { format };
    let records = ReverseLedgerRecords { segments: Vec::new(), open: None, parser, before: None };
    for wanted in 0..=31 {
        let lower = numbers.iter().filter(|number| **number < wanted).count();
        assert_eq!(records.find_sequence_offset(&file, length, wanted).unwrap(), offsets[lower], "{wanted}");
    }
}
