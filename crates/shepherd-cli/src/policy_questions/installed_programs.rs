//! The programs of this machine, from the menu of the desktop (`.desktop` files).

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use shepherd_host_linux::LinuxHostOptions;
use shepherd_util::EnvironmentVariables;

use super::answers::ProgramLaunch;

/// The largest `.desktop` file that is read. Real ones have a few kilobytes.
const MAX_FILE: u64 = 256 * 1024;

/// Most files of a folder that are read.
const MAX_FILES: usize = 5_000;

/// Folders with menus, besides those of `XDG_DATA_DIRS`.
const DATA_FOLDERS: [&str; 4] =
    ["/usr/local/share", "/usr/share", "/var/lib/flatpak/exports/share", "/var/lib/snapd/desktop"];

/// A program of the menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MenuProgram {
    pub(super) label: String,
    pub(super) launch: ProgramLaunch,
    /// True for games and programs to learn with.
    pub(super) is_for_children: bool,
}

/// The programs of the menu by name, and the folders in which programs are searched.
pub(super) struct InstalledPrograms {
    pub(super) programs: Vec<MenuProgram>,
    search_path: std::ffi::OsString,
}

impl InstalledPrograms {
    pub(super) fn find(environment: &EnvironmentVariables) -> Self {
        let from_environment =
            environment.get("XDG_DATA_DIRS").map(std::env::split_paths).into_iter().flatten();
        let folders = from_environment.chain(DATA_FOLDERS.iter().map(PathBuf::from));
        let search_path = LinuxHostOptions::new(PathBuf::new()).search_path;
        Self::in_folders(folders.map(|folder| folder.join("applications")), search_path)
    }

    pub(super) fn in_folders(
        folders: impl IntoIterator<Item = PathBuf>,
        search_path: std::ffi::OsString,
    ) -> Self {
        let mut found = Self { programs: Vec::new(), search_path };
        // A file of an earlier folder hides one with the same name.
        let mut files: BTreeMap<std::ffi::OsString, PathBuf> = BTreeMap::new();
        for folder in folders {
            let entries =
                std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).take(MAX_FILES);
            for file in entries.map(|entry| entry.path()) {
                if let (Some(name), Some("desktop")) =
                    (file.file_name(), file.extension().and_then(OsStr::to_str))
                {
                    files.entry(name.to_owned()).or_insert(file);
                }
            }
        }
        let texts = files.values().filter_map(|file| read_text(file));
        let mut programs: Vec<MenuProgram> = texts.filter_map(|text| parse_desktop_file(&text)).collect();
        programs.retain(|program| match &program.launch {
            ProgramLaunch::Command(argv) => argv.first().is_some_and(|program| found.has_program(program)),
            ProgramLaunch::Flatpak(_) => found.has_program("flatpak"),
        });
        programs.sort_by_cached_key(|program| (!program.is_for_children, program.label.to_lowercase()));
        programs.dedup_by(|one, other| one.launch == other.launch);
        found.programs = programs;
        found
    }

    /// Returns whether Shepherd would find a program.
    pub(super) fn has_program(&self, program: &str) -> bool {
        let is_executable = |path: &Path| {
            std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
        };
        if program.contains('/') {
            return program.starts_with('/') && is_executable(Path::new(program));
        }
        std::env::split_paths(&self.search_path).any(|folder| is_executable(&folder.join(program)))
    }
}

