//! The queues to the daemon's loop. Commands that take milliseconds have their own lane, so that many of them don't
//! delay clients with quick commands.

use tokio::sync::mpsc::{self, Receiver, Sender};

use super::IncomingEvent;
use super::connection::CommandCost;

/// The number of queued messages per lane. Every connection has at most a few, and they take turns.
const LANE_CAPACITY: usize = 256;

/// The number of quick commands that may overtake a listing: together they take about as long as one listing.
const MAX_QUICK_IN_A_ROW: usize = 64;

/// The sending half of both lanes.
#[derive(Debug)]
pub(super) struct LaneSenders {
    /// The lane for everything except listings.
    pub(super) quick: Sender<IncomingEvent>,
    listings: Sender<IncomingEvent>,
}

/// The receiving half of both lanes.
#[derive(Debug)]
pub(super) struct LaneReceivers {
    quick: Receiver<IncomingEvent>,
    listings: Receiver<IncomingEvent>,
    in_a_row: usize,
}

/// Creates two empty lanes.
pub(super) fn lane_channels() -> (LaneSenders, LaneReceivers) {
    let ((quick, quick_end), (surveys, surveys_end)) =
        (mpsc::channel(LANE_CAPACITY), mpsc::channel(LANE_CAPACITY));
    (
        LaneSenders { quick, listings: surveys },
        LaneReceivers { quick: quick_end, listings: surveys_end, in_a_row: 0 },
    )
}

impl LaneSenders {
    /// Returns the lane for a kind of command.
    pub(super) fn sender_for(&self, kind: CommandCost) -> &Sender<IncomingEvent> {
        match kind {
            CommandCost::Listing => &self.listings,
            CommandCost::Cheap | CommandCost::Expensive => &self.quick,
        }
    }
}

impl LaneReceivers {
    /// Waits for the next message. A cancellation loses no message.
    pub(super) async fn next_event(&mut self) -> Option<IncomingEvent> {
        if self.in_a_row >= MAX_QUICK_IN_A_ROW
            && let Ok(survey) = self.listings.try_recv()
        {
            self.in_a_row = 0;
            return Some(survey);
        }
        tokio::select! {
            biased;
            Some(quick) = self.quick.recv() => {
                self.in_a_row = self.in_a_row.saturating_add(1);
                Some(quick)
            }
            Some(survey) = self.listings.recv() => {
                self.in_a_row = 0;
                Some(survey)
            }
            else => None,
        }
    }

    pub(super) fn close(&mut self) {
        self.quick.close();
        self.listings.close();
    }
}

#[cfg(test)]
mod tests {
    use shepherd_util::ClientId;

    use super::*;

    /// A message that is identified by its sender.
    fn message(sender: u128) -> IncomingEvent {
        IncomingEvent::NeedsSnapshot { client_id: ClientId::from_random(sender) }
    }

    const LISTING: u128 = 1;
    const CHEAP: u128 = 2;

    fn is_listing(message: Option<IncomingEvent>) -> bool {
        match message {
            Some(IncomingEvent::NeedsSnapshot { client_id }) => client_id == ClientId::from_random(LISTING),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn cheap_commands_overtake_listings_up_to_a_bound() {
        let (lanes, mut ends) = lane_channels();
        for _ in 0..10 {
            lanes.sender_for(CommandCost::Listing).try_send(message(LISTING)).unwrap();
        }
        for _ in 0..2 * MAX_QUICK_IN_A_ROW {
            lanes.sender_for(CommandCost::Cheap).try_send(message(CHEAP)).unwrap();
        }
        let mut surveys = Vec::new();
        for at in 0..2 * MAX_QUICK_IN_A_ROW + 10 {
            if is_listing(ends.next_event().await) {
                surveys.push(at);
            }
        }
        assert_eq!(surveys[..2], [MAX_QUICK_IN_A_ROW, 2 * MAX_QUICK_IN_A_ROW + 1]);
        assert_eq!(surveys.len(), 10);
        drop(lanes);
        assert!(ends.next_event().await.is_none());
    }
}
