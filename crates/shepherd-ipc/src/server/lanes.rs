//! The way to the loop. What takes milliseconds has a lane of its own, so that many who ask for that do not keep others
//! waiting who ask for little.

use tokio::sync::mpsc::{self, Receiver, Sender};

use super::Incoming;
use super::connection::Kind;

/// Messages that wait for the loop, in each lane. Every connection has at most a few, and they come in turn.
const WAITING: usize = 256;

/// Quick ones that may overtake a survey: together they take about as long as one.
const MOST_IN_A_ROW: usize = 64;

/// Where messages go in.
#[derive(Debug)]
pub(super) struct Lanes {
    /// For whatever is no survey.
    pub(super) quick: Sender<Incoming>,
    surveys: Sender<Incoming>,
}

/// Where they come out.
#[derive(Debug)]
pub(super) struct LaneEnds {
    quick: Receiver<Incoming>,
    surveys: Receiver<Incoming>,
    in_a_row: usize,
}

/// Two empty lanes.
pub(super) fn lanes() -> (Lanes, LaneEnds) {
    let ((quick, quick_end), (surveys, surveys_end)) = (mpsc::channel(WAITING), mpsc::channel(WAITING));
    (Lanes { quick, surveys }, LaneEnds { quick: quick_end, surveys: surveys_end, in_a_row: 0 })
}

impl Lanes {
    /// The lane for commands of a kind.
    pub(super) fn of(&self, kind: Kind) -> &Sender<Incoming> {
        match kind {
            Kind::Survey => &self.surveys,
            Kind::Look | Kind::Act => &self.quick,
        }
    }
}

impl LaneEnds {
    /// The next message. May be cancelled without losing any.
    pub(super) async fn next(&mut self) -> Option<Incoming> {
        if self.in_a_row >= MOST_IN_A_ROW
            && let Ok(survey) = self.surveys.try_recv()
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
            Some(survey) = self.surveys.recv() => {
                self.in_a_row = 0;
                Some(survey)
            }
            else => None,
        }
    }

    pub(super) fn close(&mut self) {
        self.quick.close();
        self.surveys.close();
    }
}

#[cfg(test)]
mod tests {
    use shepherd_util::ClientId;

    use super::*;

    /// Told apart by who sent it.
    fn message(sender: u128) -> Incoming {
        Incoming::NeedsSnapshot { client_id: ClientId::from_random(sender) }
    }

    const SURVEY: u128 = 1;
    const LOOK: u128 = 2;

    fn is_survey(message: Option<Incoming>) -> bool {
        match message {
            Some(Incoming::NeedsSnapshot { client_id }) => client_id == ClientId::from_random(SURVEY),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn whoever_asks_for_little_does_not_wait_for_surveys_and_surveys_have_their_turn() {
        let (lanes, mut ends) = lanes();
        for _ in 0..10 {
            lanes.of(Kind::Survey).try_send(message(SURVEY)).unwrap();
        }
        for _ in 0..2 * MOST_IN_A_ROW {
            lanes.of(Kind::Look).try_send(message(LOOK)).unwrap();
        }
        let mut surveys = Vec::new();
        for at in 0..2 * MOST_IN_A_ROW + 10 {
            if is_survey(ends.next().await) {
                surveys.push(at);
            }
        }
        assert_eq!(surveys[..2], [MOST_IN_A_ROW, 2 * MOST_IN_A_ROW + 1]);
        assert_eq!(surveys.len(), 10);
        drop(lanes);
        assert!(ends.next().await.is_none());
    }
}
