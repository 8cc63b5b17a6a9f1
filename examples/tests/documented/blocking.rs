//! The methods of the library that block, and what their documentation says of it.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, ImplItem, ItemImpl, ItemMod, Lit, Meta, Type, Visibility};

/// The documentation of public methods, by type and name.
#[derive(Default)]
pub(crate) struct Methods(BTreeMap<(String, String), String>);

impl Methods {
    /// Adds the methods of a source file.
    pub(crate) fn read(&mut self, source: &str) {
        self.visit_file(&syn::parse_file(source).expect("the compiler accepts the sources"));
    }

    /// Returns the methods that have an async form, with their documentation.
    pub(crate) fn blocking(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        let has_async = |owner: &str, name: &str| {
            let form = (owner.to_owned(), format!("{name}_async"));
            self.0.contains_key(&form)
        };
        let methods =
            self.0.iter().map(|((owner, name), text)| (owner.as_str(), name.as_str(), text.as_str()));
        methods.filter(move |(owner, name, _)| has_async(owner, name))
    }
}

impl<'a> Visit<'a> for Methods {
    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        if !item.attrs.iter().any(|attribute| attribute.path().is_ident("cfg")) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'a ItemImpl) {
        let Type::Path(of) = &*item.self_ty else { return };
        let Some(owner) = of.path.segments.last().filter(|_| item.trait_.is_none()) else { return };
        for method in &item.items {
            if let ImplItem::Fn(method) = method
                && matches!(method.vis, Visibility::Public(_))
            {
                let name = (owner.ident.to_string(), method.sig.ident.to_string());
                self.0.insert(name, documentation(&method.attrs));
            }
        }
    }
}

/// Returns the text of doc comments in one line.
fn documentation(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(doc) if doc.path.is_ident("doc") => match &doc.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// Returns whether the documentation of a method says that it blocks, and links to its async form.
pub(crate) fn says_that_it_blocks(name: &str, documentation: &str) -> bool {
    let sentence = format!("Blocks the thread; [`{name}_async`](Self::{name}_async) does not.");
    documentation.contains(&sentence)
}
