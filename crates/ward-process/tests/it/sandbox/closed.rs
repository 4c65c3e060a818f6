//! Folders and files that stay closed inside a tree that is open.

use std::fs;

use ward_process::Exit;
use ward_process::sandbox::Sandbox;

use super::{Actor, Site, run};

fn site(actor: Actor) -> (Site, Sandbox) {
    let site = Site::of(actor);
    fs::create_dir_all(site.path("workspace/vault/deep")).unwrap();
    for folder in ["workspace/vault", "workspace/vault/deep"] {
        actor.give(&site.path(folder));
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
    for actor in Actor::all() {
        let (site, sandbox) = site(*actor);
        let script = "cat vault/deep/key token; ls vault; echo x > vault/new; echo x > token; mv vault moved; \
                      mv token moved; rm -rf vault token; echo beside > beside; cat beside";
        let outcome = run(site.order("/bin/sh").args(["-c", script]).sandbox(sandbox));
        assert_eq!((outcome.exit, outcome.stdout.as_str()), (Exit::Code(0), "beside\n"), "{actor:?}");
        for kept in ["workspace/vault/deep/key", "workspace/token"] {
            assert_eq!(fs::read_to_string(site.path(kept)).unwrap(), "secret\n", "{actor:?}");
        }
        assert!(!site.path("workspace/moved").exists() && !site.path("workspace/vault/new").exists());
    }
}

#[test]
fn a_tree_that_is_only_read_has_closed_parts_too() {
    let (site, mut sandbox) = site(Actor::Ourselves);
    sandbox.write.retain(|tree| *tree != site.workspace());
    sandbox.read.push(site.workspace());
    let outcome =
        run(site.order("/bin/sh").args(["-c", "cat vault/deep/key token; ls -d *"]).sandbox(sandbox));
    assert_eq!((outcome.exit, outcome.stdout.as_str()), (Exit::Code(0), "token\nvault\n"));
}
