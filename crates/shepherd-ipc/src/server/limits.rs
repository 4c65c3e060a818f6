//! How much of everything a client may have (S11.4).

use std::num::NonZeroU32;
use std::time::Duration;

use shepherd_util::RateLimit;

/// How much of everything there is. [`Limits::default`] says what and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections in all. Never more than half of the descriptors that the process may have: the daemon needs some
    /// to start and to end programs.
    pub clients: usize,
    /// Connections of one user, so that none can lock out another by itself. Those who may administer, and root, have
    /// places beyond what all others together can take.
    pub clients_of_one_user: usize,
    /// Requests of one connection that are read and whose answer is not yet sent. Further ones wait in the socket.
    pub in_flight: usize,
    /// Events that wait for one subscriber.
    pub queued_events: usize,
    /// Bytes of answers that wait for the connections of one user.
    pub queued_bytes_of_one_user: usize,
    /// How long a client may take to say hello. A person may type it.
    pub hello_patience: Duration,
    /// How long a line may take from its first byte to its last.
    pub line_patience: Duration,
    /// How long a client that subscribed to nothing may say nothing.
    pub idle_patience: Duration,
    /// How long a client may not read anything of what waits for it.
    pub write_patience: Duration,
    /// How long the PIN is good for after the last command that needed it. A parent who walks away leaves nothing
    /// open.
    pub pin_lasts: Duration,
    /// How often one connection may command.
    pub of_client: Rates,
    /// How often all connections of one user together may.
    pub of_user: Rates,
    /// How often refusals of one user are handed on to be recorded: nobody can fill a disk with being refused.
    pub recorded_refusals: RateLimit,
}

/// How often. What only reads the state costs microseconds; what is about all entries, milliseconds; everything else
/// is judged, computed or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// `get_state`, `health`, `metrics` and `subscribe_events`.
    pub looks: RateLimit,
    /// `list_entries`, `timeline` and `usage`.
    pub surveys: RateLimit,
    /// All other commands.
    pub acts: RateLimit,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 4_096,
            clients_of_one_user: 1_024,
            in_flight: 4,
            queued_events: 128,
            queued_bytes_of_one_user: 32 * 1024 * 1024,
            hello_patience: Duration::from_secs(30),
            line_patience: Duration::from_secs(10),
            idle_patience: Duration::from_secs(10 * 60),
            write_patience: Duration::from_secs(30),
            pin_lasts: Duration::from_secs(5 * 60),
            of_client: Rates {
                looks: RateLimit::new(at_once(5_000), Duration::from_micros(100)),
                surveys: RateLimit::new(at_once(30), Duration::from_millis(100)),
                acts: RateLimit::new(at_once(200), Duration::from_millis(10)),
            },
            of_user: Rates {
                looks: RateLimit::new(at_once(50_000), Duration::from_micros(20)),
                surveys: RateLimit::new(at_once(60), Duration::from_millis(50)),
                acts: RateLimit::new(at_once(400), Duration::from_millis(5)),
            },
            recorded_refusals: RateLimit::new(at_once(10), Duration::from_secs(60)),
        }
    }
}

fn at_once(tokens: u32) -> NonZeroU32 {
    NonZeroU32::new(tokens).unwrap_or(NonZeroU32::MIN)
}
