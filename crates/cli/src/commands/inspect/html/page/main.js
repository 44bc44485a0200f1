const tabs = new Map();
const differing = new Set((data.differences?.steps || []).filter((step) => !step.result.agree).map((step) => step.operation));

// The file's graph, and beside it what each device runs.
function graphTab(root) {
    const panes = [];
    const file = data.graphs[0];
    if (file) panes.push({ pane: new Pane(`${file.name} in the file: ${file.nodes.length} operators`, fileGraph(file), choose), device: null });
    for (const device of data.devices) {
        panes.push({ pane: new Pane(`plan of ${device.name}: ${device.steps.length} steps`, planGraph(device, differing), choose), device });
    }
    root.classList.add("graphs");
    root.append(...panes.map((it) => it.pane.root));
    root.addEventListener("shown", () => panes.forEach((it) => it.pane.begin()), { once: true });

    // Marks the operators and steps that belong together in all panes.
    function choose(chosen, index) {
        const own = panes.find((it) => it.pane === chosen), node = chosen.graph.nodes[index];
        const operators = own.device ? new Set(own.device.steps[node.step]?.covers) : new Set(node.operator === undefined ? [] : [node.operator]);
        for (const { pane, device } of panes) {
            pane.mark("chosen", new Set(pane === chosen ? [index] : []));
            const linked = new Set();
            if (pane !== chosen) pane.graph.nodes.forEach((other, at) => {
                const covers = device ? device.steps[other.step]?.covers || [] : other.operator === undefined ? [] : [other.operator];
                if (covers.some((operator) => operators.has(operator))) linked.add(at);
            });
            pane.mark("linked", linked);
            if (linked.size) pane.goTo([...linked][0]);
        }
        if (own.device && node.step === undefined) detail.hidden = true;
        else if (own.device) showStep(own.device, node.step);
        else showNode(file, node);
    }
    root.find = (text) => {
        const hits = [];
        for (const { pane } of panes) {
            const found = text ? pane.graph.nodes.map((node, at) => (node.search?.toLowerCase().includes(text) ? at : -1)).filter((at) => at >= 0) : [];
            pane.mark("hit", new Set(found));
            hits.push(...found.map((at) => () => pane.goTo(at)));
        }
        return hits;
    };
    // From the other tabs: to the step's node.
    root.goToStep = (device, step) => {
        const { pane } = panes.find((pane) => pane.device === device);
        const node = pane.graph.nodes.findIndex((node) => node.step === step);
        if (node < 0) return;
        pane.goTo(node);
        choose(pane, node);
    };
}

function tensorFacts(graph, index) {
    const tensor = graph.tensors[index];
    if (!tensor) return null;
    return [element("h2", {}, `tensor ${index}`), facts([["name", tensor.name], ["type", tensor.type], ["shape", tensor.shape || "scalar"], ["quantization", tensor.quantization], ["constant", tensor.bytes ? size(tensor.bytes) : ""]])];
}
function showNode(graph, node) {
    if (node.operator === undefined) return showDetail(node.hint, [tensorFacts(graph, node.tensor)]);
    const it = graph.nodes[node.operator];
    const part = (what, all) => [element("h2", {}, what), ...all.flatMap((tensor) => tensorFacts(graph, tensor) || [])];
    showDetail(`${node.operator} ${it.name}`, [facts([["version", it.version], ["attributes", it.attributes]]), part("reads", it.inputs), part("gives", it.outputs)]);
}
function showStep(device, index) {
    const step = device.steps[index], total = device.steps.reduce((sum, it) => sum + (it.us || 0), 0);
    const operators = step.covers.map((operator) => `${operator} ${data.graphs[0]?.nodes[operator]?.name || ""}`).join(", ");
    const share = step.us === null || !total ? "" : `, ${(100 * step.us / total).toFixed(1)} % of the run`;
    const value = (it) => [it.tensor === null ? "" : data.graphs[0]?.tensors[it.tensor]?.name, `${size(it.bytes[1] - it.bytes[0])} at ${size(it.bytes[0])}`].filter(Boolean).join(": ");
    showDetail(step.kernel, [
        facts([
            ["device", device.name], ["operation", step.place], ["not fast", step.why_reference], ["computes", operators], ["result", step.shape], ["time", time(step.us) + share],
            ["arithmetic", step.arithmetic ? `${(step.arithmetic / 1e6).toFixed(2)} million additions and multiplications` : ""],
            ["speed", step.arithmetic && step.us ? `${(step.arithmetic / step.us / 1e3).toFixed(1)} Gop/s` : ""],
            ["bytes", step.bytes ? size(step.bytes) : ""], ["packed weights", step.weight_bytes ? size(step.weight_bytes) : ""],
            ["reads", step.reads.map(value).join("; ")], ["writes", step.writes.map(value).join("; ")],
            ["scratch", step.scratch[1] > step.scratch[0] ? size(step.scratch[1] - step.scratch[0]) : ""],
        ]),
        element("button", { onclick: () => { open("graph"); tabs.get("graph").root.goToStep(device, index); } }, "show in the graph"),
    ]);
}
function fileTab(root) {
    const counts = new Map();
    for (const graph of data.graphs) for (const node of graph.nodes) counts.set(node.name, (counts.get(node.name) || 0) + 1);
    const constants = new Map();
    for (const graph of data.graphs) for (const tensor of graph.tensors) if (tensor.bytes) constants.set(tensor.type, (constants.get(tensor.type) || 0) + tensor.bytes);
    if (data.refused) root.append(element("h2", { class: "bad" }, "no model becomes of this file"), element("pre", {}, data.refused));
    root.append(facts([["bytes", number(data.file.bytes)], ["description", data.file.description], ["subgraphs", data.graphs.length]]));
    for (const graph of data.graphs) if (graph.left_out) root.append(element("p", { class: "bad" }, `${graph.name}: ${graph.left_out} operators are not drawn, because there are too many`));
    const rows = (map) => [...map].map(([name, count]) => ({ name, count })).sort((a, b) => b.count - a.count);
    root.append(table([["operators", (row) => row.name, "wide"], ["count", (row) => row.count, "number"]], rows(counts)));
    root.append(table([["constants", (row) => row.name, "wide"], ["bytes", (row) => row.count, "number", number]], rows(constants)));
    if (data.file.signatures.length) root.append(table([["signature", (row) => row.name], ["subgraph", (row) => row.subgraph, "number"], ["inputs", (row) => row.inputs, "wide"], ["outputs", (row) => row.outputs, "wide"]], data.file.signatures));
    if (data.file.metadata.length) root.append(table([["metadata", (row) => row.name, "wide"], ["bytes", (row) => row.bytes, "number", number]], data.file.metadata));
}

