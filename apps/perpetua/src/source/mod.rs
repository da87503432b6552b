//! A Rust file with kernels: what it holds, which of it the command line means, and its mistakes as rustc shows them. Must not know
//! what becomes of a kernel.

mod crates;
mod report;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use perpetua_ir::front::rust::{
    FileKernel, Files, Instantiation, REFUSED, SourceError, kernels_and_refusals, kernels_in_crates, lower,
};
use perpetua_ir::plain::misleads;
use perpetua_ir::verify::{Verified, verify};

use super::Failure;
use super::files::read_text;
use super::say;
use crates::Crates;
pub(crate) use report::{File, spoken};

/// A file's text.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    if path
        .extension()
        .is_some_and(|extension| extension == "pasm" || extension == "pisa")
    {
        let name = say::file(path);
        return Err(format!(
            "{name}: a program of the instruction set is no Rust: `perpetua isa run {name}` runs it"
        )
        .into());
    }
    if path.as_os_str() == "-" {
        return Err("-: name /dev/stdin, or ./- for a file of this name".into());
    }
    let text = read_text(path).map_err(|e| format!("{}: {e}", say::file(path)))?;
    Ok(without_mark(text))
}

/// The text of a module's file, if there is one.
fn module(path: &Path) -> Result<Option<String>, String> {
    match read_text(path) {
        Ok(text) => Ok(Some(without_mark(text))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(format!("{}: {error}", say::file(path))),
    }
}

/// A text without the mark of its encoding.
fn without_mark(text: String) -> String {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

/// A kernel as the command line names it, a generic one with its arguments: `sum::<f32, 256>`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Wanted<'a> {
    pub(crate) name: &'a str,
    generics: Vec<&'a str>,
}

impl<'a> Wanted<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Wanted<'a>, Failure> {
        let (name, rest) = text.split_once("::<").unwrap_or((text, ">"));
        let name = name.trim();
        if name.contains(misleads) {
            return Err(format!("`{}` is no kernel's name", say::short(name)).into());
        }
        let Some(list) = rest.trim_end().strip_suffix('>') else {
            return Err(format!(
                "`{}` lacks its closing >, as in 'sum::<f32, 256>'",
                say::short(text)
            )
            .into());
        };
        // Types have commas of their own.
        let mut depth = 0;
        let is_between = |c: char| {
            depth += i32::from("<([{".contains(c)) - i32::from(">)]}".contains(c));
            c == ',' && depth == 0
        };
        let generics = list.split(is_between).map(str::trim);
        Ok(Wanted {
            name,
            generics: generics.filter(|argument| !argument.is_empty()).collect(),
        })
    }

    /// How to lower the kernel that it names.
    pub(crate) fn instantiation(
        &self,
        kernel: &FileKernel,
        pointer_width: u32,
    ) -> Result<Instantiation, Failure> {
        let params = &kernel.function.tree()?.generics;
        let name = &kernel.name;
        if params.len() != self.generics.len() {
            let names: Vec<&str> = params.iter().map(|param| param.name()).collect();
            return Err(match names.join(", ") {
                names if names.is_empty() => format!("`{name}` is not generic: leave its arguments out"),
                names => {
                    format!("`{name}` is generic: name its arguments, as '{name}::<{names}>' with values")
                }
            }
            .into());
        }
        let generics = params.iter().zip(&self.generics);
        Ok(Instantiation {
            pointer_width,
            generics: generics
                .map(|(param, text)| kernel.generic(param, text).map_err(|error| say::name(&error)))
                .collect::<Result<_, _>>()?,
            ..kernel.how.clone()
        })
    }
}

/// What to call kernels: by their names, where these tell them apart, else with their modules.
fn called(all: &[FileKernel]) -> String {
    let is_clear = |kernel: &FileKernel| all.iter().filter(|other| other.name == kernel.name).count() == 1;
    let names = all.iter().map(|kernel| match is_clear(kernel) {
        true => &*kernel.name,
        false => &*kernel.path,
    });
    names.collect::<Vec<_>>().join(", ")
}

