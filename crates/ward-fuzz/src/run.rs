//! Runs a fuzz target: replays the saved inputs, then mutates the corpus until the time is up.

use std::collections::HashSet;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::failure::{FuzzFailure, FuzzFailureKind, count};
use crate::{InputMutator, SeededRandom, regressions, settings};

/// Time allowed for a single input. It is long enough for a busy machine, so anything slower is a parser that hangs.
const MAX_INPUT_TIME: Duration = Duration::from_secs(5);

/// Number of inputs with new return values that may join the corpus. A larger corpus would be mutated too thinly.
const MAX_LEARNED: usize = 2_000;

/// Number of attempts to make a failing input smaller.
const MAX_REDUCTIONS: usize = 2_000;

/// The settings of a fuzz run.
#[derive(Clone, Debug)]
pub struct FuzzRun {
    /// Name of the fuzz target.
    pub name: String,
    /// Time to spend on mutations.
    pub time: Duration,
    /// Seed of the mutations; the same seed gives the same inputs.
    pub seed: u64,
    /// Folder in which failing inputs are saved.
    pub regressions: PathBuf,
}

/// The figures of a run in which no input failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuzzReport {
    /// Number of saved inputs that were replayed.
    pub replayed: usize,
    /// Number of inputs that were tried after the replay.
    pub tried: u64,
    /// Number of different values that the target returned.
    pub answers: usize,
}

impl fmt::Display for FuzzReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { replayed, tried, answers } = self;
        let inputs = count(*tried, "input");
        let answers = count(*answers as u64, "different answer");
        let replayed = count(*replayed as u64, "saved failure");
        write!(formatter, "{inputs}, {answers}, {replayed} replayed")
    }
}

/// Runs `target` on mutations of `corpus`, with the time and the seed from the environment of the test.
///
/// The values that `target` returns guide the run: inputs with a value that was not seen before are mutated further.
///
/// # Errors
/// Fails if `target` panics on an input or takes too long, or if a variable or a saved input can't be read.
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
        Err(reason) => return Err(fuzz.failure(0, FuzzFailureKind::NotRun(reason), Vec::new())),
    }
    fuzz.run(corpus, target)
}

impl FuzzRun {
    /// Runs `target` on the saved inputs, then on the corpus itself, and then on mutations until the time is up.
    ///
    /// # Errors
    /// Fails for the same reasons as [`run`].
    pub fn run<Answer: Hash>(
        &self,
        corpus: &[Vec<u8>],
        target: impl Fn(&[u8]) -> Answer,
    ) -> Result<FuzzReport, FuzzFailure> {
        let started = Instant::now();
        let kept = regressions::load(&self.regressions).map_err(|error| {
            let reason = format!("{}: {error}", self.regressions.display());
            self.failure(0, FuzzFailureKind::NotRun(reason), Vec::new())
        })?;
        for (path, input) in &kept {
            run_target(&target, input).map_err(|fault| FuzzFailure {
                kept: Some(path.clone()),
                ..self.failure(0, fault, input.clone())
            })?;
        }
        let mut corpus: Vec<_> = kept.iter().map(|(_, input)| input).chain(corpus).cloned().collect();
        let max_corpus = corpus.len() + MAX_LEARNED;
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
            if answers.insert(answer) && is_mutated && corpus.len() < max_corpus {
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

/// Runs the target on an input and returns the hash of its return value.
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
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}

/// Removes as many bytes from the input as possible while it still fails, first halves and last single bytes.
fn minimize(mut input: Vec<u8>, fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut attempts = 0;
    let mut length = input.len().div_ceil(2);
    while length > 0 {
        let mut start = 0;
        while start < input.len() && attempts < MAX_REDUCTIONS {
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

/// Runs `work` with a silent panic hook, so that minimising doesn't print every panic.
fn without_panic_output<T>(work: impl FnOnce() -> T) -> T {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let result = work();
    panic::set_hook(hook);
    result
}
