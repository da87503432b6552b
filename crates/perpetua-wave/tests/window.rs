//! The window's contents, drawn into a picture by software Vulkan: what the mouse draws changes the field, and no field
//! is copied to the host on its way to the screen.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use eframe::egui::{self, Pos2, pos2};
use eframe::egui_wgpu::{RenderState, Renderer, RendererOptions, ScreenDescriptor};
use eframe::wgpu;
use perpetua::device::BackendKind;
use perpetua::device::future::block_on;
use perpetua::device::wgpu::interop;
use perpetua::wave::window::command::Brush;
use perpetua::wave::window::view::{Picture, lock};
use perpetua::wave::window::{Start, WaveApp, scenes};

// A row of pixels is a multiple of 256 bytes: copies from textures want that.
const SIZE: [u32; 2] = [1152, 800];
const FORMAT: wgpu::TextureFormat = wgpu::TextureFormat::Rgba8Unorm;

/// A window without a window: it draws into a texture.
struct Screen {
    ctx: egui::Context,
    app: WaveApp,
    render: RenderState,
    target: wgpu::Texture,
    start: Instant,
}

impl Screen {
    /// `None` where there is no adapter that computes.
    fn open(scene: usize, backend: BackendKind) -> Option<Screen> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
        let adapter = block_on(instance.request_adapter(&wgpu::RequestAdapterOptions::default())).ok();
        let adapter = adapter.filter(interop::can_compute);
        if adapter.is_none() && std::env::var_os("PERPETUA_REQUIRE_TOOLS").is_some() {
            panic!("no Vulkan adapter");
        }
        let adapter = adapter?;
        let descriptor = interop::device_descriptor(&adapter);
        let (device, queue) = block_on(adapter.request_device(&descriptor)).unwrap();
        let renderer = Renderer::new(&device, FORMAT, RendererOptions::default());
        let target = device.create_texture(&wgpu::TextureDescriptor {
            label: None,
            size: wgpu::Extent3d {
                width: SIZE[0],
                height: SIZE[1],
                depth_or_array_layers: 1,
            },
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: FORMAT,
            usage: wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::COPY_SRC,
            view_formats: &[],
        });
        let render = RenderState {
            adapter,
            available_adapters: Vec::new(),
            instance,
            device,
            queue,
            target_format: FORMAT,
            renderer: Arc::new(egui::mutex::RwLock::new(renderer)),
        };
        let ctx = egui::Context::default();
        let app = WaveApp::new(
            &ctx,
            Some(&render),
            Start {
                model: scenes::model(scene, 128).unwrap(),
                scene: Some(scene),
                size: 128,
                backend,
            },
        );
        Some(Screen {
            ctx,
            app,
            render,
            target,
            start: Instant::now(),
        })
    }

    fn frame(&mut self, events: Vec<egui::Event>) {
        let input = egui::RawInput {
            screen_rect: Some(egui::Rect::from_min_size(
                Pos2::ZERO,
                egui::vec2(SIZE[0] as f32, SIZE[1] as f32),
            )),
            time: Some(self.start.elapsed().as_secs_f64()),
            events,
            ..egui::RawInput::default()
        };
        let app = &mut self.app;
        let mut output = self.ctx.run_ui(input, |ui| app.show(ui));
        let jobs = self.ctx.tessellate(output.shapes, output.pixels_per_point);
        let screen = ScreenDescriptor {
            size_in_pixels: SIZE,
            pixels_per_point: output.pixels_per_point,
        };
        let (device, queue) = (&self.render.device, &self.render.queue);
        let mut renderer = self.render.renderer.write();
        for (id, deltas) in output.textures_delta.set.iter() {
            for delta in deltas {
                renderer.update_texture(device, queue, *id, delta);
            }
        }
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut commands = renderer.update_buffers(device, queue, &mut encoder, &jobs, &screen);
        let view = self.target.create_view(&wgpu::TextureViewDescriptor::default());
        let ground = eframe::App::clear_color(&self.app, &egui::Visuals::dark()).map(f64::from);
        let ground = wgpu::Color {
            r: ground[0],
            g: ground[1],
            b: ground[2],
            a: ground[3],
        };
        {
            let pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
                label: None,
                color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                    view: &view,
                    resolve_target: None,
                    ops: wgpu::Operations {
                        load: wgpu::LoadOp::Clear(ground),
                        store: wgpu::StoreOp::Store,
                    },
                    depth_slice: None,
                })],
                ..wgpu::RenderPassDescriptor::default()
            });
            renderer.render(&mut pass.forget_lifetime(), &jobs, &screen);
        }
        commands.push(encoder.finish());
        queue.submit(commands);
        output
            .textures_delta
            .free
            .iter()
            .for_each(|id| renderer.free_texture(id));
        output.textures_delta.clear();
    }

    /// Draws frames until `done`.
    fn until(&mut self, what: &str, mut done: impl FnMut(&Screen) -> bool) {
        let start = Instant::now();
        while !done(self) {
            let late = start.elapsed() > Duration::from_secs(300);
            assert!(!late, "still waiting at step {}: {what}", self.step());
            let error = self.app.view().and_then(|v| lock(v).error.clone());
            assert_eq!(error, None, "while waiting: {what}");
            self.frame(Vec::new());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn step(&self) -> u64 {
        self.app.view().map_or(0, |v| lock(v).step)
    }

    /// Draws frames until `steps` more have been submitted.
    fn run_on(&mut self, steps: u64) {
        let goal = self.step() + steps;
        self.until("steps", |s| s.step() >= goal);
    }

    fn drag(&mut self, from: Pos2, to: Pos2) {
        let button = |pos, pressed| egui::Event::PointerButton {
            pos,
            button: egui::PointerButton::Primary,
            pressed,
            modifiers: egui::Modifiers::NONE,
        };
        self.frame(vec![egui::Event::PointerMoved(from)]);
        self.frame(vec![button(from, true)]);
        for i in 1..=10 {
            let part = i as f32 / 10.0;
            self.frame(vec![egui::Event::PointerMoved(from + (to - from) * part)]);
        }
        self.frame(vec![button(to, false)]);
    }

    fn press(&mut self, key: egui::Key) {
        let event = |pressed| egui::Event::Key {
            key,
            physical_key: None,
            pressed,
            repeat: false,
            modifiers: egui::Modifiers::NONE,
        };
        self.frame(vec![event(true)]);
        self.frame(vec![event(false)]);
    }

    /// The target's pixels; this is the test's own copy.
    fn pixels(&self) -> Vec<u8> {
        let row = SIZE[0] * 4;
        let device = &self.render.device;
        let buffer = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: u64::from(row * SIZE[1]),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_texture_to_buffer(
            self.target.as_image_copy(),
            wgpu::TexelCopyBufferInfo {
                buffer: &buffer,
                layout: wgpu::TexelCopyBufferLayout {
                    offset: 0,
                    bytes_per_row: Some(row),
                    rows_per_image: None,
                },
            },
            self.target.size(),
        );
        self.render.queue.submit([encoder.finish()]);
        buffer.map_async(wgpu::MapMode::Read, .., |r| r.unwrap());
        device.poll(wgpu::PollType::wait_indefinitely()).unwrap();
        buffer.get_mapped_range(..).unwrap().to_vec()
    }

    /// Writes the picture where `PERPETUA_SCREENSHOTS` says, if it says.
    fn keep(&self, name: &str) {
        if let Some(folder) = std::env::var_os("PERPETUA_SCREENSHOTS") {
            let file = std::fs::File::create(std::path::Path::new(&folder).join(name)).unwrap();
            let mut encoder = png::Encoder::new(file, SIZE[0], SIZE[1]);
            encoder.set_color(png::ColorType::Rgba);
            encoder
                .write_header()
                .unwrap()
                .write_image_data(&self.pixels())
                .unwrap();
        }
    }

    fn pixel(&self, at: Pos2) -> [u8; 3] {
        let i = (at.y as usize * SIZE[0] as usize + at.x as usize) * 4;
        self.pixels()[i..i + 3].try_into().unwrap()
    }

    /// Bytes that the simulation's device has copied to the host.
    fn bytes_read(&self) -> u64 {
        match &lock(self.app.view().unwrap()).picture {
            Picture::Buffers(field, _) => interop::bytes_read(field.device()).unwrap(),
            _ => panic!("the field is not drawn from buffers"),
        }
    }

    /// The field now, read back by the test.
    fn field(&self) -> Vec<f32> {
        let view = lock(self.app.view().unwrap());
        match &view.picture {
            Picture::Buffers(field, _) => field.read().unwrap(),
            Picture::Host(field, _) => field.to_vec(),
            Picture::None => Vec::new(),
        }
    }
}

/// The middle of the drawn field: the canvas lies right of the tools, below the tool bar.
const MIDDLE: Pos2 = pos2(633.0, 385.0);

#[test]
fn a_drag_draws_a_wall_that_waves_come_back_from_and_nothing_is_read_back() {
    let Some(mut screen) = Screen::open(scenes::POOL, BackendKind::Wgpu) else {
        return;
    };
    screen.until("the device", |s| s.app.view().is_some());
    screen.run_on(150);
    screen.keep("window-before.png");
    let before = screen.pixel(MIDDLE + egui::vec2(120.0, 0.0));
    screen.app.choose(Brush::Wall);
    screen.drag(
        MIDDLE + egui::vec2(120.0, -150.0),
        MIDDLE + egui::vec2(120.0, 150.0),
    );
    screen.run_on(150);
    screen.keep("window-wall.png");
    let wall = screen.pixel(MIDDLE + egui::vec2(120.0, 0.0));
    assert_eq!(
        wall,
        [150, 156, 168],
        "the wall is drawn, where there was {before:?}"
    );
    assert_eq!(
        screen.bytes_read(),
        0,
        "the field went to the screen without a copy to the host"
    );

    // Waves stop at the wall: behind its middle there is less than as far before the source.
    screen.press(egui::Key::Space);
    screen.until("the pause", |s| !lock(s.app.view().unwrap()).running);
    let field = screen.field();
    assert!(screen.bytes_read() > 0, "the counter counts");
    let energy = |x: std::ops::Range<usize>| {
        let cells = (54..74).flat_map(|y| x.clone().map(move |x| y * 128 + x));
        cells.map(|i| field[i] * field[i]).sum::<f32>()
    };
    let (free, shadow) = (energy(20..38), energy(90..108));
    assert!(shadow < 0.5 * free, "shadow {shadow}, free {free}");
    assert!(free > 1e-3, "waves ran at all: {free}");
}

#[test]
fn keys_pause_step_and_restart() {
    let Some(mut screen) = Screen::open(0, BackendKind::Wgpu) else {
        return;
    };
    screen.until("the device", |s| s.app.view().is_some());
    screen.run_on(40);
    screen.press(egui::Key::Space);
    screen.until("the pause", |s| !lock(s.app.view().unwrap()).running);
    let at = screen.step();
    screen.press(egui::Key::S);
    screen.until("one step", |s| s.step() == at + 1);
    screen.press(egui::Key::R);
    screen.until("the beginning", |s| s.step() == 0);
    assert!(screen.field().iter().all(|u| *u == 0.0));
    screen.press(egui::Key::Space);
    screen.run_on(20);
}

#[test]
fn on_the_cpu_the_picture_comes_through_the_host() {
    let Some(mut screen) = Screen::open(2, BackendKind::Cpu) else {
        return;
    };
    screen.until("a picture", |s| {
        s.app.view().is_some() && s.field().iter().any(|u| u.abs() > 0.05)
    });
    screen.app.choose(Brush::Probe);
    screen.drag(MIDDLE, MIDDLE + egui::vec2(30.0, 0.0));
    screen.until("the probe", |s| {
        let view = lock(s.app.view().unwrap());
        view.series.first().is_some_and(|s| s.len() > 50)
    });
    screen.keep("window-cpu.png");
}

#[test]
fn of_a_volume_the_middle_layer_is_seen() {
    let Some(mut screen) = Screen::open(4, BackendKind::Cpu) else {
        return;
    };
    screen.until("waves in the layer", |s| {
        let depth = s.app.view().map_or(0, |v| lock(v).size[2]);
        depth > 1 && s.field().iter().any(|u| u.abs() > 0.05)
    });
}
