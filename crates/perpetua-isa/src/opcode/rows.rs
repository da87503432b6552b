//! The rows of the table.

use perpetua_ir::ir::{AtomicOp, ReduceOp, Scalar, Scope};
use perpetua_ir::ops::{BinaryOp, Domain, Result as Gives, Second, TernaryOp, UnaryOp};

use super::{Activation, Meaning, Row, Slot, Space, Ty, Use};

const WRITE: Slot = Slot::Write(Ty::Own);
const READ: Slot = Slot::Read(Ty::Own);

fn row(name: &str, types: Option<Domain>, operands: &[Slot], meaning: Meaning, doc: &str) -> Row {
    Row {
        name: name.into(),
        aliases: Vec::new(),
        types,
        from: false,
        operands: operands.to_vec(),
        doc: doc.into(),
        meaning,
    }
}

impl Row {
    fn also(mut self, names: &[&str]) -> Row {
        self.aliases.extend(names.iter().map(|name| String::from(*name)));
        self
    }
}

/// All rows, in the order of the specification.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = data();
    rows.extend(operators());
    rows.extend(comparisons());
    rows.extend(control());
    rows.extend(memory());
    rows.extend(reductions());
    rows.extend(pools());
    rows
}

fn data() -> Vec<Row> {
    let any = Some(Domain::Any);
    let place = |space| Slot::Place(space, Use::Load);
    let target = |space| Slot::Place(space, Use::Store);
    let conversion = |name, meaning, doc| Row {
        from: true,
        ..row(name, any, &[WRITE, Slot::Read(Ty::From)], meaning, doc)
    };
    vec![
        row("mov", any, &[WRITE, READ], Meaning::Move, "Copies a value.").also(&["mov_imm"]),
        conversion(
            "cvt",
            Meaning::Convert,
            "Converts as Rust's `as` does: to the nearest float, and saturating from floats to integers, NaN to 0. To and from f16 and \
             bf16 it goes by way of f32, so that an f64 or a wide integer is rounded twice on the way there.",
        ),
        conversion(
            "bitcast",
            Meaning::Bitcast,
            "The same bits at another type of the same width.",
        ),
        row(
            "ldg",
            any,
            &[WRITE, place(Space::Global)],
            Meaning::Load(Space::Global),
            "Loads an element of a buffer.",
        ),
        row(
            "stg",
            any,
            &[target(Space::Global), READ],
            Meaning::Store(Space::Global),
            "Stores to an element of a buffer.",
        ),
        row(
            "lds",
            any,
            &[WRITE, place(Space::Shared)],
            Meaning::Load(Space::Shared),
            "Loads an element of shared memory.",
        ),
        row(
            "sts",
            any,
            &[target(Space::Shared), READ],
            Meaning::Store(Space::Shared),
            "Stores to an element of shared memory.",
        ),
        row(
            "ldc",
            any,
            &[WRITE, place(Space::Constant)],
            Meaning::Load(Space::Constant),
            "Loads an element of a table of constants.",
        ),
        row(
            "mad",
            Some(Domain::Number),
            &[WRITE, READ, READ, READ],
            Meaning::MultiplyAdd,
            "`a * b + c`, product and sum each rounded (or wrapped); `fma` rounds once.",
        ),
        row(
            "tile_mma",
            Some(Domain::Number),
            &[
                Slot::Sums,
                Slot::Run,
                Slot::Run,
                Slot::Count,
                Slot::Count,
                Slot::Count,
            ],
            Meaning::Tile,
            "`d, a, b, m, n, k`: the m x n sums from register d on grow by the product of the m x k tile from a on and the \
             k x n tile from b on, rows first; of floats each product is fused with its sum, in the order of k.",
        ),
    ]
}

