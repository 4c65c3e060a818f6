//! The store on a thread of its own: a slow or full disk never makes the loop wait (S13.3b).
//!
//! Batches are made durable in the order in which they come. One that can't be written is kept and tried again before
//! the next, so that nothing is lost or overtaken; until then everything that would have been granted is refused. A
//! store that can't even be opened is tried in the same way; until its contents are known, only what is for the audit
//! log is kept for it. A disk that does not answer at all is noticed by the line of batches before it, which is bounded.

use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::Timestamp;
use shepherd_api::{AuditEvent, AuditRecord};
use shepherd_core::{StoreWrite, StoredState};
use shepherd_store::{OpenError, Opened, SqliteStore, Store, StoreError};
use shepherd_util::Chain;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

mod inbox;
mod waiting;

use inbox::{Closed, Job, Receiver, Room, Sender, inbox};
use waiting::{Attempt, Waiting};

/// How long to wait before trying again what could not be written. Long enough to be no burden, short enough that
/// nobody has to restart a daemon after making room on a disk.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// How long at most, when it has failed again and again. Whoever asks for something makes it be tried at once.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Batches that are made durable together: enough that no flood of them gets ahead of the disk, few enough that their
/// audit lines, which come all at once then, don't make subscribers fall behind.
const MOST_TOGETHER: usize = 32;

/// What came of a job.
#[derive(Debug)]
pub(crate) enum Report {
    /// A store that could not be read before can be. Until the loop says that it goes by this, nothing is written
    /// that would change it.
    Opened {
        /// What it knows.
        stored: Box<StoredState>,
        /// How it was found.
        opened: Box<Opened>,
    },
    /// Every batch up to this one is on disk.
    Durable {
        /// Its number.
        up_to: u64,
        /// The lines that are new in the audit log.
        lines: Vec<AuditRecord>,
    },
    /// This batch is not on disk. It will be tried again.
    Failed {
        /// Its number.
        batch: u64,
        /// Why, for people.
        detail: String,
    },
    /// Lines of the audit log, as asked for.
    Audit {
        /// The number of the question.
        question: u64,
        /// The lines, or why there are none, for people.
        lines: Result<Vec<AuditRecord>, String>,
    },
}

/// Who waits for a batch to be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// The loop has something to do when it is.
    ByUs,
    /// Nobody. Unless it has lines for the audit log, or ends a trouble, the loop is not woken for it.
    ByNobody,
}

/// What became of a batch that was handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandedOver {
    /// It is reported under this number.
    Reported(u64),
    /// Too many wait already. It is not lost, but nobody hears of it by itself.
    Crowded,
}

/// The loop's end of it.
pub(crate) struct StoreThread {
    jobs: Sender,
    thread: JoinHandle<()>,
    /// For what can't even be tried.
    reports: UnboundedSender<Report>,
    contents: Contents,
    next: u64,
}

/// Why nothing more can be written or read.
const GONE: &str = "the store's thread is gone";

/// Why nothing more is granted while too many batches wait.
pub(crate) const NO_ANSWER: &str = "the disk does not answer";

impl StoreThread {
    /// Puts a store on its thread; `None` is one that can't be read yet.
    pub(crate) fn start(
        folder: PathBuf,
        store: Option<SqliteStore>,
    ) -> std::io::Result<(Self, UnboundedReceiver<Report>)> {
        let (jobs, todo) = inbox();
        let (reports, done) = unbounded_channel();
        let sequence = store.as_ref().map_or(0, Store::audit_end);
        let contents = if store.is_some() { Contents::Known } else { Contents::Unknown };
        let (waiting, patience) = (Waiting::default(), TRY_AGAIN);
        let open: Open = Box::new(move || {
            let (store, opened) = SqliteStore::open(&folder, Timestamp::now())?;
            Ok((Box::new(store), opened))
        });
        let store = store.map(|store| -> Box<dyn Store> { Box::new(store) });
        let worker = Worker {
            open,
            store,
            contents,
            sequence,
            reports: reports.clone(),
            attempt: None,
            waiting,
            patience,
        };
        let thread = std::thread::Builder::new().name("store".to_owned()).spawn(move || worker.run(&todo))?;
        Ok((Self { jobs, thread, reports, contents, next: 0 }, done))
    }

