//! An error and everything behind it.

use std::error::Error;
use std::fmt::{self, Display, Formatter};

/// Shows an error with all its causes, in one line: each says only its own part, and this puts them together.
#[derive(Clone, Copy, Debug)]
pub struct ErrorChain<'e>(pub &'e dyn Error);

impl Display for ErrorChain<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let mut said = self.0.to_string();
        formatter.write_str(&said)?;
        let mut next = self.0.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            // One that only passes another on says the same as that one.
            if !said.ends_with(&text) {
                write!(formatter, ": {text}")?;
            }
            said = text;
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
