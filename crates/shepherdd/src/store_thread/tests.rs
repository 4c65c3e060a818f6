//! What becomes of batches when the disk fails in the very moment of writing, and when nobody is there to write (S8.2,
//! S8.4b).

use shepherd_api::AuditKind;
use shepherd_core::policy::Day;
use shepherd_core::{Counter, UsageKey};
use shepherd_store::{AuditCheck, Commit, Memory, MemoryStore};
use shepherd_util::{EntryId, ProfileId};
use ward_ledger::{HeadRecovery, Recovery};

use super::*;

/// A worker on a disk that does as it is told, and what it reports.
struct Bench {
    memory: Memory,
    worker: Worker,
    reports: UnboundedReceiver<Report>,
    batch: u64,
}

impl Bench {
    fn new() -> Self {
        let memory = Memory::default();
        let (reports, done) = unbounded_channel();
        let disk = memory.clone();
        let open: Open = Box::new(move || {
            let opened = Opened {
                created: false,
                migrated_from: None,
                audit_recovery: Recovery { torn: Vec::new(), head: HeadRecovery::InOrder },
                audit_check: AuditCheck::End,
                exposed: Vec::new(),
            };
            Ok((Box::new(MemoryStore::on(&disk)), opened))
        });
        let worker = Worker {
            open,
            store: Some(Box::new(MemoryStore::on(&memory))),
            contents: Contents::Known,
            sequence: 0,
            reports,
            attempt: None,
            waiting: Waiting::default(),
            patience: TRY_AGAIN,
        };
        Self { memory, worker, reports: done, batch: 0 }
    }

    /// Hands over a batch of this many seconds of use, and a line about it.
    fn write(&mut self, seconds: u64) -> Vec<Told> {
        self.batch += 1;
        self.worker.waiting.add(self.batch, vec![usage(seconds), line(seconds)], Awaited::ByUs);
        self.try_it()
    }

    /// Tries what waits, as is done at every write and now and then.
    fn try_it(&mut self) -> Vec<Told> {
        self.worker.try_to_write();
        std::iter::from_fn(|| self.reports.try_recv().ok()).map(Told::from).collect()
    }

    /// Tries until it works again.
    fn until_it_works(&mut self) -> Vec<Told> {
        let mut told = Vec::new();
        for _ in 0..5 {
            told.extend(self.try_it());
        }
        told
    }

    /// The seconds that are counted, and the lines about them.
    fn on_disk(&self) -> (u64, Vec<u64>) {
        let stored = MemoryStore::on(&self.memory).load().unwrap();
        let lines = self.memory.audit().into_iter().map(|line| seconds_of(&line)).collect();
        (stored.usage.values().map(Duration::as_secs).sum(), lines)
    }
}

/// A report, without its words.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Durable { up_to: u64, lines: Vec<u64> },
    Failed { batch: u64 },
}

impl From<Report> for Told {
    fn from(report: Report) -> Self {
        match report {
            Report::Durable { up_to, lines } => {
                Self::Durable { up_to, lines: lines.iter().map(|record| seconds_of(&record.line)).collect() }
            }
            Report::Failed { batch, .. } => Self::Failed { batch },
            Report::Opened { .. } | Report::Audit { .. } => panic!("nobody asked for it: {report:?}"),
        }
    }
}

