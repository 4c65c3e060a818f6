"use strict";
// Text from models and tools is inserted as plain text, with invisible characters made visible.

const byId = (id) => document.getElementById(id);
const state = { token: "", conversation: null, turn: null, oldest: null, asked: new Map() };

// The token is in the fragment (`#…`), which browsers never send. It is removed from the address and the history.
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  state.token = sessionStorage.getItem("token") ?? "";
}

const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u180e\u2800\u3164\uffa0\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/u;

function put(into, text) {
  let run = "";
  for (const letter of String(text)) {
    if (letter === "\n" || letter === "\t" || !unseen.test(letter)) {
      run += letter;
      continue;
    }
    into.append(run);
    run = "";
    const mark = made("span", "unseen");
    mark.textContent = `\\u{${letter.codePointAt(0).toString(16)}}`;
    into.append(mark);
  }
  into.append(run);
}

function made(name, kind, text) {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  if (text !== undefined) put(element, text);
  return element;
}

async function ask(path, options = {}) {
  const headers = { Authorization: `Bearer ${state.token}`, ...options.headers };
  if (options.body) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { ...options, headers });
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  const error = new Error(body.error?.message ?? `the gateway answered ${response.status}`);
  error.status = response.status;
  throw error;
}

function trouble(error) {
  const banner = byId("trouble");
  banner.replaceChildren();
  banner.hidden = !error;
  if (!error) return;
  const lost = error.status === 401;
  put(banner, lost ? "This page has no token. Open it with the link that `collieclaw gateway --link` prints."
    : error instanceof TypeError ? "The gateway is not running or can't be reached." : error.message);
}

// Conversation

function show(element) {
  byId("welcome").hidden = true;
  byId("talk").append(element);
  byId("talk").scrollTop = byId("talk").scrollHeight;
  return element;
}

// Shows the events of a turn. Each method is named after its event.
class TurnView {
  constructor() { this.bubble = null; this.call = null; }

  draft({ text, discarded }) {
    if (discarded) { this.bubble?.remove(); this.bubble = null; return; }
    this.bubble ??= show(made("div", "message its open"));
    put(this.bubble, text);
    byId("talk").scrollTop = byId("talk").scrollHeight;
  }

  close() { this.bubble?.classList.remove("open"); this.bubble = null; }

  tool(event) {
    this.close();
    if (event.phase === "begins") { this.call = show(callElement(event, "running …")); return; }
    const call = this.call ?? show(callElement(event, ""));
    this.call = null;
    const refused = event.outcome !== "done";
    call.classList.add(refused ? "refused" : "done");
    call.querySelector(".outcome").textContent = refused ? `✗ ${event.outcome}` : `✓ ${event.milliseconds} ms`;
    const lines = made("pre", "", event.output);
    if (event.receipt_id) put(lines, `\n\n${event.receipt_id}`);
    call.append(lines);
  }

  approval(shown) { showApproval(shown); }

  answer({ answer, conversation_id }) {
    state.conversation = conversation_id;
    const bubble = this.bubble ?? show(made("div", "message its"));
    bubble.replaceChildren();
    put(bubble, answer);
    this.close();
  }

  error({ message, conversation_id }) {
    state.conversation = conversation_id;
    this.close();
    show(made("div", "message error", message));
  }
}

function callElement(event, status) {
  const call = made("details", "call");
  const summary = made("summary");
  summary.append(made("b", "", event.tool), made("code", "", brief(event.arguments)), made("span", "outcome", status));
  call.append(summary);
  return call;
}

function brief(value) {
  const text = JSON.stringify(value) ?? "";
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}

