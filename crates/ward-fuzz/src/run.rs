//! One run: replay what failed before, then mutate until the time is up.

use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::failure::{FuzzFailure, FuzzFailureKind};
use crate::{InputMutator, SeededRandom, regressions, settings};

/// One input may take so long on a busy machine; more is a parser that hangs.
const MAX_INPUT_TIME: Duration = Duration::from_secs(5);

/// Inputs with new answers that join the corpus. More would only make each one rarer.
const MOST_LEARNED: usize = 2_000;

/// Attempts to make a failing input smaller.
const MOST_REDUCTIONS: usize = 2_000;

/// What to run.
#[derive(Clone, Debug)]
pub struct FuzzRun {
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
pub struct FuzzReport {
    /// How many kept inputs were replayed.
    pub replayed: usize,
    /// How many inputs were tried in all.
    pub tried: u64,
    /// How many different answers there were.
    pub answers: usize,
}

impl fmt::Display for FuzzReport {
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
) -> Result<FuzzReport, FuzzFailure> {
    let variable = |name: &str| std::env::var(name).ok();
    let folder = variable("CARGO_MANIFEST_DIR").unwrap_or_else(|| ".".to_owned());
    let regressions = PathBuf::from(folder).join("tests/it/regressions").join(name);
    let mut fuzz = FuzzRun { name: name.to_owned(), time: Duration::ZERO, seed: 0, regressions };
    match settings::read(variable) {
        Ok((time, seed)) => (fuzz.time, fuzz.seed) = (time, seed),
        Err(why) => return Err(fuzz.failure(0, FuzzFailureKind::NotRun(why), Vec::new())),
    }
    fuzz.run(corpus, target)
}

impl FuzzRun {
    /// Runs `target` on what failed before, on the corpus itself, and then on mutations until the time is up.
    ///
    /// # Errors
    /// As [`run`].
    pub fn run<Answer: Hash>(
        &self,
        corpus: &[Vec<u8>],
        target: impl Fn(&[u8]) -> Answer,
    ) -> Result<FuzzReport, FuzzFailure> {
        let started = Instant::now();
        let kept = regressions::load(&self.regressions).map_err(|error| {
            let why = format!("{}: {error}", self.regressions.display());
            self.failure(0, FuzzFailureKind::NotRun(why), Vec::new())
        })?;
        for (path, input) in &kept {
            run_target(&target, input).map_err(|fault| FuzzFailure {
                kept: Some(path.clone()),
                ..self.failure(0, fault, input.clone())
            })?;
        }
        let mut corpus: Vec<_> = kept.iter().map(|(_, input)| input).chain(corpus).cloned().collect();
        let most = corpus.len() + MOST_LEARNED;
        let mutator = InputMutator::new(&corpus);
        let mut random = SeededRandom::new(self.seed);
        let mut answers = HashSet::new();
        let mut tried = 0;
        let mut unchanged = corpus.clone().into_iter();
        loop {
            let (input, is_mutated) = match unchanged.next() {
                Some(input) => (input, false),
                None if started.elapsed() < self.time => (mutator.make_input(&corpus, &mut random), true),
                None => return Ok(FuzzReport { replayed: kept.len(), tried, answers: answers.len() }),
            };
            let answer = match run_target(&target, &input) {
                Ok(answer) => answer,
                Err(fault) => return Err(self.minimize_and_keep(tried, fault, input, &target)),
            };
            tried += 1;
            if answers.insert(answer) && is_mutated && corpus.len() < most {
                corpus.push(input);
            }
        }
    }

    fn minimize_and_keep<Answer: Hash>(
        &self,
        tried: u64,
        fault: FuzzFailureKind,
        input: Vec<u8>,
        target: &impl Fn(&[u8]) -> Answer,
    ) -> FuzzFailure {
        let input = match fault {
            FuzzFailureKind::Panicked(_) => {
                without_panic_output(|| minimize(input, |input| run_target(target, input).is_err()))
            }
            FuzzFailureKind::TooSlow(_) | FuzzFailureKind::NotRun(_) => input,
        };
        let kept = regressions::keep(&self.regressions, &input);
        FuzzFailure { kept, ..self.failure(tried, fault, input) }
    }

    fn failure(&self, tried: u64, fault: FuzzFailureKind, input: Vec<u8>) -> FuzzFailure {
        FuzzFailure { name: self.name.clone(), seed: self.seed, tried, fault, input, kept: None }
    }
}

/// The answer of the target to an input, as a number.
fn run_target<Answer: Hash>(target: &impl Fn(&[u8]) -> Answer, input: &[u8]) -> Result<u64, FuzzFailureKind> {
    let started = Instant::now();
    let answer = panic::catch_unwind(AssertUnwindSafe(|| target(input)))
        .map_err(|panic| FuzzFailureKind::Panicked(panic_message(panic.as_ref())))?;
    let time = started.elapsed();
    if time > MAX_INPUT_TIME {
        return Err(FuzzFailureKind::TooSlow(time));
    }
    let mut hasher = DefaultHasher::new();
    answer.hash(&mut hasher);
    Ok(hasher.finish())
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message").to_owned()
}

/// The input with as much left out as it can be and still fail: halves first, single bytes last.
fn minimize(mut input: Vec<u8>, fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
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
fn without_panic_output<T>(work: impl FnOnce() -> T) -> T {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let result = work();
    panic::set_hook(hook);
    result
}
