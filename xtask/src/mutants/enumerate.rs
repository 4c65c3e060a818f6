//! Finds the mutants of a source file.
//!
//! The kinds of change are those of cargo-mutants, without its deletion of struct fields: a function's body becomes a
//! guessed value, an operator becomes another one, `!` and `-` are deleted, a match guard becomes `true` or `false`, and
//! a match arm is deleted if a wildcard follows. The code inside macros isn't parsed.

use std::ops::Range;

use anyhow::{Context, Result};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Arm, Attribute, Block, Expr, ExprBinary, ExprClosure, ExprConst, ExprMatch, ExprRepeat, ExprUnary,
    GenericArgument, ImplItemConst, ImplItemFn, ItemConst, ItemFn, ItemImpl, ItemMod, ItemStatic, ItemTrait,
    Pat, Signature, Stmt, TraitItemConst, TraitItemFn, Type, Variant,
};

use super::mutant::{Alternative, GuardMutants, Mutant, MutantName, MutationSite, SiteForm};
use super::operators;
use super::return_values::{ReplacementBody, replacement_body};
use super::syntax::{compact, contains_let, is_test, shorten, type_name};

/// Traits whose implementations are left alone: nobody decides by `Debug`, and a changed `Default` calls itself.
const LEFT_ALONE: [&str; 2] = ["Debug", "Default"];

/// The mutants of a file.
#[derive(Debug, Default)]
pub(crate) struct FileMutants {
    pub(crate) sites: Vec<MutationSite>,
    pub(crate) mutants: Vec<Mutant>,
    /// Mutants of constants, which the compiler evaluates, so that no switch can be read.
    pub(crate) constant: Vec<Mutant>,
}

/// Finds the mutants of a file, numbered from `first`.
pub(crate) fn find_mutants(file: &str, source: &str, first: u32) -> Result<FileMutants> {
    let syntax = syn::parse_file(source).with_context(|| format!("could not parse {file}"))?;
    let mut finder = MutantFinder {
        file,
        source,
        next: first,
        owner: None,
        functions: Vec::new(),
        constants: 0,
        found: FileMutants::default(),
    };
    finder.visit_file(&syntax);
    Ok(finder.found)
}

struct MutantFinder<'a> {
    file: &'a str,
    source: &'a str,
    next: u32,
    /// The type or the trait whose functions are visited.
    owner: Option<String>,
    functions: Vec<String>,
    /// The number of constants around the visited code.
    constants: usize,
    found: FileMutants,
}

impl MutantFinder<'_> {
    fn text(&self, item: &impl Spanned) -> &str {
        self.source.get(item.span().byte_range()).unwrap_or_default()
    }

    /// Registers a mutant and returns its number, or `None` inside a constant.
    fn add(&mut self, item: &impl Spanned, change: String) -> Option<u32> {
        let function = self.functions.last().cloned().unwrap_or_else(|| "constant".to_owned());
        let name = MutantName { file: self.file.to_owned(), function, change };
        let known = self.found.mutants.iter().chain(&self.found.constant);
        let equal = known.filter(|mutant| is_numbered(&mutant.name, &name)).count();
        let change = if equal > 0 { format!("{} #{}", name.change, equal + 1) } else { name.change };
        let mutant =
            Mutant { id: self.next, name: MutantName { change, ..name }, line: item.span().start().line };
        self.next += 1;
        let id = mutant.id;
        if self.constants > 0 {
            self.found.constant.push(mutant);
            return None;
        }
        self.found.mutants.push(mutant);
        Some(id)
    }

    fn add_site(&mut self, range: Range<usize>, form: SiteForm) {
        let site = MutationSite { range, form };
        if !site.ids().is_empty() {
            self.found.sites.push(site);
        }
    }

    fn visit_function(&mut self, attributes: &[Attribute], signature: &Signature, block: &Block) {
        if is_test(attributes) || signature.unsafety.is_some() {
            return;
        }
        let name = signature.ident.to_string();
        self.functions.push(self.owner.as_ref().map_or(name.clone(), |owner| format!("{owner}::{name}")));
        let owner = self.owner.take();
        let is_constant = usize::from(signature.constness.is_some());
        self.constants += is_constant;
        if name != "main" {
            self.replace_body(signature, block);
        }
        self.visit_block(block);
        self.constants -= is_constant;
        self.owner = owner;
        self.functions.pop();
    }

    fn replace_body(&mut self, signature: &Signature, block: &Block) {
        match replacement_body(&signature.output) {
            ReplacementBody::Values(values) => {
                let own = block
                    .stmts
                    .first()
                    .filter(|_| block.stmts.len() == 1)
                    .map(|only| compact(self.text(only)));
                let mut alternatives = Vec::new();
                for code in values.into_iter().filter(|value| own.as_deref() != Some(value)) {
                    if block.stmts.is_empty() && code == "()" {
                        continue;
                    }
                    if let Some(id) = self.add(&signature.ident, format!("return `{code}`")) {
                        alternatives.push(Alternative { id, code });
                    }
                }
                let start = block.brace_token.span.open().byte_range().end;
                self.add_site(start..start, SiteForm::BodyStart(alternatives));
            }
            ReplacementBody::EmptyIterator => {
                let Some(Stmt::Expr(last, None)) = block.stmts.last() else { return };
                if let Some(id) = self.add(&signature.ident, "return an empty iterator".to_owned()) {
                    self.add_site(last.span().byte_range(), SiteForm::IteratorEnd(id));
                }
            }
            ReplacementBody::None => {}
        }
    }

    fn visit_constant(&mut self, expression: &Expr) {
        self.constants += 1;
        self.visit_expr(expression);
        self.constants -= 1;
    }

    fn visit_arm(&mut self, arm: &Arm, has_wildcard: bool) {
        let pattern = compact(self.text(&arm.pat));
        let is_wildcard = matches!(arm.pat, Pat::Wild(_)) && arm.guard.is_none();
        let deletes_arm = (has_wildcard && !is_wildcard)
            .then(|| self.add(&arm.pat, format!("delete match arm `{}`", shorten(&pattern))))
            .flatten();
        let Some((_, guard)) = &arm.guard else {
            if let Some(id) = deletes_arm {
                let end = arm.pat.span().byte_range().end;
                self.add_site(end..end, SiteForm::ArmEnd(id));
            }
            return self.visit_expr(&arm.body);
        };
        let shown = shorten(&compact(self.text(&**guard)));
        let has_let = contains_let(guard);
        let is_false = self.add(&**guard, format!("replace match guard `{shown}` with `false`"));
        let is_true = (!has_let)
            .then(|| self.add(&**guard, format!("replace match guard `{shown}` with `true`")))
            .flatten();
        let form = SiteForm::Guard(GuardMutants { deletes_arm, is_true, is_false, has_let });
        self.add_site(guard.span().byte_range(), form);
        self.visit_expr(guard);
        self.visit_expr(&arm.body);
    }
}

