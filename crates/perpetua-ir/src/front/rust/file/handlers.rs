//! Handlers of actors in a file: functions marked `#[ring_kernel]`, and messages that derive `RingMessage`. What the macros write
//! around them is written here from the same source: the caller brings the kernels' text and what these refer to. Must not
//! know what the kernels do.

use std::sync::Arc;

use perpetua_syntax::actors::{Handler, Message};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};

use super::collect::Collector;
use super::crates::Crates;
use super::marks::{derives, marks_of, tokens_of};
use super::modules::Files;
use super::{Item, ItemKind, Items, ModulePath, parse};
use crate::front::rust::describe::TypeDesc;
use crate::front::rust::resolve::FunctionDef;
use crate::front::rust::source::SourceError;

/// What handlers refer to, and the kernels around them.
pub struct HandlerLibrary<'a> {
    /// Source text with the items that handlers and kernels name: a `mod perpetua`.
    pub items: &'a str,
    /// Types that the text lacks, by their full paths.
    pub types: Vec<(&'static str, TypeDesc)>,
    /// Source text with the macro `__resident_kernel`.
    pub resident: &'a str,
    /// Source text with the macro `__batched_kernel`.
    pub batched: &'a str,
}

/// A handler's kernels.
pub struct HandlerKernels {
    /// The handler's name.
    pub name: String,
    /// The kernel that stays on a device.
    pub resident: FunctionDef,
    /// The kernel that handles a batch of messages.
    pub batched: FunctionDef,
}

/// The handlers of a source file and of its modules, in the order in which they stand; `files` gives the texts of modules in files of their own,
/// `crates` says where other crates' first files are.
///
/// # Errors
/// A file does not parse, or a marked item is outside the kernel language: all refusals together.
pub fn handlers_in_file(
    text: &str,
    file: &str,
    files: Files<'_>,
    crates: Crates<'_>,
    library: &HandlerLibrary<'_>,
) -> Result<Vec<HandlerKernels>, SourceError> {
    let items = parse::with_room(|| {
        let own = parse::file(text, file)?;
        let below = parse::file(library.items, "the library")?;
        let template =
            |text, name| Template::find(text, name).map_err(|e| SourceError::of(&e, "the library"));
        let templates = Templates {
            resident: template(library.resident, "__resident_kernel")?,
            batched: template(library.batched, "__batched_kernel")?,
        };
        let beside = (files, crates);
        Items::collect_handlers(&[&own, &below], file, beside, templates, &library.types)
    })?;
    let items = Arc::new(items);
    let kernel = |path: &[String]| match items.items.get(path) {
        Some(Item {
            kind: ItemKind::Function(tree),
            module,
        }) => Some(items.function(tree.clone(), module.clone(), None)),
        _ => None,
    };
    let own = items
        .handlers
        .iter()
        .filter(|handler| items.root_of(&handler.resident) == 0);
    let handlers = own.filter_map(|handler| {
        Some(HandlerKernels {
            name: handler.name.clone(),
            resident: kernel(&handler.resident)?,
            batched: kernel(&handler.batched)?,
        })
    });
    Ok(handlers.collect())
}

/// A handler, by the full paths of its kernels.
pub(super) struct HandlerPaths {
    name: String,
    resident: Vec<String>,
    batched: Vec<String>,
}

/// The macros around a handler.
pub(super) struct Templates {
    resident: Template,
    batched: Template,
}

/// What a macro with one rule writes.
struct Template(TokenStream);

impl Template {
    fn find(text: &str, name: &str) -> syn::Result<Template> {
        let file = syn::parse_file(text)?;
        let rules = file.items.iter().find_map(|item| match item {
            syn::Item::Macro(item) if item.ident.as_ref().is_some_and(|ident| ident == name) => {
                Some(item.mac.tokens.clone())
            }
            _ => None,
        });
        // What it takes, `=>`, what it writes.
        let body = rules.into_iter().flatten().find_map(|token| match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group.stream()),
            _ => None,
        });
        let missing = || {
            syn::Error::new(
                proc_macro2::Span::call_site(),
                format!("there is no macro `{name}`"),
            )
        };
        body.map(Template).ok_or_else(missing)
    }

    fn fill(&self, values: &[(&str, TokenStream)]) -> TokenStream {
        fill(self.0.clone(), values)
    }
}

