//! Where the crates are that a file names: what cargo says of the package in which it lies. Must not know what is read of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::say;

/// The packages around a file, once somebody asks for another crate.
pub(crate) struct Crates<'a> {
    file: &'a Path,
    packages: OnceLock<Result<Packages, String>>,
}

/// What `cargo metadata` writes, as far as it is needed.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Option<Resolve>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    pkg: String,
}

/// The libraries among the packages.
#[derive(Default)]
struct Packages {
    /// The package in which the file lies: its library's name and path, if it has one.
    own: Option<(String, PathBuf)>,
    own_id: String,
    /// By the path of a library's first file: its package.
    ids: HashMap<PathBuf, String>,
    /// By package: the crates that it names, and the paths of those that have device functions.
    named: HashMap<String, HashMap<String, PathBuf>>,
}

impl<'a> Crates<'a> {
    pub(crate) fn around(file: &'a Path) -> Crates<'a> {
        Crates {
            file,
            packages: OnceLock::new(),
        }
    }

    /// The path of the crate's first file; `from` is that of the crate that names it.
    pub(crate) fn find(&self, from: &str, name: &str) -> Result<Option<String>, String> {
        let packages = self.packages.get_or_init(|| Packages::around(self.file));
        let packages = packages.as_ref().map_err(Clone::clone)?;
        let own = packages.own.as_ref().filter(|(own, _)| own == name);
        let path = match packages.ids.get(Path::new(from)) {
            Some(id) => packages.named.get(id).and_then(|named| named.get(name)),
            // Programs, examples and tests name their package's library.
            None => own
                .map(|(_, path)| path)
                .or_else(|| packages.named.get(&packages.own_id)?.get(name)),
        };
        Ok(path.map(|path| path.to_string_lossy().into_owned()))
    }
}

impl Packages {
    fn around(file: &Path) -> Result<Packages, String> {
        let beside = file.parent().filter(|folder| *folder != Path::new(""));
        let Ok(folder) = beside.unwrap_or(Path::new(".")).canonicalize() else {
            return Ok(Packages::default());
        };
        let Some(manifest) = folder
            .ancestors()
            .map(|folder| folder.join("Cargo.toml"))
            .find(|path| path.is_file())
        else {
            return Ok(Packages::default());
        };
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args([
            "metadata",
            "--format-version",
            "1",
            "--offline",
            "--manifest-path",
        ]);
        let failed =
            |why: &dyn std::fmt::Display| format!("`cargo metadata` of {}: {why}", say::file(&manifest));
        let output = command.arg(&manifest).output().map_err(|e| failed(&e))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            let line = text.lines().find_map(|line| line.strip_prefix("error: "));
            return Err(failed(&say::name(line.unwrap_or("it failed"))));
        }
        let metadata: Metadata = serde_json::from_slice(&output.stdout).map_err(|e| failed(&e))?;
        Ok(Packages::of(metadata, &manifest))
    }

    fn of(metadata: Metadata, manifest: &Path) -> Packages {
        let nodes = metadata.resolve.map_or_else(Vec::new, |resolve| resolve.nodes);
        let names: HashMap<&str, &Package> = metadata.packages.iter().map(|p| (&*p.id, p)).collect();
        // A macro's output needs the facade or what stands below it.
        let has_functions = |node: &Node| {
            let named = |id: &str| names.get(id).is_some_and(|package| is_own(&package.name));
            !named(&node.id) && node.deps.iter().any(|dep| named(&dep.pkg))
        };
        let library = |id: &str| {
            let mut targets = names.get(id)?.targets.iter();
            targets.find(|target| target.kind.iter().any(|kind| kind.ends_with("lib")))
        };
        let with_functions = nodes.iter().filter(|node| has_functions(node));
        let paths: HashMap<&str, &PathBuf> = with_functions
            .filter_map(|node| Some((&*node.id, &library(&node.id)?.src_path)))
            .collect();
        let own = metadata
            .packages
            .iter()
            .find(|package| package.manifest_path == manifest);
        let own_id = own.map_or_else(String::new, |package| package.id.clone());
        let named = nodes.iter().map(|node| {
            let deps = node.deps.iter();
            let deps = deps.filter_map(|dep| Some((dep.name.clone(), (*paths.get(&*dep.pkg)?).clone())));
            (node.id.clone(), deps.collect())
        });
        Packages {
            own: library(&own_id).map(|target| (target.name.replace('-', "_"), target.src_path.clone())),
            ids: paths
                .iter()
                .map(|(id, path)| ((*path).clone(), (*id).to_owned()))
                .collect(),
            named: named.collect(),
            own_id,
        }
    }
}

