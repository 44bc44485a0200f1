"use strict";
// Everything below is built element by element: texts of the model never become markup.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function attributes(element, all) {
    for (const [name, value] of Object.entries(all || {})) {
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else if (value !== undefined && value !== null) element.setAttribute(name, value);
    }
    return element;
}
function element(name, all, ...children) {
    const made = attributes(document.createElement(name), all);
    made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
    return made;
}
function svg(name, all, ...children) {
    const made = attributes(document.createElementNS(SVG, name), all);
    made.append(...children.flat(Infinity));
    return made;
}

const cut = (text, length) => (text.length > length ? text.slice(0, length - 1) + "…" : text);
const number = (value) => value.toLocaleString("en-US");
function time(us) {
    if (us === null || us === undefined) return "–";
    if (us >= 1e6) return (us / 1e6).toFixed(2) + " s";
    return us >= 1000 ? (us / 1000).toFixed(2) + " ms" : us.toFixed(us < 10 ? 2 : 1) + " µs";
}
function size(bytes) {
    if (bytes === null || bytes === undefined) return "–";
    if (bytes < 1024) return bytes + " B";
    return bytes < 1 << 20 ? (bytes / 1024).toFixed(1) + " KiB" : (bytes / (1 << 20)).toFixed(2) + " MiB";
}
const small = (value) => (value === null ? "–" : value === 0 ? "0" : value.toExponential(1));

// What an operator or kernel is, for its colour.
const KINDS = [
    ["convolution", "#74c0fc", /conv/i],
    ["matrix product", "#91a7ff", /fully|matmul|dense|embedding/i],
    ["recurrent", "#b197fc", /lstm|rnn|gru|svdf/i],
    ["pooling, reduction", "#63e6be", /pool|mean|reduce|sum\b|arg_?m|topk|top k/i],
    ["activation, normalization", "#ffd43b", /relu|logistic|sigmoid|tanh|softmax|swish|elu|gelu|norm|rsqrt/i],
    ["quantization, type", "#e599f7", /quant|cast|float16/i],
    ["control flow, state", "#ffa8a8", /^if\b|while|variable|call_once|handle/i],
    ["moving", "#ced4da", /reshape|transpose|concat|pack|split|slice|pad|gather|squeeze|expand|copy|tile|fill|space|resize|shape|select/i],
    ["arithmetic", "#ffc078", /./],
];
const kindOf = (name) => KINDS.find((kind) => kind[2].test(name)) || KINDS[KINDS.length - 1];
const colour = (name) => kindOf(name)[1];
const legend = (names) => {
    const used = new Set(names.map(kindOf));
    const key = ([name, fill]) => {
        const chip = element("i");
        chip.style.background = fill;
        return element("span", {}, chip, name);
    };
    return element("div", { class: "legend" }, KINDS.filter((kind) => used.has(kind)).map(key));
};

const tip = byId("tip");
function hint(target, text) {
    target.addEventListener("pointermove", (event) => {
        tip.textContent = typeof text === "function" ? text() : text;
        tip.hidden = false;
        tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
        tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
    });
    target.addEventListener("pointerleave", () => (tip.hidden = true));
    return target;
}

const detail = byId("detail");
function showDetail(title, sections) {
    const close = element("button", { class: "close", onclick: () => (detail.hidden = true) }, "✕");
    detail.replaceChildren(close, element("h2", {}, title), ...sections.flat());
    detail.hidden = false;
}
const facts = (pairs) =>
    element("dl", {}, pairs.filter((pair) => pair[1] !== "" && pair[1] !== null && pair[1] !== undefined)
        .map(([name, value]) => [element("dt", {}, name), element("dd", {}, String(value))]));
