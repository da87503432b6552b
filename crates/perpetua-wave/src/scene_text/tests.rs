//! What is wrong with a scene is shown with its line; a scene becomes cells.

use super::*;

#[test]
fn mistakes_are_shown_with_line_and_key() {
    let check = |text: &str, line: usize, expect: &str| {
        let error = Scene::from_toml(text).unwrap_err();
        let Error::Text { line: found, message } = &error else {
            panic!("{error}");
        };
        assert!(
            *found == line && message.contains(expect),
            "line {found}: {message}"
        );
    };
    check("size = [1.0, 1.0]\nspead = 3\n", 2, "unknown field `spead`");
    check("name = \"x\"\n", 1, "missing field `size`");
    check(
        "size = [1.0]\n",
        1,
        "`size` is [1.0]; it must be two or three lengths",
    );
    check(
        "size = [1.0, \"a\"]\n",
        1,
        "`size`: the type is wrong: string \"a\", expected a number",
    );
    check(
        "size = [inf, 1.0]\n",
        1,
        "`size` is [inf, 1.0]; it must be two or three lengths",
    );
    let beginning = "size = [1.0, 1.0]\n";
    for (rest, line, expect) in [
        (
            "cells = \"many\"\n",
            2,
            "`cells`: the type is wrong: string \"many\", expected a whole number",
        ),
        ("cells = 99999999999999999999\n", 2, ""),
        (
            "border_width = 10.0\n",
            2,
            "two of them must fit into the scene, which is 1 wide",
        ),
        (
            "[[shapes]]\nmaterial = \"wall\"\ndisc = { center = [0.5, 0.5], radius = -0.1 }\n",
            4,
            "`disc.radius` is -0.1; it must be above 0",
        ),
        (
            "[[shapes]]\nmaterial = \"wall\"\npolygon = [[0.0, 0.0], [nan, 1.0], [1.0, 1.0]]\n",
            4,
            "`polygon` has a coordinate NaN",
        ),
        (
            "[[sources]]\nat = [0.5, 0.5]\nwave = \"impulse\"\namplitude = nan\n",
            5,
            "`amplitude` is NaN; it must be finite",
        ),
        (
            "[[probes]]\nname = \"a\"\nat = [0.5, 0.5]\n[[probes]]\nname = \"a\"\nat = [0.6, 0.5]\n",
            5,
            "two probes of the name `a`",
        ),
    ] {
        check(&[beginning, rest].concat(), line, expect);
        let said = Scene::from_toml(&[beginning, rest].concat())
            .unwrap_err()
            .to_string();
        assert!(
            !["i64", "i128", "f64"].iter().any(|word| said.contains(word)),
            "{said}"
        );
    }
    check("size = [1.0, 1.0]\n\ncells = 3\n", 3, "`cells` is 3");
    check(
        "size = [1.0, 1.0]\n[materials.air]\nreflects = true\n",
        2,
        "all materials reflect: nothing could move",
    );
    let many: String = (0..200).map(|i| format!("[materials.m{i}]\n")).collect();
    check(
        &[beginning, &many].concat(),
        201,
        "these are 202 materials, with the standard ones in use; up to 200 are possible",
    );
    check(
        "size = [1.0, 1.0]\nborder = \"open\"\n",
        2,
        "`border` is \"open\"",
    );
    check(
        "size = [1.0, 1.0]\nspeed = 0.0\n",
        2,
        "`speed` is 0; it must be above 0",
    );
    check(
        "size = [1.0, 1.0]\nduration = inf\n",
        2,
        "`duration` is inf; it must be finite",
    );
    check(
        "size = [1.0, 1.0]\n[[shapes]]\nmaterial = \"wall\"\npolygon = [\n[0.0, 0.0],\n[0.5, \"a\"]]\n",
        6,
        "`polygon`: the type is wrong: string \"a\"",
    );
    check("size = [1.0, 1.0]\ntime_step = -1.0\n", 2, "`time_step` is -1");
    check("size = [1.0, 1.0]\nwhat\n", 2, "");
    check(
        "size = [1.0, 1.0]\n[[shapes]]\nmaterial = \"wool\"\ndisc = { center = [0.5, 0.5], radius = 0.1 }\n",
        3,
        "there is no material `wool`; there are: air, wall, slow, fast",
    );
    check(
        "size = [1.0, 1.0]\n[[shapes]]\nmaterial = \"wall\"\n",
        2,
        "a shape is one of",
    );
    check(
        "size = [1.0, 1.0]\n[[shapes]]\nmaterial = \"wall\"\ndisc = { center = [0.5], radius = 1.0 }\n",
        4,
        "`disc.center` has 1 coordinates; this scene has two",
    );
    check(
        "size = [1.0, 1.0]\n[[sources]]\nat = [0.5, 0.5]\nwave = \"saw\"\n",
        4,
        "`wave` is \"saw\"",
    );
    check(
        "size = [1.0, 1.0]\n[[sources]]\nat = [0.5, 0.5]\nwave = \"sine\"\n",
        2,
        "needs a `frequency`",
    );
    check(
        "size = [1.0, 1.0]\n\n[[probes]]\nat = [0.5, 1.5]\n",
        4,
        "`at` is at 1.5; the scene goes from 0 to 1",
    );
    check(
        "size = [1.0, 1.0]\n[materials.felt]\ncolor = \"red\"\n",
        3,
        "`color` of material `felt`",
    );
}

