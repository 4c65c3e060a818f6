//! The record of a proxy's connections, for the receipt.

use serde::Serialize;

use crate::text::truncate_text;

/// The maximum number of different records. Further connections are only counted.
const MAX_RECORDS: usize = 64;

/// The longest host in a record, longer than any valid host name.
const MAX_HOST_BYTES: usize = 260;

/// The longest reason in a record. It may quote the server name of a TLS handshake, which a command can choose freely.
const MAX_REASON_BYTES: usize = 500;

/// All connections to one host and port with the same verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProxyRecord {
    /// The host as the command wrote it, or `invalid` if it isn't a host.
    pub host: String,
    pub port: u16,
    /// `allowed`, or `refused`.
    pub verdict: &'static str,
    /// The reason of the first refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub connections: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
}

/// The connections of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ProxyReport {
    pub connections: Vec<ProxyRecord>,
    /// The number of connections that are in no record, because there were too many different ones.
    #[serde(skip_serializing_if = "is_zero")]
    pub unlisted: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The end of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConnectionEnd {
    pub(super) host: String,
    pub(super) port: u16,
    /// The reason why the connection was refused.
    pub(super) refusal: Option<String>,
    pub(super) sent: u64,
    pub(super) received: u64,
}

/// The records so far.
#[derive(Debug, Default)]
pub(super) struct ConnectionLog(ProxyReport);

impl ConnectionLog {
    pub(super) fn add(&mut self, end: ConnectionEnd) {
        let ConnectionEnd { mut host, port, refusal, sent, received } = end;
        host.truncate(host.floor_char_boundary(MAX_HOST_BYTES));
        let verdict = if refusal.is_some() { "refused" } else { "allowed" };
        let is_same =
            |record: &&mut ProxyRecord| (&record.host, record.port, record.verdict) == (&host, port, verdict);
        if let Some(record) = self.0.connections.iter_mut().find(is_same) {
            record.connections += 1;
            record.bytes_sent = record.bytes_sent.saturating_add(sent);
            record.bytes_received = record.bytes_received.saturating_add(received);
        } else if self.0.connections.len() < MAX_RECORDS {
            let (bytes_sent, bytes_received) = (sent, received);
            let record = ProxyRecord {
                host,
                port,
                verdict,
                reason: refusal.map(|reason| truncate_text(&reason, MAX_REASON_BYTES)),
                connections: 1,
                bytes_sent,
                bytes_received,
            };
            self.0.connections.push(record);
        } else {
            self.0.unlisted += 1;
        }
    }

    pub(super) fn report(&self) -> ProxyReport {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_to_the_same_host_are_added_up_and_others_are_bounded() {
        let mut log = ConnectionLog::default();
        let end = |host: &str, refusal: Option<&str>| ConnectionEnd {
            host: host.to_owned(),
            port: 443,
            refusal: refusal.map(str::to_owned),
            sent: 1,
            received: 2,
        };
        log.add(end("a.example", None));
        log.add(end("a.example", None));
        log.add(end("a.example", Some("why")));
        let records = log.report().connections;
        assert_eq!((records[0].connections, records[0].bytes_sent, records[0].bytes_received), (2, 2, 4));
        assert_eq!((records[1].verdict, records[1].reason.as_deref()), ("refused", Some("why")));
        for number in 0..1_000 {
            log.add(end(&format!("{number}.example"), Some("why")));
        }
        let report = log.report();
        assert_eq!(
            (report.connections.len(), report.unlisted),
            (MAX_RECORDS, 1_000 + 2 - MAX_RECORDS as u64)
        );
    }

    #[test]
    fn records_leave_room_in_a_receipt_whatever_the_client_sends() {
        let mut log = ConnectionLog::default();
        for number in 0..100 {
            let host = format!("{number}{}", "a".repeat(10_000));
            log.add(ConnectionEnd {
                host,
                port: 443,
                refusal: Some("\u{1}".repeat(16_000)),
                sent: 0,
                received: 0,
            });
        }
        let text = serde_json::to_string(&log.report()).unwrap();
        assert!(text.len() < 1 << 18, "{}", text.len());
    }
}