impl<'ast> Visit<'ast> for MutantFinder<'_> {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if !is_test(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        let of_trait = block.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        let is_left_alone = of_trait.is_some_and(|name| LEFT_ALONE.iter().any(|left| name.ident == left));
        if is_test(&block.attrs) || is_left_alone {
            return;
        }
        let owner = self.owner.replace(type_name(&block.self_ty));
        visit::visit_item_impl(self, block);
        self.owner = owner;
    }

    fn visit_item_trait(&mut self, definition: &'ast ItemTrait) {
        let owner = self.owner.replace(definition.ident.to_string());
        visit::visit_item_trait(self, definition);
        self.owner = owner;
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.visit_function(&function.attrs, &function.sig, &function.block);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.visit_function(&function.attrs, &function.sig, &function.block);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(block) = &function.default {
            self.visit_function(&function.attrs, &function.sig, block);
        }
    }

    fn visit_expr_binary(&mut self, binary: &'ast ExprBinary) {
        let joins_let = contains_let(&binary.left) || contains_let(&binary.right);
        if let (false, Some((sign, replacements))) = (joins_let, operators::replacements(&binary.op)) {
            let shown = shorten(&compact(self.text(binary)));
            let (left, right) = (self.text(&*binary.left).to_owned(), self.text(&*binary.right).to_owned());
            let mut alternatives = Vec::new();
            for replacement in replacements {
                let change = format!("replace `{sign}` with `{replacement}` in `{shown}`");
                if let Some(id) = self.add(&binary.op, change) {
                    alternatives.push(Alternative { id, code: format!("({left}) {replacement} ({right})") });
                }
            }
            self.add_site(binary.span().byte_range(), SiteForm::Expression(alternatives));
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast ExprUnary) {
        if let Some(sign) = operators::deletable_sign(&unary.op) {
            let change = format!("delete `{sign}` in `{}`", shorten(&compact(self.text(unary))));
            let code = self.text(&*unary.expr).to_owned();
            if let Some(id) = self.add(&unary.op, change) {
                self.add_site(
                    unary.span().byte_range(),
                    SiteForm::Expression(vec![Alternative { id, code }]),
                );
            }
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_match(&mut self, expression: &'ast ExprMatch) {
        self.visit_expr(&expression.expr);
        let has_wildcard =
            expression.arms.iter().any(|arm| matches!(arm.pat, Pat::Wild(_)) && arm.guard.is_none());
        for arm in &expression.arms {
            self.visit_arm(arm, has_wildcard);
        }
    }

    fn visit_expr_closure(&mut self, closure: &'ast ExprClosure) {
        self.visit_expr(&closure.body);
    }

    fn visit_expr_repeat(&mut self, repeat: &'ast ExprRepeat) {
        self.visit_expr(&repeat.expr);
        self.visit_constant(&repeat.len);
    }

    fn visit_expr_const(&mut self, block: &'ast ExprConst) {
        self.constants += 1;
        visit::visit_expr_const(self, block);
        self.constants -= 1;
    }

    fn visit_item_const(&mut self, constant: &'ast ItemConst) {
        self.visit_constant(&constant.expr);
    }

    fn visit_item_static(&mut self, constant: &'ast ItemStatic) {
        self.visit_constant(&constant.expr);
    }

    fn visit_impl_item_const(&mut self, constant: &'ast ImplItemConst) {
        self.visit_constant(&constant.expr);
    }

    fn visit_trait_item_const(&mut self, _: &'ast TraitItemConst) {}

    fn visit_variant(&mut self, _: &'ast Variant) {}

    fn visit_generic_argument(&mut self, _: &'ast GenericArgument) {}

    fn visit_pat(&mut self, _: &'ast Pat) {}

    fn visit_type(&mut self, _: &'ast Type) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

/// Returns whether two mutants have the same name, apart from the number at the end.
fn is_numbered(known: &MutantName, name: &MutantName) -> bool {
    let rest = known.change.strip_prefix(&name.change);
    known.function == name.function && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" #"))
}
