//! The driver's compiler has nothing to remark on products in stages: none waits for another one, and lanes get the registers that they ask for.

use std::sync::{Arc, Mutex};

use libtest_mimic::Failed;
use perpetua_device::{BackendKind, CompileOptions, KernelSource};
use perpetua_kernels::{AttentionKernel, Element, Factors, GemmKernel, Kernel};
use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

use crate::attention::has_stages;
use crate::harness::Case;

/// Keeps what warnings say.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<String>>);

impl Visit for Warnings {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if let Ok(mut said) = self.0.lock() {
            *said += &format!("{field}: {value:?}\n");
        }
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

pub(crate) fn remarks(case: &mut Case) -> Result<(), Failed> {
    if case.device.backend() != BackendKind::Cuda || !has_stages(case) {
        return Ok(());
    }
    let mut texts = Vec::new();
    for dim in [64, 128, 256] {
        let attention = AttentionKernel::new(1, 8, [512, 512], dim)
            .with_element(Element::Bf16)
            .in_stages();
        for attention in [attention, attention.causal()] {
            texts.push(attention.ptx_for(90)?);
            if dim < 256 {
                texts.push(attention.backward().ptx_for(90)?);
            }
        }
    }
    for [rows, columns] in [[256, 256], [128, 256], [128, 128], [64, 128]] {
        let product = GemmKernel::staged(4096, 4096, 4096).with_tile(rows, columns);
        for factors in [Factors::Bf16, Factors::Tf32, Factors::E4m3, Factors::I8] {
            let product = product.with_factors(factors).with_transposed(false, true);
            texts.push(product.ptx_for(90)?);
        }
    }
    // A text that the driver has not in its cache.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let options = CompileOptions {
        no_disk_cache: true,
        ..CompileOptions::default()
    };
    for text in texts {
        let warnings = Warnings::default();
        let name = text
            .split("entry ")
            .nth(1)
            .and_then(|rest| rest.split('(').next());
        let name = name.unwrap_or_default().to_owned();
        let text = text.replace(&name, &format!("{name}_{}", now.as_nanos()));
        tracing::subscriber::with_default(warnings.clone(), || {
            case.device.compile(&KernelSource::Ptx(&text), &options)
        })?;
        let said = warnings.0.lock().map(|said| said.clone()).unwrap_or_default();
        if !said.is_empty() {
            return Err(format!("{name}: {said}").into());
        }
    }
    Ok(())
}
