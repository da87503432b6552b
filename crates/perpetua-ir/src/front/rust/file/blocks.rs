//! What the `impl` blocks of a file give to its types.

use std::sync::Arc;

use super::lookup::Found;
use super::{Block, Item, Items};
use crate::front::rust::resolve::Resolved;
use crate::front::rust::resolve::members::Members;

impl Items {
    /// Finds the types of blocks that stand elsewhere than these, once all items are known.
    pub(super) fn settle(&mut self) {
        let found = |block: &Block| match self.find(&block.written, &block.module, None, false, 1) {
            Ok(Some(Found::Item(at, _))) => at,
            _ => block.owner.clone(),
        };
        let owners: Vec<_> = self.blocks.iter().map(found).collect();
        for (block, owner) in self.blocks.iter_mut().zip(owners) {
            block.owner = owner;
        }
    }

    /// The members of the file's types.
    pub(super) fn members(self: &Arc<Self>) -> Members {
        let mut members = Members::default();
        for block in &self.blocks {
            let Ok(ty) = self.type_at(&block.owner, 1) else {
                continue;
            };
            let of_trait = block.of_trait.as_ref().and_then(|path| path.last());
            let compares = of_trait.is_some_and(|of| of == "PartialEq" || of == "PartialOrd");
            let mut found = members.block_of(ty, of_trait.map(String::as_str));
            for (name, item) in &block.members {
                match self.item_meaning(name, item, &block.owner, 1) {
                    Ok(meaning) => found.add(name, meaning),
                    // Without it, values are compared by their fields.
                    Err((cause, remedy)) if compares => found.add(name, Resolved::Refused { cause, remedy }),
                    Err(_) => {}
                }
            }
            for (name, item) in self.defaults(block) {
                if let Ok(meaning) = self.item_meaning(name, &item, &block.owner, 1) {
                    found.default(name, meaning);
                }
            }
        }
        self.generic_members(&mut members);
        members
    }

    /// What a block's trait has for blocks without it.
    fn defaults(&self, block: &Block) -> Vec<(&str, Item)> {
        let found = self.trait_at(block.of_trait.as_ref(), &block.module);
        found.map_or_else(Vec::new, |(module, defaults)| {
            let known = defaults.known.iter().map(|(name, kind)| {
                let (module, kind) = (module.clone(), kind.clone());
                (name.as_str(), Item { module, kind })
            });
            known.collect()
        })
    }
}
