//! Processes that are killed at any moment, and processes that write at the same time.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use collieclaw_agent::memory::ConversationMemory;

use super::support::{MemoryFolder, MemoryRandom, rememberer_command, whole_exchanges};

const KILLS: usize = 60;

/// About the time for starting and twenty exchanges.
const LONGEST_LIFE_MICROS: usize = 60_000;

fn check_integrity(place: &MemoryFolder) {
    let connection = rusqlite::Connection::open(place.file()).unwrap();
    let verdict: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    for index in ["turn_words", "turn_grams"] {
        connection.execute(&format!("INSERT INTO {index} ({index}) VALUES ('integrity-check')"), []).unwrap();
    }
}

// C10: survives `kill -9` at any moment with no half turn.
#[test]
fn a_killed_process_leaves_only_whole_exchanges_and_every_acknowledged_one() {
    let place = MemoryFolder::new();
    let mut random = MemoryRandom::new(7);
    let mut actual = 0;
    for _ in 0..KILLS {
        let mut child =
            rememberer_command(&place.file(), "c", "100000").stdout(Stdio::piped()).spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let reader = thread::spawn(move || {
            BufReader::new(output)
                .lines()
                .map_while(Result::ok)
                .filter(|line| line.starts_with("kept"))
                .count()
        });
        // A kill at a random moment.
        thread::sleep(Duration::from_micros(random.next_below(LONGEST_LIFE_MICROS) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        actual += reader.join().unwrap();
        let memory = place.open();
        let kept = whole_exchanges(&memory, "c");
        // The last exchange of each process may be stored without having been reported.
        assert!(kept >= actual, "{kept} {actual}");
        actual = kept;
        assert_eq!(memory.search("exchange", 5).unwrap().is_empty(), kept == 0);
    }
    assert!(actual > 20, "{actual}");
    check_integrity(&place);
    // Index and tables agree: the last exchange is found.
    let memory = place.open();
    let last = format!("exchange {} has turn", actual - 1);
    assert!(memory.search(&last, 5).unwrap()[0].excerpt.starts_with(&last));
    assert_eq!(memory.turn_count().unwrap(), memory.conversation("c").unwrap().len() as u64);
}

#[test]
fn two_processes_write_at_the_same_time() {
    let place = MemoryFolder::new();
    // Both processes find no file, and both create it.
    let children = ["left", "right"].map(|name| {
        let mut command = rememberer_command(&place.file(), name, "150");
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    });
    // A third process reads meanwhile.
    let memory = place.open();
    for _ in 0..50 {
        for name in ["left", "right"] {
            whole_exchanges(&memory, name);
        }
        memory.search("exchange number", 20).unwrap();
    }
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    for name in ["left", "right"] {
        assert_eq!(whole_exchanges(&memory, name), 150);
    }
    check_integrity(&place);
}

#[test]
fn many_processes_make_one_memory() {
    for _ in 0..10 {
        let place = MemoryFolder::new();
        let children: Vec<_> = (0..4)
            .map(|number| {
                rememberer_command(&place.file(), &format!("c{number}"), "1")
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        assert_eq!(place.open().conversations(9).unwrap().len(), 4);
    }
}

#[test]
fn an_acknowledged_exchange_is_in_the_file() {
    let place = MemoryFolder::new();
    let mut child = rememberer_command(&place.file(), "c", "1").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "opened 0");
    assert_eq!(lines.next().unwrap().unwrap(), "kept 0");
    child.kill().unwrap();
    child.wait().unwrap();
    // Opens a copy of the files, as after a power cut that loses nothing that was synced.
    let copy = MemoryFolder::new();
    let copied = Command::new("cp").arg("-r").arg(place.folder()).arg(copy.folder().join("copy")).status();
    assert!(copied.unwrap().success());
    let memory = ConversationMemory::open(&copy.folder().join("copy/memory.db")).unwrap();
    assert_eq!(whole_exchanges(&memory, "c"), 1);
}
