//! Instructions that are no functions of values, each in a program of its own, and what that must leave.

use std::collections::BTreeSet;

use perpetua_ir::ir::Scalar;
use perpetua_isa::{LaunchConfig, Opcode, Program};

use super::common::executors;
use super::{bytes, computing, edges, execute};

// Two blocks of 64 lanes run each; `out` begins with zeros, `x` counts from 0. Instructions, program, and what `out` holds in the end.
const OTHERS: &[(&str, &str, &[u32])] = &[
    (
        "ldg stg",
        ".buffer x: u32\n.buffer out: u32\n ldg.u32 r0, x[r252 + 1]\n setlt.u32 p0, r252, 3\n@p0 stg.u32 out[r252], r0",
        &[1, 2, 3, 0],
    ),
    (
        "lds sts bar",
        ".buffer out: u32\n.shared s: u32[64]\n sts.u32 s[r252], r252\n bar\n sub.u32 r0, 63, r252\n lds.u32 r1, s[r0]\n stg.u32 out[r252], r1",
        &[63, 62, 61, 60],
    ),
    (
        "ldc",
        ".buffer out: u32\n.const t: u32 = 7, 5, 3\n ldc.u32 r0, t[1]\n stg.u32 out[0], r0",
        &[5, 0],
    ),
    (
        "bra nop",
        ".buffer out: u32\n setlt.u32 p0, r252, 2\n@p0 bra there\n nop\n exit\nthere: stg.u32 out[r252], 4",
        &[4, 4, 0],
    ),
    (
        "call ret",
        ".buffer out: u32\n mov.u32 r0, 1\n call f\n call f\n stg.u32 out[0], r0\n.func f\n add.u32 r0, r0, r0\n seteq.u32 p0, r0, 4\n@p0 ret\n add.u32 r0, r0, 0\n ret",
        &[4, 0],
    ),
    (
        "loop exit",
        ".buffer out: u32\n mov.u32 r0, 5\n mov.u32 r1, 0\nagain: add.u32 r1, r1, 1\n loop r0, again\n stg.u32 out[0], r1\n exit\n stg.u32 out[1], 9",
        &[6, 0],
    ),
    (
        "fence_thread fence_block fence_device",
        ".buffer out: u32\n stg.u32 out[0], 1\n fence_thread\n fence_block\n fence_device\n ldg.u32 r0, out[0]\n stg.u32 out[1], r0",
        &[1, 1, 0],
    ),
    (
        "atom_add atom_sub atom_min atom_max",
        ".buffer out: u32\n atom_add.u32 r0, out[0], 3\n atom_sub.u32 r0, out[1], 1\n atom_min.u32 r0, out[0], 4000\n atom_max.u32 r0, out[2], r252",
        &[384, 0u32.wrapping_sub(128), 63, 0],
    ),
    (
        "atom_and atom_or atom_xor atom_exchange",
        ".buffer out: u32\n shl.u32 r1, 1, r252\n atom_or.u32 r0, out[0], r1\n atom_and.u32 r0, out[1], 3\n atom_xor.u32 r0, out[2], r252\n atom_exchange.u32 r0, out[3], 8",
        &[u32::MAX, 0, 0, 8, 0],
    ),
    (
        "atom_cas",
        ".buffer out: u32\n atom_cas.u32 r0, out[0], 0, 7\n seteq.u32 p0, r0, 0\n@p0 atom_add.u32 r0, out[1], 1",
        &[7, 1, 0],
    ),
    (
        "copy fill",
        ".buffer x: u32\n.buffer out: u32\n copy.u32 out[0], x[2], 3\n fill.u32 out[4], 9, 2",
        &[2, 3, 4, 0, 9, 9, 0],
    ),
    (
        "reduce_add reduce_mul reduce_min reduce_max",
        ".buffer out: u32\n mov.u32 r1, 6\n mov.u32 r2, 3\n mov.u32 r3, 5\n reduce_add.u32 r0, r1, 3\n stg.u32 out[0], r0\n reduce_mul.u32 r0, r1, 3\n stg.u32 out[1], r0\n reduce_min.u32 r0, r1, 3\n stg.u32 out[2], r0\n reduce_max.u32 r0, r1, 3\n stg.u32 out[3], r0",
        &[14, 90, 3, 6, 0],
    ),
    (
        "reduce_and reduce_or reduce_xor",
        ".buffer out: u32\n mov.u32 r1, 6\n mov.u32 r2, 3\n mov.u32 r3, 10\n reduce_and.u32 r0, r1, 3\n stg.u32 out[0], r0\n reduce_or.u32 r0, r1, 3\n stg.u32 out[1], r0\n reduce_xor.u32 r0, r1, 3\n stg.u32 out[2], r0",
        &[2, 15, 15, 0],
    ),
    (
        "group_add group_mul group_min group_max",
        ".buffer out: u32\n add.u32 r1, r252, 3\n group_add.u32 r0, r1\n stg.u32 out[0], r0\n setlt.u32 p0, r252, 3\n sel.u32 r2, p0, 2, 1\n group_mul.u32 r0, r2\n stg.u32 out[1], r0\n group_min.u32 r0, r1\n stg.u32 out[2], r0\n group_max.u32 r0, r1\n stg.u32 out[3], r0",
        &[2208, 8, 3, 66, 0],
    ),
    (
        "group_and group_or group_xor",
        ".buffer out: u32\n or.u32 r1, r252, 256\n group_and.u32 r0, r1\n stg.u32 out[0], r0\n group_or.u32 r0, r1\n stg.u32 out[1], r0\n setlt.u32 p0, r252, 3\n sel.u32 r1, p0, r1, 0\n group_xor.u32 r0, r1\n stg.u32 out[2], r0",
        &[256, 256 + 63, 256 + 3, 0],
    ),
    (
        "grid_add grid_mul grid_min grid_max",
        ".buffer out: u32\n atom_cas.u32 r0, out[1], 0, 1\n bar\n grid_add.u32 out[0], 2\n setlt.u32 p0, r252, 2\n sel.u32 r1, p0, 3, 1\n grid_mul.u32 out[1], r1\n grid_min.u32 out[2], r252\n grid_max.u32 out[3], r252",
        &[256, 81, 0, 63, 0],
    ),
    (
        "grid_and grid_or grid_xor",
        ".buffer out: u32\n grid_and.u32 out[0], 5\n grid_or.u32 out[1], r252\n mov.u32 r1, %gid\n seteq.u32 p0, r1, 77\n sel.u32 r1, p0, 12, 0\n grid_xor.u32 out[2], r1",
        &[0, 63, 12, 0],
    ),
    (
        "tile_mma",
        ".buffer out: u32\n mov.u32 r0, 1\n mov.u32 r1, 0\n mov.u32 r2, 2\n mov.u32 r3, 3\n mov.u32 r4, 5\n mov.u32 r5, 7\n tile_mma.u32 r0, r2, r4, 1, 2, 1\n tile_mma.u32 r0, r2, r4, 1, 1, 2\n stg.u32 out[0], r0\n stg.u32 out[1], r1",
        &[1 + 10 + 31, 14, 0],
    ),
];

