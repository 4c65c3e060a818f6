//! The audit log, the usage and the health of a fixture.

use std::time::Duration;

use jiff::ToSpan;
use shepherd_api::{AuditKind, AuditRecord, Command, CommandReply, EndReason, EntryScope, HealthView};

use super::{ShepherddFixture, wait_until};

impl ShepherddFixture {
    pub(crate) fn health(&self) -> HealthView {
        match self.call(Command::Health {}) {
            Ok(CommandReply::Health { health }) => health,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the metrics, in the text format.
    pub(crate) fn metrics(&self) -> String {
        match self.call(Command::Metrics {}) {
            Ok(CommandReply::Metrics { text }) => text,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the message of a health check, if the check failed.
    pub(crate) fn failed_check(&self, name: &str) -> Option<String> {
        let health = self.health();
        let check = health.checks.into_iter().find(|check| check.name == name).expect("a check of that name");
        assert!(check.passed || !health.ready);
        (!check.passed).then_some(check.detail)
    }

    /// Returns the whole audit log, as an administrator gets it.
    pub(crate) fn audit(&self) -> Vec<AuditRecord> {
        let mut client = self.client();
        let mut records: Vec<AuditRecord> = Vec::new();
        loop {
            let after = records.last().map(|record| record.sequence);
            match client.call(Command::ReadAudit { after, limit: 1_000 }) {
                Ok(CommandReply::Audit { records: page }) if page.is_empty() => return records,
                Ok(CommandReply::Audit { records: page }) => records.extend(page),
                other => panic!("{other:?}\n{}", self.log()),
            }
        }
    }

    /// Returns the reason of every recorded end of a session.
    pub(crate) fn recorded_ends(&self) -> Vec<EndReason> {
        let end = |record: AuditRecord| match record.line.what {
            AuditKind::SessionEnded { end, .. } => Some(end),
            _ => None,
        };
        self.audit().into_iter().filter_map(end).collect()
    }

    /// Waits until the audit log has the start of the only session.
    pub(crate) fn wait_until_start_is_recorded(&self) {
        wait_until("the record of the start", || {
            self.count_audit_records(|what| matches!(what, AuditKind::SessionStarted { .. })) == 1
        });
    }

    /// Returns the number of audit records of a kind.
    pub(crate) fn count_audit_records(&self, is_meant: impl Fn(&AuditKind) -> bool) -> usize {
        self.audit().iter().filter(|record| is_meant(&record.line.what)).count()
    }

    /// Checks the audit log on disk. The daemon must not run.
    pub(crate) fn assert_chain_is_sound(&self) {
        let log = shepherd_store::audit_log_path(&self.data());
        let report = ward_ledger::verify(&log, &shepherd_store::audit_format(), None).unwrap();
        assert!(report.is_sound(), "{report:?}");
    }

    /// Returns the usage of an entry that the daemon reports, for all profiles and days.
    pub(crate) fn recorded_usage(&self, entry: &str) -> Duration {
        let today = jiff::Zoned::now().date();
        let (from, to) = (today.saturating_sub(40.days()), today.saturating_add(40.days()));
        let Ok(CommandReply::Usage { usage, .. }) = self.call(Command::Usage { from, to, profile: None })
        else {
            panic!("no usage");
        };
        let of_entry = usage.iter().filter(
            |usage| matches!(&usage.of, EntryScope::Entry { entry_id } if entry_id.as_str() == entry),
        );
        of_entry.map(|usage| Duration::from(usage.used)).sum()
    }
}
