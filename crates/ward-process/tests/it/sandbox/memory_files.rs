//! Files of a sandbox in memory: a private `/dev/shm`, and replacements for files of the system.

use std::fs;

use ward_process::sandbox::{FileReplacement, MemoryFiles, Sandbox};
use ward_process::{ProcessExit, ProcessSpec};

use super::{SandboxFixture, TestUser, run};

const PASSWORD_FILE: &str = "visitor:x:60577:60577::/nowhere:/bin/sh\n";

fn with_memory(fixture: &SandboxFixture, spec: ProcessSpec) -> ProcessSpec {
    let replacement = |path: &str, text: &str| FileReplacement { path: path.into(), content: text.into() };
    let replacements =
        vec![replacement("/etc/passwd", PASSWORD_FILE), replacement("/etc/ward-nowhere", "nothing\n")];
    let mut sandbox = fixture.sandbox();
    sandbox.read.retain(|path| !path.ends_with("passwd"));
    spec.sandbox(Sandbox { memory_files: Some(MemoryFiles { max_bytes: 1 << 20, replacements }), ..sandbox })
}

fn shell(fixture: &SandboxFixture, script: &str) -> super::ProgramOutput {
    run(with_memory(fixture, fixture.spec("/bin/sh").args(["-c", script])))
}

#[test]
fn shared_memory_is_private_and_bounded_and_not_executable() {
    for actor in TestUser::all() {
        let fixture = SandboxFixture::for_user(*actor);
        let name = format!("ward-outside-{}-{actor:?}", std::process::id());
        fs::write(format!("/dev/shm/{name}"), "outside").unwrap();
        let script = format!(
            "ls -A /dev/shm; cat /dev/shm/{name}; echo inside > /dev/shm/mine; cat /dev/shm/mine; \
             head -c 2097152 /dev/zero > /dev/shm/large; stat -c %s /dev/shm/large; rm /dev/shm/large; \
             cp /bin/true /dev/shm/program; /dev/shm/program; echo $?"
        );
        let outcome = shell(&fixture, &script);
        fs::remove_file(format!("/dev/shm/{name}")).unwrap();
        assert!(!fs::exists("/dev/shm/mine").unwrap());
        let lines: Vec<&str> = outcome.stdout.lines().collect();
        let size: u64 = lines[1].parse().unwrap();
        assert_eq!((lines[0], size <= 1 << 20, lines[2]), ("inside", true, "126"), "{actor:?}: {outcome:?}");
    }
}

#[test]
fn python_uses_semaphores_and_shared_memory() {
    let program = "
import multiprocessing, multiprocessing.shared_memory as shm
def work(lock, queue, number):
    with lock:
        queue.put(number * number)
if __name__ == '__main__':
    context = multiprocessing.get_context('fork')
    lock, queue = context.Lock(), context.Queue()
    workers = [context.Process(target=work, args=(lock, queue, n)) for n in range(4)]
    [w.start() for w in workers]
    print(sorted(queue.get() for _ in workers))
    [w.join() for w in workers]
    with context.Pool(2) as pool:
        print(pool.map(abs, [-1, -2]))
    block = shm.SharedMemory(create=True, size=64)
    block.buf[0] = 7
    print(block.buf[0])
    block.close()
    block.unlink()
";
    for actor in TestUser::all() {
        let fixture = SandboxFixture::for_user(*actor);
        fixture.write("workspace/program.py", program);
        let spec = fixture.spec("/usr/bin/python3").args(["program.py"]);
        let outcome = run(with_memory(&fixture, spec));
        assert_eq!(outcome.stdout, "[0, 1, 4, 9]\n[1, 2]\n7\n", "{actor:?}: {outcome:?}");
    }
}

#[test]
fn a_replaced_file_shows_our_text_and_can_not_be_changed() {
    let before = fs::read("/etc/passwd").unwrap();
    for actor in TestUser::all() {
        let fixture = SandboxFixture::for_user(*actor);
        let outcome = shell(&fixture, "cat /etc/passwd; getent passwd 60577 | cut -d: -f1; ls -A /dev/shm");
        assert_eq!(outcome.stdout, format!("{PASSWORD_FILE}visitor\n"), "{actor:?}: {outcome:?}");
        for script in [
            "echo x >> /etc/passwd",
            "truncate -s 0 /etc/passwd",
            "chmod 666 /etc/passwd",
            "rm -f /etc/passwd",
            "mv /etc/passwd $TMPDIR/",
            "ln /etc/passwd /dev/shm/link",
            "cat /etc/ward-nowhere",
        ] {
            let outcome = shell(&fixture, script);
            assert_ne!(outcome.exit, ProcessExit::Code(0), "{script} by {actor:?}: {outcome:?}");
        }
    }
    assert_eq!(fs::read("/etc/passwd").unwrap(), before);
}
