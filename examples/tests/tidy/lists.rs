//! Finds the constants `ALL` of enums, and the variants that they lack.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Expr, ImplItem, ItemEnum, ItemImpl, Path, Type};

/// The enums of a file, and the variants that their lists name.
#[derive(Default)]
struct Lists {
    variants: BTreeMap<String, BTreeSet<String>>,
    listed: BTreeMap<String, BTreeSet<String>>,
}

impl<'a> Visit<'a> for Lists {
    fn visit_item_enum(&mut self, item: &'a ItemEnum) {
        let variants = item.variants.iter().map(|variant| variant.ident.to_string());
        self.variants.insert(item.ident.to_string(), variants.collect());
    }

    fn visit_item_impl(&mut self, item: &'a ItemImpl) {
        if let Type::Path(of) = &*item.self_ty
            && let Some(name) = of.path.get_ident()
        {
            for list in item.items.iter().filter_map(listed) {
                self.listed.insert(name.to_string(), list);
            }
        }
        visit::visit_item_impl(self, item);
    }
}

/// Returns the variants in an array `ALL`, or `None` for any other item.
fn listed(item: &ImplItem) -> Option<BTreeSet<String>> {
    let ImplItem::Const(constant) = item else { return None };
    let Expr::Array(array) = &constant.expr else { return None };
    let mut named = Named::default();
    named.visit_expr_array(array);
    (constant.ident == "ALL").then_some(named.0)
}

/// The last segments of the paths that begin with `Self`.
#[derive(Default)]
struct Named(BTreeSet<String>);

impl<'a> Visit<'a> for Named {
    fn visit_path(&mut self, path: &'a Path) {
        if path.segments.first().is_some_and(|first| first.ident == "Self") {
            self.0.extend(path.segments.last().map(|last| last.ident.to_string()));
        }
        visit::visit_path(self, path);
    }
}

/// Returns the enums of a source file whose `ALL` is an array without some of the variants, with those variants.
pub(crate) fn incomplete_lists(text: &str) -> Vec<(String, Vec<String>)> {
    let file = syn::parse_file(text).expect("the compiler accepts the sources");
    let mut lists = Lists::default();
    lists.visit_file(&file);
    let missing = |(name, variants): (String, BTreeSet<String>)| {
        let missing: Vec<String> = variants.difference(lists.listed.get(&name)?).cloned().collect();
        (!missing.is_empty()).then_some((name, missing))
    };
    lists.variants.into_iter().filter_map(missing).collect()
}
