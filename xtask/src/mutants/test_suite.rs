//! Finds out which tests reach which mutants, and runs these tests with each mutant switched on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use super::mutant::Mutant;
use super::run_progress::RunProgress;
use super::switch::{ACTIVE_VARIABLE, NO_MUTANT, REACHED_VARIABLE};
use super::test_process::{TestName, TestOutcome, run_test};

/// The time limit of a test without a mutant.
const BASELINE_LIMIT: Duration = Duration::from_secs(600);

/// A test with a mutant may run for this time, or for ten times its usual time if that's longer.
const SHORTEST_LIMIT: Duration = Duration::from_secs(3);

/// The time limit of a test that counts as quick.
const QUICK_LIMIT: Duration = Duration::from_secs(2);

/// The number of mutants after which progress is printed.
const PROGRESS_STEP: usize = 100;

/// The verdict of the tests on a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MutantVerdict {
    Caught,
    TimedOut,
    Survived,
    /// No test runs the changed code.
    Unreached,
}

impl MutantVerdict {
    /// Returns whether a test notices the mutant.
    pub(crate) fn is_caught(self) -> bool {
        matches!(self, Self::Caught | Self::TimedOut)
    }
}

/// The tests that are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TestChoice {
    All,
    /// Only tests that end within two seconds.
    Quick,
}

/// The tests of a crate, with the mutants that each of them reaches.
pub(crate) struct MutantTestSuite {
    /// The folder of the crate in the copy.
    folder: PathBuf,
    temporary: PathBuf,
    tests: Vec<MeasuredTest>,
}

struct MeasuredTest {
    test: TestName,
    took: Duration,
    reached: BTreeSet<u32>,
}

impl MutantTestSuite {
    /// Runs every test once without a mutant.
    pub(crate) fn measure(
        tests: &[TestName],
        choice: TestChoice,
        [folder, temporary]: [&Path; 2],
    ) -> Result<Self> {
        let measured = in_parallel(tests, |worker, test| {
            let record = temporary.join(format!("reached-{worker}"));
            let _ = fs::remove_file(&record);
            let folders = [folder, &temporary.join(format!("test-{worker}"))];
            let recording = (REACHED_VARIABLE, record.to_str().context("the target folder isn't UTF-8")?);
            let limit = if choice == TestChoice::Quick { QUICK_LIMIT } else { BASELINE_LIMIT };
            let mut outcome = run_test(test, recording, folders, limit)?;
            if outcome == TestOutcome::Failed {
                // A test may count the system calls of a process, and the record adds some.
                outcome = run_test(test, (ACTIVE_VARIABLE, NO_MUTANT), folders, limit)?;
            }
            let took = match (outcome, choice) {
                (TestOutcome::Passed(took), _) => took,
                (TestOutcome::TimedOut, TestChoice::Quick) => return Ok(None),
                _ => bail!("the test `{}` fails without a mutant ({outcome:?})", test.name),
            };
            let reached = fs::read(&record).map(|bytes| numbers(&bytes)).unwrap_or_default();
            Ok(Some(MeasuredTest { test: test.clone(), took, reached }))
        })?;
        let tests = measured.into_iter().flatten().collect();
        Ok(Self { folder: folder.to_owned(), temporary: temporary.to_owned(), tests })
    }

    /// Runs the tests that reach each mutant, until one of them fails. Mutants with a verdict in `progress` aren't tried
    /// again. `report` is called for each mutant at once.
    pub(crate) fn try_mutants(
        &self,
        mutants: &[&Mutant],
        progress: &RunProgress,
        report: impl Fn(&Mutant, MutantVerdict) + Sync,
    ) -> Result<Vec<MutantVerdict>> {
        let catches = Mutex::new(CatchRecord::default());
        let tried = AtomicUsize::new(0);
        in_parallel(mutants, |worker, mutant| {
            if let Some(verdict) = progress.verdict_on(mutant) {
                report(mutant, verdict);
                tried.fetch_add(1, Ordering::Relaxed);
                return Ok(verdict);
            }
            let function = mutant.name.function.as_str();
            let order =
                catches.lock().map_err(|_| anyhow!("a worker failed"))?.order_tests(&self.tests, function);
            let (verdict, catcher) = self.try_mutant(worker, mutant, &order)?;
            progress.record(mutant, verdict)?;
            if let Some(catcher) = catcher {
                catches.lock().map_err(|_| anyhow!("a worker failed"))?.add(function, catcher);
            }
            report(mutant, verdict);
            let count = tried.fetch_add(1, Ordering::Relaxed) + 1;
            if count.is_multiple_of(PROGRESS_STEP) {
                println!("  {count} of {} mutants tried", mutants.len());
            }
            Ok(verdict)
        })
    }

