//! The kernels around a handler of actors. Must not know how they are written.

#[cfg(not(feature = "actors"))]
pub(super) fn run(_file: &super::File<'_>, _wanted: &str, _args: &super::Args) -> Result<(), super::Failure> {
    Err("this program was built without actors: build it with the feature `actors`".into())
}

#[cfg(not(feature = "actors"))]
pub(super) fn kernels(_file: &super::File<'_>) -> Result<Vec<super::NamedKernel>, super::Failure> {
    Ok(Vec::new())
}

#[cfg(feature = "actors")]
pub(super) use with_actors::{kernels, run};

#[cfg(feature = "actors")]
mod with_actors {
    use std::io::Write;

    use perpetua::actors::kernels::source;
    use perpetua::kernel::resident::U32x4;
    use perpetua_ir::front::rust::{
        FunctionDef, GpuType, HandlerKernels, HandlerLibrary, Instantiation, handlers_in_file,
    };
    use perpetua_ir::ir::Checks;

    use super::super::{Args, Failure, File, Form, NamedKernel, pointer_width, print};
    use crate::say::{say, short};
    use crate::stdout::stdout;

    /// Lanes of a home of actors.
    const HOME: u32 = 128;

    pub(in super::super) fn run(file: &File<'_>, wanted: &str, args: &Args) -> Result<(), Failure> {
        let (text, batched) = text_of(file, wanted, args)?;
        if batched && !args.batched {
            say(format!("note: {}", why(args.target)));
            let mark = if args.target == Form::Cpu { ";" } else { "//" };
            writeln!(stdout()?, "{mark} {}", why(args.target))?;
        }
        writeln!(stdout()?, "{text}")?;
        Ok(())
    }

    fn why(target: Form) -> String {
        let name = match target {
            Form::Cpu => {
                return "on the CPU threads call the handler itself: this is the kernel that handles a batch of messages".into();
            }
            Form::Wgsl => "WGSL",
            Form::Msl => "MSL",
            Form::CudaC | Form::Ptx | Form::Ir => "this target",
        };
        format!("{name} cannot keep a kernel on a device: this one handles a batch of messages")
    }

    /// The handlers in a file.
    fn all(file: &File<'_>) -> Result<Vec<HandlerKernels>, Failure> {
        let library = HandlerLibrary {
            items: &source::items(),
            types: vec![(source::FOUR_WORDS, U32x4::describe())],
            resident: source::RESIDENT,
            batched: source::BATCHED,
        };
        file.read(|beside, crates| handlers_in_file(file.text, &file.known, beside, crates, &library))
    }

    /// The kernels around the handlers in a file, with their names.
    pub(in super::super) fn kernels(file: &File<'_>) -> Result<Vec<NamedKernel>, Failure> {
        let all = all(file)?.into_iter().flat_map(|handler| {
            let of = |batched, function: FunctionDef| {
                let kind = if batched { "batched" } else { "resident" };
                (format!("{} ({kind})", handler.name), function, how(batched, 64))
            };
            [
                of(false, handler.resident.clone()),
                of(true, handler.batched.clone()),
            ]
        });
        Ok(all.collect())
    }

    /// How the kernel of a handler is lowered.
    fn how(batched: bool, pointer_width: u32) -> Instantiation {
        Instantiation {
            pointer_width,
            checks: if batched { Checks::On } else { Checks::Caught },
            block_size: (!batched).then_some([HOME, 1, 1]),
            ..Instantiation::default()
        }
    }