function open(name) {
    for (const [other, tab] of tabs) {
        tab.root.hidden = other !== name;
        tab.button.setAttribute("aria-selected", other === name);
    }
    const tab = tabs.get(name);
    if (!tab.isBuilt) { tab.isBuilt = true; tab.build(tab.root); }
    tab.root.dispatchEvent(new Event("shown"));
    history.replaceState(null, "", "#" + name);
    find();
}

// Marks what has the text in it, in the tab that is open; enter goes from one to the next.
let hits = [], hit = 0;
function find(isNext) {
    const text = byId("search").value.trim().toLowerCase(), root = [...tabs.values()].find((tab) => !tab.root.hidden).root;
    if (isNext) {
        if (hits.length) hits[hit++ % hits.length]();
        return;
    }
    hit = 0;
    if (root.find) hits = root.find(text);
    else {
        const parts = [...root.querySelectorAll("tr.row, rect.item")];
        const found = parts.filter((part) => text && (part.dataset.search ?? part.textContent).toLowerCase().includes(text));
        parts.forEach((part) => part.classList.toggle("hit", found.includes(part)));
        hits = found.map((part) => () => part.scrollIntoView({ block: "center" }));
    }
    byId("hits").textContent = text ? `${hits.length} found` : "";
}

function begin() {
    const device = data.devices[data.devices.length - 1], total = device?.steps.reduce((sum, step) => sum + (step.us || 0), 0);
    document.title = data.title;
    byId("title").textContent = data.title;
    byId("facts").textContent = [
        size(data.file.bytes), `${data.graphs[0]?.nodes.length ?? 0} operators`,
        device && `${device.steps.length} steps on ${device.name}`, total && time(total), `nnhal ${data.version}`,
    ].filter(Boolean).join(" · ");
    const showIn = (device, step) => showStep(device, step);
    const hasSteps = data.devices.some((device) => device.steps.length);
    const all = [
        ["graph", "Graph", graphTab], hasSteps && ["plan", "Plan", (root) => planTab(root, showIn)],
        hasSteps && ["time", "Time", (root) => timeTab(root, showIn)], hasSteps && ["memory", "Memory", (root) => memoryTab(root, showIn)],
        ["tensors", "Tensors", tensorsTab], data.differences && ["differences", "Differences", differencesTab], ["file", "File", fileTab],
    ].filter(Boolean);
    for (const [name, label, build] of all) {
        const root = element("section", { class: "tab", id: "tab-" + name });
        const button = element("button", { "aria-selected": false, onclick: () => open(name) }, label);
        tabs.set(name, { root, button, build, isBuilt: false });
        byId("main").append(root);
        byId("tabs").append(button);
    }
    byId("search").addEventListener("input", () => find());
    byId("search").addEventListener("keydown", (event) => { if (event.key === "Enter") find(true); });
    addEventListener("keydown", (event) => {
        if (event.key === "Escape") detail.hidden = true;
        if (event.key === "/" && event.target.tagName !== "INPUT") { event.preventDefault(); byId("search").focus(); }
    });
    addEventListener("resize", () => [...tabs.values()].find((tab) => !tab.root.hidden).root.dispatchEvent(new Event("shown")));
    const wanted = location.hash.slice(1);
    open(tabs.has(wanted) ? wanted : data.refused ? "file" : "graph");
    document.documentElement.dataset.state = "ready";
}
addEventListener("error", (event) => (document.documentElement.dataset.state = "error: " + event.message));
begin();
