//! The window on a screen that is memory: what it shows is read as pixels.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use perpetua_vendor_tools::locate::Search;

use super::folder::*;

/// A screen of X11 without a device, which keeps its pixels in a file.
struct Screen {
    server: Child,
    name: String,
    folder: Folder,
}

impl Screen {
    /// `None` where the server is not installed.
    fn open() -> Option<Screen> {
        let Some(program) = Search::new().on_path("Xvfb") else {
            let required = std::env::var_os("PERPETUA_REQUIRE_TOOLS").is_some();
            assert!(!required, "there is no Xvfb: `cargo xtask setup`");
            println!("left out: there is no Xvfb");
            return None;
        };
        let folder = Folder::new();
        let mut server = std::process::Command::new(program)
            .args("-displayfd 1 -screen 0 1280x900x24 -nolisten tcp -fbdir".split(' '))
            .arg(folder.0.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // It says its number when it can be used.
        let mut number = String::new();
        let mut told = BufReader::new(server.stdout.take().unwrap());
        told.read_line(&mut number).unwrap();
        assert_ne!(number, "", "{:?}", server.wait());
        Some(Screen {
            server,
            name: format!(":{}", number.trim()),
            folder,
        })
    }

    /// Of each pixel whether it is blue or red as the field is; no control has many of these. The file is X11's window dump: a head that
    /// says its own length and how many colours of 12 bytes follow, then rows of blue, green, red and nothing.
    fn wave(&self) -> Vec<bool> {
        let dump = fs::read(self.folder.at("Xvfb_screen0")).unwrap();
        let word = |at: usize| u32::from_be_bytes(dump[4 * at..][..4].try_into().unwrap()) as usize;
        let [head, width, height, bits, row, colors] = [0, 4, 5, 11, 12, 19].map(word);
        assert_eq!((width, height, bits, row), (1280, 900, 32, 4 * width));
        let rows = &dump[head + 12 * colors..][..row * height];
        let is_wave = |&[blue, green, red, _]: &[u8; 4]| match red > blue {
            false => blue > 120 && red < 60,
            true => red > 120 && green < 90 && blue < 40,
        };
        rows.as_chunks().0.iter().map(is_wave).collect()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Screen {
    /// A window on it, where a session names no folder for sockets.
    fn window(&self, folder: &Folder, backend: &str) -> std::process::Command {
        let mut command = folder.command(&["--window", "--size=64", "--backend", backend]);
        for name in ["WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XDG_RUNTIME_DIR"] {
            command.env_remove(name);
        }
        command.env("DISPLAY", &self.name);
        command
    }
}

/// A display that no graphics device draws on.
#[test]
fn a_window_without_a_graphics_device_is_an_error_in_words() {
    let Some(screen) = Screen::open() else { return };
    let folder = Folder::new();
    let mut command = screen.window(&folder, "cpu");
    for name in ["VK_ICD_FILENAMES", "VK_DRIVER_FILES"] {
        command.env(name, "/nonexistent");
    }
    command.env("WGPU_BACKEND", "vulkan");
    let output = ended(command);
    let expect = "error: no graphics device can draw in a window on this display: `perpetua devices` says what was looked for; leave --window out\n";
    assert_eq!((said(&output).as_str(), output.status.code()), (expect, Some(1)));
}

/// The field on X11, where a session names no folder for sockets, also where it names a display of Wayland's, which is none without it: drawn
/// from a GPU's buffers, or by the host. It moves, and nothing is said.
#[test]
fn a_window_shows_the_wave() {
    let Some(screen) = Screen::open() else { return };
    for (backend, display) in [("wgpu", None), ("cpu", Some("wayland-0"))] {
        let folder = Folder::new();
        let mut command = screen.window(&folder, backend);
        command.envs(display.map(|name| ("WAYLAND_DISPLAY", name)));
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let started = Instant::now();
        let mut first: Option<Vec<bool>> = None;
        let shown = loop {
            if child.try_wait().unwrap().is_some() {
                break "a window that has closed".to_owned();
            }
            let now = screen.wave();
            let count = now.iter().filter(|is_wave| **is_wave).count();
            let moved = first
                .iter()
                .flat_map(|first| first.iter().zip(&now).filter(|(a, b)| a != b));
            let moved = moved.count();
            if moved > 1_000 && count > 2_000 {
                break "a wave".to_owned();
            }
            if started.elapsed() > Duration::from_secs(300) {
                break format!("{count} pixels of a wave, of which {moved} moved");
            }
            if first.is_none() && count > 2_000 {
                first = Some(now);
            }
            sleep(Duration::from_millis(50));
        };
        if shown != "a window that has closed" {
            kill(&child, "TERM");
        }
        let output = end_of(child);
        assert_eq!(
            (shown.as_str(), &*said(&output)),
            ("a wave", ""),
            "--backend {backend}"
        );
    }
}
