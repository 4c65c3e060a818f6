//! The source files of a crate's library, without its tests.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use syn::{Item, ItemMod};

use super::syntax::is_test;

/// Returns the files of a library, found by its module declarations.
pub(crate) fn library_files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = vec![root.to_owned()];
    let folder = root.parent().context("a source file has a folder")?;
    add_modules(root, folder, &mut files)?;
    Ok(files)
}

fn add_modules(file: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let source = fs::read_to_string(file).with_context(|| format!("could not read {}", file.display()))?;
    let syntax = syn::parse_file(&source).with_context(|| format!("could not parse {}", file.display()))?;
    for module in declared_modules(&syntax.items) {
        let name = module.ident.to_string();
        let path = folder.join(format!("{name}.rs"));
        if !path.is_file() {
            bail!("could not find the module `{name}` of {}: no file {}", file.display(), path.display());
        }
        files.push(path.clone());
        add_modules(&path, &folder.join(name), files)?;
    }
    Ok(())
}

fn declared_modules(items: &[Item]) -> impl Iterator<Item = &ItemMod> {
    items.iter().filter_map(|item| match item {
        Item::Mod(module) if module.content.is_none() && !is_test(&module.attrs) => Some(module),
        _ => None,
    })
}