/// Whether a package is one of Perpetua's, which the reader knows by itself.
fn is_own(name: &str) -> bool {
    name == "perpetua" || name.starts_with("perpetua-")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::source::File;

    /// Packages in folders of their names: manifest's dependencies, library.
    fn write(folder: &std::path::Path, name: &str, dependencies: &str, library: &str) {
        let package = folder.join(name);
        fs::create_dir_all(package.join("src")).unwrap();
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n{dependencies}"
        );
        fs::write(package.join("Cargo.toml"), manifest).unwrap();
        fs::write(package.join("src/lib.rs"), library).unwrap();
    }

    #[test]
    fn device_functions_of_dependencies_are_found() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().canonicalize().unwrap();
        let facade = "perpetua = { path = \"../perpetua\" }\n";
        write(&folder, "perpetua", "", "");
        write(&folder, "host", "", "pub fn hidden(x: f32) -> f32 { x }");
        write(
            &folder,
            "base-math",
            facade,
            "mod deep;\npub use deep::Scale;\n#[device] pub fn half(x: f32) -> f32 { crate::deep::scaled(x, Scale { by: 0.5 }) }\n\
             #[kernel] pub fn unlisted(y: &mut [f32]) { y[0] = 0.0; }",
        );
        fs::write(
            folder.join("base-math/src/deep.rs"),
            "#[derive(Clone, Copy, GpuType)] #[repr(C)] pub struct Scale { pub by: f32 }\n\
             #[device] pub(crate) fn scaled(x: f32, s: Scale) -> f32 { x * s.by * super::ONE }\n",
        )
        .unwrap();
        let library = fs::read_to_string(folder.join("base-math/src/lib.rs")).unwrap();
        fs::write(
            folder.join("base-math/src/lib.rs"),
            library + "\npub const ONE: f32 = 1.0;\n",
        )
        .unwrap();
        write(
            &folder,
            "shapes",
            &format!("{facade}maths = {{ package = \"base-math\", path = \"../base-math\" }}\n"),
            "#[device] pub fn quarter(x: f32) -> f32 { maths::half(maths::half(x)) }\npub const SIDE: usize = 3;",
        );
        write(
            &folder,
            "app",
            &format!("{facade}shapes = {{ path = \"../shapes\" }}\nhost = {{ path = \"../host\" }}\n"),
            "#[device] pub fn own(x: f32) -> f32 { x }",
        );
        let program = folder.join("app/src/main.rs");
        let lowered = |text: &str| {
            let file = File::new(&program, text);
            let all = file.kernels(None).map_err(|e| e.to_string())?;
            assert_eq!(all.len(), 1, "{all:?}");
            let kernel = file.lowered(&all[0], &all[0].how).map_err(|e| e.to_string())?;
            Ok::<String, String>(kernel.kernel().to_string())
        };
        let text = "use shapes::{SIDE, quarter};\n#[kernel] fn k(y: &mut [f32]) {\n let a = [y[0]; SIDE];\n y[0] = quarter(a[1]) + app::own(1.0); }";
        let found = lowered(text).unwrap();
        assert!(found.contains("0.5"), "{found}");
        // What names a crate without device functions leads out of the file, and so does a dependency's dependency.
        assert!(lowered("#[kernel] fn k(y: &mut [f32]) { y[0] = host::hidden(1.0); }").is_err());
        assert!(lowered("#[kernel] fn k(y: &mut [f32]) { y[0] = maths::half(1.0); }").is_err());
    }
}
