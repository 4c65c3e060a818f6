//! SPDX licence expressions: `MIT OR Apache-2.0`, `(MIT OR ISC) AND Unicode-3.0`.

/// Returns whether the licences on the list are enough to use what is offered under `expression`.
///
/// An expression that can't be read isn't allowed.
pub(super) fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    // Some older packages write `MIT/Apache-2.0` for OR.
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = LicenceParser { words: &words, allowed };
    let is_allowed = parser.parse_alternatives();
    parser.words.is_empty() && is_allowed == Some(true)
}

struct LicenceParser<'e> {
    words: &'e [&'e str],
    allowed: &'e [String],
}

impl LicenceParser<'_> {
    fn parse_alternatives(&mut self) -> Option<bool> {
        let mut is_allowed = self.parse_requirements()?;
        while self.skip("OR") {
            is_allowed |= self.parse_requirements()?;
        }
        Some(is_allowed)
    }

    fn parse_requirements(&mut self) -> Option<bool> {
        let mut is_allowed = self.parse_licence()?;
        while self.skip("AND") {
            is_allowed &= self.parse_licence()?;
        }
        Some(is_allowed)
    }

    fn parse_licence(&mut self) -> Option<bool> {
        if self.skip("(") {
            let is_allowed = self.parse_alternatives()?;
            return self.skip(")").then_some(is_allowed);
        }
        let mut name = self.next()?.to_owned();
        if self.skip("WITH") {
            name = format!("{name} WITH {}", self.next()?);
        }
        Some(self.allowed.contains(&name))
    }

    fn next(&mut self) -> Option<&str> {
        let (first, rest) = self.words.split_first()?;
        self.words = rest;
        Some(first)
    }

    fn skip(&mut self, word: &str) -> bool {
        match self.words.split_first() {
            Some((first, rest)) if *first == word => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_allowed_if_one_alternative_is_wholly_on_the_list() {
        let allowed = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("MIT/Apache-2.0", true),
            ("(GPL-3.0 OR MIT) AND Apache-2.0", true),
            ("(GPL-3.0 OR ISC) AND Apache-2.0", false),
            ("GPL-3.0 OR MIT AND ISC", false),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("MIT WITH LLVM-exception", false),
            ("", false),
            ("(MIT", false),
            ("MIT MIT", false),
            ("MIT OR", false),
        ] {
            assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
        }
    }
}