impl File<'_> {
    /// Reads the file by a function that is told where its modules are, and the crates that it names. What is refused is shown.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(Files<'_>, perpetua_ir::front::rust::Crates<'_>) -> Result<T, SourceError>,
    ) -> Result<T, Failure> {
        let around = Crates::around(self.path());
        let beside = |known: &str| module(&self.place_of(known));
        let crates = |from: &str, name: &str| around.find(from, name);
        read(&beside, &crates).map_err(|e| self.refused(e))
    }

    /// The kernel that `wanted` names, also where something else in the file is refused; what is refused is shown where it is missing.
    fn kernel_of_name(&self, wanted: &Wanted<'_>) -> Result<Vec<FileKernel>, Failure> {
        let (all, refused) = self.kernels_and_refusals()?;
        match (self.named(all, wanted), refused) {
            (Err(_), Some(refused)) => Err(self.refused(refused)),
            (found, _) => found,
        }
    }

    /// All its kernels; there may be none.
    pub(crate) fn all_kernels(&self) -> Result<Vec<FileKernel>, Failure> {
        self.read(|beside, crates| kernels_in_crates(self.text, &self.known, beside, crates))
    }

    /// Its kernels but for those that are refused as they are read, and what is refused so.
    pub(crate) fn kernels_and_refusals(&self) -> Result<(Vec<FileKernel>, Option<SourceError>), Failure> {
        self.read(|beside, crates| kernels_and_refusals(self.text, &self.known, beside, crates))
    }

    /// Its kernels; the one that `wanted` names, or all.
    pub(crate) fn kernels(&self, wanted: Option<&Wanted<'_>>) -> Result<Vec<FileKernel>, Failure> {
        match wanted {
            Some(wanted) => self.kernel_of_name(wanted),
            None => self.some(self.all_kernels()?),
        }
    }

    /// The kernels, of which there must be one at least.
    fn some(&self, all: Vec<FileKernel>) -> Result<Vec<FileKernel>, Failure> {
        match all.is_empty() {
            true => Err(format!("{} has no function marked #[kernel]", self.name).into()),
            false => Ok(all),
        }
    }

    /// That of the kernels which `wanted` names.
    fn named(&self, all: Vec<FileKernel>, wanted: &Wanted<'_>) -> Result<Vec<FileKernel>, Failure> {
        let (mut all, name) = (self.some(all)?, wanted.name);
        let known = called(&all);
        let is_path = all.iter().any(|kernel| kernel.path == name);
        // What is a kernel's path may be another's name.
        all.retain(|kernel| kernel.path == name || (!is_path && kernel.name == name));
        match all.len() {
            0 => Err(format!("{} has no kernel `{name}`; it has: {known}", self.name).into()),
            1 => Ok(all),
            _ => Err(format!(
                "{} has several kernels `{name}`: say which of {}",
                self.name,
                called(&all)
            )
            .into()),
        }
    }

    /// The kernel that `wanted` names, or the file's only one.
    pub(crate) fn kernel(&self, wanted: Option<&Wanted<'_>>) -> Result<FileKernel, Failure> {
        let mut all = self.kernels(wanted)?;
        match all.pop() {
            Some(only) if all.is_empty() => Ok(only),
            last => {
                all.extend(last);
                let names = called(&all);
                Err(format!("{} has several kernels: say which of {names}", self.name).into())
            }
        }
    }

    /// A kernel, lowered so. What is wrong with it is shown; the error says only that.
    pub(crate) fn lowered(&self, kernel: &FileKernel, how: &Instantiation) -> Result<Verified, Failure> {
        let kernel = lower(&kernel.function, how).map_err(|error| {
            // What it needs may be refused where it stands: that is shown first.
            if error.remedy == REFUSED
                && let Ok((_, Some(refused))) = self.kernels_and_refusals()
            {
                return self.refused(refused);
            }
            self.not_lowered(&error);
            Failure::from(format!("{} has a mistake", self.name))
        })?;
        let source = Arc::clone(&kernel.source);
        verify(kernel).map_err(|wrong| {
            self.within(&source, |file| {
                for error in &wrong.errors {
                    file.marked(&error.cause.to_string(), error.line);
                }
            });
            format!("{} has a mistake", self.name).into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_by_name() {
        let text = "#[kernel] fn a(y: &mut [u32]) { y[0] = 1; }\n#[kernel] fn b(y: &mut [u32]) { y[0] = 2; }";
        let file = File::new("k.rs", text);
        let found = |wanted: &str| {
            let wanted = Wanted::parse(wanted).unwrap();
            file.kernels(Some(&wanted))
                .map(|all| all.len())
                .map_err(|e| e.to_string())
        };
        assert_eq!(found("b"), Ok(1));
        assert_eq!(found("c"), Err("k.rs has no kernel `c`; it has: a, b".into()));
        assert_eq!(file.kernels(None).unwrap().len(), 2);
        let text = "mod a { #[kernel] fn k(y: &mut [u32]) { y[0] = 1; } }\nmod b { #[kernel] fn k(y: &mut [u32]) { y[0] = 2; } }\n\
            #[kernel] fn l(y: &mut [u32]) { y[0] = 3; }";
        let file = File::new("k.rs", text);
        let found = |wanted: Option<&str>| {
            let wanted = wanted.map(|wanted| Wanted::parse(wanted).unwrap());
            file.kernel(wanted.as_ref())
                .map(|kernel| kernel.path)
                .map_err(|e| e.to_string())
        };
        assert_eq!(found(Some("b::k")).as_deref(), Ok("b::k"));
        assert_eq!(found(Some("a::k")).as_deref(), Ok("a::k"));
        assert_eq!(found(Some("l")).as_deref(), Ok("l"));
        for (wanted, expect) in [
            (None, "k.rs has several kernels: say which of a::k, b::k, l"),
            (Some("k"), "k.rs has several kernels `k`: say which of a::k, b::k"),
            (Some("c::k"), "k.rs has no kernel `c::k`; it has: a::k, b::k, l"),
        ] {
            assert_eq!(found(wanted), Err(expect.to_owned()));
        }
        let empty = File::new("e.rs", "fn f() {}");
        let error = empty.kernels(None).unwrap_err().to_string();
        assert_eq!(error, "e.rs has no function marked #[kernel]");
    }

    #[test]
    fn modules_beside_a_file_are_read() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join(if cfg!(unix) { "a\n\\b" } else { "b" });
        std::fs::create_dir(&folder).unwrap();
        let name = folder.join("k.rs");
        let text = "mod math;\n#[kernel] fn k(y: &mut [f32]) { y[0] = math::twice(y[1]); }";
        let file = File::new(&name, text);
        let lowered = || {
            let kernel = file.kernel(None)?;
            file.lowered(&kernel, &kernel.how).map(|_| ())
        };
        assert!(lowered().is_err());
        std::fs::write(
            folder.join("math.rs"),
            "#[device] pub fn twice(x: f32) -> f32 { x + x }",
        )
        .unwrap();
        assert!(lowered().is_ok());
        // What is there and cannot be read is not missing.
        std::fs::write(folder.join("math.rs"), b"\xff").unwrap();
        let told = module(&folder.join("math.rs")).unwrap_err();
        assert!(
            told.ends_with("math.rs: stream did not contain valid UTF-8"),
            "{told}"
        );
    }

    #[test]
    #[cfg(unix)]
    fn a_path_need_not_be_text() {
        use std::os::unix::ffi::OsStrExt;
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join(std::ffi::OsStr::from_bytes(b"a\xff"));
        let own = folder.join(std::ffi::OsStr::from_bytes(b"k\xff"));
        std::fs::create_dir_all(&own).unwrap();
        for (path, name) in [(&folder, "one"), (&own, "two")] {
            let text = format!("#[device] pub fn {name}(x: f32) -> f32 {{ x + x }}");
            std::fs::write(path.join(format!("{name}.rs")), text).unwrap();
        }
        let text = "mod one; mod two;\n#[kernel] fn k(y: &mut [f32]) { y[0] = one::one(two::two(y[1])); }";
        let path = own.with_extension("rs");
        let file = File::new(&path, text);
        let kernel = file.kernel(None).unwrap();
        assert!(file.lowered(&kernel, &kernel.how).is_ok());
    }
}
