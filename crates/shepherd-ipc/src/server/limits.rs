//! How much of everything a client may have (S11.4).

use std::num::NonZeroU32;
use std::time::Duration;

use shepherd_util::RateLimit;

/// How much of everything there is. [`ConnectionLimits::default`] says what and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections in all. Never more than half of the descriptors that the process may have: the daemon needs some
    /// to start and to end programs.
    pub clients: usize,
    /// Connections of one user, so that none can lock out another by itself. Those who may administer, and root, have
    /// places beyond what all others together can take.
    pub clients_per_user: usize,
    /// Requests of one connection that are read and whose answer is not yet sent. Further ones wait in the socket.
    pub in_flight: usize,
    /// Events that wait for one subscriber.
    pub queued_events: usize,
    /// Bytes of answers that wait for the connections of one user.
    pub queued_bytes_per_user: usize,
    /// How long a client may take to say hello. A person may type it.
    pub hello_timeout: Duration,
    /// How long a line may take from its first byte to its last.
    pub line_timeout: Duration,
    /// How long a client that subscribed to nothing may say nothing.
    pub idle_timeout: Duration,
    /// How long a client may not read anything of what waits for it.
    pub write_timeout: Duration,
    /// How long the PIN is good for after the last command that needed it. A parent who walks away leaves nothing
    /// open.
    pub pin_elevation_lifetime: Duration,
    /// How often one connection may command.
    pub rates_per_client: CommandRates,
    /// How often all connections of one user together may.
    pub rates_per_user: CommandRates,
    /// How often refusals of one user are handed on to be recorded: nobody can fill a disk with being refused.
    pub recorded_refusals: RateLimit,
}

/// How often. What only reads the state costs microseconds; what is about all entries, milliseconds; everything else
/// is judged, computed or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandRates {
    /// `get_state`, `health`, `metrics` and `subscribe_events`.
    pub cheap: RateLimit,
    /// `list_entries`, `timeline` and `usage`.
    pub listings: RateLimit,
    /// All other commands.
    pub expensive: RateLimit,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            clients: 4_096,
            clients_per_user: 1_024,
            in_flight: 4,
            queued_events: 128,
            queued_bytes_per_user: 32 * 1024 * 1024,
            hello_timeout: Duration::from_secs(30),
            line_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(10 * 60),
            write_timeout: Duration::from_secs(30),
            pin_elevation_lifetime: Duration::from_secs(5 * 60),
            rates_per_client: CommandRates {
                cheap: RateLimit::new(burst(5_000), Duration::from_micros(100)),
                listings: RateLimit::new(burst(30), Duration::from_millis(100)),
                expensive: RateLimit::new(burst(200), Duration::from_millis(10)),
            },
            rates_per_user: CommandRates {
                cheap: RateLimit::new(burst(50_000), Duration::from_micros(20)),
                listings: RateLimit::new(burst(60), Duration::from_millis(50)),
                expensive: RateLimit::new(burst(400), Duration::from_millis(5)),
            },
            recorded_refusals: RateLimit::new(burst(10), Duration::from_secs(60)),
        }
    }
}

fn burst(tokens: u32) -> NonZeroU32 {
    NonZeroU32::new(tokens).unwrap_or(NonZeroU32::MIN)
}
