//! Display of an error together with its causes.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// Displays an error and all its causes on one line, separated by `: `.
#[derive(Clone, Copy, Debug)]
pub struct ErrorChain<'e>(pub &'e dyn Error);

impl Display for ErrorChain<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let mut previous = self.0.to_string();
        formatter.write_str(&previous)?;
        let mut next = self.0.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            // A transparent error has the same message as its cause, which must not appear twice.
            if !previous.ends_with(&text) {
                write!(formatter, ": {text}")?;
            }
            previous = text;
            next = cause.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum ChainTestError {
        #[error("no disk")]
        Disk,
        #[error("could not write")]
        Write(#[source] Box<ChainTestError>),
        #[error(transparent)]
        PassedOn(Box<ChainTestError>),
    }

    #[test]
    fn every_cause_is_shown_once() {
        let check =
            |error: ChainTestError, expected: &str| assert_eq!(ErrorChain(&error).to_string(), expected);
        let write = || ChainTestError::Write(Box::new(ChainTestError::Disk));
        check(ChainTestError::Disk, "no disk");
        check(write(), "could not write: no disk");
        check(ChainTestError::PassedOn(Box::new(write())), "could not write: no disk");
    }
}