fn operators() -> Vec<Row> {
    let mut rows = Vec::new();
    let gives = |gives| match gives {
        Gives::Same | Gives::Second => Ty::Own,
        Gives::Bool => Ty::Fixed(Scalar::Bool),
        Gives::U32 => Ty::Fixed(Scalar::U32),
        Gives::Unsigned => Ty::Unsigned,
    };
    for &op in UnaryOp::ALL {
        let said = op.row();
        let made = row(
            said.name,
            Some(said.domain),
            &[Slot::Write(gives(said.result)), READ],
            Meaning::Unary(op),
            said.doc,
        );
        rows.push(match op {
            UnaryOp::Ln => made.also(&["log"]),
            _ => made,
        });
    }
    for &op in BinaryOp::ALL {
        let said = op.row();
        if said.result == Gives::Bool {
            continue;
        }
        let second = match said.second {
            Second::Same => READ,
            Second::Amount => Slot::Read(Ty::Fixed(Scalar::U32)),
        };
        rows.push(row(
            said.name,
            Some(said.domain),
            &[Slot::Write(gives(said.result)), READ, second],
            Meaning::Binary(op),
            said.doc,
        ));
    }
    for &op in TernaryOp::ALL {
        let said = op.row();
        let (domain, first) = match op {
            TernaryOp::Select => (Domain::Any, Slot::Read(Ty::Fixed(Scalar::Bool))),
            _ => (said.domain, READ),
        };
        let made = row(
            said.name,
            Some(domain),
            &[WRITE, first, READ, READ],
            Meaning::Ternary(op),
            said.doc,
        );
        rows.push(match op {
            TernaryOp::Select => made.also(&["sel"]),
            _ => made,
        });
    }
    for (name, formula, which) in Activation::ALL {
        rows.push(row(
            name,
            Some(Domain::Float),
            &[WRITE, READ],
            Meaning::Activation(which),
            &format!("{formula}."),
        ));
    }
    rows
}

fn comparisons() -> Vec<Row> {
    let mut rows = Vec::new();
    let to = [Slot::Write(Ty::Fixed(Scalar::Bool)), READ, READ];
    for &op in BinaryOp::ALL {
        let said = op.row();
        if said.result != Gives::Bool {
            continue;
        }
        let name = format!("set{}", said.name);
        rows.push(row(
            &name,
            Some(said.domain),
            &to,
            Meaning::Compare(op, false),
            said.doc,
        ));
        if matches!(op, BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge) {
            rows.push(row(
                &format!("{name}u"),
                Some(Domain::Int),
                &to,
                Meaning::Compare(op, true),
                "The same of the integers' bits, taken for unsigned.",
            ));
        }
    }
    rows
}

fn control() -> Vec<Row> {
    let fence = |name: &str, scope, whom: &str, other: &str| {
        row(
            name,
            None,
            &[],
            Meaning::Fence(scope),
            &format!("Orders memory for {whom}."),
        )
        .also(&[other])
    };
    vec![
        row(
            "bra",
            None,
            &[Slot::Label],
            Meaning::Branch,
            "Continues at the label.",
        ),
        row(
            "call",
            None,
            &[Slot::Routine],
            Meaning::Call,
            "Runs a routine on the same registers.",
        ),
        row(
            "ret",
            None,
            &[],
            Meaning::Return,
            "Leaves the routine; in the program's own code it is `exit`.",
        ),
        row(
            "loop",
            None,
            &[Slot::Write(Ty::Fixed(Scalar::U32)), Slot::Label],
            Meaning::Loop,
            "Where the count is above zero: takes one from it, and continues at the label; what stands between the label and it runs once more than the count says.",
        ),
        row("exit", None, &[], Meaning::Exit, "Ends the lane."),
        row("nop", None, &[], Meaning::Nop, "Does nothing."),
        row(
            "bar",
            None,
            &[],
            Meaning::Barrier,
            "Waits for all lanes of the block, and orders their memory. All must come to the same one.",
        )
        .also(&["barsync", "bar_sync"]),
        fence(
            "fence_thread",
            None,
            "this lane, which sees its own stores in order anyway",
            "memfence_thread",
        ),
        fence(
            "fence_block",
            Some(Scope::Block),
            "lanes of the block",
            "memfence_block",
        ),
        fence(
            "fence_device",
            Some(Scope::Device),
            "all lanes of the device",
            "memfence_device",
        ),
        fence(
            "fence_system",
            Some(Scope::System),
            "the device, other devices and the host",
            "memfence_system",
        ),
    ]
}

