//! `cargo xtask setup`: installs what the tests need. Debian packages go where Debian puts them; everything else goes
//! into `.tools`, at pinned versions, laid out as `locate` expects.

use crate::locate::{self, Search};
use crate::toolchain;
use crate::workspace::{cargo, shell};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use xshell::{Shell, cmd};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Install these alone.
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<Component>,
}

/// A group of tools that are of use together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Component {
    /// Vulkan in software (Mesa's llvmpipe), for the wgpu backend.
    Vulkan,
    /// A C++ compiler, which runs rendered MSL.
    Cxx,
    /// NVIDIA's assemblers and NVRTC, for rendered PTX and CUDA C.
    Cuda,
    /// naga's program, for rendered WGSL.
    Naga,
    /// A toolchain that can build for wasm32, Apple and Windows.
    Targets,
    /// ThreadSanitizer.
    Sanitizer,
    /// An emulator of AArch64, with a linker and a C library for it.
    Emulator,
    /// Chromium with what it draws to and what drives it, and the program that makes a wasm page: for the simulation's page.
    Browser,
    /// tint, for rendered WGSL. No package carries it: only looked for.
    Tint,
}

/// A set of PyPI packages unpacked into one sub-folder of `.tools`.
struct PythonPackages {
    folder: &'static str,
    requirements: &'static [&'static str],
}

/// CUDA 13.0's assembler and compiler, as on machines with driver 580: what passes here is read there. The disassembler
/// has no 13.0 package; newer ones read older code. The last assembler that knows compute capability 7.0 is CUDA 12's.
const PYTHON_PACKAGES: [PythonPackages; 2] = [
    PythonPackages {
        folder: locate::CUDA_13,
        requirements: &[
            "nvidia-cuda-nvcc==13.0.88",
            "nvidia-cuda-nvrtc==13.0.88",
            "nvidia-cuda-nvdisasm==13.5.37",
        ],
    },
    PythonPackages {
        folder: locate::CUDA_12,
        requirements: &["nvidia-cuda-nvcc-cu12==12.9.86"],
    },
];

/// Names what a folder of Python packages was filled with.
const STAMP: &str = "requirements.txt";

/// Programs that a page's test needs, and their Debian packages.
const BROWSER: [(&str, &str); 4] = [
    ("chromium", "chromium"),
    ("Xvfb", "xvfb"),
    ("node", "nodejs"),
    ("npm", "npm"),
];

/// What drives the browser.
const DRIVER: &str = "playwright-core@1.64.1";

/// The version of naga's program: that of the naga inside the wgpu in use.
const NAGA: &str = "30.0.1";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let selected = if arguments.only.is_empty() {
        Component::value_variants()
    } else {
        &arguments.only
    };
    let shell = shell()?;
    let started = Instant::now();

    let packages: Vec<&str> = selected
        .iter()
        .flat_map(|component| debian_packages(*component))
        .collect();
    install_debian(&shell, &packages)?;
    for component in selected {
        match component {
            Component::Vulkan
            | Component::Cxx
            | Component::Targets
            | Component::Sanitizer
            | Component::Emulator => {}
            Component::Cuda => PYTHON_PACKAGES
                .iter()
                .try_for_each(|packages| install_python(&shell, packages))?,
            Component::Naga => install_naga(&shell)?,
            Component::Browser => install_driver(&shell)?,
            Component::Tint => {
                if locate::cargo_program("tint", &mut Search::new()).is_none() {
                    say(
                        "tint is not on PATH and no package carries it: its checks will say `ignored: needs tint`",
                    );
                }
            }
        }
        let absent = absent(*component);
        if !absent.is_empty() && *component != Component::Tint {
            bail!(
                "after installing {component:?} these are still missing: {}",
                absent.join(", ")
            );
        }
        if absent.is_empty() {
            say(&format!("{component:?}: ready"));
        }
    }
    say(&format!("done in {:.1} s", started.elapsed().as_secs_f64()));
    Ok(())
}

fn say(what: &str) {
    println!("setup: {what}");
}

/// What a component still lacks, in words.
fn absent(component: Component) -> Vec<String> {
    let program = |name: &str| {
        locate::cargo_program(name, &mut Search::new())
            .is_none()
            .then(|| name.to_owned())
    };
    match component {
        Component::Vulkan => {
            let drivers =
                fs::read_dir("/usr/share/vulkan/icd.d").is_ok_and(|mut entries| entries.next().is_some());
            let loader = [
                "/usr/lib/x86_64-linux-gnu",
                "/usr/lib/aarch64-linux-gnu",
                "/usr/lib64",
                "/usr/lib",
            ]
            .iter()
            .any(|folder| Path::new(folder).join("libvulkan.so.1").exists());
            let missing = [(drivers, "a Vulkan driver"), (loader, "the Vulkan loader")];
            missing
                .iter()
                .filter(|(there, _)| !there)
                .map(|(_, what)| (*what).to_owned())
                .collect()
        }
        Component::Cxx => match (program("g++"), program("clang++")) {
            (Some(name), Some(_)) => vec![name],
            _ => Vec::new(),
        },
        Component::Cuda => PYTHON_PACKAGES
            .iter()
            .filter(|packages| !packages.is_installed())
            .map(|packages| packages.requirements.join(" "))
            .collect(),
        Component::Naga => program("naga").into_iter().collect(),
        Component::Targets => toolchain::absent_targets(),
        Component::Sanitizer => toolchain::absent_sanitizer(),
        Component::Emulator => toolchain::absent_emulator(),
        Component::Browser => {
            let driver = (!driver_entry().is_file()).then(|| DRIVER.to_owned());
            let programs = BROWSER.iter().filter_map(|(name, _)| program(name));
            programs.chain(driver).collect()
        }
        Component::Tint => program("tint").into_iter().collect(),
    }
}

