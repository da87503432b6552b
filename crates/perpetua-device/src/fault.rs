//! Site numbers: every compiled kernel's fault and print sites get numbers that are unique in the process, so that a
//! record found after a graph's replay, or on another stream, still names its kernel and line. Must not know backends.
//!
//! A backend registers a kernel's tables when it compiles it ([`FaultRegistry::register`]), passes the base it gets to
//! every launch, and looks up the numbers that come back ([`FaultRegistry::fault`], [`FaultRegistry::print_site`]).

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, RwLock};

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

/// All kernels' sites. Equal tables share one base, so compiling a kernel again takes no new numbers.
#[derive(Debug, Default)]
pub struct FaultRegistry {
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    // Sorted by base, which only grows.
    kernels: Vec<(u32, Arc<KernelSites>)>,
    bases: HashMap<Arc<KernelSites>, u32>,
    next: u32,
}

impl FaultRegistry {
    /// The registry of this process.
    pub fn global() -> &'static FaultRegistry {
        static GLOBAL: OnceLock<FaultRegistry> = OnceLock::new();
        GLOBAL.get_or_init(FaultRegistry::default)
    }

    /// Gives a kernel its site base: its site `i` has the global number `base + i`, and likewise its print `i`.
    pub fn register(&self, sites: KernelSites) -> Result<u32> {
        let mut inner = self.inner.write().unwrap_or_else(|e| e.into_inner());
        if let Some(base) = inner.bases.get(&sites) {
            return Ok(*base);
        }
        let base = inner.next;
        let count = sites.faults.len().max(sites.prints.len()).max(1);
        let next = u32::try_from(count).ok().and_then(|n| base.checked_add(n));
        inner.next = next.ok_or_else(|| Error::Limit {
            what: "fault sites of all kernels compiled in this process",
            found: u64::from(base) + count as u64,
            limit: u64::from(u32::MAX),
            remedy: "compile fewer different kernels in one process",
        })?;
        let sites = Arc::new(sites);
        inner.kernels.push((base, Arc::clone(&sites)));
        inner.bases.insert(sites, base);
        Ok(base)
    }

    /// The kernel that a global site number belongs to, and the number within it.
    pub fn kernel(&self, number: u32) -> Option<(Arc<KernelSites>, u32)> {
        let inner = self.inner.read().unwrap_or_else(|e| e.into_inner());
        let after = inner.kernels.partition_point(|(base, _)| *base <= number);
        let (base, sites) = inner.kernels.get(after.checked_sub(1)?)?;
        Some((Arc::clone(sites), number - base))
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
        let site = |line: &u32| FaultSite {
            kind: FaultKind::DivisionByZero,
            line: *line,
            subject: "division".into(),
            operands: vec![Scalar::I32],
        };
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
        let a = registry.register(sites("a", &[1, 2]))?;
        let b = registry.register(sites("b", &[]))?;
        let c = registry.register(sites("c", &[7, 8, 9]))?;
        assert_eq!(
            registry.register(sites("a", &[1, 2]))?,
            a,
            "an equal table shares the base"
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
}
