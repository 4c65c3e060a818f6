//! Verifies the whole log when a store is opened, as long as that is cheap.

use std::fs;
use std::io;
use std::path::Path;

use ward_ledger::{LedgerReadError, verify};

use super::tail::closed_segments;
use super::{AuditLogError, audit_format};

/// The size up to which a log is verified as a whole at every start: about 150,000 events, or years of a family, in a
/// fifth of a second. Of a longer log only the end is compared; `shepherd audit verify` checks the rest.
pub const WHOLE_CHECK_BYTES: u64 = 64 << 20;

/// The part of the audit log that was verified at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditCheck {
    /// The whole log was verified.
    Whole {
        /// The number of verified records.
        records: u64,
    },
    /// Only the end was compared with the database, because the log is longer than [`WHOLE_CHECK_BYTES`].
    EndOnly,
}

/// Verifies a log of at most `most` bytes.
pub(crate) fn verify_if_small(log: &Path, most: u64) -> Result<AuditCheck, AuditLogError> {
    let mut bytes = 0;
    for path in closed_segments(log)?.iter().map(std::path::PathBuf::as_path).chain([log]) {
        match fs::metadata(path) {
            Ok(metadata) => bytes += metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(AuditLogError::Read { path: path.to_owned(), source }),
        }
    }
    if bytes > most {
        return Ok(AuditCheck::EndOnly);
    }
    let report = match verify(log, &audit_format(), None) {
        Ok(report) => report,
        Err(LedgerReadError::NoLog { .. }) => return Ok(AuditCheck::Whole { records: 0 }),
        Err(error) => return Err(AuditLogError::Verify(error)),
    };
    if report.is_sound() {
        return Ok(AuditCheck::Whole { records: report.records });
    }
    let fault = match (&report.broken, report.strays.as_slice()) {
        (Some(broken), _) => broken.to_string(),
        (None, []) => report.completeness.to_string(),
        (None, strays) => format!("{} looks like a part of it, but is not", strays.join(", ")),
    };
    Err(AuditLogError::Broken { fault })
}

#[cfg(test)]
mod tests {
    use ward_ledger::{Ledger, LedgerOptions};

    use super::*;
    use crate::conformance::sample::note_event;
    use crate::record::event_to_record;

    #[test]
    fn a_log_over_the_limit_is_verified_only_at_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit.log");
        assert_eq!(verify_if_small(&log, 0).unwrap(), AuditCheck::Whole { records: 0 });
        let (mut ledger, _) = Ledger::open(&log, LedgerOptions::new(audit_format())).unwrap();
        for number in 1..=5 {
            ledger.append(event_to_record(&note_event(number)).unwrap()).unwrap();
        }
        let text = fs::read_to_string(&log).unwrap();
        let bytes = text.len() as u64;
        assert_eq!(verify_if_small(&log, bytes).unwrap(), AuditCheck::Whole { records: 5 });
        fs::write(&log, text.replace("number 3,", "number 4,")).unwrap();
        let fault = verify_if_small(&log, bytes).unwrap_err().to_string();
        assert!(fault.starts_with("broken at record 3 (audit.log, line 3), edited: "), "{fault}");
        assert_eq!(verify_if_small(&log, bytes - 1).unwrap(), AuditCheck::EndOnly);
    }
}
