//! Site numbers: every compiled kernel's fault and print sites get numbers that are unique in the process, so that a
//! record found after a graph's replay, or on another stream, still names its kernel and line. Must not know backends.
//!
//! A backend registers a kernel's tables when it compiles it ([`FaultRegistry::register`]), passes the base it gets to
//! every launch, and looks up the numbers that come back ([`FaultRegistry::fault`], [`FaultRegistry::print_site`]). It holds the
//! [`SiteRange`] as long as one of its numbers can come back; then the numbers are free for other kernels.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, RwLock, Weak};

use perpetua_ir::fault::{Fault, FaultSite, record};
use perpetua_ir::print::PrintSite;

use crate::error::{Error, Result};

/// The sites of one kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KernelSites {
    /// Kernel's name.
    pub kernel: String,
    /// Source file; empty when unknown.
    pub source: Arc<str>,
    /// Where it can fault, by site number.
    pub faults: Vec<FaultSite>,
    /// What it can print, by print number.
    pub prints: Vec<PrintSite>,
}

/// A kernel's numbers, from [`base`](SiteRange::base) on. They are its own until the last clone of the [`Arc`] is gone: whatever can still
/// report one (a module, a graph, a stream with a launch whose faults nobody has looked for) holds one.
#[derive(Debug)]
pub struct SiteRange {
    base: u32,
    sites: Arc<KernelSites>,
    registry: Arc<RwLock<Inner>>,
}

impl SiteRange {
    /// The kernel's site `i` has the global number `base + i`, and likewise its print `i`.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// The kernel's sites.
    pub fn sites(&self) -> &KernelSites {
        &self.sites
    }
}

impl Drop for SiteRange {
    fn drop(&mut self) {
        let mut inner = self.registry.write().unwrap_or_else(|e| e.into_inner());
        inner.kernels.remove(&self.base);
        // An equal table may have been registered since this one was the last.
        if inner
            .shared
            .get(&self.sites)
            .is_some_and(|known| known.strong_count() == 0)
        {
            inner.shared.remove(&self.sites);
        }
    }
}

/// All kernels' sites. Equal tables share their numbers. Those that nobody holds any more are given again, but only when
/// all others have been: numbers go round in a circle of 2^32.
#[derive(Debug, Default)]
pub struct FaultRegistry {
    inner: Arc<RwLock<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    // By base; no two overlap.
    kernels: BTreeMap<u32, Arc<KernelSites>>,
    shared: HashMap<Arc<KernelSites>, Weak<SiteRange>>,
    next: u32,
}

impl Inner {
    // The first `count` numbers from `next` on that are free, or from zero on.
    fn find(&self, count: u32) -> Option<u32> {
        self.find_from(self.next, count)
            .or_else(|| self.find_from(0, count))
    }

    fn find_from(&self, mut base: u32, count: u32) -> Option<u32> {
        loop {
            let end = base.checked_add(count)?;
            // The last range that begins before the end is the only one that can be in the way.
            match self.kernels.range(..end).next_back() {
                Some((taken, sites)) if taken + sites.count() > base => base = taken + sites.count(),
                _ => return Some(base),
            }
        }
    }
}

impl KernelSites {
    // How many numbers they take: at least one, so that no two kernels have the same base.
    fn count(&self) -> u32 {
        self.faults.len().max(self.prints.len()).max(1) as u32
    }
}

impl FaultRegistry {
    /// The registry of this process.
    pub fn global() -> &'static FaultRegistry {
        static GLOBAL: OnceLock<FaultRegistry> = OnceLock::new();
        GLOBAL.get_or_init(FaultRegistry::default)
    }

    /// Gives a kernel its numbers.
    ///
    /// # Errors
    /// [`Error::Limit`] when so many kernels are held that no numbers are left.
    pub fn register(&self, sites: KernelSites) -> Result<Arc<SiteRange>> {
        let mut inner = self.inner.write().unwrap_or_else(|e| e.into_inner());
        if let Some(range) = inner.shared.get(&sites).and_then(Weak::upgrade) {
            return Ok(range);
        }
        let count = sites.count();
        let base = inner.find(count).ok_or(Error::Limit {
            what: "fault sites of all kernels in use in this process",
            found: 1 << 32,
            limit: u64::from(u32::MAX),
            remedy: "drop kernels that are no longer launched",
        })?;
        let sites = Arc::new(sites);
        inner.next = base + count;
        inner.kernels.insert(base, Arc::clone(&sites));
        let range = Arc::new(SiteRange {
            base,
            sites: Arc::clone(&sites),
            registry: Arc::clone(&self.inner),
        });
        inner.shared.insert(sites, Arc::downgrade(&range));
        Ok(range)
    }

    /// How many kernels have numbers.
    pub fn len(&self) -> usize {
        let inner = self.inner.read().unwrap_or_else(|e| e.into_inner());
        inner.kernels.len()
    }

    /// Whether no kernel has.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kernel that a global site number belongs to, and the number within it.
    pub fn kernel(&self, number: u32) -> Option<(Arc<KernelSites>, u32)> {
        let inner = self.inner.read().unwrap_or_else(|e| e.into_inner());
        let (base, sites) = inner.kernels.range(..=number).next_back()?;
        (number - base < sites.count()).then(|| (Arc::clone(sites), number - base))
    }

    /// The fault in a device's record; `None` when the record holds none.
    pub fn fault(&self, words: &[u32; record::WORDS]) -> Option<Fault> {
        Fault::from_record(words, |number| {
            let (kernel, site) = self.kernel(number)?;
            let fault = kernel.faults.get(site as usize)?.clone();
            Some((kernel.kernel.clone(), Arc::clone(&kernel.source), fault))
        })
    }

    /// The print site with a global number.
    pub fn print_site(&self, number: u32) -> Option<PrintSite> {
        let (kernel, site) = self.kernel(number)?;
        kernel.prints.get(site as usize).cloned()
    }
}

