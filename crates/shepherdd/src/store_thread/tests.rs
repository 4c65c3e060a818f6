//! Batches when the disk fails during a write, and when the store's thread is gone (S8.2, S8.4b).

use shepherd_api::AuditKind;
use shepherd_core::policy::Day;
use shepherd_core::{UsageCounter, UsageKey};
use shepherd_store::{AuditCheck, CommitFailure, MemoryBackend, MemoryStore};
use shepherd_util::{EntryId, ProfileId};
use ward_ledger::{HeadRecovery, LedgerRecovery};

use super::*;

/// A worker with a disk that fails on demand, and its reports.
struct StoreWorkerFixture {
    memory: MemoryBackend,
    worker: StoreWorker,
    reports: UnboundedReceiver<StoreReport>,
    batch: u64,
}

impl StoreWorkerFixture {
    fn new() -> Self {
        let memory = MemoryBackend::default();
        let (reports, done) = unbounded_channel();
        let disk = memory.clone();
        let open: StoreOpener = Box::new(move || {
            let opened = StoreOpenReport {
                created: false,
                migrated_from: None,
                audit_recovery: LedgerRecovery { torn: Vec::new(), head: HeadRecovery::InOrder },
                audit_check: AuditCheck::EndOnly,
                exposed: Vec::new(),
            };
            Ok((Box::new(MemoryStore::with_backend(&disk)), opened))
        });
        let worker = StoreWorker {
            open,
            store: Some(Box::new(MemoryStore::with_backend(&memory))),
            contents: StoreContentsState::Known,
            sequence: 0,
            reports,
            attempt: None,
            pending: PendingBatch::default(),
            retry_delay: RETRY_DELAY,
        };
        Self { memory, worker, reports: done, batch: 0 }
    }

    /// Submits a batch with this many seconds of usage, and an audit event.
    fn write(&mut self, seconds: u64) -> Vec<ReportSummary> {
        self.batch += 1;
        self.worker.pending.add(self.batch, vec![usage(seconds), line(seconds)], BatchWaiter::EventLoop);
        self.write_pending()
    }

    /// Tries to write the pending batches, as the worker does at every write and at intervals.
    fn write_pending(&mut self) -> Vec<ReportSummary> {
        self.worker.try_to_write();
        std::iter::from_fn(|| self.reports.try_recv().ok()).map(ReportSummary::from).collect()
    }

    /// Retries until the disk works again.
    fn retry_until_written(&mut self) -> Vec<ReportSummary> {
        let mut reports = Vec::new();
        for _ in 0..5 {
            reports.extend(self.write_pending());
        }
        reports
    }

    /// The seconds that are counted, and the lines about them.
    fn on_disk(&self) -> (u64, Vec<u64>) {
        let stored = MemoryStore::with_backend(&self.memory).load().unwrap();
        let lines = self.memory.audit().into_iter().map(|line| seconds_of(&line)).collect();
        (stored.usage.values().map(Duration::as_secs).sum(), lines)
    }
}

/// A report, without its words.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ReportSummary {
    Durable { up_to: u64, lines: Vec<u64> },
    Failed { batch: u64 },
}

impl From<StoreReport> for ReportSummary {
    fn from(report: StoreReport) -> Self {
        match report {
            StoreReport::Durable { up_to, lines } => {
                Self::Durable { up_to, lines: lines.iter().map(|record| seconds_of(&record.line)).collect() }
            }
            StoreReport::Failed { batch, .. } => Self::Failed { batch },
            StoreReport::Opened { .. } | StoreReport::Audit { .. } => {
                panic!("unexpected report: {report:?}")
            }
        }
    }
}

fn usage(seconds: u64) -> StoreWrite {
    let (profile, entry_id): (ProfileId, EntryId) = ("ada".parse().unwrap(), "chess".parse().unwrap());
    let key = UsageKey { profile, counter: UsageCounter::Entry(entry_id), day: Day(1) };
    StoreWrite::AddUsage { key, amount: Duration::from_secs(seconds) }
}

fn event(seconds: u64) -> AuditEvent {
    let what = AuditKind::Note { text: seconds.to_string() };
    AuditEvent { at: Timestamp::UNIX_EPOCH, actor: "test".to_owned(), what }
}

fn line(seconds: u64) -> StoreWrite {
    StoreWrite::AppendAudit(Box::new(event(seconds)))
}

fn seconds_of(line: &AuditEvent) -> u64 {
    match &line.what {
        AuditKind::Note { text } => text.parse().unwrap(),
        other => panic!("not ours: {other:?}"),
    }
}

#[test]
fn batches_queued_behind_a_batch_that_was_written_unnoticed_are_written_too() {
    let mut bench = StoreWorkerFixture::new();
    assert_eq!(bench.write(1), [ReportSummary::Durable { up_to: 1, lines: vec![1] }]);
    bench.memory.fail_next_commit(CommitFailure::Persisted);
    assert_eq!(bench.write(10), [ReportSummary::Failed { batch: 2 }]);
    let reports = [bench.write(100), bench.retry_until_written()].concat();
    assert_eq!(bench.on_disk(), (111, vec![1, 10, 100]), "{reports:?}");
    assert_eq!(reports.last(), Some(&ReportSummary::Durable { up_to: 3, lines: vec![100] }));
}

#[test]
fn a_lost_batch_is_written_before_the_batches_queued_behind_it() {
    let mut bench = StoreWorkerFixture::new();
    bench.memory.fail_next_commit(CommitFailure::Lost);
    assert_eq!(bench.write(10), [ReportSummary::Failed { batch: 1 }]);
    let reports = [bench.write(100), bench.retry_until_written()].concat();
    assert_eq!(bench.on_disk(), (110, vec![10, 100]), "{reports:?}");
}

