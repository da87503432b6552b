//! A map with a bound: when it is full, the entry used longest ago goes. Must not know what it keeps.

use std::collections::HashMap;
use std::hash::Hash;

/// At most `most` entries, each with the time of its last use.
pub(crate) struct Lru<K, V> {
    entries: HashMap<K, (u64, V)>,
    clock: u64,
    most: usize,
}

impl<K: Hash + Eq + Clone, V> Lru<K, V> {
    pub(crate) fn new(most: usize) -> Lru<K, V> {
        Lru {
            entries: HashMap::new(),
            clock: 0,
            most: most.max(1),
        }
    }

    /// The entry, which is now the one used last.
    pub(crate) fn get(&mut self, key: &K) -> Option<&V> {
        self.clock += 1;
        let (used, value) = self.entries.get_mut(key)?;
        *used = self.clock;
        Some(value)
    }

    /// Puts an entry in. Gives what had to go, for the caller to drop where that may take time.
    #[must_use]
    pub(crate) fn insert(&mut self, key: K, value: V) -> Vec<V> {
        self.clock += 1;
        let replaced = self.entries.insert(key, (self.clock, value));
        let mut gone = self.shrink();
        gone.extend(replaced.map(|(_, value)| value));
        gone
    }

    /// Takes the entry out, if it is as `is` asks.
    pub(crate) fn remove(&mut self, key: &K, is: impl FnOnce(&V) -> bool) -> Option<V> {
        let (_, value) = self.entries.get(key)?;
        is(value).then(|| self.entries.remove(key).map(|(_, value)| value))?
    }

    /// Changes the bound (at least one). Gives what had to go.
    #[must_use]
    pub(crate) fn set_most(&mut self, most: usize) -> Vec<V> {
        self.most = most.max(1);
        self.shrink()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    // Looks at all entries for each one that goes: little beside what it costs to make one.
    fn shrink(&mut self) -> Vec<V> {
        let mut gone = Vec::new();
        while self.entries.len() > self.most {
            let oldest = self.entries.iter().min_by_key(|(_, (used, _))| *used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            gone.extend(self.entries.remove(&key).map(|(_, value)| value));
        }
        gone
    }
}

#[cfg(feature = "wgpu")]
impl<K, V> Lru<K, V> {
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_used_longest_ago_goes_first() {
        let mut map = Lru::new(3);
        for n in 0..3 {
            assert!(map.insert(n, n).is_empty());
        }
        assert_eq!(map.get(&0), Some(&0));
        assert_eq!(map.insert(3, 3), [1]);
        assert_eq!(map.insert(3, 33), [3], "the same key: the old value");
        assert_eq!(map.set_most(1), [2, 0]);
        assert_eq!(map.get(&3), Some(&33));
        assert_eq!(map.len(), 1);
    }
}
