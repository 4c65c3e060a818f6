// The page in a real browser. Arguments: where playwright-core is, the link with its token, a picture to make (or "").
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [modules, link, picture] = process.argv.slice(2);
const { chromium } = createRequire(`${modules}/`)("playwright-core");
const origin = new URL(link).origin;
const token = new URLSearchParams(new URL(link).hash.slice(1)).get("token");
const asked = (path, method = "GET") =>
  fetch(`${origin}${path}`, { method, headers: { Authorization: `Bearer ${token}` } }).then((reply) => reply.json());

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  chromiumSandbox: process.getuid() !== 0,
  // A name of somebody else's that leads to this machine.
  args: ["--disable-gpu", "--host-resolver-rules=MAP rebound.example 127.0.0.1"],
});
try {
  const context = await browser.newContext({ viewport: { width: 1080, height: 760 }, deviceScaleFactor: 2, colorScheme: "light" });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (line) => line.type() === "error" && faults.push(line.text()));
  page.on("dialog", (dialog) => faults.push(`a dialog: ${dialog.message()}`));
  const foreign = [];
  page.on("request", (request) => request.url().startsWith(`${origin}/`) || request.url().startsWith("data:") || foreign.push(request.url()));

  // The token leaves the address bar, and stays for a reload of this tab.
  await page.goto(link);
  await page.getByText("local · mock · supervised").waitFor();
  assert.equal(page.url(), `${origin}/`);
  assert.ok(!(await page.content()).includes(token));
  await page.reload();
  await page.getByText("local · mock · supervised").waitFor();

  // By keyboard alone: a message, its tool calls, a question about exactly what would run.
  const message = page.getByLabel("Message");
  const say = async (text) => {
    await page.getByRole("button", { name: "Send" }).waitFor();
    await message.fill(text);
    await message.press("Enter");
  };
  await say("Please look around, then write the note.");
  const question = page.locator(".approval");
  await question.getByText("file_write wants to run").waitFor();
  await page.getByText("I look around first").waitFor();
  assert.equal(await question.locator(".risk").textContent(), "medium");
  assert.ok((await question.locator(".reasons li").count()) > 0);
  assert.match(await question.locator(".arguments").textContent(), /note\.txt/);
  // What nobody would see is seen.
  assert.match(await question.locator(".arguments").textContent(), /\\u\{202e\}/);
  assert.equal(await page.locator(".call.done").count(), 1);
  if (picture) await page.screenshot({ path: picture });
  await question.getByRole("button", { name: "Approve exactly this" }).click();
  await page.getByText("The note is written.").waitFor();
  assert.equal(await page.locator(".call.done").count(), 2);
  assert.equal(await question.count(), 0);

  // What a model says is text, whatever it looks like.
  assert.match(await page.locator(".message.its").last().textContent(), /<img src=x onerror=/);
  assert.equal(await page.locator("main img, main script, main iframe, main a").count(), 0);

  // The focus is on the answer that does no harm: Enter denies.
  await say("Again.");
  await question.waitFor();
  await page.waitForFunction(() => document.activeElement.className === "no");
  await page.keyboard.press("Enter");
  await page.getByText("✗ denied").waitFor();
  await page.getByText("The note is written.").nth(1).waitFor();

  // A turn is cancelled from the page.
  await say("Once more.");
  await question.waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByText("cancelled", { exact: true }).waitFor();
  await question.waitFor({ state: "detached" });

  // Receipts, and whether their chain holds.
  await page.getByRole("tab", { name: "Receipts" }).click();
  await page.getByText("every link holds").waitFor();
  assert.equal(await page.locator("#receipts tr").count(), 6);
  await page.getByRole("tab", { name: "Receipts" }).press("ArrowLeft");

  // The emergency stop, with everything that says so, and its clearing.
  await page.getByRole("button", { name: "Stop all tools" }).click();
  await page.getByText("Emergency stop.").waitFor();
  assert.equal((await asked("/status")).estop, true);
  await page.getByRole("button", { name: "Let tools run again" }).click();
  await page.getByRole("button", { name: "Stop all tools" }).waitFor();
  assert.equal((await asked("/status")).estop, false);

  // A phone, and the dark.
  await page.setViewportSize({ width: 360, height: 640 });
  for (const view of ["Receipts", "Chat"]) {
    await page.getByRole("tab", { name: view }).click();
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 360, `${view} is ${wide} wide`);
  }
  assert.ok(await page.getByRole("button", { name: "Stop all tools" }).isVisible());
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.emulateMedia({ colorScheme: "dark" });
  assert.notEqual(await ground(), light);
  assert.deepEqual(faults, []);
  assert.deepEqual(foreign, []);

  // Without a token the page says how to come by one.
  const stranger = await (await browser.newContext()).newPage();
  await stranger.goto(`${origin}/`);
  await stranger.getByText("collieclaw gateway --link").waitFor();

  const rebound = await stranger.goto(`http://rebound.example:${new URL(link).port}/`);
  assert.equal(rebound.status(), 403);

  // Another site can neither read nor do anything, and can't put the page into a frame.
  const evil = await (await browser.newContext()).newPage();
  await evil.route("http://evil.example/**", (route) => route.fulfill({ contentType: "text/html", body: "<p>evil</p>" }));
  await evil.goto("http://evil.example/");
  const tries = await evil.evaluate(async ([origin, token]) => {
    const read = (options, path) => fetch(`${origin}${path}`, options).then((reply) => reply.type, () => "refused");
    const headers = { Authorization: `Bearer ${token}` };
    const form = document.createElement("form");
    form.method = "POST";
    form.action = `${origin}/estop`;
    form.target = "inner";
    const frame = document.createElement("iframe");
    frame.name = "inner";
    document.body.append(frame, form);
    form.submit();
    await new Promise((done) => frame.addEventListener("load", done));
    const framed = document.createElement("iframe");
    framed.src = `${origin}/`;
    document.body.append(framed);
    await new Promise((done) => framed.addEventListener("load", done));
    return [
      await read({}, "/health"),
      await read({ headers }, "/status"),
      await read({ method: "POST", headers }, "/estop"),
      await read({ method: "POST", mode: "no-cors" }, "/estop").then(() => "sent"),
    ];
  }, [origin, token]);
  assert.deepEqual(tries, ["refused", "refused", "refused", "sent"]);
  assert.equal((await asked("/status")).estop, false);
  assert.ok(!evil.frames().some((frame) => frame.url().startsWith(origin)), "the page was framed");
  console.log("all well");
} finally {
  await browser.close();
}
