//! What the macros make of messages and handlers: their words, their native form, their kernels.

// Tests may unwrap: a failed expectation is the report.
#![allow(clippy::unwrap_used, clippy::panic)]

use perpetua::actors::context::IS_ANSWER;
use perpetua::actors::{Context, MessageId, RingMessage, ring_kernel};
use perpetua::device::Device;
use perpetua::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[message(type_id = 7)]
#[repr(C)]
struct Add {
    #[message(id)]
    id: MessageId,
    amount: f32,
    weights: [i16; 3],
    last: bool,
    wide: i64,
    exact: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Total {
    sum: f32,
    handled: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType, RingMessage)]
#[repr(C)]
struct Divide {
    by: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, GpuType)]
#[repr(C)]
struct Sum {
    sum: f32,
    handled: u32,
}

#[ring_kernel(also(divide))]
fn sum(ctx: &mut Context, state: &mut Sum, message: Add) -> Total {
    state.sum += message.amount * message.weights[1] as f32;
    state.handled += 1;
    if message.last {
        ctx.send(ctx.sender() + 1, Divide { by: state.handled });
    }
    Total {
        sum: state.sum,
        handled: state.handled,
    }
}

#[ring_kernel]
fn divide(ctx: &mut Context, state: &mut Sum, message: Divide) {
    state.handled = 100 / message.by;
    ctx.publish(3, Total { sum: 1.0, handled: 2 });
}

#[derive(Clone, Debug, PartialEq, RingMessage)]
struct Scale {
    factor: f32,
    values: Vec<f32>,
    /// Which of them.
    chosen: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, RingMessage)]
struct Scaled {
    count: u32,
    values: Vec<f32>,
    indices: Vec<i32>,
}

#[ring_kernel(room = 8)]
fn scale(ctx: &mut Context, state: &mut Sum, message: ScaleView) -> ScaledView {
    let indices = ctx.alloc::<i32>(message.chosen.len());
    for i in 0..message.chosen.len() {
        let at = ctx.get(message.chosen, i);
        ctx.set(message.values, at, ctx.get(message.values, at) * message.factor);
        if !indices.is_empty() {
            ctx.set(indices, i, -(at as i32));
        }
    }
    state.handled += 1;
    ScaledView {
        count: state.handled,
        values: message.values,
        indices,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, GpuType)]
#[repr(C)]
struct Rows {
    left: [f32; 96],
    right: [f32; 96],
    partial: [f32; 32],
}

/// The product of two rows: each lane some of it, the first one the sum.
#[ring_kernel(group, also(stretch))]
fn dot(ctx: &mut Context, state: &mut Rows, message: Divide) -> Total {
    let own = ctx.thread_index();
    let mut sum = 0.0;
    let mut at = own;
    while at < 96 {
        sum += state.left[at as usize] * state.right[at as usize];
        at += ctx.group_size();
    }
    state.partial[own as usize] = sum;
    ctx.sync();
    let mut all = 0.0;
    for lane in 0..ctx.group_size() {
        all += state.partial[lane as usize];
    }
    Total {
        sum: all,
        handled: message.by,
    }
}

#[ring_kernel(group)]
fn stretch(ctx: &mut Context, state: &mut Rows, message: Total) {
    let mut at = ctx.thread_index();
    while at < 96 {
        state.left[at as usize] *= message.sum;
        at += ctx.group_size();
    }
}

/// Scales with all lanes of a group.
#[ring_kernel(group)]
fn together(ctx: &mut Context, state: &mut Sum, message: ScaleView) -> ScaleView {
    let mut i = ctx.thread_index();
    while i < message.values.len() {
        ctx.set(message.values, i, ctx.get(message.values, i) * message.factor);
        i += ctx.group_size();
    }
    ctx.sync();
    if ctx.thread_index() == 0 {
        state.handled += 1;
    }
    message
}

const ADD: Add = Add {
    id: MessageId(0x1_0000_0002),
    amount: 2.5,
    weights: [-1, 2, 3],
    last: true,
    wide: -5,
    exact: 0.1,
};

#[test]
fn a_message_survives_its_words() {
    assert_eq!(Add::from_payload(&ADD.to_payload()), ADD);
    assert_eq!((Add::TYPE_ID, Add::WORDS, Add::NAME), (7, 11, "Add"));
    assert_eq!(ADD.message_id(), Some(MessageId(0x1_0000_0002)));
    assert_ne!(Total::TYPE_ID, Divide::TYPE_ID);
}

