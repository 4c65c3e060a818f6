//! Benchmarks of killing a tree of a thousand processes, of spawning, and of wake-ups while waiting.
#![expect(clippy::unwrap_used, reason = "a benchmark that can't run should panic")]
#![expect(unsafe_code, reason = "posix_spawn, the baseline, is a C interface")]

use std::ffi::CString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ward_bench::{BenchmarkBaseline, BenchmarkLimit, BenchmarkRow, median, millis, report, timed};
use ward_process::{Containment, EscapeePolicy, ProcessSpec, ProcessTree, StopLadder, Supervisor};

/// Script of a tree of a thousand processes, a quarter of them in sessions of their own.
const THOUSAND: &str = "fork 250 [ setsid; sleep 600000 ]; fork 749 [ sleep 600000 ]; sleep 600000";

fn main() {
    let supervisors: Vec<Supervisor> = ward_process::probe()
        .available()
        .map(|containment| Supervisor::with_containment(containment).unwrap())
        .collect();
    for supervisor in &supervisors {
        match supervisor.containment() {
            Containment::Cgroup => {
                kill_against_bare_write(supervisor, EscapeePolicy::LetGo, "cgroup");
                kill_against_bare_write(supervisor, EscapeePolicy::Held, "cgroup and keeper");
            }
            // A process group loses the quarter that starts sessions of its own.
            Containment::ProcessGroup => {}
            Containment::PidNamespace | Containment::Subreaper => kill_within_a_second(supervisor),
        }
    }
    supervisors.iter().for_each(spawn_against_posix_spawn);
    supervisors.iter().for_each(wakeups_while_waiting);
}

fn kill_against_bare_write(supervisor: &Supervisor, escapees: EscapeePolicy, by: &str) {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        let mut tree = thousand(supervisor, escapees);
        ours.push(millis(supervisor.stop(&mut tree, StopLadder::force()).unwrap().elapsed));

        let mut tree = thousand(supervisor, EscapeePolicy::LetGo);
        let group = group_of(&tree);
        let (_, elapsed) = timed(|| {
            std::fs::write(group.join("cgroup.kill"), "1").unwrap();
            while std::fs::read_to_string(group.join("cgroup.events")).unwrap().contains("populated 1") {
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        bare.push(millis(elapsed));
        tree.wait(None).unwrap();
    }
    let baseline = BenchmarkBaseline { name: "bare write to cgroup.kill".into(), figure: median(&mut bare) };
    emit(
        &format!("tree of 1,000 gone ({by})"),
        "ms",
        median(&mut ours),
        Some(baseline),
        BenchmarkLimit::RatioAtMost(2.0),
    );
}

fn kill_within_a_second(supervisor: &Supervisor) {
    let mut samples: Vec<f64> = (0..5)
        .map(|_| {
            let mut tree = thousand(supervisor, EscapeePolicy::LetGo);
            millis(supervisor.stop(&mut tree, StopLadder::force()).unwrap().elapsed)
        })
        .collect();
    let name = format!("tree of 1,000 gone ({})", supervisor.containment());
    emit(&name, "ms", median(&mut samples), None, BenchmarkLimit::AtMost(1_000.0));
}

fn thousand(supervisor: &Supervisor, escapees: EscapeePolicy) -> ProcessTree {
    let tree = spawn(supervisor, ProcessSpec::new(fake_child()).args([THOUSAND]).escapees(escapees));
    while tree.processes().len() < 1_000 {
        std::thread::sleep(Duration::from_millis(5));
    }
    tree
}

fn group_of(tree: &ProcessTree) -> PathBuf {
    let pid = tree.record().root.unwrap().pid;
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap().to_owned();
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let mount = mounts.lines().find(|line| line.split(' ').nth(2) == Some("cgroup2")).unwrap();
    PathBuf::from(mount.split(' ').nth(1).unwrap()).join(group)
}

fn spawn_against_posix_spawn(supervisor: &Supervisor) {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..400 {
        let (mut tree, elapsed) = timed(|| spawn(supervisor, ProcessSpec::new("/bin/true")));
        ours.push(millis(elapsed));
        tree.wait(None).unwrap();

        let (pid, elapsed) = timed(posix_spawn_true);
        bare.push(millis(elapsed));
        // SAFETY: waits for the child that was just spawned, and a null status pointer is allowed.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    }
    let name = format!("spawn of `true` ({})", supervisor.containment());
    let baseline = BenchmarkBaseline { name: "posix_spawn".into(), figure: median(&mut bare) };
    emit(&name, "ms", median(&mut ours), Some(baseline), BenchmarkLimit::RatioAtMost(2.0));
}

fn posix_spawn_true() -> libc::pid_t {
    let path = CString::new("/bin/true").unwrap();
    let argv = [path.as_ptr().cast_mut(), std::ptr::null_mut()];
    let env = [std::ptr::null_mut()];
    let mut pid = 0;
    // SAFETY: all arrays are null-terminated and live during the call; null attributes mean the defaults.
    let result = unsafe {
        libc::posix_spawn(
            &raw mut pid,
            path.as_ptr(),
            std::ptr::null(),
            std::ptr::null(),
            argv.as_ptr(),
            env.as_ptr(),
        )
    };
    assert_eq!(result, 0);
    pid
}

fn wakeups_while_waiting(supervisor: &Supervisor) {
    let mut tree = spawn(supervisor, ProcessSpec::new("/bin/sleep").args(["600"]));
    let waiter = std::thread::spawn(move || {
        let before = voluntary_switches();
        let start = Instant::now();
        tree.wait(Some(Duration::from_secs(3))).unwrap();
        assert!(start.elapsed() >= Duration::from_secs(3));
        // One switch is the wait itself, when the thread falls asleep.
        let wakeups = voluntary_switches().saturating_sub(before + 1);
        (tree, wakeups)
    });
    let (mut tree, wakeups) = waiter.join().unwrap();
    supervisor.stop(&mut tree, StopLadder::force()).unwrap();
    let name = format!("wakeups in 3 s of waiting ({})", supervisor.containment());
    emit(&name, "", f64::from(wakeups), None, BenchmarkLimit::AtMost(0.0));
}

fn voluntary_switches() -> u32 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

fn spawn(supervisor: &Supervisor, spec: ProcessSpec) -> ProcessTree {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    supervisor.spawn(format!("bench-{}-{number}", std::process::id()).parse().unwrap(), spec).unwrap()
}

fn fake_child() -> PathBuf {
    env!("CARGO_BIN_EXE_fake-child").into()
}

fn emit(bench: &str, unit: &str, figure: f64, baseline: Option<BenchmarkBaseline>, bar: BenchmarkLimit) {
    let row = BenchmarkRow { bench: format!("process: {bench}"), unit: unit.into(), figure, baseline, bar };
    report(&row).unwrap();
}
