//! Finds entries and children by the names that a family types: an id, or the label that lists show.

use std::fmt::Display;

use ward_diag::closest;

/// The items of the policy that a name fits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NameMatch<Id> {
    One(Id),
    /// Several items have this label.
    Several(Vec<Id>),
    /// The name fits nothing, but perhaps this item is meant.
    Nothing {
        near: Option<Id>,
    },
}

/// Finds the item with this id or, if no item has this id, the only item with this label. Upper and lower case don't
/// matter.
pub(crate) fn match_name<Id: Clone + Display>(given: &str, known: &[(Id, String)]) -> NameMatch<Id> {
    let given = given.trim().to_lowercase();
    if let Some((id, _)) = known.iter().find(|(id, _)| id.to_string() == given) {
        return NameMatch::One(id.clone());
    }
    let labelled = known.iter().filter(|(_, label)| label.trim().to_lowercase() == given);
    let found: Vec<Id> = labelled.map(|(id, _)| id.clone()).collect();
    match found.as_slice() {
        [only] => NameMatch::One(only.clone()),
        [] => NameMatch::Nothing { near: find_near(&given, known) },
        _ => NameMatch::Several(found),
    }
}

/// Finds the item that a misspelt or shortened name is probably meant to be.
fn find_near<Id: Clone + Display>(given: &str, known: &[(Id, String)]) -> Option<Id> {
    let names: Vec<(String, &Id)> =
        known.iter().flat_map(|(id, label)| [(id.to_string(), id), (label.to_lowercase(), id)]).collect();
    let begins = |name: &&(String, &Id)| !given.is_empty() && name.0.starts_with(given);
    let near = closest(given, names.iter().map(|(name, _)| name.as_str()));
    let near = near.and_then(|near| names.iter().find(|(name, _)| name == near));
    near.or_else(|| names.iter().find(begins)).map(|(_, id)| (*id).clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: &str, expected: &NameMatch<&str>) {
        let known = [
            ("tuxmath", "Maths"),
            ("tuxkart", "SuperTuxKart"),
            ("chess", "Schach für Anna"),
            ("chess2", "Chess"),
            ("film1", "Films"),
            ("film2", "films "),
        ];
        let known = known.map(|(id, label)| (id, label.to_owned()));
        assert_eq!(match_name(given, &known), *expected, "{given}");
    }

    #[test]
    fn an_item_is_found_by_its_id_or_its_label() {
        for given in ["tuxmath", "Tuxmath", "Maths", "maths", " MATHS "] {
            check(given, &NameMatch::One("tuxmath"));
        }
        check("SCHACH FÜR ANNA", &NameMatch::One("chess"));
        // The id counts more than the label of another entry.
        check("Chess", &NameMatch::One("chess"));
    }

    #[test]
    fn an_ambiguous_label_is_never_guessed() {
        check("Films", &NameMatch::Several(vec!["film1", "film2"]));
    }

    #[test]
    fn a_typing_mistake_leads_to_a_suggestion() {
        for given in ["tuxmaht", "Mahts", "tuxm"] {
            check(given, &NameMatch::Nothing { near: Some("tuxmath") });
        }
        check("supertuxcart", &NameMatch::Nothing { near: Some("tuxkart") });
        for given in ["", "minetest"] {
            check(given, &NameMatch::Nothing { near: None });
        }
    }
}
