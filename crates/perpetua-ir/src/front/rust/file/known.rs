//! What of the standard library a file's `use` brings into kernels: functions that are code in the language, and `Ordering`.

use std::cmp::Ordering;

use super::collect::Collector;
use super::{Item, ItemKind};
use crate::front::rust::describe::TypeDesc;
use crate::front::rust::gpu_type::GpuType;

/// The functions; the reader knows those that are named with their module.
const FUNCTIONS: &str = "
    pub mod cmp {
        #[device]
        pub fn min<T: Ord>(a: T, b: T) -> T {
            if b < a { b } else { a }
        }
        #[device]
        pub fn max<T: Ord>(a: T, b: T) -> T {
            if b < a { a } else { b }
        }
    }
    pub mod mem {
        #[device]
        pub fn swap<T>(a: &mut T, b: &mut T) {
            core::mem::swap(a, b)
        }
        #[device]
        pub fn replace<T>(place: &mut T, value: T) -> T {
            core::mem::replace(place, value)
        }
        #[device]
        pub fn take<T: Default>(place: &mut T) -> T {
            core::mem::take(place)
        }
    }
";

impl Collector<'_> {
    /// Adds them, and the types that the file is given.
    pub(super) fn standard_library(&mut self, types: &[(&str, TypeDesc)]) {
        let functions = syn::parse_str::<syn::File>(FUNCTIONS);
        let mut orderings = Vec::new();
        for name in ["std", "core"] {
            let module = vec![name.to_owned()];
            self.items.modules.push(module.clone());
            if let Ok(functions) = &functions {
                self.module(&functions.items, &module);
            }
            orderings.push((format!("{name}::cmp::Ordering"), Ordering::describe()));
        }
        let types = types.iter().map(|(path, ty)| ((*path).to_owned(), ty.clone()));
        for (path, ty) in types.chain(orderings) {
            let path: Vec<String> = path.split("::").map(str::to_owned).collect();
            let kind = ItemKind::Described(ty);
            self.items
                .modules
                .extend((1..path.len()).map(|n| path[..n].to_vec()));
            let module = Vec::new();
            self.items.items.insert(path, Item { module, kind });
        }
    }
}
