//! Ids are validated when they are parsed or deserialised.

use proptest::prelude::*;
use shepherd_util::{
    BudgetId, ClientId, EntryId, GrantId, IdProblem, MAX_NAME_LENGTH, ProfileId, RequestId, SessionId,
};

#[test]
fn policy_ids_are_validated() {
    for good in ["tuxmath", "a", "7", "gcompris-qt", "video.long_films", "a..b", &"x".repeat(MAX_NAME_LENGTH)]
    {
        assert_eq!(good.parse::<EntryId>().unwrap().as_str(), good);
    }
    for (bad, problem, message) in [
        ("", IdProblem::Empty, "an entry id can't be empty"),
        (
            "Tux",
            IdProblem::BadCharacter { character: 'T', at: 0 },
            "an entry id can't contain 'T'; use lower-case letters, digits, `-`, `_` and `.`",
        ),
        (
            "a/b",
            IdProblem::BadCharacter { character: '/', at: 1 },
            "an entry id can't contain '/'; use lower-case letters, digits, `-`, `_` and `.`",
        ),
        (
            "a\nb",
            IdProblem::BadCharacter { character: '\n', at: 1 },
            "an entry id can't contain '\\n'; use lower-case letters, digits, `-`, `_` and `.`",
        ),
        (
            "..",
            IdProblem::BadStart { character: '.' },
            "an entry id must begin with a lower-case letter or a digit, not with '.'",
        ),
        (
            "-rf",
            IdProblem::BadStart { character: '-' },
            "an entry id must begin with a lower-case letter or a digit, not with '-'",
        ),
        (
            &"x".repeat(65),
            IdProblem::TooLong { length: 65 },
            "an entry id can have at most 64 characters, not 65",
        ),
    ] {
        let error = bad.parse::<EntryId>().unwrap_err();
        assert_eq!((&error.problem, error.to_string().as_str()), (&problem, message));
    }
    assert_eq!("Ä".parse::<ProfileId>().unwrap_err().what, "a profile id");
    assert_eq!("".parse::<BudgetId>().unwrap_err().to_string(), "a budget id can't be empty");
    assert_eq!(ProfileId::default().to_string(), "default");
}

#[test]
fn generated_ids_are_validated() {
    let id = SessionId::from_random(0xab);
    assert_eq!(id.to_string(), "session-000000000000000000000000000000ab");
    assert_eq!(id.as_str().parse::<SessionId>().unwrap(), id);
    for bad in [
        "",
        "session-",
        "session-ab",
        "client-000000000000000000000000000000ab",
        "session-000000000000000000000000000000AB",
    ] {
        let error = bad.parse::<SessionId>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "a session id must be `session-` followed by 32 digits (0-9, a-f)",
            "{bad}"
        );
    }
    assert!(ClientId::from_random(1).as_str().starts_with("client-"));
    assert!(RequestId::from_random(1).as_str().starts_with("request-"));
    assert!(GrantId::from_random(u128::MAX).as_str().ends_with("ffff"));
}

#[test]
fn deserialised_ids_are_validated() {
    assert_eq!(serde_json::to_string(&EntryId::try_from("tux".to_owned()).unwrap()).unwrap(), "\"tux\"");
    assert!(
        serde_json::from_str::<EntryId>("\"../etc\"").unwrap_err().to_string().contains("can't contain '/'")
    );
    assert!(serde_json::from_str::<SessionId>("\"session-1\"").is_err());
}

proptest! {
    #[test]
    fn a_random_id_parses_to_itself_and_differs_from_others(bits in any::<u128>(), other in any::<u128>()) {
        let id = SessionId::from_random(bits);
        prop_assert_eq!(id.to_string().parse::<SessionId>(), Ok(id.clone()));
        prop_assert_eq!(bits == other, id == SessionId::from_random(other));
        prop_assert_eq!(serde_json::from_str::<SessionId>(&serde_json::to_string(&id).unwrap()).unwrap(), id);
    }

    #[test]
    fn a_name_is_a_safe_file_name_or_refused(text in prop_oneof!["\\PC{0,8}", "[a-z0-9._-]{0,70}"]) {
        match text.parse::<EntryId>() {
            Ok(id) => {
                prop_assert_eq!(id.to_string(), text.clone());
                prop_assert!(!text.contains('/') && text != ".." && text != "." && text.len() <= MAX_NAME_LENGTH);
                prop_assert_eq!(std::path::Path::new(&text).components().count(), 1);
            }
            Err(error) => {
                if let IdProblem::BadCharacter { character, at } = error.problem {
                    prop_assert!(text[at..].starts_with(character));
                }
            }
        }
    }
}
