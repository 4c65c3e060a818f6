//! Finds sessions in the audit log and reads their output on a thread of its own: neither a long log nor a slow disk
//! delays the loop (S13.3b).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use shepherd_api::{
    ApiError, AuditKind, AuditRecord, CommandReply, EndReason, ErrorCode, Millis, SessionLogView,
};
use shepherd_ipc::ClientHub;
use shepherd_store::{StoreError, read_audit_log};
use shepherd_util::{EntryId, ErrorChain, ProfileId, SessionId};

use crate::service::RequestAddress;
use crate::user_slots::UserSlots;

/// The bytes of output in a reply.
const MAX_OUTPUT_BYTES: u64 = 64 * 1024;

/// The number of audit records that are searched, from the newest on. The host keeps the output of 200 sessions, each
/// of which has a handful of records.
const MAX_SEARCHED_RECORDS: u64 = 20_000;

/// The number of audit records that are read together.
const PAGE: u32 = 500;

/// The number of times that the end of a session is looked for, and the delay between two of them: a second in all,
/// longer than a disk usually takes.
const END_RETRIES: u32 = 20;
const END_RETRY_DELAY: Duration = Duration::from_millis(50);

/// The number of queued queries.
const MAX_PENDING: usize = 16;

/// The number of queued queries of one user.
const MAX_PENDING_PER_USER: usize = 2;

/// The time after which a refused client may retry.
const RETRY_AFTER: Millis = Millis(1_000);

/// A query for the output of a session.
pub(crate) struct SessionLogQuery {
    pub(crate) to: RequestAddress,
    /// The user id that the kernel reports.
    pub(crate) uid: u32,
    /// The session's id or the first characters of it; the newest session if absent.
    pub(crate) session: Option<String>,
    /// The profile that the client named.
    pub(crate) profile: Option<ProfileId>,
    pub(crate) readable: ReadableProfiles,
    /// The sessions that were running when the client asked.
    pub(crate) running: BTreeSet<SessionId>,
    pub(crate) labels: BTreeMap<EntryId, String>,
    pub(crate) output_folder: PathBuf,
}

/// The profiles whose sessions a client may read.
pub(crate) enum ReadableProfiles {
    All,
    Only {
        profiles: BTreeSet<ProfileId>,
        /// The code of the error for sessions of other profiles.
        refusal: ErrorCode,
    },
}

/// The loop's handle to the thread.
pub(crate) struct SessionLogThread {
    queries: SyncSender<SessionLogQuery>,
    pending: UserSlots,
}

impl SessionLogThread {
    /// Starts the thread, which ends with the loop. Nothing waits for it then.
    pub(crate) fn start(store_folder: PathBuf, clients: ClientHub) -> io::Result<Self> {
        let (queries, received) = sync_channel(MAX_PENDING);
        let pending = UserSlots::new(MAX_PENDING_PER_USER);
        let slots = pending.clone();
        std::thread::Builder::new()
            .name("session-logs".into())
            .spawn(move || answer_queries(&store_folder, &received, &slots, &clients))?;
        Ok(Self { queries, pending })
    }

    /// Queues a query.
    ///
    /// # Errors
    /// Too many queries are queued.
    pub(crate) fn submit(&self, query: SessionLogQuery) -> Result<(), ApiError> {
        let uid = query.uid;
        let too_many = || ApiError::rate_limited("Too many session logs are being read.", RETRY_AFTER);
        if !self.pending.reserve(uid) {
            return Err(too_many());
        }
        self.queries.try_send(query).map_err(|error| {
            self.pending.release(uid);
            match error {
                TrySendError::Full(_) | TrySendError::Disconnected(_) => too_many(),
            }
        })
    }
}

fn answer_queries(
    store_folder: &Path,
    received: &Receiver<SessionLogQuery>,
    slots: &UserSlots,
    clients: &ClientHub,
) {
    for query in received {
        let answer = find_settled_session(store_folder, &query).and_then(|found| read_output(found, &query));
        // This comes before the answer, or the client's next query could be refused.
        slots.release(query.uid);
        let answer = answer.map(|log| CommandReply::SessionLog { log });
        clients.respond(&query.to.client_id, query.to.request_id, answer);
    }
}

