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
    let model = scene.model(Some(64), None).unwrap();
    assert_eq!(scene.shapes_without_cells(&model), [1, 2]);
    assert_eq!(model.walled_sources(), [0]);
    let unused = model.unused_media();
    let names: Vec<&str> = unused.iter().map(|i| &*scene.materials[*i].name).collect();
    assert_eq!(names, ["steel"]);
    let finer = scene.model(Some(256), None).unwrap();
    assert_eq!(scene.shapes_without_cells(&finer), [2]);
}
