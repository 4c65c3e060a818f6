//! Handlers of the supervisor's process stay with it, however many signals come while it spawns.
#![expect(unsafe_code, reason = "to install a handler is to call C")]

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ward_process::{ProcessSpec, SpawnError};

use crate::harness::{TestRun, containments, supervisor};

static OURS: AtomicI32 = AtomicI32::new(0);
static HERE: AtomicU32 = AtomicU32::new(0);
static ELSEWHERE: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_signal: libc::c_int) {
    // SAFETY: takes no memory. The C library would answer from its own memory, which a child shares.
    let process = unsafe { libc::syscall(libc::SYS_getpid) };
    let ours = i64::from(OURS.load(Ordering::SeqCst)) == process;
    (if ours { &HERE } else { &ELSEWHERE }).fetch_add(1, Ordering::SeqCst);
}

#[test]
fn heavy_a_handler_of_ours_never_runs_in_a_child() {
    OURS.store(std::process::id().cast_signed(), Ordering::SeqCst);
    // SAFETY: a group of our own, so that only our children hear it; the handler only counts.
    unsafe {
        libc::setpgid(0, 0);
        libc::signal(libc::SIGUSR1, count as *const () as usize);
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // SAFETY: kill takes two numbers; 0 is our own group.
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
                    // It heard the signal before it had left our group, as any program would.
                    Err(SpawnError::Killed { .. }) => {}
                    Err(error) => panic!("{containment}: {error:?}"),
                }
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(HERE.load(Ordering::SeqCst) > 0, "the signals were sent");
    assert_eq!(ELSEWHERE.load(Ordering::SeqCst), 0);
}