fn read_text(file: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(file).ok()?.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Parses a `.desktop` file. Returns `None` for anything but a program with a window that the menu shows.
fn parse_desktop_file(text: &str) -> Option<MenuProgram> {
    let lines = text.lines().skip_while(|line| line.trim() != "[Desktop Entry]").skip(1);
    let lines = lines.take_while(|line| !line.trim_start().starts_with('['));
    let keys: BTreeMap<&str, &str> = lines
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim(), value.trim()))
        .collect();
    let is_true = |key: &str| keys.get(key) == Some(&"true");
    if keys.get("Type") != Some(&"Application")
        || is_true("NoDisplay")
        || is_true("Hidden")
        || is_true("Terminal")
    {
        return None;
    }
    let label: String = keys.get("Name")?.chars().filter(|character| !character.is_control()).collect();
    let launch = match keys.get("X-Flatpak") {
        Some(app) => ProgramLaunch::Flatpak((*app).to_owned()),
        None => ProgramLaunch::Command(parse_exec(keys.get("Exec")?)?),
    };
    let mut categories = keys.get("Categories").copied().unwrap_or_default().split(';');
    let is_for_children = categories.any(|category| matches!(category, "Game" | "Education" | "KidsGame"));
    (!label.is_empty()).then_some(MenuProgram { label, launch, is_for_children })
}

/// Splits the command of a `.desktop` file into words, without its field codes (`%U`). Returns `None` if a quote is open.
fn parse_exec(exec: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut quoted, mut has_word) = (String::new(), false, false);
    // The value itself is escaped once: `\\` is one backslash.
    let exec = exec.replace("\\\\", "\\");
    let mut characters = exec.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => (quoted, has_word) = (!quoted, true),
            '\\' if quoted => word.extend(characters.next()),
            '%' if !quoted => word.extend(characters.next().filter(|code| *code == '%')),
            ' ' | '\t' if !quoted => {
                if has_word || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                has_word = false;
            }
            character if character.is_control() => return None,
            other => word.push(other),
        }
    }
    if has_word || !word.is_empty() {
        words.push(word);
    }
    (!quoted && !words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_of_a_menu_entry_is_split_without_its_field_codes() {
        let words = |exec: &str| parse_exec(exec).map(|words| words.join("|"));
        assert_eq!(words("tuxmath").as_deref(), Some("tuxmath"));
        assert_eq!(
            words("mpv --player-operation-mode=pseudo-gui -- %U").as_deref(),
            Some("mpv|--player-operation-mode=pseudo-gui|--")
        );
        assert_eq!(
            words(r#""/opt/My Game/run" --title "a \"b\"" %f"#).as_deref(),
            Some(r#"/opt/My Game/run|--title|a "b""#)
        );
        assert_eq!(words("game --zoom=50%% %%").as_deref(), Some("game|--zoom=50%|%"));
        assert_eq!(words("game \"\" x").as_deref(), Some("game||x"));
        assert_eq!(words("\"open"), None);
        assert_eq!(words("%U"), None);
        assert_eq!(words(""), None);
    }

    #[test]
    fn only_programs_that_the_menu_shows_and_the_machine_has_are_offered() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, body: &str| {
            std::fs::write(folder.path().join(name), format!("#x\n[Desktop Entry]\nType=Application\n{body}\n[Desktop Action a]\nName=Other\nExec=other\n")).unwrap();
        };
        write("sh.desktop", "Name=Shell Race \nExec=sh %U\nCategories=Game;ArcadeGame;");
        write("env.desktop", "Name=Another\nName[de]=Anderes\nExec=env\n");
        write("hidden.desktop", "Name=Hidden\nExec=sh\nNoDisplay=true");
        write("console.desktop", "Name=Console\nExec=sh\nTerminal=true");
        write("gone.desktop", "Name=Gone\nExec=no-such-program");
        write("noname.desktop", "Exec=sh");
        std::fs::write(folder.path().join("binary.desktop"), [0xff, 0xfe, 0]).unwrap();
        std::fs::create_dir(folder.path().join("folder.desktop")).unwrap();
        let found = InstalledPrograms::in_folders([folder.path().to_owned()], "/usr/bin:/bin".into());
        let shown: Vec<_> =
            found.programs.iter().map(|known| (known.label.as_str(), known.is_for_children)).collect();
        assert_eq!(shown, [("Shell Race", true), ("Another", false)]);
        assert_eq!(found.programs[0].launch, ProgramLaunch::Command(vec!["sh".to_owned()]));
        assert!(
            !found.has_program("no-such-program")
                && !found.has_program("./sh")
                && found.has_program("/bin/sh")
        );
    }
}