#[test]
fn all_others_do_what_they_say() {
    for executor in executors() {
        for (names, text, expected) in OTHERS {
            let program: Program = text.parse().unwrap_or_else(|error| panic!("{error}"));
            let mut columns = Vec::new();
            if program.memory("x").is_some() {
                columns.push(("x".to_owned(), bytes(Scalar::U32, 0..66)));
            }
            let config = LaunchConfig::new(2, 64);
            let Some(found) = execute(&executor, &program, &columns, 4 * 64, config) else {
                // WGSL has no fences by themselves; all else is of 32 bits.
                assert!(names.contains("fence"), "{names}");
                continue;
            };
            let found: Vec<u32> = found
                .chunks(4)
                .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect();
            let seen = &found[..expected.len()];
            assert_eq!(seen, *expected, "{names} on {:?}", executor.device());
        }
    }
}

#[test]
fn no_instruction_is_left_out() {
    let mut others: BTreeSet<&str> = OTHERS.iter().flat_map(|(names, ..)| names.split(' ')).collect();
    others.extend(
        Opcode::all()
            .filter(|opcode| edges::has(*opcode))
            .map(|opcode| opcode.row().name.as_str()),
    );
    let computing: BTreeSet<&str> = computing()
        .iter()
        .map(|cell| cell.opcode.row().name.as_str())
        .collect();
    for opcode in Opcode::all() {
        let name = opcode.row().name.as_str();
        // Order with the host has no result here; pools have a test of their own.
        let elsewhere = name == "fence_system" || name.starts_with("pool_");
        let known = others.contains(name) || computing.contains(name) || elsewhere;
        assert!(known, "`{name}` is tested by nothing here");
    }
}
