//! The errors of the library: a new variant breaks no program that uses it, and the chain of sources keeps every cause.
//! Creating and displaying an error logs nothing, in the server neither: the code that answers or drops it decides.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{
    Fields, ImplItem, ImplItemFn, ItemEnum, ItemFn, ItemImpl, ItemStruct, PathSegment, ReturnType, Type,
    Visibility,
};

/// The published crates of the library.
const SOURCES: [&str; 7] = [
    "ledger-core/values/src",
    "ledger-core/numscript/src",
    "ledger-core/src",
    "ledger-store/codec/src",
    "ledger-store/index/src",
    "ledger-store/journal/src",
    "ledger-store/src",
];

/// Errors that other crates match exhaustively, each with the reason.
const EXHAUSTIVE: [(&str, &str); 1] =
    [("Rejection", "the server answers each variant with a code, and a new one must not go without")];

/// The error types of one crate or file.
#[derive(Default)]
struct Errors {
    /// Each public enum, and whether it is `non_exhaustive`.
    enums: BTreeMap<String, bool>,
    /// Types with a field that is another error.
    wrapping: BTreeSet<String>,
    /// Types that implement `Error` without `source`.
    without_source: BTreeSet<String>,
}

impl Errors {
    fn read(&mut self, source: &str) {
        self.visit_file(&syn::parse_file(source).expect("the compiler accepts the sources"));
    }

    /// Returns the types whose chain of sources ends before the error that they wrap.
    fn cut_chains(&self) -> Vec<&String> {
        self.wrapping.intersection(&self.without_source).collect()
    }
}

impl<'a> Visit<'a> for Errors {
    fn visit_item_enum(&mut self, item: &'a ItemEnum) {
        let name = item.ident.to_string();
        if item.variants.iter().any(|variant| wraps_an_error(&variant.fields)) {
            self.wrapping.insert(name.clone());
        }
        if is_error(&name) && matches!(item.vis, Visibility::Public(_)) {
            let is_open = item.attrs.iter().any(|attribute| attribute.path().is_ident("non_exhaustive"));
            self.enums.insert(name, is_open);
        }
    }

    fn visit_item_struct(&mut self, item: &'a ItemStruct) {
        if wraps_an_error(&item.fields) {
            self.wrapping.insert(item.ident.to_string());
        }
    }

    fn visit_item_impl(&mut self, item: &'a ItemImpl) {
        let of = item.trait_.as_ref().and_then(|(path, _)| path.segments.last());
        let has_source = item
            .items
            .iter()
            .any(|item| matches!(item, ImplItem::Fn(method) if method.sig.ident == "source"));
        if of.is_some_and(|of| of.ident == "Error")
            && !has_source
            && let Type::Path(name) = &*item.self_ty
        {
            self.without_source.extend(name.path.segments.last().map(|name| name.ident.to_string()));
        }
    }
}

/// Returns whether a type has the name of an error.
fn is_error(name: &str) -> bool {
    ["Error", "Refusal", "Rejection"].iter().any(|end| name.ends_with(end))
}

/// Returns whether the type of a field is an error, or contains one.
fn wraps_an_error(fields: &Fields) -> bool {
    #[derive(Default)]
    struct Found(bool);

    impl<'a> Visit<'a> for Found {
        fn visit_path_segment(&mut self, segment: &'a PathSegment) {
            let name = segment.ident.to_string();
            self.0 |= is_error(&name) || name == "Cause";
            visit::visit_path_segment(self, segment);
        }
    }

    let mut found = Found::default();
    found.visit_fields(fields);
    found.0
}

/// The functions of one crate or file that create or display errors.
#[derive(Default)]
struct Makers {
    /// Number of these functions.
    count: usize,
    /// Those that log.
    logging: Vec<String>,
}

impl Makers {
    fn read(&mut self, source: &str) {
        self.visit_file(&syn::parse_file(source).expect("the compiler accepts the sources"));
    }

    fn check(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let mut calls = LogCalls::default();
        calls.visit_block(block);
        self.count += 1;
        if calls.0 {
            self.logging.push(signature.ident.to_string());
        }
    }

    fn check_method(&mut self, function: &ImplItemFn) {
        // Code that answers or drops an error calls this method.
        if function.sig.ident != "log_cause" {
            self.check(&function.sig, &function.block);
        }
    }
}