    /// Tries a mutant with the tests in this order. Returns the test that caught it.
    fn try_mutant(
        &self,
        worker: usize,
        mutant: &Mutant,
        order: &[usize],
    ) -> Result<(MutantVerdict, Option<usize>)> {
        let tests = order.iter().filter_map(|index| Some((*index, self.tests.get(*index)?)));
        let reaching: Vec<_> = tests.filter(|(_, test)| test.reached.contains(&mutant.id)).collect();
        if reaching.is_empty() {
            return Ok((MutantVerdict::Unreached, None));
        }
        let folders = [&*self.folder, &*self.temporary.join(format!("test-{worker}"))];
        for (index, MeasuredTest { test, took, .. }) in reaching {
            let limit = SHORTEST_LIMIT.max(*took * 10);
            match run_test(test, (ACTIVE_VARIABLE, &mutant.id.to_string()), folders, limit)? {
                TestOutcome::Passed(_) => {}
                TestOutcome::Failed => return Ok((MutantVerdict::Caught, Some(index))),
                TestOutcome::TimedOut => return Ok((MutantVerdict::TimedOut, Some(index))),
            }
        }
        Ok((MutantVerdict::Survived, None))
    }
}

/// The tests that have caught mutants so far.
#[derive(Default)]
struct CatchRecord {
    /// The tests that caught a mutant of a function.
    by_function: BTreeMap<String, BTreeSet<usize>>,
    /// The number of mutants that a test caught.
    counts: BTreeMap<usize, u32>,
}

impl CatchRecord {
    fn add(&mut self, function: &str, test: usize) {
        self.by_function.entry(function.to_owned()).or_default().insert(test);
        *self.counts.entry(test).or_default() += 1;
    }

    /// Returns the tests in the order in which they probably catch a mutant of a function soonest: first tests that
    /// caught another mutant of the function, then tests that catch many mutants in a short time.
    fn order_tests(&self, tests: &[MeasuredTest], function: &str) -> Vec<usize> {
        let known = self.by_function.get(function);
        let mut order: Vec<_> = tests.iter().enumerate().collect();
        order.sort_by_key(|(index, test)| {
            let count = self.counts.get(index).copied().unwrap_or_default();
            (!known.is_some_and(|known| known.contains(index)), test.took / (count + 1))
        });
        order.into_iter().map(|(index, _)| index).collect()
    }
}

fn numbers(bytes: &[u8]) -> BTreeSet<u32> {
    bytes.as_chunks::<4>().0.iter().map(|number| u32::from_le_bytes(*number)).collect()
}

/// Does a task for each item, with one worker per processor. Results are in the order of the items. The first error ends
/// all workers.
fn in_parallel<Item: Sync, Outcome: Send>(
    items: &[Item],
    task: impl Fn(usize, &Item) -> Result<Outcome> + Sync,
) -> Result<Vec<Outcome>> {
    let next = AtomicUsize::new(0);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let work = |worker: usize| -> Result<Vec<(usize, Outcome)>> {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return Ok(done) };
            match task(worker, item) {
                Ok(outcome) => done.push((index, outcome)),
                Err(error) => {
                    next.store(items.len(), Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    };
    let mut outcomes = thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
        let mut outcomes = Vec::new();
        for worker in running {
            outcomes.extend(worker.join().map_err(|_| anyhow!("a worker panicked"))??);
        }
        anyhow::Ok(outcomes)
    })?;
    outcomes.sort_by_key(|(index, _)| *index);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}
