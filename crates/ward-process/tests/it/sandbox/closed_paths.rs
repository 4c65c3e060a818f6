//! Closed and read-only folders and files inside of an open tree.

use std::fs;

use ward_process::ProcessExit;
use ward_process::sandbox::Sandbox;

use super::{SandboxFixture, TestUser, run};

fn fixture_with_closed_paths(actor: TestUser) -> (SandboxFixture, Sandbox) {
    let fixture = SandboxFixture::for_user(actor);
    fs::create_dir_all(fixture.path("workspace/vault/deep")).unwrap();
    for folder in ["workspace/vault", "workspace/vault/deep"] {
        actor.give_ownership(&fixture.path(folder));
    }
    for file in ["workspace/vault/deep/key", "workspace/token"] {
        fixture.write(file, "secret\n");
    }
    let mut sandbox = fixture.sandbox();
    sandbox.closed = ["vault", "vault/deep", "token"].map(|name| fixture.workspace().join(name)).into();
    (fixture, sandbox)
}

#[test]
fn closed_paths_appear_empty_and_can_not_be_moved() {
    for actor in TestUser::all() {
        let (fixture, sandbox) = fixture_with_closed_paths(*actor);
        let script = "cat vault/deep/key token; ls vault; echo x > vault/new; echo x > token; mv vault moved; \
                      mv token moved; rm -rf vault token; echo beside > beside; cat beside";
        let outcome = run(fixture.spec("/bin/sh").args(["-c", script]).sandbox(sandbox));
        assert_eq!((outcome.exit, outcome.stdout.as_str()), (ProcessExit::Code(0), "beside\n"), "{actor:?}");
        for kept in ["workspace/vault/deep/key", "workspace/token"] {
            assert_eq!(fs::read_to_string(fixture.path(kept)).unwrap(), "secret\n", "{actor:?}");
        }
        assert!(!fixture.path("workspace/moved").exists() && !fixture.path("workspace/vault/new").exists());
    }
}

/// If the program could rename a folder around a closed path, the path would be open in the next run.
#[test]
fn the_folders_around_closed_paths_can_not_be_moved() {
    for actor in TestUser::all() {
        let (fixture, mut sandbox) = fixture_with_closed_paths(*actor);
        sandbox.closed = vec![fixture.workspace().join("vault/deep/key")];
        let script = "mv vault/deep vault/moved; mv vault moved; mv vault/deep .; rm -rf vault; mkdir other; mv -T other vault; \
                      echo beside > vault/beside; mv vault/beside vault/deep/beside; cat vault/deep/key vault/deep/beside";
        let outcome = run(fixture.spec("/bin/sh").args(["-c", script]).sandbox(sandbox));
        assert_eq!(
            (outcome.exit, outcome.stdout.as_str()),
            (ProcessExit::Code(0), "beside\n"),
            "{actor:?}: {outcome:?}"
        );
        assert_eq!(
            fs::read_to_string(fixture.path("workspace/vault/deep/key")).unwrap(),
            "secret\n",
            "{actor:?}"
        );
        assert!(!fixture.path("workspace/moved").exists(), "{actor:?}");
        // `mv vault/deep .` may have copied the closed file, which reads as empty.
        let copied = fs::read_to_string(fixture.path("workspace/deep/key")).unwrap_or_default();
        assert_eq!(copied, "", "{actor:?}");
    }
}

#[test]
fn closed_paths_work_in_a_read_only_tree() {
    let (fixture, mut sandbox) = fixture_with_closed_paths(TestUser::CurrentUser);
    sandbox.write.retain(|tree| *tree != fixture.workspace());
    sandbox.read.push(fixture.workspace());
    let outcome =
        run(fixture.spec("/bin/sh").args(["-c", "cat vault/deep/key token; ls -d *"]).sandbox(sandbox));
    assert_eq!((outcome.exit, outcome.stdout.as_str()), (ProcessExit::Code(0), "token\nvault\n"));
}

#[test]
fn read_only_paths_can_not_be_changed_or_moved() {
    for actor in TestUser::all() {
        let fixture = SandboxFixture::for_user(*actor);
        fs::create_dir_all(fixture.path("workspace/sub/.git/hooks")).unwrap();
        for folder in ["workspace/sub", "workspace/sub/.git", "workspace/sub/.git/hooks"] {
            actor.give_ownership(&fixture.path(folder));
        }
        for file in ["workspace/sub/.git/config", "workspace/sub/.git/hooks/pre-commit", "workspace/rules"] {
            fixture.write(file, "as it was\n");
        }
        let mut sandbox = fixture.sandbox();
        let kept = ["sub/.git/config", "sub/.git/hooks", "rules"];
        sandbox.read_only = kept.map(|name| fixture.workspace().join(name)).into();
        let script = "cd sub; cat .git/config .git/hooks/pre-commit ../rules; echo x > .git/config; echo x > ../rules; \
                      echo x > .git/hooks/pre-commit; echo x > .git/hooks/post-commit; chmod 777 .git/config; \
                      rm -rf .git/hooks .git/config ../rules; mv .git/config a; mv .git/hooks b; mv .git c; \
                      mv ../rules d; cd ..; mv sub other; ln sub/.git/config twin; echo x > new; mv new sub/.git/config; \
                      echo ref > sub/.git/HEAD.lock && mv sub/.git/HEAD.lock sub/.git/HEAD && cat sub/.git/HEAD";
        let outcome = run(fixture.spec("/bin/sh").args(["-c", script]).sandbox(sandbox));
        let read = "as it was\n".repeat(3) + "ref\n";
        assert_eq!(
            (outcome.exit, outcome.stdout.as_str()),
            (ProcessExit::Code(0), read.as_str()),
            "{actor:?}: {outcome:?}"
        );
        for file in ["workspace/sub/.git/config", "workspace/sub/.git/hooks/pre-commit", "workspace/rules"] {
            assert_eq!(fs::read_to_string(fixture.path(file)).unwrap(), "as it was\n", "{actor:?}: {file}");
        }
        assert_eq!(fs::read_dir(fixture.path("workspace/sub/.git/hooks")).unwrap().count(), 1, "{actor:?}");
        assert!(!fixture.path("workspace/twin").exists(), "{actor:?}");
    }
}
