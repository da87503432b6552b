//! Choosing a backend: what automatic choice takes, and what an explicit one that cannot be had says.

use perpetua_device::*;

fn refusal(kind: BackendKind) -> String {
    match Device::new(kind, 0) {
        Ok(device) => format!("{device:?} was opened"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_explicit_choice_that_cannot_be_had_says_why() {
    if cfg!(not(target_vendor = "apple")) {
        let text = refusal(BackendKind::Metal);
        assert!(
            text.starts_with("Metal backend is only available on Apple platforms; this is "),
            "{text}"
        );
    }
    let not_built = |kind: BackendKind, built: bool, name: &str| {
        if !built {
            let expect = format!(
                "{kind} backend requires the feature `{name}`, which this program was built without: add `features = [\"{name}\"]` to the perpetua dependency"
            );
            assert_eq!(refusal(kind), expect);
        }
    };
    not_built(BackendKind::Cuda, cfg!(feature = "cuda"), "cuda");
    not_built(BackendKind::Wgpu, cfg!(feature = "wgpu"), "wgpu");
    not_built(BackendKind::Cpu, cfg!(feature = "cpu"), "cpu");
}

#[test]
fn an_explicit_choice_is_kept() -> Result<()> {
    assert_eq!(Device::new(BackendKind::Null, 0)?.backend(), BackendKind::Null);
    let error = Device::new(BackendKind::Null, 3).expect_err("there is one null device");
    assert_eq!(
        error.to_string(),
        "null device 3 not found: looked for the null device, found 1; use device 0"
    );
    Ok(())
}

#[test]
fn automatic_choice_takes_real_hardware() -> Result<()> {
    let chosen = select_backend();
    if cfg!(any(feature = "cpu", feature = "cuda", feature = "wgpu")) {
        let backend = chosen?;
        assert_ne!(backend.kind(), BackendKind::Null);
        assert_eq!(Device::new(BackendKind::Auto, 0)?.backend(), backend.kind());
    } else {
        let error = chosen.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.starts_with("no backend is available: CUDA: "), "{error}");
    }
    Ok(())
}

#[test]
fn names_lead_back_to_backends() {
    for kind in backends().into_iter().map(|entry| entry.kind) {
        assert_eq!(BackendKind::from_name(kind.name()), Some(kind));
    }
    assert_eq!(BackendKind::from_name("auto"), Some(BackendKind::Auto));
    assert_eq!(BackendKind::from_name("opencl"), None);
}

#[test]
fn the_null_device_writes_a_log() -> Result<()> {
    use perpetua_ir::ir::{Access, KernelBuilder, Type};
    use perpetua_ir::verify::verify;

    let device = Device::new(BackendKind::Null, 0)?;
    let mut k = KernelBuilder::new("nothing");
    k.buffer("x", Type::F32, Access::Read);
    k.param("a", Type::I32);
    let kernel = device.compile_ir(&verify(k.finish()).expect("a sound kernel"))?;
    let x = device.zeros::<f32>(7)?;
    device.launch(&kernel, LaunchConfig::linear(7, 4), args![&x, -1i32])?;
    let context = device.context().as_any().downcast_ref::<null::NullContext>();
    let launches = context.map(null::NullContext::launches).unwrap_or_default();
    let expect = null::NullLaunch {
        kernel: "nothing".into(),
        config: LaunchConfig::new(2, 4),
        args: vec!["[f32; 7]".into(), "-1i32".into()],
    };
    assert_eq!(launches, [expect]);
    Ok(())
}
