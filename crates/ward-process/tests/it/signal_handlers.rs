//! Signal handlers of the supervisor's process never run in a child, even if signals arrive during a spawn.
#![expect(unsafe_code, reason = "installing a signal handler is a call of the C library")]

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ward_process::{ProcessSpec, SpawnError};

use crate::harness::{TestRun, containments, supervisor};

static OWN_PID: AtomicI32 = AtomicI32::new(0);
static RUNS_HERE: AtomicU32 = AtomicU32::new(0);
static RUNS_IN_CHILDREN: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_signal: libc::c_int) {
    // The raw call is used, because a C library may cache the pid in memory that a child shares.
    // SAFETY: the call accesses no memory.
    let process = unsafe { libc::syscall(libc::SYS_getpid) };
    let is_own = i64::from(OWN_PID.load(Ordering::SeqCst)) == process;
    (if is_own { &RUNS_HERE } else { &RUNS_IN_CHILDREN }).fetch_add(1, Ordering::SeqCst);
}

#[test]
fn heavy_a_handler_of_the_supervisor_never_runs_in_a_child() {
    OWN_PID.store(std::process::id().cast_signed(), Ordering::SeqCst);
    // A process group of our own, so that only our children receive the signal.
    // SAFETY: the handler only counts, which is async-signal-safe.
    unsafe {
        libc::setpgid(0, 0);
        libc::signal(libc::SIGUSR1, count as *const () as usize);
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // SAFETY: kill takes two numbers; 0 means our own process group.
                unsafe { libc::kill(0, libc::SIGUSR1) };
            }
        });
        for containment in containments() {
            let supervisor = supervisor(containment);
            let end = Instant::now() + Duration::from_millis(500);
            let run = TestRun::new();
            while Instant::now() < end {
                match supervisor.spawn(run.id.clone(), ProcessSpec::new("/bin/true")) {
                    Ok(mut tree) => assert!(tree.wait(None).unwrap().is_some()),
                    // The signal killed the child before it had left our process group, as it would any
                    // program.
                    Err(SpawnError::Killed { .. }) => {}
                    Err(error) => panic!("{containment}: {error:?}"),
                }
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(RUNS_HERE.load(Ordering::SeqCst) > 0, "no signal was received");
    assert_eq!(RUNS_IN_CHILDREN.load(Ordering::SeqCst), 0);
}
