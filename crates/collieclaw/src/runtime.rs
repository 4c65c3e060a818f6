//! The agent loop, and the one door through which every tool call goes.

mod door;
mod operator;
mod prompt;
mod rules;
mod turn;

pub use door::{Begun, By, Deed, Door, Fate, Granted, OfStep, Offer, Outcome, Wish};
pub use operator::{Answer, Asked, Attended, Lasting, Notice, Operator, Posed, Questioner, Reply};
pub use rules::Rules;
pub use turn::{Report, Runtime, TurnError};