#[cfg(test)]
mod tests {
    use perpetua_ir::ir::{FaultKind, Scalar};

    use super::*;

    fn sites(kernel: &str, lines: &[u32]) -> KernelSites {
        let site =
            |line: &u32| FaultSite::new(FaultKind::DivisionByZero, *line, "division", vec![Scalar::I32]);
        KernelSites {
            kernel: kernel.into(),
            source: "k.rs".into(),
            faults: lines.iter().map(site).collect(),
            prints: Vec::new(),
        }
    }

    #[test]
    fn global_numbers_lead_back_to_kernel_and_line() -> Result<()> {
        let registry = FaultRegistry::default();
        let ranges = [
            registry.register(sites("a", &[1, 2]))?,
            registry.register(sites("b", &[]))?,
            registry.register(sites("c", &[7, 8, 9]))?,
        ];
        let [a, b, c] = [0, 1, 2].map(|i| ranges[i].base());
        let again = registry.register(sites("a", &[1, 2]))?;
        assert!(
            Arc::ptr_eq(&again, &ranges[0]),
            "an equal table shares the numbers"
        );
        let check = |number: u32, expect: Option<(&str, u32)>| {
            let mut words = [0; record::WORDS];
            words[record::CLAIM] = 1;
            words[record::SITE] = number;
            let found = registry.fault(&words).map(|f| (f.kernel, f.site.line));
            assert_eq!(found, expect.map(|(k, l)| (k.to_owned(), l)), "{number}");
        };
        check(a, Some(("a", 1)));
        check(a + 1, Some(("a", 2)));
        check(b, None);
        check(c + 2, Some(("c", 9)));
        check(c + 3, None);
        assert_eq!(registry.fault(&[0; record::WORDS]), None);
        Ok(())
    }

    #[test]
    fn numbers_that_nobody_holds_belong_to_nobody() -> Result<()> {
        let registry = FaultRegistry::default();
        let kept = registry.register(sites("kept", &[1]))?;
        let mut last = 0;
        for n in 0..10_000 {
            let range = registry.register(sites("k", &[n, n]))?;
            assert!(
                range.base() > last,
                "not the numbers of a kernel that is just gone"
            );
            last = range.base();
            assert_eq!(registry.len(), 2);
        }
        assert_eq!(registry.kernel(last), None, "a late record names no other kernel");
        assert!(
            registry
                .kernel(kept.base())
                .is_some_and(|(k, site)| k.kernel == "kept" && site == 0)
        );
        let held: usize = registry.inner.read().map_or(0, |inner| inner.shared.len());
        assert_eq!(held, 1);
        Ok(())
    }

    #[test]
    fn numbers_go_round_and_pass_over_those_in_use() -> Result<()> {
        let registry = FaultRegistry::default();
        let first = registry.register(sites("first", &[1, 2]))?;
        let gap = registry.register(sites("gap", &[3]))?;
        let third = registry.register(sites("third", &[4]))?;
        drop(gap);
        if let Ok(mut inner) = registry.inner.write() {
            inner.next = u32::MAX - 1;
        }
        // One number is left before the end, which two sites do not fit in; nor in the gap.
        let wide = registry.register(sites("wide", &[5, 6]))?;
        assert_eq!(wide.base(), third.base() + 1);
        if let Ok(mut inner) = registry.inner.write() {
            inner.next = 1;
        }
        let narrow = registry.register(sites("narrow", &[7]))?;
        assert_eq!(narrow.base(), first.base() + 2, "the gap");
        for (range, name) in [
            (&first, "first"),
            (&narrow, "narrow"),
            (&third, "third"),
            (&wide, "wide"),
        ] {
            let found = registry.kernel(range.base()).map(|(k, _)| k.kernel.clone());
            assert_eq!(found.as_deref(), Some(name));
        }
        Ok(())
    }
}
