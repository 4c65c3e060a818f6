use super::*;
use crate::mutants::enumerate::find_mutants;

/// Checks a function's rewritten form. `on` and `off` stand for the functions of the switch.
fn check(source: &str, expected: &str) {
    let found = find_mutants("src/lib.rs", source, 0).unwrap();
    let rewritten = rewrite(source, &found.sites, &BTreeSet::new());
    assert_eq!(rewritten.text.replace("crate::mutant_switch::", ""), expected);
    syn::parse_file(&rewritten.text).unwrap();
}

fn changes(source: &str) -> Vec<String> {
    let found = find_mutants("src/lib.rs", source, 0).unwrap();
    found
        .mutants
        .into_iter()
        .map(|mutant| format!("{}: {}", mutant.name.function, mutant.name.change))
        .collect()
}

#[test]
fn a_body_returns_early() {
    check(
        "fn is_open(&self) -> bool { self.open }",
        "fn is_open(&self) -> bool { if on(0) { return true; } if on(1) { return false; } self.open }",
    );
    check(
        "fn close(&mut self) { self.open.take(); }",
        "fn close(&mut self) { if on(0) { return (); } self.open.take(); }",
    );
}

#[test]
fn a_body_that_is_the_value_already_has_no_mutant() {
    check("fn is_open() -> bool { true }", "fn is_open() -> bool { if on(0) { return false; } true }");
    check("fn nothing() {}", "fn nothing() {}");
}

#[test]
fn an_opaque_iterator_is_emptied() {
    check(
        "fn names(&self) -> impl Iterator<Item = &str> { self.names.iter() }",
        "fn names(&self) -> impl Iterator<Item = &str> { (self.names.iter()).take(item_limit(0)) }",
    );
}

#[test]
fn an_operator_inside_another_is_rewritten_in_the_original_only() {
    check(
        "fn f() -> Limit { a as u8 <= b + c }",
        "fn f() -> Limit { if on(0) { return Default::default(); } (if off(1, 2) { a as u8 <= \
         (if off(3, 4) { b + c } else if on(3) { (b) - (c) } else { (b) * (c) }) } \
         else if on(1) { (a as u8) > (b + c) } else { (a as u8) < (b + c) }) }",
    );
}

#[test]
fn a_sign_is_deleted() {
    check(
        "fn f() -> ! { g(!a, -b) }",
        "fn f() -> ! { g((if off(0, 0) { !a } else { a }), (if off(1, 1) { -b } else { b })) }",
    );
}

#[test]
fn a_match_arm_is_deleted_if_a_wildcard_is_left() {
    check(
        "fn f() -> ! { match a { Some(1) => b, Some(c) if c == d || e => f, _ => g } }",
        "fn f() -> ! { match a { Some(1) if off(0, 0) => b, Some(c) if off(1, 1) && off(2, 2) && (on(3) || \
         ((if off(4, 4) { (if off(5, 5) { c == d } else { (c) != (d) }) || e } else { (c == d) && (e) }))) => f, \
         _ => g } }",
    );
    check(
        "fn f() -> ! { match a { Some(b) => b, None => c } }",
        "fn f() -> ! { match a { Some(b) => b, None => c } }",
    );
}

#[test]
fn a_guard_that_binds_names_is_only_made_false() {
    check(
        "fn f() -> ! { match a { b if let Some(c) = b => c, _ => d } }",
        "fn f() -> ! { match a { b if off(0, 0) && off(1, 1) && let Some(c) = b => c, _ => d } }",
    );
}

#[test]
fn a_chain_with_let_keeps_its_conjunctions() {
    check(
        "fn f() -> ! { if let Some(a) = b && a < c && d { e } }",
        "fn f() -> ! { if let Some(a) = b && (if off(0, 2) { a < c } else if on(0) { (a) == (c) } \
         else if on(1) { (a) > (c) } else { (a) <= (c) }) && d { e } }",
    );
}

#[test]
fn constants_patterns_types_and_tests_are_left_alone() {
    for source in [
        "const DAY: u64 = 24 * 60;",
        "const fn f() -> u8 { 1 + 1 }",
        "fn f(a: [u8; 1 + 1]) -> ! { g::<{ 1 + 1 }>([0; 2 * 2]) }",
        "fn f() -> ! { match a { -1 => b, c => d } }",
        "#[cfg(test)] mod tests { fn f() -> bool { a == b } }",
        "#[test] fn f() { g(a == b) }",
        "impl Default for Policy { fn default() -> Self { f(1 + 1) } }",
        "impl fmt::Debug for Secret { fn fmt(&self) -> fmt::Result { g(a == b) } }",
        "unsafe fn f() -> bool { a == b }",
    ] {
        check(source, source);
    }
}

#[test]
fn equal_changes_of_one_function_are_numbered() {
    assert_eq!(
        changes("impl Policy { fn f() -> ! { g(a == b, a == b) } } fn h() -> ! { a == b }"),
        [
            "Policy::f: replace `==` with `!=` in `a == b`",
            "Policy::f: replace `==` with `!=` in `a == b` #2",
            "h: replace `==` with `!=` in `a == b`",
        ]
    );
}

#[test]
fn a_mutant_that_does_not_compile_is_left_out() {
    let source = "fn f() -> ! { a < b }";
    let found = find_mutants("src/lib.rs", source, 0).unwrap();
    let rewritten = rewrite(source, &found.sites, &BTreeSet::from([0, 2]));
    assert_eq!(
        rewritten.text.replace("crate::mutant_switch::", ""),
        "fn f() -> ! { (if off(0, 2) { a < b } else { (a) > (b) }) }"
    );
    assert_eq!(rewrite(source, &found.sites, &BTreeSet::from([0, 1, 2])).text, source);
}

#[test]
fn an_error_is_traced_to_its_mutant_or_to_the_site_around_it() {
    let source = "fn f() -> ! { a < b }";
    let found = find_mutants("src/lib.rs", source, 0).unwrap();
    let mut rewritten = rewrite(source, &found.sites, &BTreeSet::new());
    rewritten.surround("#![allow(warnings)] ", "\nmod more;\n");
    let place = |code: &str| {
        let start = rewritten.text.find(code).unwrap();
        start..start + code.len()
    };
    assert_eq!(rewritten.mutants_at(&place("(a) > (b)")), [1]);
    assert_eq!(rewritten.mutants_at(&place("a < b")), Vec::<u32>::new());
    assert_eq!(rewritten.site_at(&place("a < b")), [0, 1, 2]);
    assert_eq!(rewritten.site_at(&place("mod more;")), Vec::<u32>::new());
}
