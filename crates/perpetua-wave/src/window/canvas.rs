//! Draws the field: from the simulation's own buffers where the window's device has them, else from a picture that the host
//! makes. Must not know the simulation, and what the mouse does.

use std::sync::Arc;

use eframe::egui;
use eframe::egui_wgpu::{CallbackResources, CallbackTrait, RenderState, ScreenDescriptor};
use eframe::wgpu;

use super::palette::{Palette, Tint, blend, colour};
use super::still::{Still, StillPainter};
use super::view::{Picture, View};
use crate::Medium;
use crate::model::MOST_MEDIA;
use perpetua_device::wgpu::interop;

/// What draws fields.
pub(super) struct Canvas {
    still: Option<Composed>,
}

/// A picture that the host has made, and what of.
struct Composed {
    pixels: Arc<Vec<u8>>,
    field: Arc<Vec<f32>>,
    look: Look,
}

/// How the field is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    pub(super) palette: Palette,
    /// Times the field; then it is drawn from -1 to 1.
    pub(super) gain: f32,
}

/// What is laid over a medium.
fn tint(media: &[Medium], medium: usize) -> Tint {
    let (Some(own), Some(first)) = (media.get(medium), media.first()) else {
        return Tint::NONE;
    };
    if own.reflects {
        Tint::WALL
    } else if own.damping > first.damping {
        Tint::ABSORBER
    } else if own.speed != first.speed {
        Tint::OTHER
    } else {
        Tint::NONE
    }
}

impl Canvas {
    /// Prepares drawing, with the window's device if it draws through wgpu.
    pub(super) fn new(render: Option<&RenderState>) -> Canvas {
        if let Some(render) = render {
            let resources = &mut render.renderer.write().callback_resources;
            resources.insert(StillPainter::new(&render.device, render.target_format));
            if interop::can_compute(&render.adapter) {
                resources.insert(Painter::new(&render.device, render.target_format));
            }
        }
        Canvas { still: None }
    }

    /// Draws the field into `rect`.
    pub(super) fn paint(&mut self, ui: &egui::Ui, rect: egui::Rect, view: &View, look: Look) {
        let [width, height, _] = view.size;
        match &view.picture {
            Picture::None => {}
            Picture::Buffers(field, cells) => {
                let Some((field, 0)) = interop::buffer(field.ptr()) else {
                    return;
                };
                let cells = cells.as_ref().and_then(|c| interop::buffer(c.ptr()));
                let frame = Frame {
                    size: [width as u32, height as u32],
                    first: (view.layer * width * height) as u32,
                    field: field.clone(),
                    cells: cells.map(|(buffer, _)| buffer.clone()),
                    gain: look.gain,
                    tables: tables(look.palette, &view.media),
                };
                ui.painter()
                    .add(eframe::egui_wgpu::Callback::new_paint_callback(rect, frame));
            }
            Picture::Host(field, cells) if field.len() == width * height && cells.len() == field.len() => {
                let current = self.still.take();
                let current = current.filter(|c| Arc::ptr_eq(&c.field, field) && c.look == look);
                let composed = self.still.insert(current.unwrap_or_else(|| Composed {
                    pixels: Arc::new(compose(field, cells, &view.media, look)),
                    field: Arc::clone(field),
                    look,
                }));
                let still = Still {
                    size: [width as u32, height as u32],
                    pixels: Arc::clone(&composed.pixels),
                };
                ui.painter()
                    .add(eframe::egui_wgpu::Callback::new_paint_callback(rect, still));
            }
            Picture::Host(..) => {}
        }
    }
}

/// The picture of a layer, four bytes a cell.
fn compose(field: &[f32], cells: &[u8], media: &[Medium], look: Look) -> Vec<u8> {
    let table = look.palette.table();
    let tints: Vec<Tint> = (0..media.len()).map(|m| tint(media, m)).collect();
    let mut pixels = Vec::with_capacity(field.len() * 4);
    for (value, cell) in field.iter().zip(cells) {
        let tint = tints.get(usize::from(*cell)).copied().unwrap_or(Tint::NONE);
        let mut pixel = colour(&table, *value, look.gain);
        if tint.opacity > 0.0 {
            pixel = blend(pixel, tint.colour, tint.opacity);
        }
        pixels.extend([pixel[0], pixel[1], pixel[2], 255]);
    }
    pixels
}

