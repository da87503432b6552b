//! What the page's script calls: it starts the window on a canvas, and tells tests what goes on there.

use std::cell::RefCell;
use std::fmt::Write;

use js_sys::Float32Array;
use perpetua::device::{BackendKind, Device};
use perpetua::wave::window::view::{Picture, lock};
use perpetua::wave::window::{Start, WaveApp, scenes, wgpu_configuration};
use wasm_bindgen::prelude::*;

thread_local! {
    static RUNNER: RefCell<Option<eframe::WebRunner>> = const { RefCell::new(None) };
}

fn text(error: impl std::fmt::Display) -> JsValue {
    JsValue::from_str(&error.to_string())
}

/// Starts the window on a canvas. Ends when it runs, or with the reason why it does not.
#[wasm_bindgen]
pub async fn start(canvas: web_sys::HtmlCanvasElement, size: usize) -> Result<(), JsValue> {
    let options = eframe::WebOptions {
        wgpu_options: wgpu_configuration(),
        // Flat panels gain nothing from it, and on a software adapter it is most of a frame.
        dithering: false,
        ..eframe::WebOptions::default()
    };
    let begin = Start {
        model: scenes::model(0, size).map_err(text)?,
        scene: Some(0),
        size,
        backend: BackendKind::Auto,
    };
    let runner = eframe::WebRunner::new();
    let own = runner.clone();
    let app = move |cc: &eframe::CreationContext<'_>| -> Result<Box<dyn eframe::App>, _> {
        Ok(Box::new(WaveApp::new(
            &cc.egui_ctx,
            cc.wgpu_render_state.as_ref(),
            begin,
        )))
    };
    own.start(canvas, options, Box::new(app)).await?;
    RUNNER.with_borrow_mut(|slot| *slot = Some(runner));
    Ok(())
}

/// What goes on, as JSON: backend, device, how the kernel runs, steps, steps and frames a second, where the field is drawn
/// (left, top, width, height), the last error.
#[wasm_bindgen]
pub fn status() -> String {
    let state = RUNNER.with_borrow(|runner| {
        let app = runner.as_ref()?.app_mut::<WaveApp>()?;
        let (view, rect) = (lock(app.view()?), app.field_rect());
        let mut out = String::new();
        write!(
            out,
            "{{\"backend\":{:?},\"device\":{:?},\"form\":{:?},\"step\":{},\"steps_per_second\":{:.1},\
             \"frames_per_second\":{:.1},\"cells\":{},\"rect\":[{},{},{},{}],\"error\":{:?}}}",
            view.backend.to_string(),
            view.device,
            view.form,
            view.step,
            view.rate,
            app.frames_per_second(),
            view.size.iter().product::<usize>(),
            rect.min.x,
            rect.min.y,
            rect.width(),
            rect.height(),
            view.error.clone().unwrap_or_default(),
        )
        .ok()?;
        Some(out)
    });
    state.unwrap_or_else(|| "null".to_owned())
}

/// The field that is shown now.
#[wasm_bindgen]
pub async fn shown() -> Result<Float32Array, JsValue> {
    let picture = RUNNER.with_borrow(|runner| {
        let app = runner.as_ref()?.app_mut::<WaveApp>()?;
        let picture = lock(app.view()?).picture.clone();
        Some(picture)
    });
    match picture {
        Some(Picture::Buffers(field, _)) => {
            let values = field.read_async().await.map_err(text)?;
            Ok(Float32Array::from(&values[..]))
        }
        Some(Picture::Host(field, _)) => Ok(Float32Array::from(&field[..])),
        _ => Err(JsValue::from_str("nothing is shown yet")),
    }
}

/// A short simulation's field, computed by `wgpu` or `cpu` apart from what is shown.
#[wasm_bindgen]
pub async fn numbers(backend: String, steps: u32) -> Result<Float32Array, JsValue> {
    let kind = match backend.as_str() {
        "wgpu" => BackendKind::Wgpu,
        "cpu" => BackendKind::Cpu,
        _ => return Err(JsValue::from_str("the backend must be wgpu or cpu")),
    };
    let device = Device::new_async(kind, 0).await.map_err(text)?;
    let field = crate::numbers::field(&device, steps.into()).await.map_err(text)?;
    Ok(Float32Array::from(&field[..]))
}
