//! What Vulkan's drivers say of a device and wgpu does not pass on. Must not know wgpu's other interfaces.

/// Multiprocessors of an adapter, where it is Vulkan's and NVIDIA's. Other vendors' units hold lanes in other numbers, which nobody tells.
#[cfg(any(target_os = "linux", windows))]
pub(super) fn multiprocessors(adapter: &wgpu::Adapter) -> Option<u32> {
    use ash::{nv, vk};
    // SAFETY: nothing of what this gives is destroyed or kept: it is asked two questions while `adapter` lives.
    let hal = unsafe { adapter.as_hal::<wgpu::hal::api::Vulkan>() }?;
    let instance = hal.shared_instance();
    let device = hal.physical_device_capabilities();
    // Both must have the function; earlier ones have another name for it.
    let version = device
        .properties()
        .api_version
        .min(instance.instance_api_version());
    if version < vk::API_VERSION_1_1 || !device.supports_extension(nv::shader_sm_builtins::NAME) {
        return None;
    }
    let mut found = vk::PhysicalDeviceShaderSMBuiltinsPropertiesNV::default();
    let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut found);
    // SAFETY: the physical device is this instance's, and both live as long as `hal`; instance and device have version 1.1, in which the
    // function is, and the device has the extension whose structure is asked for; `all` and what it points to are on this stack.
    unsafe {
        instance
            .raw_instance()
            .get_physical_device_properties2(hal.raw_physical_device(), &mut all);
    }
    Some(found.shader_sm_count).filter(|count| *count > 0)
}

#[cfg(not(any(target_os = "linux", windows)))]
pub(super) fn multiprocessors(_: &wgpu::Adapter) -> Option<u32> {
    None
}