/// The tables that the shader reads: colours of the field, then tints of slots. Slot 0 is every reflector, slot `m + 1`
/// the medium `m`; those beyond the media are driven by sources.
fn tables(palette: Palette, media: &[Medium]) -> Vec<u32> {
    let pack = |[r, g, b]: [u8; 3], a: u8| u32::from_le_bytes([r, g, b, a]);
    let mut out: Vec<u32> = palette.table().iter().map(|c| pack(*c, 255)).collect();
    out.extend((0..256).map(|slot| {
        let tint = match slot {
            0 => Tint::WALL,
            m if m <= MOST_MEDIA => tint(media, m - 1),
            _ => Tint::NONE,
        };
        pack(tint.colour, (tint.opacity * 255.0) as u8)
    }));
    out
}

/// One frame's picture, to be drawn from buffers.
struct Frame {
    size: [u32; 2],
    first: u32,
    field: wgpu::Buffer,
    cells: Option<wgpu::Buffer>,
    gain: f32,
    tables: Vec<u32>,
}

/// What is the same for all frames, and this frame's bindings.
struct Painter {
    pipeline: wgpu::RenderPipeline,
    layout: wgpu::BindGroupLayout,
    uniform: wgpu::Buffer,
    tables: wgpu::Buffer,
    linear: bool,
    group: Option<wgpu::BindGroup>,
}

/// Bytes of the shader's `View`.
const UNIFORM_BYTES: u64 = 32;

impl Painter {
    fn new(device: &wgpu::Device, format: wgpu::TextureFormat) -> Painter {
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some("wave field"),
            source: wgpu::ShaderSource::Wgsl(include_str!("field.wgsl").into()),
        });
        let entry = |binding, ty| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::FRAGMENT,
            ty: wgpu::BindingType::Buffer {
                ty,
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let storage = wgpu::BufferBindingType::Storage { read_only: true };
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: Some("wave field"),
            entries: &[
                entry(0, wgpu::BufferBindingType::Uniform),
                entry(1, storage),
                entry(2, storage),
                entry(3, storage),
            ],
        });
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some("wave field"),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let pipeline = device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: Some("wave field"),
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
                targets: &[Some(format.into())],
            }),
            primitive: wgpu::PrimitiveState::default(),
            depth_stencil: None,
            multisample: wgpu::MultisampleState::default(),
            multiview_mask: None,
            cache: None,
        });
        let buffer = |label, size, usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(label),
                size,
                usage: usage | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        };
        Painter {
            uniform: buffer("wave field", UNIFORM_BYTES, wgpu::BufferUsages::UNIFORM),
            tables: buffer("wave field's colours", 512 * 4, wgpu::BufferUsages::STORAGE),
            linear: format.is_srgb(),
            group: None,
            pipeline,
            layout,
        }
    }

    fn bind(&mut self, device: &wgpu::Device, queue: &wgpu::Queue, frame: &Frame) {
        let words = [
            frame.size[0],
            frame.size[1],
            frame.first,
            u32::from(frame.cells.is_some()),
            frame.gain.to_bits(),
            u32::from(self.linear),
            0,
            0,
        ];
        let bytes = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
        queue.write_buffer(&self.uniform, 0, &bytes(&words));
        queue.write_buffer(&self.tables, 0, &bytes(&frame.tables));
        let cells = frame.cells.as_ref().unwrap_or(&self.tables);
        self.group = Some(device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some("wave field"),
            layout: &self.layout,
            entries: &[
                entry(0, &self.uniform),
                entry(1, &frame.field),
                entry(2, cells),
                entry(3, &self.tables),
            ],
        }));
    }
}

fn entry(binding: u32, buffer: &wgpu::Buffer) -> wgpu::BindGroupEntry<'_> {
    wgpu::BindGroupEntry {
        binding,
        resource: buffer.as_entire_binding(),
    }
}

impl CallbackTrait for Frame {
    fn prepare(
        &self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        _: &ScreenDescriptor,
        _: &mut wgpu::CommandEncoder,
        resources: &mut CallbackResources,
    ) -> Vec<wgpu::CommandBuffer> {
        if let Some(painter) = resources.get_mut::<Painter>() {
            painter.bind(device, queue, self);
        }
        Vec::new()
    }

    fn paint(
        &self,
        _: egui::PaintCallbackInfo,
        pass: &mut wgpu::RenderPass<'static>,
        resources: &CallbackResources,
    ) {
        if let Some(painter) = resources.get::<Painter>()
            && let Some(group) = &painter.group
        {
            pass.set_pipeline(&painter.pipeline);
            pass.set_bind_group(0, group, &[]);
            pass.draw(0..3, 0..1);
        }
    }
}
