//! Checks the daemon before the PIN is sent to it. If parent and child share a login, the child can run a fake daemon at
//! the socket of that login to learn the PIN.

use std::os::unix::fs::MetadataExt;

use rustix::process::geteuid;
use shepherd_ipc::BlockingClient;
use shepherd_util::{EnvironmentVariables, ShepherdPaths};

use crate::error::ShepherdCliError;

/// Fails if the process behind the connection must not learn the PIN.
pub(crate) fn check_pin_recipient(client: &BlockingClient) -> Result<(), ShepherdCliError> {
    let listener = client.daemon_user().map_err(ShepherdCliError::io("find the user of the daemon"))?;
    if may_receive_pin(listener, geteuid().as_raw(), system_daemon_user()) {
        Ok(())
    } else {
        Err(ShepherdCliError::UntrustedPinRecipient { user: listener })
    }
}

/// Allows root, then the user of the machine's daemon, and this user only if the machine has no daemon.
fn may_receive_pin(listener: u32, own: u32, machine: Option<u32>) -> bool {
    listener == 0 || listener == machine.unwrap_or(own)
}

/// Returns the user of the machine's daemon, if there is one. Environment variables are ignored, because a child with the
/// same login could set them.
fn system_daemon_user() -> Option<u32> {
    let socket = ShepherdPaths::system(&EnvironmentVariables::new()).ok()?.socket;
    let folder = socket.parent()?;
    socket.exists().then(|| folder.metadata().ok().map(|folder| folder.uid()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pin_is_sent_to_the_machines_daemon_or_to_our_own_if_there_is_none() {
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