async function send(message) {
  show(made("div", "message mine", message));
  const view = new TurnView();
  state.turn = new AbortController();
  busy(true);
  try {
    const body = JSON.stringify({ message, ...(state.conversation && { conversation_id: state.conversation }) });
    const options = { method: "POST", body, headers: { Accept: "text/event-stream" }, signal: state.turn.signal };
    for await (const [name, data] of events((await ask("chat", options)).body)) {
      if (name === "done") break;
      view[name]?.(data);
    }
    trouble(null);
  } catch (error) {
    view.close();
    show(made("div", "message error", error.name === "AbortError" ? "cancelled" : error.message));
    if (error.status === 401) trouble(error);
  }
  state.turn = null;
  busy(false);
  refresh();
}

async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    let end;
    while ((end = rest.indexOf("\n\n")) >= 0) {
      const lines = rest.slice(0, end).split("\n");
      rest = rest.slice(end + 2);
      const field = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      if (field("event")) yield [field("event"), JSON.parse(field("data"))];
    }
  }
}

function busy(now) {
  byId("send").textContent = now ? "Cancel" : "Send";
  byId("fresh").disabled = now;
}

// Approvals

function showApproval(shown) {
  if (state.asked.has(shown.id)) return;
  const article = byId("approval-form").content.cloneNode(true).firstElementChild;
  const part = (kind) => article.querySelector(`.${kind}`);
  if (shown.kind === "question") fillQuestion(shown, article, part); else fillApproval(shown, part);
  part("no").addEventListener("click", () => decide(shown, { approve: false }));
  const tick = () => {
    const left = Math.max(0, Math.round((Date.parse(shown.expires_at) - Date.now()) / 1000));
    part("left").textContent = `denied automatically in ${left} s`;
    if (left === 0) forget(shown.id);
  };
  state.asked.set(shown.id, { article, timer: setInterval(tick, 1000) });
  tick();
  byId("approvals").append(article);
  (part("words") ?? part("no")).focus();
}

function fillApproval(shown, part) {
  put(part("tool"), `${shown.tool} wants to run`);
  put(part("risk"), shown.risk);
  part("risk").classList.toggle("high", shown.risk === "high");
  for (const reason of shown.reasons) part("reasons").append(made("li", "", reason.detail));
  const plain = shown.arguments && typeof shown.arguments === "object" ? shown.arguments : { arguments: shown.arguments };
  for (const [name, value] of Object.entries(plain)) {
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    part("arguments").append(made("dt", "", name), made("dd", "", text));
  }
  if (shown.preview) part("arguments").append(made("dt", "", "effect"), made("dd", "", shown.preview));
  const yes = { approve: true, args_hash: shown.args_hash };
  part("yes").addEventListener("click", () => decide(shown, yes));
  part("always").hidden = !shown.lasting;
  part("always").addEventListener("click", () => decide(shown, { ...yes, always: true }));
}

// A question of the model. The answer is text and approves nothing.
function fillQuestion(shown, article, part) {
  article.classList.add("question");
  put(part("tool"), "The agent asks");
  for (const kind of ["risk", "always", "yes"]) part(kind).remove();
  part("arguments").replaceWith(made("p", "asks", shown.question));
  part("no").textContent = "No answer";
  const answer = (text) => decide(shown, { answer: text });
  const buttons = shown.choices.map((choice) => {
    const button = made("button", "yes", choice);
    button.type = "button";
    button.addEventListener("click", () => answer(choice));
    return button;
  });
  if (buttons.length === 0) {
    const words = made("input", "words");
    words.setAttribute("aria-label", "Answer");
    words.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && words.value.trim()) answer(words.value);
    });
    buttons.push(words);
  }
  part("buttons").prepend(...buttons);
}

function forget(id) {
  const asked = state.asked.get(id);
  if (!asked) return;
  clearInterval(asked.timer);
  asked.article.remove();
  state.asked.delete(id);
  if (state.asked.size === 0) byId("message").focus();
}

