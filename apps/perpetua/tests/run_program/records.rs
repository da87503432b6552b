//! Buffers of structs that mix types of numbers, what a launch takes for itself where nobody says, and files of which something is refused.

use std::fs;

use crate::folder::{Folder, text};

const RAYS: &str = "use perpetua::prelude::*;

#[derive(Clone, Copy, GpuType)]
#[repr(C)]
struct Hit {
    hits: u8,
    distance: f32,
    at: [u16; 2],
}

#[kernel]
fn made(y: &mut [Hit]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = Hit { hits: i as u8 * 10, distance: 1.5 * i as f32, at: [i as u16, 7] };
    }
}

#[kernel]
fn nearer(hits: &[Hit], y: &mut [f32]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = hits[i].distance - f32::from(hits[i].hits) + f32::from(hits[i].at[1]);
    }
}
";

#[test]
fn structs_of_several_types_of_numbers_are_records() {
    let folder = Folder::new();
    fs::write(folder.path().join("r.rs"), RAYS).unwrap();
    let ran = |args: &str| {
        let output = folder.run(args);
        assert!(output.status.success(), "{args}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    // As NumPy prints it.
    let expect = "y = [( 0, 0. , [0, 7]) (10, 1.5, [1, 7]) (20, 3. , [2, 7])]\n";
    assert_eq!(ran("r.rs made --buffer y=zeros:3"), expect);
    ran("r.rs made --buffer y=zeros:3 --out y=hits.npy");
    let header = "[('hits', '|u1'), ('distance', '<f4'), ('at', '<u2', (2,))]";
    let file = folder.read("hits.npy");
    assert!(String::from_utf8_lossy(&file).contains(header));
    let expect = "y = [  7.   -1.5 -10. ]\n";
    assert_eq!(
        ran("r.rs nearer --buffer hits=hits.npy --buffer y=zeros:3"),
        expect
    );
    assert_eq!(
        ran("r.rs nearer --buffer hits=range:3 --buffer y=zeros:3"),
        "y = [0. 1. 2.]\n"
    );
    let checked = folder
        .command("r.rs made --buffer y=zeros:3 --check")
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", text(&checked.stdout));

    let at = file.windows(4).position(|part| part == b"hits").unwrap();
    let mut other = file.clone();
    other[at..at + 4].copy_from_slice(b"hots");
    fs::write(folder.path().join("other.npy"), other).unwrap();
    fs::write(folder.path().join("flat.npy"), npy()).unwrap();
    for (args, expect) in [
        (
            "r.rs nearer --buffer hits=other.npy --buffer y=zeros:3",
            "has records with the fields hots, distance, at, the buffer's elements `Hit` have hits, distance, at",
        ),
        (
            "r.rs nearer --buffer hits=flat.npy --buffer y=zeros:3",
            "its elements are numbers, and the buffer's are records: save a structured array",
        ),
        (
            "r.rs made --buffer y=zeros:3 --picture y --size 3x1",
            "--picture y: its elements `Hit` mix types of numbers, which are no colours",
        ),
    ] {
        let output = folder.run(args);
        let said = text(&output.stderr);
        assert!(
            !output.status.success() && said.contains(expect),
            "{args}: {said}"
        );
    }
}

/// An array of three floats.
fn npy() -> Vec<u8> {
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n";
    let len = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &len[..], header.as_bytes(), &[0; 12]].concat()
}

#[test]
fn grids_have_the_extents_of_buffers_and_subgroups_run_by_themselves() {
    let folder = Folder::new();
    let code = "#[kernel(edge = clamp)]
fn smooth(at: GridPos, a: &[f32], b: &mut [f32]) {
    b[at.idx()] = 0.25 * (at.north(a) + at.south(a) + at.east(a) + at.west(a)) + at.x() as f32;
}

#[kernel(edge = clamp)]
fn wide(at: GridPos, width: u32, b: &mut [f32]) {
    b[at.idx()] = width as f32;
}

#[kernel]
fn whose(y: &mut [u32]) {
    let i = global_id_x();
    if i < y.len() {
        y[i] = subgroup_id() * subgroup_size() + subgroup_lane();
    }
}

#[kernel]
fn plane(y: &mut [u32]) {
    y[global_id_y() * 2 + global_id_x()] = 1;
}
";
    fs::write(folder.path().join("g.rs"), code).unwrap();
    for (args, expect) in [
        (
            "g.rs smooth --buffer a=ones:2x3 --buffer b=zeros:2x3",
            "b = [[1. 2. 3.]\n     [1. 2. 3.]]\n",
        ),
        (
            "g.rs smooth --buffer a=ones:6 --buffer b=zeros:6 --size 3x2",
            "b = [1. 2. 3. 1. 2. 3.]\n",
        ),
        (
            "g.rs smooth --buffer a=ones:6 --buffer b=zeros:6 --arg width=2 --arg height=3 --lanes 2,3",
            "b = [1. 2. 1. 2. 1. 2.]\n",
        ),
        (
            "g.rs wide --buffer b=zeros:2x3 --arg width=7",
            "b = [[7. 7. 7.]\n     [7. 7. 7.]]\n",
        ),
        ("g.rs whose --buffer y=zeros:6", "y = [0 1 2 3 4 5]\n"),
    ] {
        let output = folder.run(args);
        assert_eq!(text(&output.stdout), expect, "{args}: {}", text(&output.stderr));
    }
    for (args, expect) in [
        (
            "g.rs smooth --buffer a=ones:6 --buffer b=zeros:6",
            "the grid's width is not known: give a buffer rows and columns, as zeros:480x640, or --arg width=…; the grid's height",
        ),
        (
            "g.rs wide --buffer b=zeros:2x3",
            "the parameter `width: u32` needs --arg width=…",
        ),
        (
            "g.rs plane --buffer y=zeros:4",
            "say how many lanes to run with --lanes X,Y,Z",
        ),
    ] {
        let output = folder.run(args);
        let said = text(&output.stderr);
        assert!(
            !output.status.success() && said.contains(expect),
            "{args}: {said}"
        );
    }
}

#[test]
fn a_kernel_runs_where_what_it_does_not_need_is_refused() {
    let folder = Folder::new();
    let code = "#[derive(Clone, Copy, GpuType)]
struct Loose {
    a: f32,
}

#[kernel]
fn bad(y: &mut [u32]) {
    y[0] = \"text\".len() as u32;
}

#[kernel]
fn good(y: &mut [u32]) {
    y[0] = 7;
}

#[kernel]
fn needs(y: &mut [f32]) {
    let loose = Loose { a: 1.0 };
    y[0] = loose.a;
}
";
    fs::write(folder.path().join("m.rs"), code).unwrap();
    let output = folder.run("m.rs good --buffer y=zeros:1");
    assert_eq!(text(&output.stdout), "y = [7]\n", "{}", text(&output.stderr));
    for (args, expect) in [
        (
            "m.rs bad --buffer y=zeros:1",
            "a string is outside the kernel language",
        ),
        ("m.rs needs --buffer y=zeros:1", "a struct without `#[repr(C)]`"),
        ("m.rs --buffer y=zeros:1", "a struct without `#[repr(C)]`"),
        (
            "m.rs other --buffer y=zeros:1",
            "a string is outside the kernel language",
        ),
    ] {
        let output = folder.run(args);
        let said = text(&output.stderr);
        assert!(
            !output.status.success() && said.contains(expect),
            "{args}: {said}"
        );
    }
}