#[test]
fn a_handler_runs_as_rust_and_fills_its_outbox() {
    let handler = sum::handler();
    let mut state = Sum::default();
    let mut ctx = Context::new(4, 0, 1);
    ctx.begin(4, 9, 77, 5, 0);
    // SAFETY: the pointer is to a state of the handler's type, and nobody else has it.
    let known = unsafe {
        (handler.native)(
            &mut ctx,
            (&raw mut state).cast(),
            Add::TYPE_ID,
            &ADD.to_payload(),
            &mut [],
        )
    };
    assert!(known);
    assert_eq!(state, Sum { sum: 5.0, handled: 1 });
    assert_eq!(ctx.entries(), 2);
    let head = |entry| [0, 1, 2, 3].map(|word| ctx.outbox_word(entry, word));
    assert_eq!(head(0), [10, Divide::TYPE_ID, 0, 1 << 16]);
    assert_eq!(head(1), [9, Total::TYPE_ID, 77, 2 | IS_ANSWER | 2 << 16]);
    assert_eq!((handler.takes)().len(), 2);
}

#[test]
fn a_group_of_one_does_all_the_work() {
    let handler = dot::handler();
    let mut state = Rows {
        left: [2.0; 96],
        right: [3.0; 96],
        partial: [0.0; 32],
    };
    let mut ctx = Context::new(4, 0, 1);
    for (type_id, payload) in [
        (Total::TYPE_ID, Total { sum: 0.5, handled: 0 }.to_payload()),
        (Divide::TYPE_ID, Divide { by: 5 }.to_payload()),
    ] {
        ctx.begin(4, 9, 77, 5, 0);
        // SAFETY: the pointer is to a state of the handler's type, and nobody else has it.
        assert!(unsafe { (handler.native)(&mut ctx, (&raw mut state).cast(), type_id, &payload, &mut []) });
    }
    assert_eq!(f32::from_bits(ctx.outbox_word(0, 4)), 288.0);
}

#[test]
fn a_batch_does_what_rust_does() -> Result<(), Box<dyn std::error::Error>> {
    let handler = sum::handler();
    let device = Device::new(perpetua::device::BackendKind::Cpu, 0)?;
    let kernel = device.kernel(&(handler.batched)())?;
    let mut packets = [0u32; 48];
    packets[..8].copy_from_slice(&[4, 9, Add::TYPE_ID, 77, 0, 0, 0, 0]);
    packets[8..24].copy_from_slice(&ADD.to_payload());
    packets[24..32].copy_from_slice(&[4, 9, Divide::TYPE_ID, 0, 0, 0, 0, 0]);
    packets[32] = 7;
    let packets = device.upload(&packets)?;
    let runs = device.upload(&[0u32, 2, 4, 0])?;
    let states = device.upload(&[Sum::default()])?;
    let out = device.zeros::<u32>(320)?;
    let counts = device.zeros::<u32>(2)?;
    let done = device.zeros::<u32>(1)?;
    let args = perpetua::args![
        &packets, &runs, &states, &out, &counts, &done, 0u32, 0u32, 1u32, 0u32
    ];
    device
        .default_stream()
        .launch(&kernel, LaunchConfig::new([1, 1, 1], [1, 1, 1]), args)?;
    assert_eq!(
        states.read()?,
        [Sum {
            sum: 5.0,
            handled: 14
        }]
    );
    assert_eq!(counts.read()?, [258, 257]);
    assert_eq!(done.read()?, [2]);
    Ok(())
}

/// The kernel's IR, for devices with 64-bit addresses.
fn lowered(kernel: perpetua::KernelFn) -> perpetua_ir::verify::Verified {
    let kernel = perpetua_ir::front::rust::lower(&kernel.definition(), &kernel.instantiation()).unwrap();
    perpetua_ir::verify::verify(kernel).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn resident_kernels_pass_nvidias_assembler() {
    for handler in [
        sum::handler(),
        divide::handler(),
        scale::handler(),
        dot::handler(),
    ] {
        let kernel = lowered((handler.resident)());
        for (sm, arch) in [(75, "sm_75"), (80, "sm_80"), (90, "sm_90a")] {
            let text = perpetua_ir::back::ptx::render(&kernel, sm).unwrap().text;
            if let Err(error) = perpetua_vendor_tools::ptxas(&text, arch).required(arch) {
                panic!("{arch}: {error}\n{text}");
            }
        }
        let refusal = perpetua_ir::back::ptx::render(&kernel, 70)
            .unwrap_err()
            .to_string();
        assert!(refusal.contains("compute capability 7.5"), "{refusal}");
    }
}

#[test]
fn resident_kernels_are_cuda_c_too() {
    let target = perpetua_ir::back::Target::CudaC {
        abi: perpetua_ir::back::CudaAbi::Checked,
    };
    for handler in [sum::handler(), divide::handler()] {
        // SAFETY: nobody launches it.
        let kernel = unsafe { (handler.resident)().checked_where_caught() };
        let text = perpetua_ir::back::render(&lowered(kernel), &target).unwrap().text;
        for part in [
            "__nanosleep(500u);",
            "__syncwarp();",
            "ld.relaxed.sys.b128",
            "catch_fault_(",
        ] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        for arch in ["sm_75", "sm_90a"] {
            if let Err(error) = perpetua_vendor_tools::nvrtc(&text, arch).required(arch) {
                panic!("{arch}: {error}\n{text}");
            }
        }
    }
}