impl<'a> Visit<'a> for Makers {
    fn visit_item_impl(&mut self, item: &'a ItemImpl) {
        for function in item.items.iter().filter_map(|item| match item {
            ImplItem::Fn(function) => Some(function),
            _ => None,
        }) {
            if is_error_type(&item.self_ty) {
                self.check_method(function);
            } else {
                self.visit_impl_item_fn(function);
            }
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'a ImplItemFn) {
        if matches!(&function.sig.output, ReturnType::Type(_, of) if is_error_type(of)) {
            self.check_method(function);
        }
    }

    fn visit_item_fn(&mut self, function: &'a ItemFn) {
        if matches!(&function.sig.output, ReturnType::Type(_, of) if is_error_type(of)) {
            self.check(&function.sig, &function.block);
        }
    }
}

fn is_error_type(of: &Type) -> bool {
    let Type::Path(of) = of else { return false };
    of.path.segments.last().is_some_and(|last| is_error(&last.ident.to_string()))
}

/// Becomes true at a call that writes to the log or to a standard stream.
#[derive(Default)]
struct LogCalls(bool);

impl<'a> Visit<'a> for LogCalls {
    fn visit_macro(&mut self, of: &'a syn::Macro) {
        let names = ["dbg", "eprint", "eprintln", "print", "println"];
        self.0 |= of.path.segments.last().is_some_and(|last| names.iter().any(|name| last.ident == name));
    }

    fn visit_expr_path(&mut self, of: &'a syn::ExprPath) {
        let names = ["event", "log", "log_cause", "stderr", "stdout"];
        self.0 |= of.path.segments.iter().any(|part| names.iter().any(|name| part.ident == name));
    }

    fn visit_expr_method_call(&mut self, of: &'a syn::ExprMethodCall) {
        self.0 |= of.method == "log_cause";
        visit::visit_expr_method_call(self, of);
    }
}

fn read_folder(folder: &Path, read: &mut dyn FnMut(&str)) {
    for entry in std::fs::read_dir(folder).expect("the sources are readable") {
        let path = entry.expect("the sources are readable").path();
        if path.is_dir() {
            read_folder(&path, read);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            read(&std::fs::read_to_string(path).expect("sources are UTF-8"));
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the errors of each crate.
fn errors_of_library() -> [Errors; SOURCES.len()] {
    SOURCES.map(|sources| {
        let mut errors = Errors::default();
        read_folder(&root().join(sources), &mut |source| errors.read(source));
        errors
    })
}

#[test]
fn error_enums_can_grow() {
    let errors = errors_of_library();
    let enums: Vec<_> = errors.iter().flat_map(|errors| &errors.enums).collect();
    assert!(enums.len() > 15, "the enums were not found: {enums:?}");
    let closed: Vec<_> =
        enums.into_iter().filter(|(_, is_open)| !**is_open).map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        closed,
        EXHAUSTIVE.map(|(name, _)| name),
        "mark an error as `non_exhaustive`, or give the reason here"
    );
}

#[test]
fn errors_keep_their_sources() {
    for (sources, errors) in SOURCES.iter().zip(errors_of_library()) {
        let cut = errors.cut_chains();
        assert!(cut.is_empty(), "{sources}: `source` of these types hides the error that they wrap: {cut:?}");
    }
}

#[test]
fn creating_an_error_logs_nothing() {
    let mut makers = Makers::default();
    for sources in SOURCES.iter().chain(&["stack-server/src"]) {
        read_folder(&root().join(sources), &mut |source| makers.read(source));
    }
    assert!(makers.logging.is_empty(), "these functions create or display errors: {:?}", makers.logging);
    assert!(makers.count > 200, "only {} functions were found", makers.count);
}

#[test]
fn functions_that_log_are_found() {
    let mut makers = Makers::default();
    makers.read(
        "
impl From<u8> for ByteError { fn from(byte: u8) -> Self { eprintln!(\"{byte}\"); Self } }
impl ByteError { fn fault() -> Self { log::event(1); Self } fn log_cause(&self) { log::event(1); } }
impl Display for ByteError { fn fmt(&self) { if let Some(cause) = self.0 { cause.log_cause(); } } }
impl Other { fn refused(&self) -> ByteError { stderr().lock(); ByteError } fn work(&self) { log::event(1); } }
fn byte() -> ByteError { crate::log::event(1); ByteError }
fn quiet() -> ByteError { ByteError(catalog::event_type()) }
fn other() { log::event(1); }
",
    );
    assert_eq!(makers.logging, ["from", "fault", "fmt", "refused", "byte"]);
    assert_eq!(makers.count, 6);
}

const SAMPLE: &str = "
pub enum ClosedError { Io(std::io::Error) }
impl std::error::Error for ClosedError {}

#[non_exhaustive]
pub enum OpenRefusal { Boxed { error: Box<ClosedError> } }
impl Error for OpenRefusal { fn source(&self) -> Option<&(dyn Error + 'static)> { None } }

enum PrivateError { Text(String) }
impl Error for PrivateError {}

pub struct TextError { cause: Option<Cause> }
impl Error for TextError {}
";

#[test]
fn closed_enums_and_cut_chains_are_found() {
    let mut errors = Errors::default();
    errors.read(SAMPLE);
    let enums = [("ClosedError".to_owned(), false), ("OpenRefusal".to_owned(), true)];
    assert_eq!(errors.enums, BTreeMap::from(enums));
    assert_eq!(errors.cut_chains(), ["ClosedError", "TextError"]);
}
