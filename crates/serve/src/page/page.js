// Shows the models of this server. All texts come from models and requests: they are set as text, never as
// markup.
"use strict";

const INTERVAL = 2000; // milliseconds between two looks
const KEPT = 90; // looks that curves are made of
const PERCENTILES = [50, 90, 99]; // of latencies
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

async function ask(path, method = "GET") {
  const headers = token ? { authorization: "Bearer " + token } : {};
  const response = await fetch(path, { headers, method });
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

// The time in ns within which a part of the requests was answered; null if there were none. Each of `ranges` is the
// greatest time of its requests in µs and their number; it begins at an eighth of a doubling before.
function percentile(ranges, part) {
  const all = ranges.reduce((sum, [, count]) => sum + count, 0);
  let left = all * part;
  for (const [bound, count] of ranges) {
    if (left <= count && count > 0) return 1000 * bound * 2 ** ((left / count - 1) / 8);
    left -= count;
  }
  return null;
}

// What has come to `ranges` since they were `before`.
function since(ranges, before) {
  const known = new Map(before);
  return ranges.map(([bound, count]) => [bound, count - (known.get(bound) || 0)]);
}

// Curves of numbers over time, by name, with the greatest of them. Where there is no number a curve has a gap.
function curves(title, named, show) {
  const [width, height] = [300, 90];
  const figure = element("figure");
  figure.append(element("figcaption", title));
  const picture = drawn("svg", { width, height: height + 14, role: "img", "aria-label": title });
  const most = Math.max(...Object.values(named).flat(), 0);
  picture.append(drawn("line", { x1: 0, x2: width, y1: height, y2: height, class: "axis" }));
  const last = [];
  for (const [name, values] of Object.entries(named)) {
    let points = [];
    const end = () => {
      // A single point is a line of no length, which round ends make visible.
      if (points.length === 1) points.push(points[0]);
      if (points.length) picture.append(drawn("polyline", { points: points.join(" "), class: "curve " + name }));
      points = [];
    };
    values.forEach((value, at) => {
      if (value === null) return end();
      const x = (at / Math.max(KEPT - 1, 1)) * width;
      const y = height - (most > 0 ? (value / most) * (height - 14) : 0);
      points.push(x.toFixed(1) + "," + y.toFixed(1));
    });
    end();
    const now = values.length ? values[values.length - 1] : null;
    last.push([name, now === null ? "none" : show(now)]);
  }
  picture.append(drawn("text", { x: 0, y: 10 }, "most " + show(most)));
  figure.append(picture);
  const legend = element("div", "now", { class: "legend" });
  const shown = (name) => (Object.keys(named).length > 1 ? name + " " : "");
  for (const [name, text] of last) legend.append(" ", element("span", shown(name) + text, { class: name }));
  figure.append(legend);
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
    at: performance.now(), inferences: stats.inference_count, latencies: model.serving.latencies,
    waiting: model.serving.waiting, rate: 0, times: PERCENTILES.map(() => null),
  };
  if (previous && now.at > previous.at && now.inferences >= previous.inferences) {
    now.rate = ((now.inferences - previous.inferences) * 1000) / (now.at - previous.at);
    const recent = since(now.latencies, previous.latencies);
    now.times = PERCENTILES.map((part) => percentile(recent, part / 100));
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
  for (const part of PERCENTILES) {
    const time = percentile(serving.latencies, part / 100);
    row(`latency p${part}`, time === null ? "none" : milliseconds(time));
  }
  made.append(table);
  const looks = remember(model);
  const figures = element("div", undefined, { class: "figures" });
  figures.append(
    curves("rows a second", { all: looks.map((it) => it.rate) }, (it) => it.toFixed(1)),
    curves(
      "latency",
      Object.fromEntries(PERCENTILES.map((part, at) => ["p" + part, looks.map((it) => it.times[at])])),
      milliseconds,
    ),
    curves("waiting", { all: looks.map((it) => it.waiting) }, (it) => String(it)),
  );
  made.append(figures);
  const button = element("button", "Profile a run");
  button.addEventListener("click", () => measure(model.name).then(look).catch(complain));
  made.append(button);
  if (profiles.has(model.name)) made.append(profile(profiles.get(model.name)));
  return made;
}

async function measure(name) {
  profiles.set(name, await ask(`/nnhal/models/${encodeURIComponent(name)}/profile`, "POST"));
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