/// Searches for the session. The end of a session that no longer runs may not be on disk yet, so the search is repeated
/// for a moment.
fn find_settled_session(store_folder: &Path, query: &SessionLogQuery) -> Result<SessionLogView, ApiError> {
    let mut found = find_session(store_folder, query)?;
    for _ in 0..END_RETRIES {
        if found.end.is_some() || query.running.contains(&found.session_id) {
            break;
        }
        std::thread::sleep(END_RETRY_DELAY);
        found = find_session(store_folder, query)?;
    }
    Ok(found)
}

/// Searches the audit log, from the newest record on, for the session that the client means.
fn find_session(store_folder: &Path, query: &SessionLogQuery) -> Result<SessionLogView, ApiError> {
    let unreadable = |error: StoreError| {
        let sentence = format!("The audit log can't be read: {}.", ErrorChain(&error));
        ApiError::new(ErrorCode::StoreUnavailable, sentence)
    };
    let mut search = SessionSearch::new(query);
    let last = last_sequence(store_folder).map_err(unreadable)?;
    let stop_at = last.saturating_sub(MAX_SEARCHED_RECORDS);
    let mut end = last;
    while end > stop_at {
        let start = end.saturating_sub(u64::from(PAGE));
        // A page may have fewer records than asked for, because its bytes are limited as well.
        let mut records: Vec<AuditRecord> = Vec::new();
        loop {
            let after = records.last().map_or(start, |record| record.sequence);
            let wanted = u32::try_from(end.saturating_sub(after)).unwrap_or(PAGE);
            let page = if wanted == 0 {
                Vec::new()
            } else {
                read_audit_log(store_folder, Some(after), wanted).map_err(unreadable)?
            };
            if page.is_empty() {
                break;
            }
            records.extend(page);
        }
        if let Some(found) = records.into_iter().rev().find_map(|record| search.examine(record)) {
            return Ok(found);
        }
        end = start;
    }
    Err(search.not_found())
}

