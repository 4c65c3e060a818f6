//! The result of writes to standard output.

use std::io;

/// The result of all writes to standard output so far.
#[derive(Debug, Default)]
pub enum WriteStatus {
    /// Every write succeeded.
    #[default]
    Open,
    /// The reader closed the pipe: it has all it wanted, so this is no failure.
    Closed,
    /// A write failed, for example because the disk is full.
    Failed(io::Error),
}

impl WriteStatus {
    /// Records the result of a write. Only the first failure counts.
    pub fn record(&mut self, written: io::Result<()>) {
        if let Err(error) = written
            && self.is_open()
        {
            let is_closed = error.kind() == io::ErrorKind::BrokenPipe;
            *self = if is_closed { Self::Closed } else { Self::Failed(error) };
        }
    }

    /// Returns false once a write has failed, so that endless commands stop when nobody reads their output.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }

    /// Takes the failure out of the status, and leaves the output closed.
    ///
    /// # Errors
    /// A write failed for another reason than a closed pipe.
    pub fn take_failure(&mut self) -> io::Result<()> {
        match std::mem::take(self) {
            Self::Open => Ok(()),
            Self::Closed => {
                *self = Self::Closed;
                Ok(())
            }
            Self::Failed(error) => {
                *self = Self::Closed;
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    fn status_after(kinds: &[ErrorKind]) -> WriteStatus {
        let mut status = WriteStatus::default();
        for kind in kinds {
            status.record(Ok(()));
            status.record(Err((*kind).into()));
        }
        status
    }

    #[test]
    fn a_closed_pipe_ends_the_output_without_a_failure() {
        let mut status = status_after(&[ErrorKind::BrokenPipe]);
        assert!(!status.is_open());
        assert!(status.take_failure().is_ok());
        assert!(!status.is_open());
    }

    #[test]
    fn the_first_failure_counts_and_is_reported_once() {
        let mut status = status_after(&[ErrorKind::StorageFull, ErrorKind::BrokenPipe, ErrorKind::TimedOut]);
        assert!(!status.is_open());
        assert_eq!(status.take_failure().unwrap_err().kind(), ErrorKind::StorageFull);
        assert!(status.take_failure().is_ok());
        assert!(!status.is_open(), "the output stays closed");
    }

    #[test]
    fn nothing_is_wrong_while_all_writes_succeed() {
        let mut status = status_after(&[]);
        status.record(Ok(()));
        assert!(status.is_open());
        assert!(status.take_failure().is_ok());
    }
}