#[test]
fn a_scene_becomes_cells_of_any_size() {
    let text = "size = [2.0, 1.0]\ncells = 64\n[materials.felt]\nspeed = 100.0\ndamping = 30.0\n\
        [[shapes]]\nmaterial = \"felt\"\nbox = { from = [1.0, 0.0], to = [2.0, 1.0] }\n\
        [[sources]]\nfrom = [0.25, 0.0]\nto = [0.25, 1.0]\nwave = \"sine\"\nfrequency = 500.0\n\
        [[probes]]\nat = [1.5, 0.5]\n";
    let scene = Scene::from_toml(text).unwrap();
    for cells in [64, 200] {
        let model = scene.model(Some(cells), None).unwrap();
        assert_eq!(model.size, [cells, cells / 2, 1]);
        let felt = model.cells.iter().filter(|c| **c == 2).count();
        assert_eq!(felt * 2, model.cells.len());
        assert_eq!(model.fastest(), 343.0);
        assert_eq!(model.sources[0].region.to, [cells / 8 + 1, cells / 2, 1]);
        assert_eq!(model.probes[0].at, [cells * 3 / 4, cells / 4, 0]);
    }
}

#[test]
fn what_is_not_there_is_known() {
    let text = "size = [1.0, 1.0]\n[materials.steel]\nspeed = 5900.0\n\
        [[shapes]]\nmaterial = \"wall\"\nbox = { from = [0.6, 1.0], to = [0.3, 0.5] }\n\
        [[shapes]]\nmaterial = \"wall\"\nbox = { from = [0.7, 0.0], to = [0.704, 1.0] }\n\
        [[shapes]]\nmaterial = \"slow\"\npolygon = [[3.0, 0.0], [4.0, 0.0], [3.0, 1.0]]\n\
        [[shapes]]\nmaterial = \"slow\"\nlens = { center = [0.2, 0.2], height = 0.1, thickness = 0.05 }\n\
        [[sources]]\nat = [0.5, 0.75]\nwave = \"impulse\"\n\
        [[sources]]\nat = [0.1, 0.75]\nwave = \"impulse\"\n";
    let scene = Scene::from_toml(text).unwrap();
    let remarks = |cells| scene.model_with_remarks(Some(cells), None).unwrap().1;
    let coarse = remarks(64);
    assert_eq!(coarse.absent_shapes, [1, 2]);
    assert_eq!(coarse.walled_sources, [0]);
    let names: Vec<&str> = coarse
        .unused_media
        .iter()
        .map(|i| &*scene.materials[*i].name)
        .collect();
    assert_eq!(names, ["steel"]);
    assert_eq!(coarse.cells_per_wavelength, None);
    assert_eq!(remarks(256).absent_shapes, [2]);
}

/// What another shape covers is there.
#[test]
fn a_covered_shape_is_no_mistake() {
    let text = "size = [1.0, 1.0]\n\
        [[shapes]]\nmaterial = \"slow\"\ndisc = { center = [0.5, 0.5], radius = 0.1 }\n\
        [[shapes]]\nmaterial = \"wall\"\ndisc = { center = [0.5, 0.5], radius = 0.2 }\n\
        [[sources]]\nat = [0.1, 0.75]\nwave = \"sine\"\nfrequency = 1715.0\n";
    let scene = Scene::from_toml(text).unwrap();
    let remarks = scene.model_with_remarks(Some(64), None).unwrap().1;
    assert_eq!(remarks.absent_shapes, [0; 0]);
    assert_eq!(remarks.walled_sources, [0; 0]);
    // `slow`, which no cell has, makes no wave shorter.
    assert_eq!(remarks.unused_media, [2]);
    let found = remarks.cells_per_wavelength.unwrap();
    assert!((found - 12.8).abs() < 1e-9, "{found}");
}

/// What only a model can know leads back to the line that says it.
#[test]
fn errors_of_models_have_the_lines_of_their_keys() {
    let source = |x: f64| format!("[[sources]]\nat = [{x}, 0.5]\nwave = \"impulse\"\n");
    let probe = |i: usize| format!("[[probes]]\nname = \"{i}\"\nat = [0.5, 0.5]\n");
    let square = "size = [1.0, 1.0]\n";
    let located = |text: &str, cells: Option<usize>| {
        let error = Scene::from_toml(text).unwrap().model(cells, None);
        Scene::locate(text, error.unwrap_err()).to_string()
    };
    let text = format!("{square}cells = 100\ntime_step = 1e-3\n");
    let found = located(&text, None);
    assert!(
        found.starts_with("line 3: `time_step`: a time step of 1e-3 s is unstable"),
        "{found}"
    );
    let found = located("cells = 64\nsize = [1.0, 0.01]\n", None);
    assert!(
        found.starts_with("line 2: `size`: the grid's size in y is 1"),
        "{found}"
    );
    let found = located(&format!("cells = 900000\n{square}"), None);
    assert!(found.starts_with("line 1: `cells`: the grid is "), "{found}");
    let probes: String = (0..9).map(probe).collect();
    let found = located(&format!("{square}{probes}"), Some(8));
    assert!(
        found.starts_with("line 26: the number of probes is 9; a grid of this width takes up to 8"),
        "{found}"
    );

    // Sources are counted when they run.
    let sources: String = (1..=17).map(|i| source(f64::from(i) / 20.0)).collect();
    let text = format!("{square}{sources}");
    let model = Scene::from_toml(&text).unwrap().model(Some(64), None).unwrap();
    let device = perpetua_device::Device::new(perpetua_device::BackendKind::Cpu, 0).unwrap();
    let error = crate::Simulation::new(&device, model).unwrap_err();
    let found = Scene::locate(&text, error).to_string();
    assert!(
        found.starts_with("line 50: the number of different sources"),
        "{found}"
    );
}