    /// Makes these durable. Never waits.
    pub(crate) fn write(&mut self, mut writes: Vec<StoreWrite>, awaited: Awaited) -> HandedOver {
        if self.contents == Contents::Unknown {
            // Whoever does not know what the store holds must not write over it.
            writes.retain(|write| matches!(write, StoreWrite::AppendAudit(_)));
        }
        let batch = self.number();
        match self.jobs.write(batch, writes, awaited) {
            Room::InLine => HandedOver::Reported(batch),
            Room::Crowded => HandedOver::Crowded,
            Room::Gone => {
                // The loop has its own end as long as it runs.
                self.reports.send(Report::Failed { batch, detail: GONE.to_owned() }).ok();
                HandedOver::Reported(batch)
            }
        }
    }

    /// Whether the disk keeps up with what it is given. If not, there will be another report.
    pub(crate) fn has_caught_up(&self) -> bool {
        self.jobs.has_caught_up()
    }

    /// The loop goes by what the store knows.
    pub(crate) fn adopted(&mut self) {
        self.contents = Contents::Known;
    }

    /// Reads lines of the audit log. Returns the number under which they are reported, or why they will not be, for
    /// people.
    pub(crate) fn read_audit(&mut self, after: Option<u64>, limit: u32) -> Result<u64, &'static str> {
        let question = self.number();
        match self.jobs.read_audit(question, after, limit) {
            Room::InLine => Ok(question),
            Room::Crowded => Err(NO_ANSWER),
            Room::Gone => Err(GONE),
        }
    }

    /// Waits until everything that was handed over has been tried, and ends the thread.
    pub(crate) fn finish(self) {
        drop(self.jobs);
        self.thread.join().ok();
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// How the store is opened again.
type Open = Box<dyn FnMut() -> Result<(Box<dyn Store>, Opened), OpenError> + Send>;

struct Worker {
    open: Open,
    /// `None` after a failure that left unsure what is on the disk, until it could be looked at.
    store: Option<Box<dyn Store>>,
    contents: Contents,
    /// The number of the last line of the audit log that is known to be there.
    sequence: u64,
    reports: UnboundedSender<Report>,
    /// What was given to the store and may or may not be on disk.
    attempt: Option<Attempt>,
    /// What came since.
    waiting: Waiting,
    /// How long it is until what waits is tried again.
    patience: Duration,
}

/// Whether it is known what the store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contents {
    /// It could not be read.
    Unknown,
    /// The loop goes by it, or has been told.
    Known,
}

impl Worker {
    fn run(mut self, todo: &Receiver) {
        let mut next = None;
        loop {
            let job = next.take().map_or_else(|| self.wait(todo), |job| Ok(Some(job)));
            match job {
                Ok(Some(Job::Write(batch))) => {
                    self.waiting.absorb(*batch);
                    next = self.gather(todo);
                    self.try_to_write();
                }
                Ok(Some(Job::ReadAudit { question, after, limit })) => {
                    let lines = self.read_audit(after, limit);
                    self.report(Report::Audit { question, lines });
                }
                Ok(None) => {
                    if !self.try_to_write() {
                        self.patience = (self.patience * 2).min(LONGEST_WAIT);
                    }
                }
                Err(Closed) => return self.leave(),
            }
        }
    }

    /// What waits is tried once more, and if that fails, it is told that it is lost.
    fn leave(&mut self) {
        if self.is_idle() {
            return;
        }
        if let Err(detail) = self.flush() {
            let tried = self.attempt.as_ref().map_or(0, |attempt| attempt.writes.len());
            let count = tried + self.waiting.count();
            tracing::error!(count, detail, "what could not be written is lost");
        }
    }

