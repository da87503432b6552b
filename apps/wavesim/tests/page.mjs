// Opens the page in Chromium: with WebGPU in software, and without WebGPU on a small touch screen. Compares its numbers
// with those of a program, draws walls, counts the frames until one shows, presses keys, and measures.
// `node page.mjs FOLDER OUT STEPS`; OUT has numbers.f32, and gets pictures.

import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";

const { chromium } = await import(process.env.PLAYWRIGHT);
const [folder, out, steps] = [process.argv[2], process.argv[3], Number(process.argv[4])];
const SIZE = 256;
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" };

const server = createServer(async (request, response) => {
  const path = new URL(request.url, "http://localhost").pathname;
  try {
    const body = await readFile(join(folder, path === "/" ? "index.html" : path.replaceAll("..", "")));
    response.writeHead(200, { "content-type": TYPES[extname(path) || ".html"] ?? "application/octet-stream" });
    response.end(body);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const address = `http://localhost:${server.address().port}/`;

const COMMON = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];
// Drawing, putting pages together and WebGPU on one software Vulkan, which wants a display, headless or not: elsewhere
// what a canvas with WebGPU shows does not reach the screen.
const WEBGPU = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--use-vulkan=swiftshader",
  "--enable-features=Vulkan", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--enable-gpu",
  "--ignore-gpu-blocklist"];
const WITHOUT = ["--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader"];

const screen = spawn("Xvfb", ["-displayfd", "3", "-screen", "0", "1280x1024x24", "-nolisten", "tcp"],
  { stdio: ["ignore", "ignore", "ignore", "pipe"] });
process.on("exit", () => screen.kill());
process.env.DISPLAY = `:${await new Promise((ready, failed) => {
  screen.on("error", failed);
  screen.stdio[3].once("data", (number) => ready(String(number).trim()));
})}`;

function check(holds, what) {
  if (!holds) throw new Error(`does not hold: ${what}`);
  console.log(`  holds: ${what}`);
}

async function open(args, options, hide) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: [...COMMON, ...args] });
  const page = await (await browser.newContext(options)).newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  if (hide) {
    await page.addInitScript(() => Object.defineProperty(Navigator.prototype, "gpu", { get: () => undefined }));
  }
  await page.addInitScript(() => {
    window.progress = [];
    new MutationObserver(() => {
      const text = document.getElementById("message")?.textContent;
      if (text && window.progress.at(-1) !== text) window.progress.push(text);
    }).observe(document, { childList: true, subtree: true, characterData: true });
  });
  await page.goto(address);
  await page.waitForFunction(() => window.wavesimError || window.wavesim, null, { timeout: 120000 });
  const failed = await page.evaluate(() => window.wavesimError);
  if (failed) throw new Error(`${failed}\n${errors.join("\n")}`);
  const progress = await page.evaluate(() => window.progress);
  check(progress.some((text) => /^Loading ... [0-9.]+ MB$/.test(text)), `it shows how much has come: ${progress.at(-2)}`);
  await until(page, 8);
  return { browser, page, errors };
}

const status = (page) => page.evaluate(() => JSON.parse(window.wavesim.status()));
const shown = (page) => page.evaluate(async () => Array.from(await window.wavesim.shown()));

// Waits for a step.
async function until(page, step) {
  const there = (step) => {
    const status = JSON.parse(window.wavesim.status());
    return status && (status.error !== "" || status.step >= step);
  };
  await page.waitForFunction(there, step, { timeout: 180000 });
  const { error } = await status(page);
  if (error !== "") throw new Error(error);
}

// Measures until a second has enough frames, twenty times at most, since others use the machine, too. Gives the best.
async function rates(page, enough) {
  let best = { frames: 0 };
  for (let i = 0; i < 20 && best.frames < enough; i++) {
    const now = await rate(page, 1);
    if (now.frames > best.frames) best = now;
  }
  return best;
}

// Frames a second and steps a frame, over some seconds.
function rate(page, seconds) {
  return page.evaluate((ms) => new Promise((done) => {
    const step = () => JSON.parse(window.wavesim.status()).step;
    const [start, from] = [performance.now(), step()];
    let frames = 0;
    const frame = () => {
      frames += 1;
      const passed = performance.now() - start;
      if (passed < ms) return requestAnimationFrame(frame);
      const made = step() - from;
      done({ frames: frames * 1000 / passed, each: made / frames, speed: made * 1000 / passed });
    };
    requestAnimationFrame(frame);
  }), seconds * 1000);
}

const told = (rate) =>
  `${rate.frames.toFixed(1)} frames/s, ${rate.each.toFixed(1)} steps a frame, ${rate.speed.toFixed(0)} steps/s at ${SIZE}²`;

const native = new Float32Array((await readFile(join(out, "numbers.f32"))).buffer.slice(0));
const most = native.reduce((m, u) => Math.max(m, Math.abs(u)), 0);
check(native.length === SIZE * SIZE && most > 0.3, `the program's waves are ${most.toFixed(2)} high after ${steps} steps`);

async function compare(page, backend) {
  const field = await page.evaluate(
    async ([backend, steps]) => Array.from(await window.wavesim.numbers(backend, steps)), [backend, steps]);
  let [worst, equal] = [0, 0];
  field.forEach((u, i) => { worst = Math.max(worst, Math.abs(u - native[i])); equal += u === native[i] ? 1 : 0; });
  check(field.length === native.length && worst <= 2e-5 * most,
    `${backend}: ${equal} of ${native.length} numbers equal the program's, the worst differs by ${worst.toExponential(1)}`);
}

