//! The module that is added to the rewritten crate, and reads from the environment which mutant is switched on.

/// The environment variable with the number of the mutant to switch on.
pub(crate) const ACTIVE_VARIABLE: &str = "MUTANT_ACTIVE";

/// The value of the variable that switches no mutant on.
pub(crate) const NO_MUTANT: &str = "4294967293";

/// The environment variable with the file to which the numbers of reached mutants are appended.
pub(crate) const REACHED_VARIABLE: &str = "MUTANT_REACHED";

/// The name of the module.
pub(crate) const MODULE: &str = "mutant_switch";

/// Code for the end of the crate's root file.
pub(crate) const DECLARATION: &str = "\npub(crate) mod mutant_switch;\n";

/// Code for the beginning of the crate's root file. The compiler would refuse some mutants for a certain panic, which is
/// a test's task.
pub(crate) const ALLOWED_LINTS: &str = "#![allow(warnings, arithmetic_overflow, unconditional_panic)] ";

/// Returns the source of the module, for mutants with numbers below `count`.
pub(crate) fn module_source(count: u32) -> String {
    SOURCE
        .replace("COUNT_OF_MUTANTS", &count.to_string())
        .replace("ACTIVE_VARIABLE", ACTIVE_VARIABLE)
        .replace("REACHED_VARIABLE", REACHED_VARIABLE)
}

/// The numbers are appended one by one, because a test may kill its process.
const SOURCE: &str = r#"//! Knows which mutant is switched on.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

const UNREAD: u32 = u32::MAX;
const RECORDING: u32 = u32::MAX - 1;
const NONE: u32 = u32::MAX - 2;

static ACTIVE: AtomicU32 = AtomicU32::new(UNREAD);
static REACHED: [AtomicBool; COUNT_OF_MUTANTS] = [const { AtomicBool::new(false) }; COUNT_OF_MUTANTS];
static RECORD: OnceLock<std::fs::File> = OnceLock::new();

#[inline]
pub(crate) fn on(id: u32) -> bool {
    !off(id, id)
}

#[inline]
pub(crate) fn off(first: u32, last: u32) -> bool {
    let active = ACTIVE.load(Relaxed);
    let active = if active >= RECORDING { record(first, last) } else { active };
    active < first || active > last
}

pub(crate) fn item_limit(id: u32) -> usize {
    if off(id, id) { usize::MAX } else { 0 }
}

#[cold]
fn record(first: u32, last: u32) -> u32 {
    if ACTIVE.load(Relaxed) == UNREAD {
        let active = match (std::env::var_os("REACHED_VARIABLE"), std::env::var("ACTIVE_VARIABLE")) {
            (Some(path), _) => {
                let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
                let _ = RECORD.set(file.expect("the record of reached mutants can be opened"));
                RECORDING
            }
            (None, Ok(id)) => id.parse().expect("the number of the mutant"),
            (None, Err(_)) => NONE,
        };
        ACTIVE.store(active, Relaxed);
    }
    let active = ACTIVE.load(Relaxed);
    if let (RECORDING, Some(mut file)) = (active, RECORD.get()) {
        for id in first..=last {
            if !REACHED[id as usize].swap(true, Relaxed) {
                file.write_all(&id.to_le_bytes()).expect("the record of reached mutants can be written");
            }
        }
    }
    active
}
"#;