/// Debian packages that would give a component what it lacks.
fn debian_packages(component: Component) -> Vec<&'static str> {
    if absent(component).is_empty() {
        return Vec::new();
    }
    match component {
        Component::Vulkan => vec!["mesa-vulkan-drivers", "libvulkan1"],
        Component::Cxx => vec!["g++"],
        Component::Cuda if !has_pip() => vec!["python3", "python3-pip"],
        Component::Targets => toolchain::DEBIAN_PACKAGES.to_vec(),
        Component::Sanitizer => toolchain::SANITIZER_PACKAGES.to_vec(),
        Component::Emulator => toolchain::EMULATOR_PACKAGES.to_vec(),
        Component::Browser => BROWSER
            .iter()
            .filter(|(name, _)| locate::cargo_program(name, &mut Search::new()).is_none())
            .map(|(_, package)| *package)
            .collect(),
        Component::Cuda | Component::Naga | Component::Tint => Vec::new(),
    }
}

fn has_pip() -> bool {
    shell().is_ok_and(|shell| {
        cmd!(shell, "python3 -m pip --version")
            .quiet()
            .ignore_stdout()
            .ignore_stderr()
            .run()
            .is_ok()
    })
}

/// Installs Debian packages, if any are named.
pub(crate) fn install_debian(shell: &Shell, packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    if locate::cargo_program("apt-get", &mut Search::new()).is_none() {
        bail!("this machine has no apt-get: install what Debian calls {list} by its own means");
    }
    say(&format!("installing Debian packages: {list}"));
    let is_root = cmd!(shell, "id -u").quiet().read()? == "0";
    let (program, before): (_, &[&str]) = if is_root { ("env", &[]) } else { ("sudo", &["env"]) };
    let remedy =
        || format!("could not install Debian packages; as root: apt-get update && apt-get install -y {list}");
    for arguments in [
        &["update"][..],
        &[&["install", "-y", "--no-install-recommends"], packages].concat(),
    ] {
        cmd!(
            shell,
            "{program} {before...} DEBIAN_FRONTEND=noninteractive apt-get -qq {arguments...}"
        )
        .quiet()
        .ignore_stdout()
        .run()
        .with_context(remedy)?;
    }
    Ok(())
}

impl PythonPackages {
    fn stamp(&self) -> String {
        self.requirements.join("\n") + "\n"
    }

    fn is_installed(&self) -> bool {
        let stamp = locate::tools_folder().join(self.folder).join(STAMP);
        fs::read_to_string(stamp).is_ok_and(|found| found == self.stamp())
    }
}

/// Unpacks packages into a fresh folder and moves it into place when it is whole.
fn install_python(shell: &Shell, packages: &PythonPackages) -> Result<()> {
    if packages.is_installed() {
        return Ok(());
    }
    say(&format!(
        "installing into .tools/{}: {}",
        packages.folder,
        packages.requirements.join(" ")
    ));
    let tools = locate::tools_folder();
    let folder = tools.join(packages.folder);
    let partial = tools.join(format!("{}.partial", packages.folder));
    for old in [&partial, &folder] {
        if old.exists() {
            fs::remove_dir_all(old).with_context(|| format!("{} could not be removed", old.display()))?;
        }
    }
    let requirements = packages.requirements;
    cmd!(shell, "python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --no-deps --no-compile --only-binary :all: --target {partial} {requirements...}")
        .quiet()
        .run()
        .with_context(|| format!("pip could not install {}", requirements.join(" ")))?;
    fs::write(partial.join(STAMP), packages.stamp())?;
    fs::rename(&partial, &folder)
        .with_context(|| format!("{} could not be moved into place", partial.display()))
}

/// The module that drives the browser.
pub(crate) fn driver_entry() -> PathBuf {
    locate::tools_folder().join("node/node_modules/playwright-core/index.mjs")
}

fn install_driver(shell: &Shell) -> Result<()> {
    if driver_entry().is_file() {
        return Ok(());
    }
    say(&format!("installing into .tools/node: {DRIVER}"));
    let folder = locate::tools_folder().join("node");
    fs::create_dir_all(&folder)?;
    cmd!(
        shell,
        "npm install --silent --no-fund --no-audit --prefix {folder} {DRIVER}"
    )
    .quiet()
    .run()
    .with_context(|| format!("npm could not install {DRIVER}"))
}

fn install_naga(shell: &Shell) -> Result<()> {
    if locate::cargo_program("naga", &mut Search::new()).is_some() {
        return Ok(());
    }
    say(&format!(
        "building naga-cli {NAGA} into .tools/{} (a minute or two)",
        locate::CARGO_ROOT
    ));
    let (cargo, root) = (cargo(), locate::tools_folder().join(locate::CARGO_ROOT));
    cmd!(
        shell,
        "{cargo} install --quiet --locked naga-cli --version {NAGA} --root {root}"
    )
    .quiet()
    .run()
    .context("cargo could not install naga-cli")
}
