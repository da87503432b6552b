//! That reading a file, lowering and rendering a kernel take as much for each statement of a long one as of a short one, counted in what
//! they allocate: four times as many statements may not cost much more than four times as much.

use std::alloc::{GlobalAlloc, Layout, System};
use std::error::Error;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use perpetua_ir::back::{Sm, Target, render};
use perpetua_ir::front::rust::{kernels_in_file, lower};
use perpetua_ir::verify::verify;

/// The system's, which counts.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: all is passed on to the system's allocator as it came; what is counted touches no memory of theirs. Growing is by the trait's own
// `realloc`, which calls these two.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // One thread counts what it does itself: nothing is ordered by these.
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the system's, which gave this memory.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What a kernel of so many statements costs: allocations and bytes, of reading and of the rest.
fn cost(statements: usize) -> Result<[u64; 4], Box<dyn Error>> {
    let mut text =
        String::from("#[kernel]\nfn long(x: &[f32], y: &mut [f32]) {\n    let i = global_id_x();\n");
    for k in 0..statements {
        writeln!(text, "    y[i] = x[i] * {k}.0 + y[i] - (x[i] / 3.0);")?;
    }
    text.push_str("}\n");
    let counted = || [&ALLOCATIONS, &BYTES].map(|count| count.load(Ordering::Relaxed));
    let begun = counted();
    let all = kernels_in_file(&text, "long.rs")?;
    let read = counted();
    let verified = verify(lower(&all[0].function, &all[0].how)?)?;
    let ptx = render(&verified, &Target::Ptx { sm: Sm::from(75) })?.text;
    let done = counted();
    assert!(
        ptx.matches("div").count() >= statements,
        "{} statements",
        statements
    );
    Ok([
        read[0] - begun[0],
        read[1] - begun[1],
        done[0] - read[0],
        done[1] - read[1],
    ])
}

#[test]
fn long_kernels_cost_no_more_a_statement() -> Result<(), Box<dyn Error>> {
    // What is made once is not counted.
    cost(10)?;
    let (short, long) = (cost(2_000)?, cost(8_000)?);
    for (what, (short, long)) in [
        "allocations of reading",
        "bytes of reading",
        "other allocations",
        "other bytes",
    ]
    .into_iter()
    .zip(short.into_iter().zip(long))
    {
        println!("{what}: {short}, of four times as many statements {long}");
        assert!(
            long < 5 * short,
            "{what}: {short}, of four times as many statements {long}"
        );
    }
    Ok(())
}
