//! Draws pictures that the host has made, also where graphics cannot compute. egui could draw them, too, but converts
//! every pixel between colour spaces, which without a GPU is most of a frame. Must not know what they show.

use std::sync::Arc;

use eframe::egui;
use eframe::egui_wgpu::{CallbackResources, CallbackTrait, ScreenDescriptor};
use eframe::wgpu;

/// A picture on its way to the screen.
pub(super) struct Still {
    /// Pixels in x and y.
    pub(super) size: [u32; 2],
    /// Four bytes a pixel: red, green, blue, opacity.
    pub(super) pixels: Arc<Vec<u8>>,
}

/// What is the same for all pictures, and the one that is shown.
pub(super) struct StillPainter {
    pipeline: wgpu::RenderPipeline,
    layout: wgpu::BindGroupLayout,
    sampler: wgpu::Sampler,
    format: wgpu::TextureFormat,
    shown: Option<(Arc<Vec<u8>>, wgpu::Texture, wgpu::BindGroup)>,
}

impl StillPainter {
    pub(super) fn new(device: &wgpu::Device, target: wgpu::TextureFormat) -> StillPainter {
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some("wave picture"),
            source: wgpu::ShaderSource::Wgsl(include_str!("still.wgsl").into()),
        });
        let entry = |binding, ty| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::FRAGMENT,
            ty,
            count: None,
        };
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some("wave picture"),
            entries: &[
                entry(
                    0,
                    wgpu::BindingType::Texture {
                        sample_type: wgpu::TextureSampleType::Float { filterable: true },
                        view_dimension: wgpu::TextureViewDimension::D2,
                        multisampled: false,
                    },
                ),
                entry(1, wgpu::BindingType::Sampler(wgpu::SamplerBindingType::Filtering)),
            ],
        });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some("wave picture"),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: Some("wave picture"),
            layout: Some(&pipeline_layout),
            vertex: wgpu::VertexState {
                module: &module,
                entry_point: Some("corner"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                buffers: &[],
            },
            fragment: Some(wgpu::FragmentState {
                module: &module,
                entry_point: Some("shade"),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                targets: &[Some(target.into())],
            }),
            primitive: wgpu::PrimitiveState::default(),
            depth_stencil: None,
            multisample: wgpu::MultisampleState::default(),
            multiview_mask: None,
            cache: None,
        });
        let sampler = device.create_sampler(&wgpu::SamplerDescriptor {
            label: Some("wave picture"),
            mag_filter: wgpu::FilterMode::Linear,
            min_filter: wgpu::FilterMode::Linear,
            ..wgpu::SamplerDescriptor::default()
        });
        // What a target converts on the way in, the texture converts on the way out.
        let format = if target.is_srgb() {
            wgpu::TextureFormat::Rgba8UnormSrgb
        } else {
            wgpu::TextureFormat::Rgba8Unorm
        };
        StillPainter {
            pipeline,
            layout,
            sampler,
            format,
            shown: None,
        }
    }

    /// A texture for pictures of a size, and what binds it.
    fn texture(&self, device: &wgpu::Device, size: wgpu::Extent3d) -> (wgpu::Texture, wgpu::BindGroup) {
        let texture = device.create_texture(&wgpu::TextureDescriptor {
            label: Some("wave picture"),
            size,
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: self.format,
            usage: wgpu::TextureUsages::TEXTURE_BINDING | wgpu::TextureUsages::COPY_DST,
            view_formats: &[],
        });
        let view = texture.create_view(&wgpu::TextureViewDescriptor::default());
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("wave picture"),
            layout: &self.layout,
            entries: &[
                wgpu::BindGroupEntry {
                    binding: 0,
                    resource: wgpu::BindingResource::TextureView(&view),
                },
                wgpu::BindGroupEntry {
                    binding: 1,
                    resource: wgpu::BindingResource::Sampler(&self.sampler),
                },
            ],
        });
        (texture, group)
    }

    fn show(&mut self, device: &wgpu::Device, queue: &wgpu::Queue, still: &Still) {
        let [width, height] = still.size;
        let size = wgpu::Extent3d {
            width,
            height,
            depth_or_array_layers: 1,
        };
        let (texture, group) = match self.shown.take() {
            Some((pixels, texture, group)) if Arc::ptr_eq(&pixels, &still.pixels) => {
                self.shown = Some((pixels, texture, group));
                return;
            }
            Some((_, texture, group)) if texture.size() == size => (texture, group),
            _ => self.texture(device, size),
        };
        let rows = wgpu::TexelCopyBufferLayout {
            offset: 0,
            bytes_per_row: Some(4 * width),
            rows_per_image: None,
        };
        queue.write_texture(texture.as_image_copy(), &still.pixels, rows, size);
        self.shown = Some((Arc::clone(&still.pixels), texture, group));
    }
}

impl CallbackTrait for Still {
    fn prepare(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        _: &ScreenDescriptor,
        _: &mut wgpu::CommandEncoder,
        resources: &mut CallbackResources,
    ) -> Vec<wgpu::CommandBuffer> {
        if let Some(painter) = resources.get_mut::<StillPainter>() {
            painter.show(device, queue, self);
        }
        Vec::new()
    }

    fn paint(
        &self,
        _: egui::PaintCallbackInfo,
        pass: &mut wgpu::RenderPass<'static>,
        resources: &CallbackResources,
    ) {
        if let Some(painter) = resources.get::<StillPainter>()
            && let Some((_, _, group)) = &painter.shown
        {
            pass.set_pipeline(&painter.pipeline);
            pass.set_bind_group(0, group, &[]);
            pass.draw(0..3, 0..1);
        }
    }
}