    /// The handler's kernel as the target's text, and whether it is the one for batches.
    fn text_of(source: &File<'_>, wanted: &str, args: &Args) -> Result<(String, bool), Failure> {
        let all = all(source)?;
        let file = &source.name;
        let known: Vec<&str> = all.iter().map(|handler| &*handler.name).collect();
        let Some(handler) = all.iter().find(|handler| handler.name == wanted) else {
            return Err(match known.is_empty() {
                true => format!("{file} has no function marked #[ring_kernel]"),
                false => format!(
                    "{file} has no handler `{}`; it has: {}",
                    short(wanted),
                    known.join(", ")
                ),
            }
            .into());
        };
        let batched = args.batched || matches!(args.target, Form::Cpu | Form::Msl | Form::Wgsl);
        let how = how(batched, pointer_width(args.target));
        let kernel = if batched {
            &handler.batched
        } else {
            &handler.resident
        };
        let printed = print(source, kernel, &how, args).map_err(|error| match error.downcast_ref() {
            Some(error) => {
                source.not_lowered(error);
                format!("`{wanted}` could not be printed").into()
            }
            None => error,
        });
        Ok((printed?, batched))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        const FILE: &str = "
            use perpetua::actors::{Context, RingMessage, ring_kernel};
            use perpetua::prelude::*;

            const LIMIT: u32 = 10;

            #[derive(Clone, Copy, GpuType)]
            #[repr(C)]
            struct Sum { total: u32, rounds: [u32; 4] }

            #[derive(Clone, Copy, GpuType, RingMessage)]
            #[repr(C)]
            struct Add { amount: u32, to: i32 }

            #[derive(Clone, Copy, GpuType, RingMessage)]
            #[repr(C)]
            struct Total { sum: u32 }

            #[ring_kernel(also(nothing))]
            fn add(ctx: &mut Context, sum: &mut Sum, message: Add) -> Total {
                sum.total += message.amount.min(LIMIT);
                sum.rounds[message.amount as usize] += 1;
                if message.to >= 0 { ctx.send(message.to as u32, Add { amount: 1, to: -1 }); }
                Total { sum: sum.total }
            }

            #[ring_kernel]
            fn nothing(_ctx: &mut Context, sum: &mut Sum, _message: Total) { sum.total = 0; }

            #[derive(RingMessage)]
            struct Scale { factor: f32, values: Vec<f32>, chosen: Vec<u32> }

            #[ring_kernel(room = 8)]
            fn scale(ctx: &mut Context, sum: &mut Sum, message: ScaleView) -> ScaleView {
                let chosen = ctx.alloc::<u32>(message.chosen.len());
                for i in 0..message.chosen.len() {
                    let at = ctx.get(message.chosen, i);
                    ctx.set(message.values, at, ctx.get(message.values, at) * message.factor);
                    if !chosen.is_empty() { ctx.set(chosen, i, at + 1); }
                }
                ScaleView { factor: 1.0, values: message.values, chosen }
            }
        ";

        fn check(handler: &str, target: Form, batched: bool, expect: &str) {
            let args = Args {
                file: "a.rs".into(),
                kernel: None,
                handler: Some(handler.into()),
                batched,
                target,
                sm: None,
                block: None,
                out_dir: None,
            };
            let file = File::new("a.rs", FILE);
            let found = match text_of(&file, handler, &args) {
                Ok((text, _)) => text,
                Err(error) => error.to_string(),
            };
            assert!(found.contains(expect), "{handler} as {target:?}: {found}");
        }

        #[test]
        fn handlers_of_modules_are_printed() {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("bank.rs"), FILE).unwrap();
            let args = Args {
                file: folder.path().join("a.rs"),
                kernel: None,
                handler: Some("nothing".into()),
                batched: false,
                target: Form::Ir,
                sm: None,
                block: None,
                out_dir: None,
            };
            let file = File::new(&args.file, "mod bank;");
            let (text, _) = text_of(&file, "nothing", &args).unwrap();
            assert!(text.contains("kernel __perpetua_resident_nothing("), "{text}");
        }

        #[test]
        fn handlers_use_what_crates_have() {
            let folder = tempfile::tempdir().unwrap();
            let package = |name: &str, dependencies: &str, file: &str, text: &str| {
                let package = folder.path().join(name);
                std::fs::create_dir_all(package.join("src")).unwrap();
                let manifest = format!(
                    "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n{dependencies}"
                );
                std::fs::write(package.join("Cargo.toml"), manifest).unwrap();
                std::fs::write(package.join("src").join(file), text).unwrap();
            };
            let facade = "perpetua = { path = \"../perpetua\" }\n";
            package("perpetua", "", "lib.rs", "");
            package(
                "limits",
                facade,
                "lib.rs",
                "#[device] pub fn limit() -> u32 { 77 }\n#[ring_kernel] fn other(_ctx: &mut Context, s: &mut u32, m: u32) {}",
            );
            let own = FILE
                .replace("const LIMIT: u32 = 10;", "use limits::limit;")
                .replace("min(LIMIT)", "min(limit())");
            package(
                "app",
                &format!("{facade}limits = {{ path = \"../limits\" }}\n"),
                "main.rs",
                &own,
            );
            let path = folder.path().join("app/src/main.rs");
            let args = Args {
                file: path.clone(),
                kernel: None,
                handler: Some("add".into()),
                batched: false,
                target: Form::Ir,
                sm: None,
                block: None,
                out_dir: None,
            };
            let file = File::new(&path, &own);
            let (text, _) = text_of(&file, "add", &args).unwrap();
            assert!(text.contains("const 77"), "{text}");
            assert_eq!(all(&file).unwrap().len(), 3);
        }

        #[test]
        fn handlers_are_printed_with_the_kernel_around_them() {
            check("add", Form::Ir, false, "kernel __perpetua_resident_add(");
            check("add", Form::Ptx, false, "nanosleep");
            check("nothing", Form::Ptx, false, "__perpetua_resident_nothing");
            check("add", Form::Ptx, true, "batched_add");
            check("add", Form::CudaC, false, "__nanosleep(");
            check("add", Form::CudaC, true, "batched_add");
            check("add", Form::Wgsl, false, "@compute");
            check("scale", Form::Ir, false, "kernel __perpetua_resident_scale(");
            check("scale", Form::Wgsl, false, "arena");
            check("scale", Form::Ptx, true, "batched_scale");
            check("add", Form::Msl, false, "batched_add");
            if cfg!(target_arch = "x86_64") {
                check("add", Form::Cpu, false, "; kernel __perpetua_batched_add");
                check("scale", Form::Cpu, false, "  ret");
            }
            check(
                "sub",
                Form::Ir,
                false,
                "a.rs has no handler `sub`; it has: add, nothing, scale",
            );
        }
    }
}
