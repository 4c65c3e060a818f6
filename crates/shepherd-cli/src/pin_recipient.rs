//! Who may hear the PIN. On a login that parent and child share, the child can put a listener of its own where a daemon
//! of that login would be, and it would be told.

use std::os::unix::fs::MetadataExt;

use rustix::process::geteuid;
use shepherd_ipc::BlockingClient;
use shepherd_util::{EnvironmentVariables, ShepherdPaths};

use crate::error::ShepherdCliError;

/// Whether the PIN may be told to whoever listens there.
pub(crate) fn check_pin_recipient(client: &BlockingClient) -> Result<(), ShepherdCliError> {
    let listener = client.daemon_user().map_err(ShepherdCliError::io("find out who listens"))?;
    if may_receive_pin(listener, geteuid().as_raw(), system_daemon_user()) {
        Ok(())
    } else {
        Err(ShepherdCliError::UntrustedPinRecipient { user: listener })
    }
}

/// Root may; else the machine's daemon, and where there is none, one of our own.
fn may_receive_pin(listener: u32, own: u32, machine: Option<u32>) -> bool {
    listener == 0 || listener == machine.unwrap_or(own)
}

/// Whose the machine's daemon is, if there is one. No variable says where: whoever shares the login can set it.
fn system_daemon_user() -> Option<u32> {
    let socket = ShepherdPaths::system(&EnvironmentVariables::new()).ok()?.socket;
    let folder = socket.parent()?;
    socket.exists().then(|| folder.metadata().ok().map(|folder| folder.uid()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pin_is_for_the_machines_daemon_and_for_our_own_where_there_is_none() {
        let (own, brother, service) = (1_000, 1_001, 990);
        let check = |listener, machine, expected| {
            assert_eq!(may_receive_pin(listener, own, machine), expected, "{listener} {machine:?}");
        };
        check(0, None, true);
        check(own, None, true);
        check(brother, None, false);
        check(0, Some(0), true);
        check(own, Some(0), false);
        check(brother, Some(0), false);
        check(service, Some(service), true);
        check(own, Some(service), false);
    }
}