/// Returns the number of the newest audit record, by doubling and halving.
fn last_sequence(store_folder: &Path) -> Result<u64, StoreError> {
    let has_later = |after| read_audit_log(store_folder, Some(after), 1).map(|page| !page.is_empty());
    let mut high: u64 = 1;
    while has_later(high)? {
        high = high.saturating_mul(2);
    }
    let mut low = high / 2;
    while low < high {
        let middle = low.midpoint(high);
        if has_later(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// A search through audit records, newest first. The end of a session is therefore seen before its launch.
struct SessionSearch<'q> {
    query: &'q SessionLogQuery,
    ends: BTreeMap<SessionId, EndReason>,
    /// True if a session was passed over because it belongs to another profile.
    passed_over: bool,
}

impl<'q> SessionSearch<'q> {
    fn new(query: &'q SessionLogQuery) -> Self {
        Self { query, ends: BTreeMap::new(), passed_over: false }
    }

    /// Returns the session if this record is its launch and the client may read it.
    fn examine(&mut self, record: AuditRecord) -> Option<SessionLogView> {
        let (session_id, entry_id, profile) = match record.line.what {
            AuditKind::SessionEnded { session_id, end, .. } => {
                self.ends.insert(session_id, end);
                return None;
            }
            AuditKind::LaunchApproved { session_id, entry_id, profile, .. } => {
                (session_id, entry_id, profile)
            }
            _ => return None,
        };
        let end = self.ends.remove(&session_id);
        let is_meant = match &self.query.session {
            Some(prefix) => has_prefix(&session_id, prefix),
            None => self.query.profile.as_ref().is_none_or(|named| *named == profile),
        };
        if !is_meant {
            return None;
        }
        if let ReadableProfiles::Only { profiles, .. } = &self.query.readable
            && !profiles.contains(&profile)
        {
            self.passed_over = true;
            return None;
        }
        let label = self.query.labels.get(&entry_id).map_or(entry_id.as_str(), String::as_str).to_owned();
        let started_at = record.line.at;
        Some(SessionLogView {
            session_id,
            entry_id,
            label,
            profile,
            started_at,
            end,
            text: None,
            left_out: 0,
        })
    }

    /// Returns the error for a search without a result. The error for an id is the same whether another profile has such
    /// a session or nobody has: a child must not learn which ids exist.
    fn not_found(&self) -> ApiError {
        match (&self.query.readable, &self.query.session) {
            (ReadableProfiles::Only { refusal: ErrorCode::PinRequired, .. }, Some(_)) => {
                ApiError::new(ErrorCode::PinRequired, "None of your sessions has this id.")
            }
            (_, Some(_)) => ApiError::new(ErrorCode::UnknownSession, "There is no such session."),
            (ReadableProfiles::Only { refusal, .. }, None) if self.passed_over => {
                ApiError::new(*refusal, "The latest sessions belong to other profiles.")
            }
            (_, None) => ApiError::new(ErrorCode::UnknownSession, "Nothing has run yet."),
        }
    }
}

/// Returns whether an id begins with these characters. Nothing begins with an empty text.
fn has_prefix(session_id: &SessionId, prefix: &str) -> bool {
    let digits = prefix.strip_prefix("session-").unwrap_or(prefix);
    let id = session_id.as_str();
    !digits.is_empty() && id.strip_prefix("session-").unwrap_or(id).starts_with(digits)
}

/// Adds the end of the session's output.
fn read_output(found: SessionLogView, query: &SessionLogQuery) -> Result<SessionLogView, ApiError> {
    let path = query.output_folder.join(format!("{}.log", found.session_id));
    match read_end(&path) {
        Ok((text, left_out)) => Ok(SessionLogView { text: Some(text), left_out, ..found }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(found),
        Err(error) => {
            let sentence = format!("The output of the session can't be read: {error}.");
            Err(ApiError::new(ErrorCode::StoreUnavailable, sentence))
        }
    }
}

/// Returns the last bytes of a file as text, from the beginning of a line if one begins there, and the number of bytes
/// before it.
fn read_end(path: &Path) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(MAX_OUTPUT_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes)?;
    let line_start = match bytes.iter().position(|byte| *byte == b'\n') {
        Some(newline) if start > 0 && newline + 1 < bytes.len() => newline + 1,
        _ => 0,
    };
    let kept = bytes.split_off(line_start);
    Ok((String::from_utf8_lossy(&kept).into_owned(), start + line_start as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_long_output_is_read_from_the_beginning_of_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "short \u{1b}[2J\n").unwrap();
        assert_eq!(read_end(&path).unwrap(), ("short \u{1b}[2J\n".to_owned(), 0));
        let line = "0123456789\n";
        let lines = 20_000;
        std::fs::write(&path, line.repeat(lines)).unwrap();
        let (text, left_out) = read_end(&path).unwrap();
        assert!(text.len() as u64 <= MAX_OUTPUT_BYTES && text.starts_with(line), "{}", text.len());
        assert_eq!(text.len() as u64 + left_out, (line.len() * lines) as u64);
        std::fs::write(&path, vec![0xff; 100_000]).unwrap();
        let (text, left_out) = read_end(&path).unwrap();
        assert_eq!(text.chars().count() as u64 + left_out, 100_000);
    }

    #[test]
    fn a_session_is_named_by_the_first_characters_of_its_id() {
        let session_id = SessionId::from_random(0x1f2e_3d4c << 96);
        for prefix in ["1f2e", "session-1f", session_id.as_str()] {
            assert!(has_prefix(&session_id, prefix), "{prefix}");
        }
        for prefix in ["", "session-", "2e", "session-2"] {
            assert!(!has_prefix(&session_id, prefix), "{prefix}");
        }
    }
}
