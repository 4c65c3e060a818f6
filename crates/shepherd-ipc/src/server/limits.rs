//! Limits for clients (S11.4).

use std::num::NonZeroU32;
use std::time::Duration;

use shepherd_util::RateLimit;

/// The limits for clients. [`ConnectionLimits::default`] explains the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The total number of connections. Never more than half of the process's file descriptors, because the daemon
    /// needs some to start and stop programs.
    pub clients: usize,
    /// The number of connections of one user, so that no user can lock out another. Administrators and root have
    /// reserved places that no other user can take.
    pub clients_per_user: usize,
    /// The number of requests of one connection that are read but not answered. Further requests wait in the socket.
    pub in_flight: usize,
    /// The number of queued events of one subscriber.
    pub queued_events: usize,
    /// The number of queued reply bytes for all connections of one user.
    pub queued_bytes_per_user: usize,
    /// The time that a client may take for the handshake. A person may type it.
    pub hello_timeout: Duration,
    /// The time that a line may take from its first byte to its last.
    pub line_timeout: Duration,
    /// The time that a client without a subscription may be silent.
    pub idle_timeout: Duration,
    /// The time that a client may leave its queued messages unread.
    pub write_timeout: Duration,
    /// The time for which the PIN stays valid after the last command that needed it. A parent who walks away leaves
    /// nothing open.
    pub pin_elevation_lifetime: Duration,
    /// The command rates of one connection.
    pub rates_per_client: CommandRates,
    /// The command rates of all connections of one user together.
    pub rates_per_user: CommandRates,
    /// The rate at which refusals of one user are recorded, so that refusals can't fill a disk.
    pub recorded_refusals: RateLimit,
}

/// Command rates by cost class. Reading the state costs microseconds, a listing of all entries milliseconds, and all
/// other commands are evaluated, calculated or written to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandRates {
    /// The rate of `get_state`, `health`, `metrics` and `subscribe_events`.
    pub cheap: RateLimit,
    /// The rate of `list_entries`, `timeline` and `usage`.
    pub listings: RateLimit,
    /// The rate of all other commands.
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