async function decide(shown, answer) {
  for (const button of state.asked.get(shown.id)?.article.querySelectorAll("button") ?? []) button.disabled = true;
  try {
    await ask(`approvals/${encodeURIComponent(shown.id)}`, { method: "POST", body: JSON.stringify(answer) });
  } catch (error) {
    if (error.status !== 404) trouble(error);
  }
  forget(shown.id);
}

// Status

async function refresh() {
  if (!state.token) { trouble({ status: 401 }); return; }
  try {
    const now = await (await ask("status")).json();
    byId("model").textContent = `${now.provider} · ${now.model} · ${now.autonomy}`;
    byId("place").textContent = now.workspace;
    byId("stopped").hidden = !now.estop;
    byId("estop").hidden = now.estop;
    const waiting = now.approvals > 0 ? await (await ask("approvals")).json() : [];
    for (const id of [...state.asked.keys()]) if (!waiting.some((entry) => entry.id === id)) forget(id);
    waiting.forEach(showApproval);
    trouble(null);
  } catch (error) {
    trouble(error);
  }
}

async function estop(method) {
  try { await ask("estop", { method }); } catch (error) { trouble(error); }
  refresh();
}

// Receipts

async function receipts(older) {
  try {
    const from = older && state.oldest ? `?before=${state.oldest}` : "";
    const page = await (await ask(`receipts${from}`)).json();
    const chain = byId("chain");
    chain.replaceChildren();
    chain.classList.toggle("broken", !page.chain.valid);
    put(chain, `${page.chain.valid ? "✓" : "✗"} ${page.chain.records} receipts: ${page.chain.detail}`);
    if (!older) byId("receipts").replaceChildren();
    byId("receipts").append(...page.receipts.map(row));
    state.oldest = page.next_before;
    byId("older").hidden = page.next_before === null;
  } catch (error) {
    trouble(error);
  }
}

function row(receipt) {
  const line = document.createElement("tr");
  const cell = (text, kind) => line.append(made("td", kind, text ?? "–"));
  cell(receipt.sequence);
  cell(receipt.timestamp?.slice(0, 19).replace("T", " "));
  cell(receipt.tool);
  cell(receipt.status, receipt.status);
  cell(receipt.risk);
  cell(receipt.reason_code);
  cell(receipt.approver);
  cell(receipt.id, "id");
  return line;
}

// Views

function view(name) {
  for (const tab of ["chat", "receipts"]) {
    const chosen = tab === name;
    byId(`view-${tab}`).hidden = !chosen;
    byId(`tab-${tab}`).setAttribute("aria-selected", chosen);
    byId(`tab-${tab}`).tabIndex = chosen ? 0 : -1;
  }
  if (name === "receipts") receipts(false);
}

function begin() {
  takeToken();
  const field = byId("message");
  const grow = () => { field.style.height = "auto"; field.style.height = `${field.scrollHeight}px`; };
  field.addEventListener("input", grow);
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    // Only the button cancels a turn, not an Enter typed too early.
    if (!state.turn) byId("say").requestSubmit();
  });
  byId("say").addEventListener("submit", (event) => {
    event.preventDefault();
    if (state.turn) { state.turn.abort(); return; }
    const message = field.value.trim();
    if (!message) return;
    field.value = "";
    grow();
    send(message);
  });
  byId("fresh").addEventListener("click", () => {
    state.conversation = null;
    byId("talk").replaceChildren(byId("welcome"));
    byId("welcome").hidden = false;
    field.focus();
  });
  for (const name of ["chat", "receipts"]) {
    byId(`tab-${name}`).addEventListener("click", () => view(name));
    byId(`tab-${name}`).addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      const other = name === "chat" ? "receipts" : "chat";
      view(other);
      byId(`tab-${other}`).focus();
    });
  }
  byId("estop").addEventListener("click", () => estop("POST"));
  byId("clear").addEventListener("click", () => estop("DELETE"));
  byId("older").addEventListener("click", () => receipts(true));
  refresh();
  setInterval(refresh, 2000);
  field.focus();
}

begin();
