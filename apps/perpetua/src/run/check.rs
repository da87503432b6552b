//! One plan on everything there is, compared with the interpreter, which looks for races. Must not know how results are shown elsewhere.

use std::io::Write;

use perpetua::device::cpu::CpuContext;
use perpetua::device::{BackendKind, Device, Error, Way, backends};
use perpetua_ir::ir::{Kernel, Type};
use perpetua_ir::ops::Capability;

use super::Job;
use super::launch::launch;
use super::plan::Plan;
use crate::Failure;
use crate::stdout::stdout;
use crate::text::{columns, entry};
use crate::values::{is_same, number, steps_between};

/// Steps between floats that results may be apart where nobody says.
const ULP: u64 = 4;

pub(super) fn run(job: &Job<'_>, plan: &Plan) -> Result<(), Failure> {
    let cpu = Device::new(BackendKind::Cpu, 0)?;
    let races = |on| {
        if let Some(cpu) = cpu.context().as_any().downcast_ref::<CpuContext>() {
            cpu.detect_races(on);
        }
    };
    races(true);
    let patience = job.args.patience;
    let reference = launch(&cpu, plan, true, patience, |_| {});
    races(false);
    let reference = match reference {
        Ok(reference) => reference,
        Err(error) => return Err(job.failed(error, plan, " in the interpreter")),
    };
    let subgroups = plan.kernel.facts().needs(Capability::Subgroups);
    let width = |device: &Device| match subgroups {
        true => format!(", {}", subgroups_of(device.info().subgroup_size)),
        false => String::new(),
    };
    let text = format!("what the others are compared with; no races{}", width(&cpu));
    row("interpreter", &text)?;
    let (mut wrong, mut failed) = (0, 0);
    for entry in backends().into_iter().filter(|entry| entry.order.is_some()) {
        let kind = entry.kind;
        let device = match Device::new(kind, 0) {
            Ok(device) => device,
            Err(error) => {
                row(kind.name(), &format!("skipped: {error}"))?;
                continue;
            }
        };
        let narrow = match device.info().pointer_width() {
            64 => None,
            width => Some(job.plan(width)?),
        };
        let own = narrow.as_ref().unwrap_or(plan);
        let mut by = String::new();
        let begins = |way| {
            if way != Way::Driver {
                by = format!(", by {way}");
            }
        };
        let said = match launch(&device, own, false, patience, begins) {
            Ok(results) => compare(plan, &reference, own, &results, job.args.ulp.unwrap_or(ULP)),
            Err(Error::Fault(fault)) => Err(format!("DIFFERENT: {fault}")),
            Err(error) if is_lack(&error) => Ok(format!("skipped: it cannot run this: {error}")),
            Err(error) => {
                failed += 1;
                Ok(format!("FAILED: {error}"))
            }
        };
        wrong += usize::from(said.is_err());
        let (Ok(text) | Err(text)) = said;
        let on = format!("({}{by}{})", device.info().name, width(&device));
        row(kind.name(), &format!("{text} {on}"))?;
    }
    if subgroups {
        let text =
            "of other widths are not tried: a kernel that asks how wide they are may do otherwise there";
        row("subgroups", text)?;
    }
    match wrong {
        0 if failed > 0 => Err(format!("{failed} of the backends failed to run it").into()),
        0 => Ok(()),
        n if computes_floats(plan.kernel.kernel()) => Err(format!(
            "{n} of the backends differ from the interpreter (GPUs through wgpu may fuse a multiplication with an addition: \
             what depends on the last bit of a float, as a count of iterations, then differs and is not wrong)"
        )
        .into()),
        n => Err(format!("{n} of the backends differ from the interpreter").into()),
    }
}

/// How wide a device's subgroups are, in words.
fn subgroups_of((least, most): (u32, u32)) -> String {
    match least == most {
        true => format!("subgroups of {least} lanes"),
        false => format!("subgroups of {least} to {most} lanes"),
    }
}

/// Whether an error says that a device lacks what a kernel or its launch needs.
fn is_lack(error: &Error) -> bool {
    matches!(
        error,
        Error::Render { .. }
            | Error::SourceUnsupported { .. }
            | Error::LaunchLimit { .. }
            | Error::Limit { .. }
            | Error::OutOfMemory { .. }
    )
}

/// Whether some value of a kernel is a float.
fn computes_floats(kernel: &Kernel) -> bool {
    let bodies = kernel.functions.iter().map(|f| &f.body).chain([&kernel.body]);
    bodies
        .flat_map(|body| &body.values)
        .any(|ty| matches!(ty, Type::Scalar(scalar) if scalar.is_float()))
}

fn row(name: &str, text: &str) -> Result<(), Failure> {
    Ok(writeln!(stdout()?, "{}", entry(0, name, 13, text, columns()))?)
}

/// In words whether results are the same; an error where they are further apart than `ulp` steps.
fn compare(
    plan: &Plan,
    reference: &[Vec<u8>],
    own: &Plan,
    results: &[Vec<u8>],
    ulp: u64,
) -> Result<String, String> {
    let mut words = Vec::new();
    let mut is_wrong = false;
    let both = plan.buffers().zip(reference).zip(own.buffers().zip(results));
    for ((buffer, whole), (own, found)) in both.filter(|((buffer, _), _)| buffer.writable) {
        let (mut different, mut most, mut first, mut count) = (0, 0, None, 0);
        let (mut floats, pairs) = (false, buffer.numbers.split(whole).zip(own.numbers.split(found)));
        for (i, ((scalar, expect), (narrow, found))) in pairs.enumerate() {
            (count, floats) = (i + 1, floats | scalar.is_float());
            let apart = match scalar.is_float() {
                true => steps_between(scalar, expect, found),
                false if is_same(scalar, expect, narrow, found) => 0,
                false => u64::MAX,
            };
            if apart > 0 {
                different += 1;
                most = most.max(apart);
                first.get_or_insert((i, number(scalar, expect), number(narrow, found)));
            }
        }
        let name = &buffer.name;
        words.push(match first {
            None => format!("{name}: the same to the bit"),
            Some((i, expect, found)) => {
                is_wrong |= most > ulp;
                let far = match floats && most < u64::MAX {
                    true => format!(", by {most} steps between floats at most"),
                    false => String::new(),
                };
                format!("{name}: {different} of {count} numbers differ{far}; number {i} is {found} instead of {expect}")
            }
        });
    }
    let text = match words.is_empty() {
        true => "ran; the kernel writes no buffer".to_owned(),
        false => words.join("; "),
    };
    if is_wrong {
        Err(format!("DIFFERENT: {text}"))
    } else {
        Ok(text)
    }
}
