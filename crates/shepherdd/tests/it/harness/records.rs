//! What a household has on record.

use std::time::Duration;

use jiff::ToSpan;
use shepherd_api::{AuditKind, AuditRecord, Command, CommandReply, EntryScope, HealthView};

use super::ShepherddFixture;

impl ShepherddFixture {
    pub(crate) fn health(&self) -> HealthView {
        match self.call(Command::Health {}) {
            Ok(CommandReply::Health { health }) => health,
            other => panic!("{other:?}"),
        }
    }

    /// What can be counted, in the text format.
    pub(crate) fn metrics(&self) -> String {
        match self.call(Command::Metrics {}) {
            Ok(CommandReply::Metrics { text }) => text,
            other => panic!("{other:?}"),
        }
    }

    /// What one of the checks of the daemon's health says, if it did not pass.
    pub(crate) fn failed_check(&self, name: &str) -> Option<String> {
        let health = self.health();
        let check = health.checks.into_iter().find(|check| check.name == name).expect("a check of that name");
        assert!(check.passed || !health.ready);
        (!check.passed).then_some(check.detail)
    }

    /// The whole audit log, as an administrator gets it.
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

    /// How many lines of the audit log are of this kind.
    pub(crate) fn count_audit_records(&self, is_meant: impl Fn(&AuditKind) -> bool) -> usize {
        self.audit().iter().filter(|record| is_meant(&record.line.what)).count()
    }

    /// The audit log on disk is whole. For a daemon that is not at work.
    pub(crate) fn assert_chain_is_sound(&self) {
        let log = shepherd_store::audit_log_path(&self.data());
        let report = ward_ledger::verify(&log, &shepherd_store::audit_format(), None).unwrap();
        assert!(report.is_sound(), "{report:?}");
    }

    /// What the daemon says was used of an entry in these days, by everybody.
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