fn usage(seconds: u64) -> StoreWrite {
    let (profile, entry_id): (ProfileId, EntryId) = ("ada".parse().unwrap(), "chess".parse().unwrap());
    let key = UsageKey { profile, counter: Counter::Entry(entry_id), day: Day(1) };
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
fn what_was_queued_behind_a_batch_that_landed_unseen_is_written_too() {
    let mut bench = Bench::new();
    assert_eq!(bench.write(1), [Told::Durable { up_to: 1, lines: vec![1] }]);
    bench.memory.fail_next_commit(Commit::Landed);
    assert_eq!(bench.write(10), [Told::Failed { batch: 2 }]);
    let told = [bench.write(100), bench.until_it_works()].concat();
    assert_eq!(bench.on_disk(), (111, vec![1, 10, 100]), "{told:?}");
    assert_eq!(told.last(), Some(&Told::Durable { up_to: 3, lines: vec![100] }));
}

#[test]
fn what_did_not_land_is_written_before_what_was_queued_behind_it() {
    let mut bench = Bench::new();
    bench.memory.fail_next_commit(Commit::Lost);
    assert_eq!(bench.write(10), [Told::Failed { batch: 1 }]);
    let told = [bench.write(100), bench.until_it_works()].concat();
    assert_eq!(bench.on_disk(), (110, vec![10, 100]), "{told:?}");
}

/// Lines that others than the batch have brought into the log, as the log's own account of a recovery, are no trace of
/// it.
#[test]
fn a_line_of_somebody_else_does_not_stand_for_a_batch() {
    let mut bench = Bench::new();
    bench.memory.fail_next_commit(Commit::Lost);
    assert_eq!(bench.write(10), [Told::Failed { batch: 1 }]);
    bench.memory.append_of_its_own(&event(7)).unwrap();
    let told = bench.until_it_works();
    assert_eq!(bench.on_disk(), (10, vec![7, 10]), "{told:?}");
}

/// Each of these fails in another way, again and again; in the end each batch is there once and in order.
#[test]
fn no_batch_is_lost_or_written_twice_however_commits_fail() {
    let ways = [None, Some(Commit::Landed), Some(Commit::Lost)];
    for script in 0..ways.len().pow(5) {
        let mut bench = Bench::new();
        let mut rest = script;
        for seconds in 1..=5 {
            if let Some(commit) = ways[rest % ways.len()] {
                bench.memory.fail_next_commit(commit);
            }
            rest /= ways.len();
            bench.write(seconds);
        }
        bench.until_it_works();
        assert_eq!(bench.on_disk(), (15, vec![1, 2, 3, 4, 5]), "script {script}");
    }
}

// S13.4: what can't be recorded is not granted, also when nobody is there to say so.
#[test]
fn a_store_whose_thread_is_gone_has_failed() {
    let (jobs, _) = inbox();
    let (reports, mut done) = unbounded_channel();
    let (thread, contents) = (std::thread::spawn(|| ()), Contents::Known);
    let mut store = StoreThread { jobs, thread, reports, contents, next: 0 };
    let handed_over = store.write(Vec::new(), Awaited::ByUs);
    let failed = done.try_recv().expect("a report");
    assert!(
        matches!(failed, Report::Failed { batch, .. } if handed_over == HandedOver::Reported(batch)),
        "{failed:?}"
    );
    assert_eq!(store.read_audit(None, 10), Err(GONE));
}

/// While a disk hangs, what waits for it is bounded, and none of it is lost.
#[test]
fn batches_that_find_no_room_are_put_together_and_all_of_them_are_written() {
    const BATCHES: u64 = 2_000;
    let (jobs, todo) = inbox();
    let (reports, _) = unbounded_channel();
    let (thread, contents) = (std::thread::spawn(|| ()), Contents::Known);
    let mut store = StoreThread { jobs, thread, reports, contents, next: 0 };
    // Nobody takes anything from the line.
    let handed_over: Vec<HandedOver> = (1..=BATCHES)
        .map(|seconds| store.write(vec![usage(seconds), line(seconds)], Awaited::ByNobody))
        .collect();
    let in_line = handed_over.iter().filter(|batch| **batch != HandedOver::Crowded).count();
    assert_eq!(in_line, inbox::MOST_BATCHES);
    assert_eq!(handed_over[..in_line], (1..).map(HandedOver::Reported).take(in_line).collect::<Vec<_>>());
    let asked = (0..=inbox::MOST_QUESTIONS).map(|_| store.read_audit(None, 10).is_ok());
    assert_eq!(asked.filter(|asked| *asked).count(), inbox::MOST_QUESTIONS);
    // The disk answers again.
    assert!(!store.has_caught_up());
    drop(store);
    let mut bench = Bench::new();
    let memory = bench.memory.clone();
    bench.worker.run(&todo);
    let mut up_to = 0;
    while let Ok(report) = bench.reports.try_recv() {
        if let Report::Durable { up_to: now, .. } = report {
            up_to = now;
        }
    }
    assert_eq!(up_to, BATCHES, "whoever was told of the crowd is told of its end");
    let stored = MemoryStore::on(&memory).load().unwrap();
    let lines: Vec<u64> = memory.audit().iter().map(seconds_of).collect();
    assert_eq!(stored.usage.values().map(Duration::as_secs).sum::<u64>(), (1..=BATCHES).sum::<u64>());
    assert_eq!(lines, (1..=BATCHES).collect::<Vec<_>>());
}

#[test]
fn a_line_that_no_log_can_take_is_replaced_by_a_note_and_holds_nothing_up() {
    let mut bench = Bench::new();
    let grant = serde_json::json!({ "amount": 1_u64 << 53 });
    let unfit = AuditKind::Granted { grant_id: shepherd_util::GrantId::from_random(1), grant };
    let unfit = AuditEvent { what: unfit, ..event(0) };
    let unfit = || StoreWrite::AppendAudit(Box::new(unfit.clone()));
    bench.worker.waiting.add(1, vec![unfit(), line(2), unfit()], Awaited::ByUs);
    bench.worker.try_to_write();
    let lines = match bench.reports.try_recv().unwrap() {
        Report::Durable { lines, .. } => lines,
        other => panic!("{other:?}"),
    };
    let texts = lines.into_iter().map(|record| match record.line.what {
        AuditKind::Note { text } => text,
        other => panic!("{other:?}"),
    });
    let [first, second, third] = texts.collect::<Vec<_>>().try_into().unwrap();
    assert_eq!((second.as_str(), &first), ("2", &third));
    assert!(first.starts_with("a line about this moment could not be written: "), "{first}");
}
