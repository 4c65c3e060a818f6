//! A PIN appears only in the message to the daemon (S11.3b).

use shepherd_api::{AdminPin, ClientMessage, Command, MessageParseError};

#[test]
fn a_pin_is_never_printed() {
    let pin = AdminPin::try_from("4711-secret".to_owned()).unwrap();
    let command = Command::Authenticate { pin };
    assert_eq!(format!("{command:?}"), "Authenticate { pin: *** }");
    assert_eq!(format!("{command:#?}"), "Authenticate {\n    pin: ***,\n}");
}

#[test]
fn an_error_about_a_pin_does_not_repeat_it() {
    for pin in
        [r#""471""#.to_owned(), "4711".to_owned(), "[4711]".to_owned(), format!("{:?}", "4711".repeat(17))]
    {
        let line = format!(r#"{{"type":"request","id":1,"command":{{"type":"authenticate","pin":{pin}}}}}"#);
        let Err(MessageParseError::InvalidRequest { error, .. }) = ClientMessage::parse(line.as_bytes())
        else {
            panic!("{line} was taken")
        };
        assert!(!error.sentence.contains("471"), "{}", error.sentence);
        assert!(error.sentence.contains("4 to 64 characters"), "{}", error.sentence);
    }
}

#[test]
fn a_pin_is_counted_in_characters() {
    for (text, fits) in [("äöü", false), ("äöüß", true), (&*"ß".repeat(64), true), (&*"ß".repeat(65), false)]
    {
        assert_eq!(AdminPin::try_from(text.to_owned()).is_ok(), fits, "{text}");
    }
}
