//! What a later host does about the programs of an earlier one (S5.2, S9.1).

use std::time::Duration;

use super::play::{Outcome, Play};
use super::{Case, Part, Stage};
use crate::{Host, HostEvent, HostSessionHandle};

/// Longer than anything is waited for.
const LONG: Duration = Duration::from_secs(3_600);

pub(super) fn all<S: Stage>() -> Vec<Case<S>> {
    vec![
        ("a program is taken back by its handle and can be ended", by_handle),
        ("a program is taken back without its handle and can be ended", without_handle),
        ("a program that ignores requests is killed after it was taken back", stubborn),
        ("a program that is stopped while it is taken back is ended", stop_while_taken_back),
        ("a program that ends while nobody looks is gone", gone_meanwhile),
        ("a program that never ran is gone, whatever the handle says", never_ran),
        ("what an earlier host left is known to the next", written_down),
    ]
}

/// What the later host is given.
#[derive(PartialEq)]
enum Given {
    Handle,
    OnlyTheName,
}

fn take_back<S: Stage>(play: &mut Play<'_, S>, part: Part, given: &Given) -> Outcome {
    let (session_id, handle) = play.start(part)?;
    // So that it has come to where it ignores requests, if it does.
    play.silence()?;
    play.restart();
    play.host()?.reattach(&session_id, (*given == Given::Handle).then_some(&handle));
    play.expect_reattached(&session_id)?;
    play.silence()?;
    let grace = if part == Part::Ignores { Duration::from_millis(200) } else { LONG };
    play.stop(&session_id, grace)?;
    play.expect_exited(&session_id).map(drop)
}

fn by_handle<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    take_back(play, Part::Runs, &Given::Handle)
}

fn without_handle<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    take_back(play, Part::HandsOver, &Given::OnlyTheName)
}

fn stubborn<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    take_back(play, Part::Ignores, &Given::Handle)
}

fn stop_while_taken_back<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let (session_id, handle) = play.start(Part::Runs)?;
    play.restart();
    play.host()?.reattach(&session_id, Some(&handle));
    play.stop(&session_id, LONG)?;
    play.expect_reattached(&session_id)?;
    play.expect_exited(&session_id).map(drop)
}

fn gone_meanwhile<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let (session_id, handle) = play.start(Part::Exits { after: Duration::from_millis(500), code: 0 })?;
    play.restart_after(Duration::from_secs(2));
    play.host()?.reattach(&session_id, Some(&handle));
    play.expect(&HostEvent::Gone { session_id })
}

fn never_ran<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    for handle in [None, Some(HostSessionHandle::new("{\"never\": \"ran\"}".to_owned()))] {
        let session_id = play.stage.session_id();
        play.host()?.reattach(&session_id, handle.as_ref());
        play.expect(&HostEvent::Gone { session_id })?;
    }
    Ok(())
}

fn written_down<S: Stage>(play: &mut Play<'_, S>) -> Outcome {
    let (session_id, _) = play.start(Part::Runs)?;
    play.restart();
    if !play.host()?.earlier_sessions().contains(&session_id) {
        return Err(format!("{session_id} is forgotten"));
    }
    play.host()?.reattach(&session_id, None);
    play.expect_reattached(&session_id)?;
    play.stop(&session_id, Duration::ZERO)?;
    play.expect_exited(&session_id).map(drop)
}
