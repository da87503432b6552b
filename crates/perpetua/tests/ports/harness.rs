//! Runs a port on every device, in every way that the device has. Must not know any port.

use std::fmt::Debug;

use perpetua::device::cpu::CpuContext;
use perpetua::device::{
    BackendKind, Buffer, CompileOptions, Device, Kernel, KernelArg, KernelSource, KernelSpec,
};
use perpetua::prelude::*;

/// How kernels run on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// As the device likes it: native code on the CPU where there is some.
    Own,
    /// From the IR: machine code on the CPU.
    Ir,
    /// In the CPU's interpreter, with the race detector.
    Interpreted,
}

/// A device and a way to run kernels there.
pub(crate) struct Run {
    device: Device,
    way: Way,
}

/// Calls `port` for each device and each way.
pub(crate) fn everywhere(port: impl Fn(&Run)) {
    for way in [Way::Own, Way::Ir, Way::Interpreted] {
        let device = Device::new(BackendKind::Cpu, 0).unwrap();
        let cpu = device.context().as_any().downcast_ref::<CpuContext>();
        cpu.unwrap().detect_races(way == Way::Interpreted);
        port(&Run { device, way });
    }
    for kind in [BackendKind::Wgpu, BackendKind::Cuda] {
        if let Ok(device) = Device::new(kind, 0) {
            port(&Run {
                device,
                way: Way::Own,
            });
        }
    }
}

impl Run {
    /// The kernel, compiled.
    fn kernel(&self, kernel: KernelFn) -> Kernel {
        let options = CompileOptions {
            interpret: self.way == Way::Interpreted,
            ..CompileOptions::default()
        };
        let fail = |e: &dyn Debug| -> ! { panic!("`{}` on {}: {e:?}", kernel.name(), self.place()) };
        let module = match self.way {
            Way::Own => self.device.compile(&KernelSource::Spec(&kernel), &options),
            Way::Ir | Way::Interpreted => {
                let ir = kernel
                    .verified(self.device.info().pointer_width())
                    .unwrap_or_else(|e| fail(&e));
                self.device.compile(&KernelSource::Ir(&ir), &options)
            }
        };
        module
            .and_then(|module| module.only())
            .unwrap_or_else(|e| fail(&e))
    }

    /// Compiles and launches.
    pub(crate) fn launch(&self, kernel: KernelFn, config: LaunchConfig, args: &[KernelArg<'_>]) {
        let launched = self.device.launch(&self.kernel(kernel), config, args);
        launched.unwrap_or_else(|e| panic!("on {}: {e}", self.place()));
    }

    pub(crate) fn upload<T: GpuType>(&self, values: &[T]) -> Buffer<T> {
        self.device.upload(values).unwrap()
    }

    pub(crate) fn zeros<T: GpuType>(&self, len: usize) -> Buffer<T> {
        self.device.zeros(len).unwrap()
    }

    pub(crate) fn read<T: GpuType>(&self, buffer: &Buffer<T>) -> Vec<T> {
        buffer
            .read()
            .unwrap_or_else(|e| panic!("on {}: {e}", self.place()))
    }

    /// The buffer holds these values.
    pub(crate) fn holds<T: GpuType + Debug + PartialEq>(&self, buffer: &Buffer<T>, expected: &[T]) {
        let found = self.read(buffer);
        assert_eq!(found.len(), expected.len(), "on {}", self.place());
        let differ = (0..found.len()).find(|i| found[*i] != expected[*i]);
        let differ = differ.map(|i| (i, &found[i], &expected[i]));
        assert_eq!(differ, None, "on {}: element, found, expected", self.place());
    }

    /// The buffer holds these values, up to this part of the larger of them and 1.
    pub(crate) fn near<T: GpuType + Into<f64>>(&self, buffer: &Buffer<T>, expected: &[f64], part: f64) {
        let found: Vec<f64> = self.read(buffer).into_iter().map(Into::into).collect();
        assert_eq!(found.len(), expected.len(), "on {}", self.place());
        let far = |i: &usize| {
            let (x, y) = (found[*i], expected[*i]);
            // A NaN is near nothing.
            !((x - y).abs() <= part * y.abs().max(1.0))
        };
        let differ = (0..found.len()).find(far).map(|i| (i, found[i], expected[i]));
        assert_eq!(differ, None, "on {}: element, found, expected", self.place());
    }

    /// Whether drivers may round quotients otherwise.
    pub(crate) fn is_wgpu(&self) -> bool {
        self.device.backend() == BackendKind::Wgpu
    }

    pub(crate) fn place(&self) -> String {
        format!("{} ({:?})", self.device.info().name, self.way)
    }
}

/// Random numbers with a seed: splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.bits() as u8).collect()
    }

    /// From `low` to `high`.
    pub(crate) fn within(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * ((self.bits() >> 40) as f32 / 16_777_216.0)
    }
}
