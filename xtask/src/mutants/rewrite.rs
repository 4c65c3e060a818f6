//! Rewrites a source file so that each of its mutants can be switched on while the program runs.
//!
//! The original runs if none of its mutants is on. Each mutant contains the original text of its operands, without the
//! mutants inside them, so the file grows only with the number of mutants.

use std::collections::BTreeSet;
use std::ops::Range;

use super::mutant::{Alternative, GuardMutants, MutationSite, SiteForm};

/// The path of the module that knows which mutant is switched on.
const SWITCH: &str = "crate::mutant_switch";

/// A rewritten file, with the places of its mutants for the compiler's errors.
#[derive(Debug, Default)]
pub(crate) struct RewrittenFile {
    pub(crate) text: String,
    /// The bytes that belong to one mutant.
    mutants: Vec<(Range<usize>, u32)>,
    /// The bytes of each site with its mutants, outer sites first.
    sites: Vec<(Range<usize>, Vec<u32>)>,
}

impl RewrittenFile {
    /// Adds code before and after the file.
    pub(crate) fn surround(&mut self, before: &str, after: &str) {
        self.text = format!("{before}{}{after}", self.text);
        let ranges = self.mutants.iter_mut().map(|(range, _)| range);
        for range in ranges.chain(self.sites.iter_mut().map(|(range, _)| range)) {
            *range = range.start + before.len()..range.end + before.len();
        }
    }

    /// Returns the mutants whose own code contains these bytes.
    pub(crate) fn mutants_at(&self, bytes: &Range<usize>) -> Vec<u32> {
        self.mutants.iter().filter(|(range, _)| encloses(range, bytes)).map(|(_, id)| *id).collect()
    }

    /// Returns the mutants of the innermost site that contains these bytes.
    pub(crate) fn site_at(&self, bytes: &Range<usize>) -> Vec<u32> {
        let enclosing = self.sites.iter().filter(|(range, _)| encloses(range, bytes));
        enclosing.min_by_key(|(range, _)| range.len()).map(|(_, ids)| ids.clone()).unwrap_or_default()
    }
}

fn encloses(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Rewrites a file; mutants in `left_out` are not built in.
pub(crate) fn rewrite(source: &str, sites: &[MutationSite], left_out: &BTreeSet<u32>) -> RewrittenFile {
    let mut ordered: Vec<&MutationSite> = sites.iter().collect();
    ordered.sort_by_key(|site| (site.range.start, std::cmp::Reverse(site.range.end)));
    let mut writer =
        SourceWriter { source, sites: ordered, next: 0, left_out, file: RewrittenFile::default() };
    writer.write_range(0..source.len());
    writer.file
}

struct SourceWriter<'a> {
    source: &'a str,
    /// Ordered by start; an outer site comes before the sites inside it.
    sites: Vec<&'a MutationSite>,
    next: usize,
    left_out: &'a BTreeSet<u32>,
    file: RewrittenFile,
}

impl SourceWriter<'_> {
    /// Writes a part of the original with the sites inside it rewritten.
    fn write_range(&mut self, range: Range<usize>) {
        let mut position = range.start;
        while let Some(site) = self.sites.get(self.next).copied()
            && site.range.start < range.end
            && site.range.end <= range.end
        {
            self.next += 1;
            self.write_original(position..site.range.start);
            self.write_site(site);
            position = site.range.end;
        }
        self.write_original(position..range.end);
    }

    fn write_original(&mut self, range: Range<usize>) {
        self.file.text.push_str(self.source.get(range).unwrap_or_default());
    }

    fn write_site(&mut self, site: &MutationSite) {
        let ids: Vec<u32> = site.ids().into_iter().filter(|id| self.is_built(*id)).collect();
        if ids.is_empty() {
            return self.write_range(site.range.clone());
        }
        let start = self.file.text.len();
        match &site.form {
            SiteForm::Expression(alternatives) => self.write_expression(&site.range, alternatives),
            SiteForm::BodyStart(alternatives) => self.write_early_returns(alternatives),
            SiteForm::IteratorEnd(id) => {
                self.write("(");
                self.write_range(site.range.clone());
                self.write(")");
                self.write_mutant(*id, &format!(".take({SWITCH}::item_limit({id}))"));
            }
            SiteForm::ArmEnd(id) => self.write_mutant(*id, &format!(" if {SWITCH}::off({id}, {id})")),
            SiteForm::Guard(guard) => self.write_guard(&site.range, guard),
        }
        self.file.sites.push((start..self.file.text.len(), ids));
    }

    fn write_expression(&mut self, range: &Range<usize>, alternatives: &[Alternative]) {
        let built: Vec<&Alternative> = alternatives.iter().filter(|one| self.is_built(one.id)).collect();
        let (Some(first), Some((last, others))) = (alternatives.first(), built.split_last()) else { return };
        let end = alternatives.last().map_or(first.id, |alternative| alternative.id);
        self.write(&format!("(if {SWITCH}::off({}, {end}) {{ ", first.id));
        self.write_range(range.clone());
        self.write(" }");
        for alternative in others {
            self.write(&format!(" else if {SWITCH}::on({}) {{ ", alternative.id));
            self.write_mutant(alternative.id, &alternative.code);
            self.write(" }");
        }
        self.write(" else { ");
        self.write_mutant(last.id, &last.code);
        self.write(" })");
    }

    fn write_early_returns(&mut self, alternatives: &[Alternative]) {
        for Alternative { id, code } in alternatives {
            if self.is_built(*id) {
                self.write_mutant(*id, &format!(" if {SWITCH}::on({id}) {{ return {code}; }}"));
            }
        }
    }

    fn write_guard(&mut self, range: &Range<usize>, guard: &GuardMutants) {
        let built = |id: Option<u32>| id.filter(|id| !self.left_out.contains(id));
        let (deletes_arm, is_false, is_true) =
            (built(guard.deletes_arm), built(guard.is_false), built(guard.is_true));
        for id in [deletes_arm, is_false].into_iter().flatten() {
            self.write_mutant(id, &format!("{SWITCH}::off({id}, {id})"));
            self.write(" && ");
        }
        if guard.has_let {
            return self.write_range(range.clone());
        }
        self.write("(");
        if let Some(id) = is_true {
            self.write_mutant(id, &format!("{SWITCH}::on({id})"));
            self.write(" || ");
        }
        self.write("(");
        self.write_range(range.clone());
        self.write("))");
    }

    fn write_mutant(&mut self, id: u32, code: &str) {
        let start = self.file.text.len();
        self.write(code);
        self.file.mutants.push((start..self.file.text.len(), id));
    }

    fn write(&mut self, code: &str) {
        self.file.text.push_str(code);
    }

    fn is_built(&self, id: u32) -> bool {
        !self.left_out.contains(&id)
    }
}

#[cfg(test)]
mod tests;