    /// Whether there is nothing to write.
    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.attempt.is_none()
    }

    /// Whether nothing waits any more.
    fn try_to_write(&mut self) -> bool {
        let Err(detail) = self.flush() else { return true };
        // Whoever heard of the trouble has to hear of its end.
        self.waiting.is_awaited_now();
        let tried = self.attempt.as_mut().map(|attempt| {
            attempt.is_awaited = true;
            attempt.up_to
        });
        self.report(Report::Failed { batch: self.waiting.up_to().max(tried.unwrap_or(0)), detail });
        false
    }

    /// The next job, or none when it is time to try again what waits.
    fn wait(&self, todo: &Receiver) -> Result<Option<Job>, Closed> {
        if self.is_idle() { todo.next().map(Some) } else { todo.next_within(self.patience) }
    }

    /// Takes what has come meanwhile, to be made durable together: a disk is slower than a client that asks for what
    /// it can't have, and others would wait behind it. Returns the first job that is something else.
    fn gather(&mut self, todo: &Receiver) -> Option<Job> {
        for _ in 0..MOST_TOGETHER {
            match todo.next_at_once()? {
                Job::Write(batch) => self.waiting.absorb(*batch),
                other @ Job::ReadAudit { .. } => return Some(other),
            }
        }
        None
    }

    fn read_audit(&self, after: Option<u64>, limit: u32) -> Result<Vec<AuditRecord>, String> {
        let store = self.store.as_ref().ok_or("the store can't be read now")?;
        store.read_audit(after, limit).map_err(|error| Chain(&error).to_string())
    }

    /// Tries to write all that waits: first what was tried before, then what came meanwhile.
    fn flush(&mut self) -> Result<(), String> {
        let mut store = match self.store.take() {
            Some(store) => store,
            None => self.open_again()?,
        };
        loop {
            let next = self.attempt.take().or_else(|| self.waiting.attempt(store.generation()));
            let Some(mut attempt) = next else { break };
            // One that seemed to fail may be there all the same.
            let is_there = store.generation() > attempt.generation;
            if !is_there && let Err(error) = attempt.apply_to(&mut *store) {
                self.attempt = Some(attempt);
                if !matches!(error, StoreError::Unsure { .. } | StoreError::Damaged { .. }) {
                    self.store = Some(store);
                }
                return Err(Chain(&error).to_string());
            }
            self.written(attempt, &*store);
        }
        self.store = Some(store);
        Ok(())
    }

    fn open_again(&mut self) -> Result<Box<dyn Store>, String> {
        let (store, opened) = (self.open)().map_err(|error| Chain(&error).to_string())?;
        if self.contents == Contents::Unknown {
            let stored = Box::new(store.load().map_err(|error| Chain(&error).to_string())?);
            self.sequence = store.audit_end();
            self.contents = Contents::Known;
            self.report(Report::Opened { stored, opened: Box::new(opened) });
        }
        Ok(store)
    }

    /// What was tried is on disk.
    fn written(&mut self, attempt: Attempt, store: &dyn Store) {
        self.patience = TRY_AGAIN;
        let Attempt { up_to, writes, is_awaited, .. } = attempt;
        let lines = writes.into_iter().filter_map(|write| match write {
            StoreWrite::AppendAudit(line) => Some(*line),
            StoreWrite::AddUsage { .. } | StoreWrite::SetCooldown { .. } | StoreWrite::SaveSnapshot(_) => {
                None
            }
        });
        let lines: Vec<AuditEvent> = lines.collect();
        let end = store.audit_end();
        let before = std::mem::replace(&mut self.sequence, end);
        let grown = end.saturating_sub(before);
        let lines = if grown == lines.len() as u64 {
            (before + 1..).zip(lines).map(|(sequence, line)| AuditRecord { sequence, line }).collect()
        } else {
            // The log had something of its own to tell as well.
            let grown = u32::try_from(grown).unwrap_or(u32::MAX);
            store.read_audit(Some(before), grown).unwrap_or_default()
        };
        if is_awaited || !lines.is_empty() {
            self.report(Report::Durable { up_to, lines });
        }
    }

    fn report(&self, report: Report) {
        // The loop is gone only when the daemon is.
        self.reports.send(report).ok();
    }
}

#[cfg(test)]
mod tests;
