use std::path::PathBuf;

use ward_diag::Source;

use super::*;
use crate::config::{self, Surroundings};

const START: SystemTime = SystemTime::UNIX_EPOCH;

/// A file that was last written so many seconds after the start.
fn written(seconds: u64) -> Option<ConfigTrace> {
    let modified = START + Duration::from_secs(seconds);
    Some(ConfigTrace { file: (1, 1), length: 1, modified, changed: (0, 0) })
}

fn found(text: &str) -> FoundConfig {
    let folder = PathBuf::from("/nowhere");
    let home = folder.join(".collieclaw");
    let surroundings = Surroundings { home, user_home: folder, variables: [].into() };
    let tools = crate::tools::built_in();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
    let config = config::read(Source::new("config.toml", text), &surroundings, &names).unwrap();
    FoundConfig { policy_hash: config.security.autonomy.to_string(), config, text: text.into() }
}

const READONLY: &str = "[security]\nautonomy = \"readonly\"\n";

/// A file in memory, and a clock that stands still.
struct Scene {
    in_force: InForce,
    file: Arc<Mutex<Result<FoundConfig, String>>>,
    reads: Arc<Mutex<u32>>,
    read: Read,
}

impl Scene {
    fn of(text: &str) -> Self {
        let file = Arc::new(Mutex::new(Ok(found(text))));
        let reads = Arc::new(Mutex::new(0));
        let (reading, counting) = (Arc::clone(&file), Arc::clone(&reads));
        let read: Read = Box::new(move || {
            *counting.lock().unwrap() += 1;
            reading.lock().unwrap().clone()
        });
        Self { in_force: InForce::new(found(text), written(0)), file, reads, read }
    }

    fn holds(&self, now: Result<FoundConfig, &str>) {
        *self.file.lock().unwrap() = now.map_err(str::to_owned);
    }

    /// What is in force a second after the file was written, and how often the file was read for that.
    fn settled(&self, trace: Option<ConfigTrace>) -> (State, Option<Taken>, u32) {
        let clock = trace.map_or(START, |trace| trace.modified + SETTLED);
        let (state, taken) = self.in_force.now(&|| trace, clock, &self.read);
        (state, taken, std::mem::take(&mut *self.reads.lock().unwrap()))
    }
}

#[test]
fn a_file_of_this_moment_is_not_settled_and_one_from_tomorrow_is() {
    let file = written(86_400).unwrap();
    let settled = |clock: SystemTime| file.is_settled(clock);
    let almost = Duration::from_millis(999);
    assert!(!settled(file.modified) && !settled(file.modified + almost));
    assert!(settled(file.modified + SETTLED) && settled(START));
}

#[test]
fn a_file_is_read_once_it_is_another_and_settled_and_only_then() {
    let scene = Scene::of("");
    let (state, taken, reads) = scene.settled(written(0));
    assert_eq!((state.changed, taken.is_some(), reads), (false, false, 0));

    scene.holds(Ok(found(READONLY)));
    let (state, taken) = scene.in_force.now(&|| written(5), written(5).unwrap().modified, &scene.read);
    assert_eq!((state.config.security.autonomy, state.changed), (Autonomy::Supervised, true));
    assert!(taken.is_none());
    let (state, taken, reads) = scene.settled(written(5));
    assert_eq!((state.config.security.autonomy, state.changed, reads), (Autonomy::ReadOnly, false, 1));
    assert!(taken.is_some());
    assert_eq!(scene.settled(written(5)).2, 0);
    // The same moment and length: what was changed still shows.
    let hidden = written(5).map(|trace| ConfigTrace { changed: (1, 0), ..trace });
    assert_eq!(scene.settled(hidden).2, 1);

    // The port is the server's until it is started again.
    scene.holds(Ok(found("[channels.gateway]\nport = 1\ntools_allow = [\"time\"]")));
    let (state, ..) = scene.settled(written(6));
    let channel = &state.config.channels.gateway;
    assert_eq!((channel.port, channel.tools_allow.len()), (GatewayChannel::default().port, 1));
    assert!(state.changed);
}

#[test]
fn a_file_that_is_changed_while_it_is_read_is_not_taken() {
    let scene = Scene::of("");
    scene.holds(Ok(found(READONLY)));
    let looks = Mutex::new(0);
    let file = || {
        *looks.lock().unwrap() += 1;
        written(*looks.lock().unwrap())
    };
    let (state, taken) = scene.in_force.now(&file, START, &scene.read);
    assert_eq!((state.config.security.autonomy, state.changed), (Autonomy::Supervised, true));
    assert!(taken.is_none());
}

#[test]
fn what_is_wrong_is_looked_at_until_it_is_mended() {
    let scene = Scene::of("");
    scene.holds(Err("broken"));
    for _ in 0..2 {
        let (state, taken, reads) = scene.settled(written(1));
        assert_eq!((state.fault.as_deref(), state.changed, reads), (Some("broken"), true, 1));
        assert!(taken.is_none());
    }
    scene.holds(Ok(found("")));
    let (state, taken, _) = scene.settled(written(1));
    assert_eq!((state.fault, state.changed, taken.is_some()), (None, false, false), "nothing is new");
    assert_eq!(scene.settled(written(1)).2, 0);
}

#[test]
fn a_file_that_lost_its_end_is_not_taken() {
    let text = format!("{READONLY}[limits]\nmax_tool_rounds = 3\n");
    let scene = Scene::of(&text);
    for (cut, why) in
        [("", "empty"), ("\n", "empty"), (READONLY, "in the middle"), ("[security]\n", "in the")]
    {
        scene.holds(Ok(found(cut)));
        let (state, taken, _) = scene.settled(written(1));
        assert!(state.fault.as_ref().is_some_and(|fault| fault.contains(why)), "{cut}: {:?}", state.fault);
        assert_eq!((state.config.security.autonomy, taken.is_some()), (Autonomy::ReadOnly, false));
    }
    // Somebody has written them so.
    for whole in [text.trim_end(), &text, "# all as usual\n"] {
        scene.holds(Ok(found(whole)));
        assert_eq!(scene.settled(written(2)).0.fault, None, "{whole}");
        scene.holds(Err("between them"));
        scene.settled(written(3));
    }
}

#[test]
fn what_is_taken_is_told_with_what_was_before() {
    let scene = Scene::of(READONLY);
    let full = "[security]\nautonomy = \"full\"\naudit_log = false\n";
    for (second, text, told, is_looser) in [
        (1, "[limits]\n", "readonly supervised", true),
        (2, full, "supervised full", true),
        (3, READONLY, "full readonly", false),
    ] {
        scene.holds(Ok(found(text)));
        let taken = scene.settled(written(second)).1.unwrap();
        let Event::ConfigTaken { autonomy_before, autonomy, policy_hash_before, policy_hash, loosened } =
            taken.event()
        else {
            panic!("another event")
        };
        assert_eq!((&*format!("{autonomy_before} {autonomy}"), loosened), (told, is_looser));
        assert_eq!(format!("{policy_hash_before} {policy_hash}"), told);
        assert!(taken.witness().security.audit_log, "the log that was, or the one that is");
    }
    // Another comment is no other rule.
    scene.holds(Ok(found(&format!("{READONLY}# more\n"))));
    assert!(scene.settled(written(4)).1.is_none());
}