fn memory() -> Vec<Row> {
    let mut rows = Vec::new();
    let place = Slot::Place(Space::Any, Use::Store);
    for op in AtomicOp::ALL {
        let types = match op {
            AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => Domain::Int,
            _ => Domain::Number,
        };
        rows.push(row(
            &format!("atom_{}", op.name()),
            Some(types),
            &[WRITE, place, READ],
            Meaning::Atomic(op),
            "Changes an element in one step; gives what it was. Types of 32 and 64 bits.",
        ));
    }
    rows.push(row(
        "atom_cas",
        Some(Domain::Int),
        &[WRITE, place, READ, READ],
        Meaning::CompareExchange,
        "`place, expected, new`: replaces the element where it is as expected; gives what it was. Types of 32 and 64 bits.",
    ));
    let count = Slot::Read(Ty::Fixed(Scalar::U32));
    let from = Slot::Place(Space::Any, Use::Load);
    rows.push(row(
        "copy",
        Some(Domain::Any),
        &[place, from, count],
        Meaning::Copy,
        "`to, from, n`: the lane copies n elements in order, each before the next is read: a range that is copied onto a later part of \
         itself repeats. Both indices count on in their own type, with wrapping.",
    ));
    rows.push(row(
        "fill",
        Some(Domain::Any),
        &[place, READ, count],
        Meaning::Fill,
        "`to, value, n`: the lane sets n elements. The index counts on in its type, with wrapping.",
    ));
    rows
}

fn reductions() -> Vec<Row> {
    let types = |op| match op {
        ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => Domain::Int,
        _ => Domain::Number,
    };
    let mut rows = Vec::new();
    for op in ReduceOp::ALL {
        let name = op.name();
        rows.push(
            row(
                &format!("reduce_{name}"),
                Some(types(op)),
                &[WRITE, Slot::Run, Slot::Count],
                Meaning::Reduce(op),
                "`d, first, n`: combines n registers of the lane from the first on, in their order.",
            )
            .also(&[&format!("reduce{name}")]),
        );
        rows.push(row(
            &format!("group_{name}"),
            Some(types(op)),
            &[WRITE, READ],
            Meaning::Group(op),
            "Combines a value of each lane of the block, and gives the result to all. All lanes must come to it.",
        ));
        let steps = match op {
            ReduceOp::Mul => {
                "one atomic step (products of floats: by a few exchanges, between which the element may be 1 or a partial product)"
            }
            _ => "one atomic step",
        };
        rows.push(row(
            &format!("grid_{name}"),
            Some(types(op)),
            &[Slot::Place(Space::Global, Use::Store), READ],
            Meaning::Grid(op),
            &format!(
                "Combines a value of each lane of the grid, and the element, into the element: each block as by `group`, then by {steps}, \
                 blocks in any order. Types of 32 and 64 bits. All lanes of a block must come to it."
            ),
        ));
    }
    rows
}

fn pools() -> Vec<Row> {
    let word = Ty::Fixed(Scalar::U32);
    let any = Some(Domain::Number);
    vec![
        row(
            "pool_alloc",
            None,
            &[Slot::Write(word), Slot::Pool, Slot::Read(word)],
            Meaning::PoolAlloc,
            "`d, pool, bytes`: takes a block out of the pool, all zero, in one atomic step; gives its handle. No two blocks share a \
             byte. A fault where the pool has no room.",
        )
        .also(&["poolalloc"]),
        row(
            "pool_free",
            None,
            &[Slot::Pool, Slot::Read(word)],
            Meaning::PoolFree,
            "`pool, handle`: gives a block back; a fault where there is none with this handle, as when it was given back before.",
        )
        .also(&["poolfree"]),
        row(
            "pool_load",
            any,
            &[WRITE, Slot::Place(Space::Pool, Use::Load)],
            Meaning::Load(Space::Pool),
            "`d, pool[handle + i]`: loads element i of a block, of the instruction's type; handle and i are `u32`.",
        )
        .also(&["poolload"]),
        row(
            "pool_store",
            any,
            &[Slot::Place(Space::Pool, Use::Store), READ],
            Meaning::Store(Space::Pool),
            "`pool[handle + i], a`: stores to element i of a block, of the instruction's type; handle and i are `u32`.",
        )
        .also(&["poolstore"]),
    ]
}
