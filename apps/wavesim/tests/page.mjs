// Opens the page in Chromium: with WebGPU in software, without WebGPU, and on a small touch screen. Compares its numbers
// with those of a program, draws a wall, and measures. `node page.mjs FOLDER OUT STEPS`; OUT has numbers.f32.

import { createServer } from "node:http";
import { readFile, writeFile } from "node:fs/promises";
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
const WEBGPU = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];
const WITHOUT = ["--disable-features=WebGPU,WebGPUService", "--enable-unsafe-swiftshader", "--use-gl=angle",
  "--use-angle=swiftshader"];

function check(holds, what) {
  if (!holds) throw new Error(what);
  console.log(`  holds: ${what}`);
}

async function open(args, options, hide) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: [...COMMON, ...args] });
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  if (hide) {
    await page.addInitScript(() => Object.defineProperty(Navigator.prototype, "gpu", { get: () => undefined }));
  }
  await page.goto(address);
  try {
    await page.waitForFunction(
      () => window.wavesimError || (window.wavesim && JSON.parse(window.wavesim.status())?.step > 20),
      null, { timeout: 120000 });
  } catch (error) {
    console.log("errors of the page:", errors);
    throw error;
  }
  const failed = await page.evaluate(() => window.wavesimError);
  if (failed) throw new Error(`${failed}\n${errors.join("\n")}`);
  return { browser, page, errors };
}

const status = (page) => page.evaluate(() => JSON.parse(window.wavesim.status()));

async function rates(page, seconds) {
  await page.waitForTimeout(1500);
  const first = await page.evaluate(() => [performance.now(), JSON.parse(window.wavesim.status()).step]);
  const frames = await page.evaluate((ms) => new Promise((done) => {
    const start = performance.now();
    let count = 0;
    const frame = () => { count += 1; performance.now() - start < ms ? requestAnimationFrame(frame) : done(count * 1000 / (performance.now() - start)); };
    requestAnimationFrame(frame);
  }), seconds * 1000);
  const last = await page.evaluate(() => [performance.now(), JSON.parse(window.wavesim.status()).step]);
  const speed = (last[1] - first[1]) * 1000 / (last[0] - first[0]);
  return { frames, speed, each: speed / frames };
}

const native = new Float32Array((await readFile(join(out, "numbers.f32"))).buffer.slice(0));
check(native.length === SIZE * SIZE, "the program gave a field");
const most = native.reduce((m, u) => Math.max(m, Math.abs(u)), 0);
check(most > 0.3, `its waves are ${most.toFixed(2)} high`);

async function compare(page, backend) {
  const field = await page.evaluate(
    async ([backend, steps]) => Array.from(await window.wavesim.numbers(backend, steps)), [backend, steps]);
  let worst = 0, equal = 0;
  field.forEach((u, i) => { worst = Math.max(worst, Math.abs(u - native[i])); equal += u === native[i] ? 1 : 0; });
  const told = `${backend}: ${equal} of ${native.length} numbers equal the program's, the worst differs by ${worst.toExponential(1)}`;
  check(field.length === native.length && worst <= 2e-5 * most, told);
}

console.log("with WebGPU (software)");
{
  const { browser, page, errors } = await open(WEBGPU, { viewport: { width: 1120, height: 800 } });
  const begun = await status(page);
  check(begun.backend === "wgpu", `it runs on ${begun.device}`);
  await compare(page, "wgpu");
  await compare(page, "cpu");

  // A wall across the open water right of the slits: there the field is held at zero.
  await page.waitForTimeout(4000);
  const wall = (field) => {
    let zero = 0;
    for (let y = 96; y < 160; y++) for (let x = 150; x < 230; x++) zero += field[y * 256 + x] === 0 ? 1 : 0;
    return zero;
  };
  const shown = async () => page.evaluate(async () => Array.from(await window.wavesim.shown()));
  const before = wall(await shown());
  const at = { x: 690, y: 390 };
  await page.mouse.move(at.x, at.y - 120);
  await page.mouse.down();
  await page.mouse.move(at.x, at.y + 120, { steps: 12 });
  await page.mouse.up();
  await page.waitForTimeout(1000);
  const after = wall(await shown());
  check(after > before + 200, `a drawn wall holds ${after} cells at zero, ${before} before`);
  await page.screenshot({ path: join(out, "page.png") });

  for (let i = 0; i < 3; i++) await page.keyboard.press("=");
  const rate = await rates(page, 4);
  console.log(`  ${rate.frames.toFixed(1)} frames/s, ${rate.each.toFixed(1)} steps a frame, ${rate.speed.toFixed(0)} steps/s at ${SIZE}²`);
  check(rate.each >= 20, "at least 20 steps a frame");
  await page.keyboard.press("Space");
  await page.waitForTimeout(300);
  const paused = (await status(page)).step;
  await page.waitForTimeout(300);
  check((await status(page)).step === paused, "the space bar pauses it");
  await page.keyboard.press("s");
  await page.waitForTimeout(300);
  check((await status(page)).step === paused + 1, "S does one step");
  check((await status(page)).error === "", "the simulation reports no error");
  check(errors.length === 0, `the console has no errors${errors.length ? ": " + errors.join("; ") : ""}`);
  await browser.close();
}

console.log("without WebGPU, on a small touch screen");
{
  const { browser, page } = await open(WITHOUT, { viewport: { width: 390, height: 760 }, hasTouch: true, isMobile: true }, true);
  const begun = await status(page);
  check(begun.backend === "CPU", `it runs on ${begun.device}, ${begun.form}`);
  const rate = await rates(page, 4);
  console.log(`  ${rate.frames.toFixed(1)} frames/s, ${rate.each.toFixed(1)} steps a frame at ${SIZE}²`);
  const before = await page.evaluate(async () => Array.from(await window.wavesim.shown()));
  await page.touchscreen.tap(240, 300);
  await page.waitForTimeout(1000);
  const after = await page.evaluate(async () => Array.from(await window.wavesim.shown()));
  const zeros = (field) => field.reduce((n, u) => n + (u === 0 ? 1 : 0), 0);
  console.log(`  cells at zero: ${zeros(before)} before a touch, ${zeros(after)} after`);
  await page.screenshot({ path: join(out, "page-touch.png") });
  check((await status(page)).error === "", "the simulation reports no error");
  check(rate.frames >= 30, "at least 30 frames a second");
  await browser.close();
}
server.close();
await writeFile(join(out, "passed"), "");