// Where a cell is on the page.
async function point(page, x, y) {
  const [left, top, width] = (await status(page)).rect;
  return { x: left + (x + 0.5) * width / SIZE, y: top + (y + 0.5) * width / SIZE };
}

// Cells of a column that are at zero.
const zeros = (field, x, from, to) => {
  let count = 0;
  for (let y = from; y < to; y++) count += field[y * SIZE + x] === 0 ? 1 : 0;
  return count;
};

// Energy right of a column, about the middle row.
const energy = (field, from) => {
  let sum = 0;
  for (let y = 108; y < 148; y++) for (let x = from; x < from + 40; x++) sum += field[y * SIZE + x] ** 2;
  return sum;
};

console.log("with WebGPU (software)");
{
  const { browser, page, errors } = await open(WEBGPU, { viewport: { width: 1120, height: 800 } });
  const begun = await status(page);
  check(begun.backend === "wgpu", `it runs on ${begun.device}`);
  await compare(page, "wgpu");
  await compare(page, "cpu");

  // From 4 to 32 steps a frame.
  for (let i = 0; i < 3; i++) await page.keyboard.press("=");
  await until(page, 600);
  const made = await rate(page, 4);
  console.log(`  ${told(made)}`);
  check(made.each >= 20, "at least 20 steps a frame");

  // A wall right of the slits: it holds the field at zero, and behind it there is less.
  const before = await shown(page);
  const [from, to] = [await point(page, 160, 60), await point(page, 160, 196)];
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move(to.x, to.y, { steps: 12 });
  await page.mouse.up();
  await until(page, (await status(page)).step + 400);
  const after = await shown(page);
  const held = [before, after].map((field) => zeros(field, 160, 70, 186));
  check(held[0] < 20 && held[1] === 116, `a drawn wall holds ${held[1]} of 116 cells at zero, ${held[0]} were before`);
  const behind = [before, after].map((field) => energy(field, 170));
  check(behind[1] < 0.3 * behind[0], `behind it the energy falls from ${behind[0].toFixed(1)} to ${behind[1].toFixed(1)}`);
  await page.screenshot({ path: join(out, "page.png") });

  // What a press changes is in the next frame that is drawn.
  const press = await point(page, 200, 230);
  await page.mouse.move(press.x, press.y);
  await page.waitForTimeout(500);
  const frames = await page.evaluate(({ x, y }) => new Promise((done) => {
    const field = document.getElementById("field");
    const copy = new OffscreenCanvas(field.width, field.height).getContext("2d", { willReadFrequently: true });
    const scale = field.width / field.clientWidth;
    const grey = () => {
      copy.drawImage(field, 0, 0);
      const [r, g, b] = copy.getImageData(Math.round(x * scale), Math.round(y * scale), 1, 1).data;
      return Math.abs(r - 150) + Math.abs(g - 156) + Math.abs(b - 168) < 12;
    };
    let count = 0;
    const frame = () => {
      if (grey()) return done(count);
      if (count === 0) {
        const init = { clientX: x, clientY: y, button: 0, buttons: 1, bubbles: true, pointerId: 1, pointerType: "mouse", isPrimary: true };
        field.dispatchEvent(new PointerEvent("pointerdown", init));
        field.dispatchEvent(new MouseEvent("mousedown", init));
        document.dispatchEvent(new PointerEvent("pointerup", init));
      }
      count += 1;
      count > 60 ? done(count) : requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }), press);
  check(frames === 1, `a press shows after ${frames} frame`);

  await page.keyboard.press("Space");
  await page.waitForTimeout(500);
  const paused = (await status(page)).step;
  await page.waitForTimeout(500);
  check((await status(page)).step === paused, "the space bar pauses it");
  await page.keyboard.press("s");
  await until(page, paused + 1);
  await page.waitForTimeout(300);
  check((await status(page)).step === paused + 1, "S does one step");
  check(errors.length === 0, `the console has no errors${errors.length ? `: ${errors.join("; ")}` : ""}`);
  await browser.close();
}

console.log("without WebGPU, on a small touch screen");
{
  const small = { viewport: { width: 390, height: 760 }, hasTouch: true, isMobile: true };
  const { browser, page, errors } = await open(WITHOUT, small, true);
  const begun = await status(page);
  check(begun.backend === "CPU", `it runs on ${begun.device}, as ${begun.form}`);
  await until(page, 300);
  const made = await rates(page, 30);
  console.log(`  ${told(made)}`);
  check(made.each >= 3.9, "each frame makes its four steps");
  const before = await shown(page);
  const at = await point(page, 70, 128);
  await page.touchscreen.tap(at.x, at.y);
  await until(page, (await status(page)).step + 20);
  await page.waitForTimeout(500);
  const after = await shown(page);
  const held = [before, after].map((field) => zeros(field, 70, 126, 131));
  check(held[0] < 2 && held[1] === 5, `a touch holds ${held[1]} of 5 cells at zero, ${held[0]} were before`);
  await page.screenshot({ path: join(out, "page-touch.png") });
  check(errors.length === 0, `the console has no errors${errors.length ? `: ${errors.join("; ")}` : ""}`);
  await browser.close();
}
server.close();
process.exit(0);
