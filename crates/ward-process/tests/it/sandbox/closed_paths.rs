//! Folders and files that stay closed, or as they are, inside a tree that is open.

use std::fs;

use ward_process::ProcessExit;
use ward_process::sandbox::Sandbox;

use super::{SandboxFixture, TestUser, run};

fn site(actor: TestUser) -> (SandboxFixture, Sandbox) {
    let site = SandboxFixture::for_user(actor);
    fs::create_dir_all(site.path("workspace/vault/deep")).unwrap();
    for folder in ["workspace/vault", "workspace/vault/deep"] {
        actor.give_ownership(&site.path(folder));
    }
    for file in ["workspace/vault/deep/key", "workspace/token"] {
        site.write(file, "secret\n");
    }
    let mut sandbox = site.sandbox();
    sandbox.closed = ["vault", "vault/deep", "token"].map(|name| site.workspace().join(name)).into();
    (site, sandbox)
}

#[test]
fn what_is_closed_is_empty_and_stays_where_it_is() {
    for actor in TestUser::all() {
        let (site, sandbox) = site(*actor);
        let script = "cat vault/deep/key token; ls vault; echo x > vault/new; echo x > token; mv vault moved; \
                      mv token moved; rm -rf vault token; echo beside > beside; cat beside";
        let outcome = run(site.order("/bin/sh").args(["-c", script]).sandbox(sandbox));
        assert_eq!((outcome.exit, outcome.stdout.as_str()), (ProcessExit::Code(0), "beside\n"), "{actor:?}");
        for kept in ["workspace/vault/deep/key", "workspace/token"] {
            assert_eq!(fs::read_to_string(site.path(kept)).unwrap(), "secret\n", "{actor:?}");
        }
        assert!(!site.path("workspace/moved").exists() && !site.path("workspace/vault/new").exists());
    }
}

/// Under another name nobody would know in the next run that it is closed.
#[test]
fn the_folders_around_what_is_closed_stay_where_they_are() {
    for actor in TestUser::all() {
        let (site, mut sandbox) = site(*actor);
        sandbox.closed = vec![site.workspace().join("vault/deep/key")];
        let script = "mv vault/deep vault/moved; mv vault moved; mv vault/deep .; rm -rf vault; mkdir other; mv -T other vault; \
                      echo beside > vault/beside; mv vault/beside vault/deep/beside; cat vault/deep/key vault/deep/beside";
        let outcome = run(site.order("/bin/sh").args(["-c", script]).sandbox(sandbox));
        assert_eq!(
            (outcome.exit, outcome.stdout.as_str()),
            (ProcessExit::Code(0), "beside\n"),
            "{actor:?}: {outcome:?}"
        );
        assert_eq!(
            fs::read_to_string(site.path("workspace/vault/deep/key")).unwrap(),
            "secret\n",
            "{actor:?}"
        );
        assert!(!site.path("workspace/moved").exists(), "{actor:?}");
        // It may be copied as far as it can be read, which is not far.
        let copied = fs::read_to_string(site.path("workspace/deep/key")).unwrap_or_default();
        assert_eq!(copied, "", "{actor:?}");
    }
}

#[test]
fn a_tree_that_is_only_read_has_closed_parts_too() {
    let (site, mut sandbox) = site(TestUser::CurrentUser);
    sandbox.write.retain(|tree| *tree != site.workspace());
    sandbox.read.push(site.workspace());
    let outcome =
        run(site.order("/bin/sh").args(["-c", "cat vault/deep/key token; ls -d *"]).sandbox(sandbox));
    assert_eq!((outcome.exit, outcome.stdout.as_str()), (ProcessExit::Code(0), "token\nvault\n"));
}

#[test]
fn what_can_only_be_read_stays_as_it_is_and_where_it_is() {
    for actor in TestUser::all() {
        let site = SandboxFixture::for_user(*actor);
        fs::create_dir_all(site.path("workspace/sub/.git/hooks")).unwrap();
        for folder in ["workspace/sub", "workspace/sub/.git", "workspace/sub/.git/hooks"] {
            actor.give_ownership(&site.path(folder));
        }
        for file in ["workspace/sub/.git/config", "workspace/sub/.git/hooks/pre-commit", "workspace/rules"] {
            site.write(file, "as it was\n");
        }
        let mut sandbox = site.sandbox();
        let kept = ["sub/.git/config", "sub/.git/hooks", "rules"];
        sandbox.read_only = kept.map(|name| site.workspace().join(name)).into();
        let script = "cd sub; cat .git/config .git/hooks/pre-commit ../rules; echo x > .git/config; echo x > ../rules; \
                      echo x > .git/hooks/pre-commit; echo x > .git/hooks/post-commit; chmod 777 .git/config; \
                      rm -rf .git/hooks .git/config ../rules; mv .git/config a; mv .git/hooks b; mv .git c; \
                      mv ../rules d; cd ..; mv sub other; ln sub/.git/config twin; echo x > new; mv new sub/.git/config; \
                      echo ref > sub/.git/HEAD.lock && mv sub/.git/HEAD.lock sub/.git/HEAD && cat sub/.git/HEAD";
        let outcome = run(site.order("/bin/sh").args(["-c", script]).sandbox(sandbox));
        let read = "as it was\n".repeat(3) + "ref\n";
        assert_eq!(
            (outcome.exit, outcome.stdout.as_str()),
            (ProcessExit::Code(0), read.as_str()),
            "{actor:?}: {outcome:?}"
        );
        for file in ["workspace/sub/.git/config", "workspace/sub/.git/hooks/pre-commit", "workspace/rules"] {
            assert_eq!(fs::read_to_string(site.path(file)).unwrap(), "as it was\n", "{actor:?}: {file}");
        }
        assert_eq!(fs::read_dir(site.path("workspace/sub/.git/hooks")).unwrap().count(), 1, "{actor:?}");
        assert!(!site.path("workspace/twin").exists(), "{actor:?}");
    }
}