/// Lines that don't belong to the batch, such as the ledger's own record of a recovery, don't show that it was written.
#[test]
fn a_foreign_line_does_not_count_as_a_written_batch() {
    let mut bench = StoreWorkerFixture::new();
    bench.memory.fail_next_commit(CommitFailure::Lost);
    assert_eq!(bench.write(10), [ReportSummary::Failed { batch: 1 }]);
    bench.memory.append_outside_batch(&event(7)).unwrap();
    let reports = bench.retry_until_written();
    assert_eq!(bench.on_disk(), (10, vec![7, 10]), "{reports:?}");
}

/// Every sequence of five failures is tried. In the end, each batch is stored once and in order.
#[test]
fn no_batch_is_lost_or_written_twice_however_commits_fail() {
    let ways = [None, Some(CommitFailure::Persisted), Some(CommitFailure::Lost)];
    for script in 0..ways.len().pow(5) {
        let mut bench = StoreWorkerFixture::new();
        let mut rest = script;
        for seconds in 1..=5 {
            if let Some(commit) = ways[rest % ways.len()] {
                bench.memory.fail_next_commit(commit);
            }
            rest /= ways.len();
            bench.write(seconds);
        }
        bench.retry_until_written();
        assert_eq!(bench.on_disk(), (15, vec![1, 2, 3, 4, 5]), "script {script}");
    }
}

// S13.4: nothing is granted if the store's thread is gone.
#[test]
fn a_store_whose_thread_is_gone_has_failed() {
    let (jobs, _) = store_mailbox();
    let (reports, mut done) = unbounded_channel();
    let (thread, contents) = (std::thread::spawn(|| ()), StoreContentsState::Known);
    let mut store = StoreThread { jobs, thread, reports, contents, last_number: 0 };
    let handed_over = store.submit(Vec::new(), BatchWaiter::EventLoop);
    let failed = done.try_recv().expect("a report");
    assert!(
        matches!(failed, StoreReport::Failed { batch, .. } if handed_over == BatchSubmission::Queued(batch)),
        "{failed:?}"
    );
    assert_eq!(store.read_audit(None, 10), Err(THREAD_GONE));
}

/// While a disk hangs, the number of waiting batches is bounded, and no batch is lost.
#[test]
fn batches_beyond_the_queue_are_merged_and_all_of_them_are_written() {
    const BATCHES: u64 = 2_000;
    let (jobs, todo) = store_mailbox();
    let (reports, _) = unbounded_channel();
    let (thread, contents) = (std::thread::spawn(|| ()), StoreContentsState::Known);
    let mut store = StoreThread { jobs, thread, reports, contents, last_number: 0 };
    // No worker takes jobs from the queue.
    let handed_over: Vec<BatchSubmission> = (1..=BATCHES)
        .map(|seconds| store.submit(vec![usage(seconds), line(seconds)], BatchWaiter::Nobody))
        .collect();
    let in_line = handed_over.iter().filter(|batch| **batch != BatchSubmission::Overloaded).count();
    assert_eq!(in_line, mailbox::MAX_BATCHES);
    assert_eq!(handed_over[..in_line], (1..).map(BatchSubmission::Queued).take(in_line).collect::<Vec<_>>());
    let asked = (0..=mailbox::MAX_AUDIT_QUERIES).map(|_| store.read_audit(None, 10).is_ok());
    assert_eq!(asked.filter(|asked| *asked).count(), mailbox::MAX_AUDIT_QUERIES);
    // The disk answers again.
    assert!(!store.has_caught_up());
    drop(store);
    let mut bench = StoreWorkerFixture::new();
    let memory = bench.memory.clone();
    bench.worker.run(&todo);
    let mut up_to = 0;
    while let Ok(report) = bench.reports.try_recv() {
        if let StoreReport::Durable { up_to: now, .. } = report {
            up_to = now;
        }
    }
    assert_eq!(up_to, BATCHES, "the last batch is reported, too");
    let stored = MemoryStore::with_backend(&memory).load().unwrap();
    let lines: Vec<u64> = memory.audit().iter().map(seconds_of).collect();
    assert_eq!(stored.usage.values().map(Duration::as_secs).sum::<u64>(), (1..=BATCHES).sum::<u64>());
    assert_eq!(lines, (1..=BATCHES).collect::<Vec<_>>());
}

#[test]
fn a_line_that_no_log_can_take_is_replaced_by_a_note_and_holds_nothing_up() {
    let mut bench = StoreWorkerFixture::new();
    let grant = serde_json::json!({ "amount": 1_u64 << 53 });
    let unfit = AuditKind::Granted { grant_id: shepherd_util::GrantId::from_random(1), grant };
    let unfit = AuditEvent { what: unfit, ..event(0) };
    let unfit = || StoreWrite::AppendAudit(Box::new(unfit.clone()));
    bench.worker.pending.add(1, vec![unfit(), line(2), unfit()], BatchWaiter::EventLoop);
    bench.worker.try_to_write();
    let lines = match bench.reports.try_recv().unwrap() {
        StoreReport::Durable { lines, .. } => lines,
        other => panic!("{other:?}"),
    };
    let texts = lines.into_iter().map(|record| match record.line.what {
        AuditKind::Note { text } => text,
        other => panic!("{other:?}"),
    });
    let [first, second, third] = texts.collect::<Vec<_>>().try_into().unwrap();
    assert_eq!((second.as_str(), &first), ("2", &third));
    assert!(first.starts_with("an event of this time could not be written: "), "{first}");
}
