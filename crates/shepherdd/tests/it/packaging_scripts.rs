//! The scripts of the Debian package, with the real debconf and a root folder of the test. `cargo xtask vm` tries the whole
//! package.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A root folder with the files of a family, and a database of debconf.
struct PackageRoot {
    folder: TempDir,
}

impl PackageRoot {
    fn new() -> Self {
        let folder = TempDir::with_prefix("shepherd-package-").unwrap();
        let root = Self { folder };
        // debconf looks for its settings and its database in the same root folder.
        let database = |name: &str| format!("Name: {name}\nDriver: File\nFilename: /{name}.dat\n");
        let settings = format!(
            "Config: config\nTemplates: templates\n\n{}\n{}",
            database("config"),
            database("templates")
        );
        let files = [
            ("etc/shepherd/policy.toml", "the family's"),
            ("var/lib/shepherd/shepherd.db", "the family's"),
            ("etc/debconf.conf", settings.as_str()),
        ];
        for (name, text) in files {
            let path = root.path(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        root
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a program with the test's root folder and database, where nobody can be asked.
    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.args(arguments).env("DPKG_ROOT", self.folder.path());
        command.env("DPKG_MAINTSCRIPT_PACKAGE", "shepherd");
        command.env("DEBCONF_SYSTEMRC", "/etc/debconf.conf").env("DEBIAN_FRONTEND", "noninteractive");
        command.output().unwrap_or_else(|error| panic!("{program}: {error}: run `cargo xtask setup`"))
    }

    /// Answers the question of the package before it is asked.
    fn answer(&self, answer: &str) {
        let line = format!("shepherd shepherd/delete-records boolean {answer}\n");
        std::fs::write(self.path("answers"), line).unwrap();
        let done = self.run("debconf-set-selections", &[self.path("answers").to_str().unwrap()]);
        assert!(done.status.success(), "{done:?}");
    }

    /// Runs `postrm`, and returns whether the family's files are still there.
    fn postrm_keeps_files(&self, action: &str) -> bool {
        // debconf executes the script a second time.
        let script = self.path("postrm");
        std::fs::copy(scripts().join("postrm"), &script).unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        let done = self.run("sh", &[script.to_str().unwrap(), action]);
        assert!(done.status.success(), "{action}: {done:?}");
        let found = ["etc/shepherd", "var/lib/shepherd"].map(|name| self.path(name).exists());
        assert_eq!(found[0], found[1]);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(said.contains("kept the family's rules"), action == "purge" && found[0], "{said}");
        found[0]
    }
}

fn scripts() -> PathBuf {
    let manifest =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&manifest).join("../../packaging/debian/shepherd")
}

#[test]
fn a_purge_that_can_ask_nobody_keeps_the_familys_files() {
    let unknown_question = PackageRoot::new();
    assert!(unknown_question.postrm_keeps_files("remove"));
    assert!(unknown_question.postrm_keeps_files("purge"));
    let not_asked = PackageRoot::new();
    // debconf reads the question from this file beside the script.
    std::fs::copy(scripts().join("templates"), not_asked.path("templates")).unwrap();
    assert!(not_asked.postrm_keeps_files("purge"));
}

#[test]
fn a_purge_does_as_it_is_told() {
    for (answer, keeps) in [("false", true), ("true", false)] {
        let root = PackageRoot::new();
        root.answer(answer);
        assert_eq!(root.postrm_keeps_files("purge"), keeps, "{answer}");
    }
}

/// When a purge asks, dpkg has already removed the file with the question.
#[test]
fn debconf_learns_the_question_when_the_package_is_installed() {
    let postinst = std::fs::read_to_string(scripts().join("postinst")).unwrap();
    let (before, _) = postinst.split_once("#DEBHELPER#").unwrap();
    assert!(before.contains(". /usr/share/debconf/confmodule\n"), "{postinst}");
}

/// PAM stops asking before the program that it asks is removed, and asks again after an installation.
// S19.2
#[test]
fn pam_asks_only_while_the_package_is_installed() {
    let script = |name: &str| std::fs::read_to_string(scripts().join(name)).unwrap();
    assert!(script("postinst").contains("    pam-auth-update --package\n"));
    let prerm = script("prerm");
    let (before, _) = prerm.split_once("#DEBHELPER#").unwrap();
    assert!(before.contains("    pam-auth-update --package --remove shepherd\n"), "{prerm}");
}

/// The configuration lets everybody in if the program is missing or fails, and asks it about nobody but people. The command
/// succeeds only if the answer is no: `pam_exec` can't tell a failure of the command from a failure to start it, such as no
/// shell, no memory or no free process, so both must skip the refusal.
// S19.2
#[test]
fn only_an_answer_of_no_refuses_a_log_in() {
    let file = scripts().join("../../pam-configs/shepherd");
    let configuration = std::fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = configuration.lines().filter_map(|line| line.strip_prefix('\t')).collect();
    let [people, ask, refuse] = lines.as_slice() else { panic!("{lines:?}") };
    // The lines of sssd (128) end the check for every account in /etc/passwd, so ours have to come first.
    let priority = configuration.lines().find_map(|line| line.strip_prefix("Priority: ")).unwrap();
    assert!(priority.parse::<u32>().unwrap() > 128, "{priority}");
    assert_eq!(*people, "[success=2 default=ignore]\tpam_succeed_if.so quiet uid < 1000");
    assert_eq!(*refuse, "requisite\tpam_succeed_if.so quiet uid < 0");
    let (control, command) = ask.split_once("\tpam_exec.so quiet seteuid stdout /bin/sh -c [").unwrap();
    assert_eq!(control, "[success=ignore default=1]");
    let command = command.strip_suffix(']').unwrap();
    for (program, allowed) in [
        ("true", true),
        ("false", false),
        ("/nonexistent/shepherd", true),
        ("sh -c 'exit 3'", true),
        ("sh -c 'kill -SEGV $$'", true),
    ] {
        let command = command.replace("/usr/bin/shepherd pam-check", program);
        let done = Command::new("sh").args(["-c", &command]).output().unwrap();
        assert_eq!(done.status.success(), !allowed, "{command}");
    }
}