/// Puts values in the places of `$name` and `$($name)+`; what stands in other `$(…)?` is there where the names in it have values.
fn fill(tokens: TokenStream, values: &[(&str, TokenStream)]) -> TokenStream {
    let value = |name: &dyn ToTokens| {
        let name = name.to_token_stream().to_string();
        values
            .iter()
            .find(|(of, _)| *of == name)
            .map(|(_, value)| value.clone())
    };
    let mut out = TokenStream::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '$' => match tokens.next() {
                Some(TokenTree::Ident(name)) => out.extend(value(&name)),
                Some(TokenTree::Group(group)) => {
                    // The sign of repetition behind it.
                    tokens.next();
                    if values_of(group.stream(), values).all(|value| !value.is_empty()) {
                        out.extend(fill(group.stream(), values));
                    }
                }
                other => out.extend(other),
            },
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), fill(group.stream(), values));
                inner.set_span(group.span());
                out.extend([TokenTree::Group(inner)]);
            }
            other => out.extend([other]),
        }
    }
    out
}

/// The values of the names in these tokens.
fn values_of<'a>(
    tokens: TokenStream,
    values: &'a [(&str, TokenStream)],
) -> impl Iterator<Item = &'a TokenStream> {
    let mut names = Vec::new();
    let mut waits = vec![tokens];
    while let Some(tokens) = waits.pop() {
        let mut after = false;
        for token in tokens {
            match &token {
                TokenTree::Ident(name) if after => names.push(name.to_string()),
                TokenTree::Group(group) => waits.push(group.stream()),
                _ => {}
            }
            after = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '$');
        }
    }
    let found = values
        .iter()
        .filter(move |(of, _)| names.iter().any(|name| name == of));
    found.map(|(_, value)| value)
}

/// What stands in the parentheses of `#[ring_kernel(…)]`, where a function is marked so.
fn ring_kernel(attrs: &[syn::Attribute]) -> Option<TokenStream> {
    let of = |attr: &&syn::Attribute| {
        let last = attr.path().segments.last();
        last.is_some_and(|segment| segment.ident == "ring_kernel")
    };
    attrs.iter().find(of).map(tokens_of)
}

impl Collector<'_> {
    /// Collects a function as a handler, where it is one.
    pub(super) fn handler(&mut self, item: &syn::ItemFn, module: &ModulePath) -> bool {
        let (Some(templates), Some(options)) = (self.templates.clone(), ring_kernel(&item.attrs)) else {
            return false;
        };
        let Some(handler) = self.keep(Handler::read(options, item.clone())) else {
            return true;
        };
        self.device(&handler.function, module);
        for dispatch in handler.dispatch() {
            if let Some(dispatch) = self.keep(syn::parse2(dispatch)) {
                self.device(&dispatch, module);
            }
        }
        let (own, state, group) = (&handler.function.sig.ident, &handler.state, handler.group);
        let (program, arena) = handler.program();
        let [arena, block] = match arena {
            Some(_) => [quote!(arena), quote!(block)],
            None => [TokenStream::new(), TokenStream::new()],
        };
        let mut kernel = |part, template: &Template| {
            let name = Handler::part(own, part);
            let written = template.fill(&[
                ("vis", TokenStream::new()),
                ("name", quote!(#name)),
                ("state", quote!(#state)),
                ("dispatch", quote!(#program)),
                ("group", quote!(#group)),
                ("arena", arena.clone()),
                ("block", block.clone()),
            ]);
            if let Some(kernel) = self.keep(syn::parse2::<syn::ItemFn>(written)) {
                let options = marks_of(&kernel.attrs).1;
                self.kernel(&kernel, options, module);
            }
            super::collect::child(module, &name)
        };
        let paths = HandlerPaths {
            name: own.to_string(),
            resident: kernel("resident", &templates.resident),
            batched: kernel("batched", &templates.batched),
        };
        self.items.handlers.push(paths);
        true
    }

    /// Collects the functions of a message, where a struct is one.
    pub(super) fn message(&mut self, input: &syn::DeriveInput, module: &ModulePath) {
        if self.templates.is_none() || !derives(&input.attrs, "RingMessage") {
            return;
        }
        let Some(message) = self.keep(Message::read(input)) else {
            return;
        };
        if let Some(view) = message.view_struct(input)
            && let Some(view) = self.keep(syn::parse2::<syn::DeriveInput>(view))
        {
            self.data(&view.attrs.clone(), &view.ident.clone(), view, module);
        }
        for functions in message.functions(&message.number_by_name()) {
            if let Some(block) = self.keep(syn::parse2(functions)) {
                self.implementation(&block, module);
            }
        }
    }
}
