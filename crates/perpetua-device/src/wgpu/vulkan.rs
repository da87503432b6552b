//! What Vulkan's drivers say of a device and wgpu does not pass on, and how they are asked without looking for a display. Must not know
//! wgpu's other interfaces.

/// An instance for Vulkan that does not promise to show anything on Wayland. Where that is promised, Mesa's layer for choosing devices
/// connects to a display, and libwayland complains on stderr where a session has no folder for its sockets: in containers, over ssh. None
/// where there is such a folder, Vulkan is not asked for, or there is none. wgpu takes its own default flags for an instance that it is
/// given, which cost a little where indirect dispatches are validated; so nobody else gets one.
#[cfg(target_os = "linux")]
pub(super) fn instance_without_displays(descriptor: &wgpu::InstanceDescriptor) -> Option<wgpu::Instance> {
    use wgpu::hal::{InstanceDescriptor, api::Vulkan, vulkan};
    // As libwayland judges it.
    let folder = std::env::var_os("XDG_RUNTIME_DIR");
    let has_folder = folder.is_some_and(|folder| std::path::Path::new(&folder).is_absolute());
    if has_folder || !descriptor.backends.contains(wgpu::Backends::VULKAN) {
        return None;
    }
    let own = InstanceDescriptor {
        name: "perpetua",
        flags: descriptor.flags,
        memory_budget_thresholds: descriptor.memory_budget_thresholds,
        backend_options: descriptor.backend_options.clone(),
        telemetry: None,
        display: None,
    };
    let headless = |args: vulkan::CreateInstanceCallbackArgs<'_, '_, '_>| {
        args.extensions
            .retain(|name| *name != ash::khr::wayland_surface::NAME);
    };
    // SAFETY: wgpu asks that the callback takes nothing away, because its code may use any extension that it asked for. The function that
    // makes Wayland's surfaces, the only one that this extension has, first looks whether it is in this list and refuses otherwise; and it
    // is never called, because `device.rs` keeps the instance and gives it to nobody who makes surfaces.
    let hal = unsafe { vulkan::Instance::init_with_callback(&own, Some(Box::new(headless))) }.ok()?;
    // SAFETY: `hal` is an instance of the interface that is named, and nobody else has it.
    Some(unsafe { wgpu::Instance::from_hal::<Vulkan>(hal) })
}

#[cfg(all(not(target_os = "linux"), not(target_arch = "wasm32")))]
pub(super) fn instance_without_displays(_: &wgpu::InstanceDescriptor) -> Option<wgpu::Instance> {
    None
}

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
