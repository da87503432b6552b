//! Items inside functions. A function that has some has a module of its own, in which its names mean what they mean.

use perpetua_syntax::parse::as_local;
use syn::visit::Visit;

use super::ModulePath;
use super::collect::{Collector, child, plain};

#[derive(Default)]
struct Inner(Vec<syn::Item>);

impl Visit<'_> for Inner {
    fn visit_item(&mut self, item: &syn::Item) {
        self.0.push(item.clone());
    }
}

impl Collector<'_> {
    /// Collects the items of a function that was collected.
    pub(super) fn inner(&mut self, item: &syn::ItemFn, module: &ModulePath) {
        let own = self.inner_of(&item.block, &plain(&item.sig.ident), module);
        if let Some(function) = self.items.items.get_mut(&child(module, &item.sig.ident)) {
            function.module = own;
        }
    }

    /// Collects the items of a function's or a method's code; gives the module in which its names mean what they mean.
    pub(super) fn inner_of(&mut self, code: &syn::Block, name: &str, module: &ModulePath) -> ModulePath {
        let mut inner = Inner::default();
        inner.visit_block(code);
        let mut own = module.clone();
        if !inner.0.is_empty() {
            // No other module has such a name.
            own.push(format!("in {name}"));
            self.items.modules.push(own.clone());
            self.import(&syn::parse_quote!(super::*), &own, Vec::new());
            let gpu = syn::parse_quote!(GpuType);
            let items: Vec<syn::Item> = inner.0.iter().map(|item| as_local(item, &gpu)).collect();
            self.module(&items, &own);
        }
        own
    }
}
