// Shows the models of this server. All texts come from models and requests: they are set as text, never as
// markup.
"use strict";

const INTERVAL = 2000; // milliseconds between two looks
const KEPT = 90; // looks that curves are made of
const history = new Map(); // by model and version
const profiles = new Map();
let token = sessionStorage.getItem("token") || "";

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function drawn(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

async function ask(path) {
  const headers = token ? { authorization: "Bearer " + token } : {};
  const response = await fetch(path, { headers });
  if (response.status === 401) {
    document.getElementById("access").hidden = false;
    throw new Error("a token is needed");
  }
  document.getElementById("access").hidden = true;
  const body = await response.json();
  if (!response.ok) throw new Error(body.error || response.statusText);
  return body;
}

const bytes = (count) =>
  count > 1 << 20 ? (count / (1 << 20)).toFixed(1) + " MiB" : (count / 1024).toFixed(1) + " KiB";
const milliseconds = (ns) => (ns / 1e6).toFixed(3) + " ms";
const mean = (duration) => (duration.count ? duration.ns / duration.count : 0);

// A curve of numbers over time, with its greatest one.
function curve(title, values, show) {
  const [width, height] = [260, 70];
  const figure = element("figure");
  figure.append(element("figcaption", title));
  const picture = drawn("svg", { width, height: height + 14, role: "img", "aria-label": title });
  const most = Math.max(...values, 0);
  const points = values.map((value, at) => {
    const x = (at / Math.max(KEPT - 1, 1)) * width;
    const y = height - (most > 0 ? (value / most) * (height - 14) : 0);
    return x.toFixed(1) + "," + y.toFixed(1);
  });
  picture.append(drawn("line", { x1: 0, x2: width, y1: height, y2: height, class: "axis" }));
  picture.append(drawn("polyline", { points: points.join(" "), class: "curve" }));
  picture.append(drawn("text", { x: 0, y: 10 }, "most " + show(most)));
  const last = values.length ? show(values[values.length - 1]) : "";
  picture.append(drawn("text", { x: 0, y: height + 12 }, "now " + last));
  figure.append(picture);
  return figure;
}

// A bar for each step of a run.
function profile(found) {
  const [width, line, most] = [640, 16, 60];
  const steps = found.steps.filter((step) => step.us !== null);
  steps.sort((one, other) => other.us - one.us);
  const shown = steps.slice(0, most);
  const figure = element("figure");
  const total = (found.total_us / 1000).toFixed(3);
  const left = steps.length - shown.length;
  const rest = left > 0 ? `, ${left} shorter ones are not shown` : "";
  figure.append(element("figcaption", `One run takes ${total} ms in ${steps.length} steps${rest}`));
  const height = shown.length * line;
  const picture = drawn("svg", { width, height, role: "img", "aria-label": "profile" });
  const longest = shown.length ? shown[0].us : 1;
  shown.forEach((step, at) => {
    const y = at * line;
    const bar = drawn("rect", {
      x: 0, y: y + 2, height: line - 4, width: ((step.us / longest) * 240).toFixed(1), class: "bar",
    });
    picture.append(bar);
    const label = `${step.us.toFixed(1)} µs  ${step.kernel}  ${step.operator || ""}`;
    picture.append(drawn("text", { x: 250, y: y + line - 4 }, label.slice(0, 200)));
  });
  figure.append(picture);
  return figure;
}

function remember(model) {
  const key = model.name + "/" + model.version;
  const stats = model.serving.statistics;
  const kept = history.get(key) || { looks: [] };
  const previous = kept.looks[kept.looks.length - 1];
  const now = {
    at: performance.now(), inferences: stats.inference_count, success: stats.inference_stats.success,
    waiting: model.serving.waiting, rate: 0, latency: 0,
  };
  if (previous && now.at > previous.at && now.inferences >= previous.inferences) {
    now.rate = ((now.inferences - previous.inferences) * 1000) / (now.at - previous.at);
    const count = now.success.count - previous.success.count;
    now.latency = count > 0 ? (now.success.ns - previous.success.ns) / count : 0;
  }
  kept.looks.push(now);
  kept.looks.splice(0, kept.looks.length - KEPT);
  history.set(key, kept);
  return kept.looks;
}

function tensors(all) {
  return all.map((it) => `${it.name} ${it.datatype} [${it.shape.join(", ")}]`).join("; ");
}

function section(model) {
  const made = element("section", undefined, { "data-model": model.name });
  made.append(element("h2", `${model.name} ${model.version}`));
  const state = model.state || "not loaded";
  made.append(element("div", state, { class: state === "READY" ? "" : "bad" }));
  if (model.reason) made.append(element("div", model.reason, { class: "bad" }));
  if (!model.serving) return made;
  const { serving } = model;
  const stats = serving.statistics;
  const table = element("table");
  const row = (name, value) => {
    const line = element("tr");
    line.append(element("th", name), element("td", value));
    table.append(line);
  };
  row("inputs", tensors(serving.inputs));
  row("outputs", tensors(serving.outputs));
  row("runs on", `${serving.device}, ${serving.instances} × ${serving.threads} threads`);
  row("batch", serving.max_batch_size ? `at most ${serving.max_batch_size} rows` : "none");
  if (serving.row_by_row) row("one by one", serving.row_by_row);
  row("memory", bytes(serving.memory));
  row("rows computed", String(stats.inference_count) + " in " + stats.execution_count + " runs");
  row("failed", String(stats.inference_stats.fail.count));
  row("mean latency", milliseconds(mean(stats.inference_stats.success)));
  row("of it waiting", milliseconds(mean(stats.inference_stats.queue)));
  made.append(table);
  const looks = remember(model);
  const figures = element("div", undefined, { class: "figures" });
  figures.append(
    curve("rows a second", looks.map((it) => it.rate), (it) => it.toFixed(1)),
    curve("latency", looks.map((it) => it.latency), milliseconds),
    curve("waiting", looks.map((it) => it.waiting), (it) => String(it)),
  );
  made.append(figures);
  const button = element("button", "Profile a run");
  button.addEventListener("click", () => measure(model.name).then(look).catch(complain));
  made.append(button);
  if (profiles.has(model.name)) made.append(profile(profiles.get(model.name)));
  return made;
}

async function measure(name) {
  profiles.set(name, await ask(`/nnhal/models/${encodeURIComponent(name)}/profile`));
}

// A model that the address names is profiled at once: /#profile=NAME.
async function wanted() {
  const named = /^#profile=(.+)$/.exec(location.hash);
  if (named) await measure(decodeURIComponent(named[1]));
}

function complain(error) {
  const place = document.getElementById("error");
  place.textContent = error ? error.message : "";
  place.hidden = !error;
}

async function look() {
  const all = await ask("/nnhal/models");
  const state = document.getElementById("state");
  state.textContent = `version ${all.version}, ${all.ready ? "ready" : "not ready"}, ` +
    `${bytes(all.resident)} resident`;
  document.getElementById("models").replaceChildren(...all.models.map(section));
}

async function watch() {
  try {
    await look();
    complain(null);
  } catch (error) {
    complain(error);
  }
  setTimeout(watch, INTERVAL);
}

document.getElementById("access").addEventListener("submit", (event) => {
  event.preventDefault();
  token = document.getElementById("token").value;
  sessionStorage.setItem("token", token);
  wanted().then(look).then(() => complain(null), complain);
});
window.addEventListener("hashchange", () => wanted().then(look).catch(complain));
wanted().then(watch, (error) => watch().then(() => complain(error)));
