//! Items inside functions. A function that has some has a module of its own, in which its names mean what they mean.

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
        let mut inner = Inner::default();
        inner.visit_block(&item.block);
        if inner.0.is_empty() {
            return;
        }
        let mut own = module.clone();
        // No other module has such a name.
        own.push(format!("in {}", plain(&item.sig.ident)));
        self.items.modules.push(own.clone());
        self.import(&syn::parse_quote!(super::*), &own, Vec::new());
        self.module(&inner.0, &own);
        if let Some(function) = self.items.items.get_mut(&child(module, &item.sig.ident)) {
            function.module = own;
        }
    }
}
