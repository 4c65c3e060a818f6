//! One run: replay what failed before, then mutate until the time is up.

use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::failure::{Failure, Fault};
use crate::{Mutator, Random, regressions, settings};

/// One input may take so long on a busy machine; more is a parser that hangs.
const LONGEST_FOR_ONE_INPUT: Duration = Duration::from_secs(5);

/// Inputs with new answers that join the corpus. More would only make each one rarer.
const MOST_LEARNED: usize = 2_000;

/// Attempts to make a failing input smaller.
const MOST_REDUCTIONS: usize = 2_000;

/// What to run.
#[derive(Clone, Debug)]
pub struct Fuzz {
    /// Which target.
    pub name: String,
    /// For how long.
    pub time: Duration,
    /// Where the sequence of inputs starts.
    pub seed: u64,
    /// Where inputs that failed are kept.
    pub regressions: PathBuf,
}

/// A run in which nothing failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// How many kept inputs were replayed.
    pub replayed: usize,
    /// How many inputs were tried in all.
    pub tried: u64,
    /// How many different answers there were.
    pub answers: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replayed, tried, answers } = self;
        write!(formatter, "{tried} inputs, {answers} different answers, {replayed} old failures replayed")
    }
}

/// Runs `target` on mutations of `corpus` as the environment of the test says.
///
/// What `target` returns guides the run: inputs with answers that were not seen before are mutated further.
///
/// # Errors
/// An input made `target` panic or took too long, or a variable or a kept input could not be read.
pub fn run<Answer: Hash>(
    name: &str,
    corpus: &[Vec<u8>],
    target: impl Fn(&[u8]) -> Answer,
) -> Result<Report, Failure> {
    let variable = |name: &str| std::env::var(name).ok();
    let folder = variable("CARGO_MANIFEST_DIR").unwrap_or_else(|| ".".to_owned());
    let regressions = PathBuf::from(folder).join("tests/it/regressions").join(name);
    let mut fuzz = Fuzz { name: name.to_owned(), time: Duration::ZERO, seed: 0, regressions };
    match settings::read(variable) {
        Ok((time, seed)) => (fuzz.time, fuzz.seed) = (time, seed),
        Err(why) => return Err(fuzz.failure(0, Fault::NotRun(why), Vec::new())),
    }
    fuzz.run(corpus, target)
}

impl Fuzz {
    /// Runs `target` on what failed before, on the corpus itself, and then on mutations until the time is up.
    ///
    /// # Errors
    /// As [`run`].
    pub fn run<Answer: Hash>(
        &self,
        corpus: &[Vec<u8>],
        target: impl Fn(&[u8]) -> Answer,
    ) -> Result<Report, Failure> {
        let started = Instant::now();
        let kept = regressions::load(&self.regressions).map_err(|error| {
            let why = format!("{}: {error}", self.regressions.display());
            self.failure(0, Fault::NotRun(why), Vec::new())
        })?;
        for (path, input) in &kept {
            judge(&target, input).map_err(|fault| Failure {
                kept: Some(path.clone()),
                ..self.failure(0, fault, input.clone())
            })?;
        }
        let mut corpus: Vec<_> = kept.iter().map(|(_, input)| input).chain(corpus).cloned().collect();
        let most = corpus.len() + MOST_LEARNED;
        let mutator = Mutator::new(&corpus);
        let mut random = Random::new(self.seed);
        let mut answers = HashSet::new();
        let mut tried = 0;
        let mut unchanged = corpus.clone().into_iter();
        loop {
            let (input, is_mutated) = match unchanged.next() {
                Some(input) => (input, false),
                None if started.elapsed() < self.time => (mutator.make(&corpus, &mut random), true),
                None => return Ok(Report { replayed: kept.len(), tried, answers: answers.len() }),
            };
            let answer = match judge(&target, &input) {
                Ok(answer) => answer,
                Err(fault) => return Err(self.found(tried, fault, input, &target)),
            };
            tried += 1;
            if answers.insert(answer) && is_mutated && corpus.len() < most {
                corpus.push(input);
            }
        }
    }

    fn found<Answer: Hash>(
        &self,
        tried: u64,
        fault: Fault,
        input: Vec<u8>,
        target: &impl Fn(&[u8]) -> Answer,
    ) -> Failure {
        let input = match fault {
            Fault::Panicked(_) => quietly(|| smaller(input, |input| judge(target, input).is_err())),
            Fault::TooSlow(_) | Fault::NotRun(_) => input,
        };
        let kept = regressions::keep(&self.regressions, &input);
        Failure { kept, ..self.failure(tried, fault, input) }
    }

    fn failure(&self, tried: u64, fault: Fault, input: Vec<u8>) -> Failure {
        Failure { name: self.name.clone(), seed: self.seed, tried, fault, input, kept: None }
    }
}

/// The answer of the target to an input, as a number.
fn judge<Answer: Hash>(target: &impl Fn(&[u8]) -> Answer, input: &[u8]) -> Result<u64, Fault> {
    let started = Instant::now();
    let answer = panic::catch_unwind(AssertUnwindSafe(|| target(input)))
        .map_err(|panic| Fault::Panicked(message(panic.as_ref())))?;
    let time = started.elapsed();
    if time > LONGEST_FOR_ONE_INPUT {
        return Err(Fault::TooSlow(time));
    }
    let mut hasher = DefaultHasher::new();
    answer.hash(&mut hasher);
    Ok(hasher.finish())
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message").to_owned()
}

/// The input with as much left out as it can be and still fail: halves first, single bytes last.
fn smaller(mut input: Vec<u8>, fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut attempts = 0;
    let mut length = input.len().div_ceil(2);
    while length > 0 {
        let mut start = 0;
        while start < input.len() && attempts < MOST_REDUCTIONS {
            attempts += 1;
            let end = (start + length).min(input.len());
            let mut candidate = input.clone();
            candidate.drain(start..end);
            if fails(&candidate) {
                input = candidate;
            } else {
                start = end;
            }
        }
        length /= 2;
    }
    input
}

/// Without a report of every panic on the way.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let result = work();
    panic::set_hook(hook);
    result
}
