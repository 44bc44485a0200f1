// A pane with a graph: zoom with the wheel, move by dragging, a map at the side.
class Pane {
    constructor(title, graph, choose) {
        this.title = title;
        this.whole = graph;
        this.choose = choose;
        this.root = element("div", { class: "pane" });
        this.isWhole = false;
        this.build();
    }
    build() {
        const { choose, title } = this, graph = this.isWhole ? this.whole : withoutConstants(this.whole);
        const hidden = this.whole.nodes.length - withoutConstants(this.whole).nodes.length;
        const toggle = hidden ? element("button", {
            "aria-selected": this.isWhole, title: "operators that only turn weights into other types",
            onclick: () => { this.isWhole = !this.isWhole; this.build(); this.begin(); },
        }, `${hidden} of constants`) : null;
        this.graph = graph;
        this.placed = layout(graph.nodes, graph.edges);
        this.view = { x: 0, y: 0, scale: 1 };
        this.world = svg("g");
        this.canvas = svg("svg", { class: "graph" }, this.world);
        this.window = svg("rect", { class: "window" });
        this.map = this.drawMap();
        const fit = element("button", { onclick: () => this.fit(), title: "all of it" }, "fit");
        const nearer = element("button", { onclick: () => this.zoom(1.4), title: "nearer" }, "+");
        const farther = element("button", { onclick: () => this.zoom(1 / 1.4), title: "farther" }, "−");
        const bar = element("div", { class: "bar" }, element("b", {}, title), toggle, farther, nearer, fit);
        this.root.replaceChildren(bar, this.canvas, this.map);
        this.draw(choose);
        this.listen();
    }
    draw(choose) {
        const { items, paths } = this.placed;
        this.edges = paths.map(({ from, to, path }) => {
            const points = path.map((item, at) => [item.x, item.y + (at === 0 ? NODE_HEIGHT : item.index < 0 ? NODE_HEIGHT / 2 : 0)]);
            let d = `M${points[0]}`;
            for (let at = 1; at < points.length; at++) {
                const [[x0, y0], [x1, y1]] = [points[at - 1], points[at]];
                const middle = (y0 + y1) / 2;
                d += `C${x0},${middle} ${x1},${middle} ${x1},${y1}`;
            }
            const line = svg("path", { class: "edge", d });
            return { from, to, line };
        });
        this.nodes = this.graph.nodes.map((node, index) => {
            const { x, y } = items[index];
            const box = svg("rect", { x: x - node.width / 2, y, width: node.width, height: NODE_HEIGHT, rx: 5, fill: node.fill });
            const label = svg("text", { x, y: y + 15, "text-anchor": "middle" }, node.label);
            const under = svg("text", { x, y: y + 28, "text-anchor": "middle", class: "small" }, node.under);
            const group = svg("g", { class: "node" + (node.isEnd ? " io" : "") + (node.differs ? " differs" : "") }, box, label, under);
            group.addEventListener("click", () => choose(this, index));
            return hint(group, node.hint);
        });
        this.world.append(...this.edges.map((edge) => edge.line), ...this.nodes);
    }
    drawMap() {
        const { items, width, height } = this.placed;
        const map = svg("svg", { class: "map", viewBox: `0 0 ${Math.max(width, 1)} ${Math.max(height, 1)}`, preserveAspectRatio: "none" });
        map.append(...items.map((item, index) => svg("rect", {
            x: item.x - item.width / 2, y: item.y, width: item.width, height: NODE_HEIGHT, fill: this.graph.nodes[index].fill,
        })), this.window);
        const go = (event) => {
            if (!event.buttons) return;
            const box = map.getBoundingClientRect();
            this.center((event.clientX - box.left) / box.width * width, (event.clientY - box.top) / box.height * height);
        };
        map.addEventListener("pointerdown", go);
        map.addEventListener("pointermove", go);
        return map;
    }
    listen() {
        let from = null;
        this.canvas.addEventListener("wheel", (event) => {
            event.preventDefault();
            const box = this.canvas.getBoundingClientRect();
            this.zoom(Math.exp(-event.deltaY / 400), event.clientX - box.left, event.clientY - box.top);
        }, { passive: false });
        this.canvas.addEventListener("pointerdown", (event) => (from = { x: event.clientX, y: event.clientY }));
        this.canvas.addEventListener("pointermove", (event) => {
            if (!from || !event.buttons) return;
            this.view.x += event.clientX - from.x;
            this.view.y += event.clientY - from.y;
            from = { x: event.clientX, y: event.clientY };
            this.show();
        });
    }
    size() {
        const box = this.canvas.getBoundingClientRect();
        return [box.width || 600, box.height || 600];
    }
    show() {
        const { x, y, scale } = this.view, [width, height] = this.size();
        this.world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
        const isAll = x >= 0 && y >= 0 && this.placed.width * scale + x <= width && this.placed.height * scale + y <= height;
        this.map.classList.toggle("needless", isAll);
        attributes(this.window, { x: -x / scale, y: -y / scale, width: width / scale, height: height / scale });
    }
    zoom(factor, x, y) {
        const [width, height] = this.size(), view = this.view;
        const scale = Math.min(4, Math.max(0.01, view.scale * factor)), by = scale / view.scale;
        const [atX, atY] = [x ?? width / 2, y ?? height / 2];
        this.view = { x: atX - (atX - view.x) * by, y: atY - (atY - view.y) * by, scale };
        this.show();
    }
    center(x, y) {
        const [width, height] = this.size(), { scale } = this.view;
        this.view = { x: width / 2 - x * scale, y: height / 2 - y * scale, scale };
        this.show();
    }
    fit() {
        const [width, height] = this.size(), placed = this.placed;
        const scale = Math.min(1.2, width / (placed.width + 40), height / (placed.height + 40));
        this.view = { scale, x: (width - placed.width * scale) / 2, y: 20 * scale };
        this.show();
    }
    // The beginning, large enough to be read.
    begin() {
        const [width, height] = this.size(), placed = this.placed;
        const all = Math.min(width / (placed.width + 40), height / (placed.height + 40));
        const scale = Math.min(1.1, Math.max(all, 0.75));
        const first = placed.items.reduce((best, item) => (item.y < best.y ? item : best), placed.items[0] || { x: 0, y: 0 });
        const x = placed.width * scale < width ? placed.width / 2 : first.x;
        this.view = { scale, x: width / 2 - x * scale, y: 16 };
        this.show();
    }
    goTo(index) {
        const item = this.placed.items[index];
        if (this.view.scale < 0.5) this.view.scale = 0.8;
        this.center(item.x, item.y + NODE_HEIGHT / 2);
    }
    mark(kind, indexes) {
        for (const [index, node] of this.nodes.entries()) node.classList.toggle(kind, indexes.has(index));
        if (kind === "chosen") for (const edge of this.edges) edge.line.classList.toggle("near", indexes.has(edge.from) || indexes.has(edge.to));
    }
}
// Operators of constants alone: they were computed when the model was prepared, or turn stored weights
// into floats, and are as many as those that compute.
function withoutConstants({ nodes, edges }) {
    if (!nodes.some((node) => node.isConstant)) return { nodes, edges };
    const place = new Map();
    const kept = nodes.filter((node, index) => !node.isConstant && place.set(index, place.size));
    const shown = edges.filter(([from, to]) => place.has(from) && place.has(to));
    return { nodes: kept, edges: shown.map(([from, to]) => [place.get(from), place.get(to)]) };
}
const textWidth = (...texts) => Math.max(70, ...texts.map((text) => text.length * 6.3 + 18));

// A subgraph of the file: operators, and the inputs and outputs.
function fileGraph(graph) {
    const nodes = [], edges = [], writer = new Map();
    const end = (kind) => (tensor) => {
        const it = graph.tensors[tensor] || { name: "?", type: "", shape: "" };
        const [label, under] = [cut(it.name, 30), it.type.toLowerCase() + " " + it.shape];
        nodes.push({ label, under, width: textWidth(label, under), fill: "#f1f3f5", isEnd: true, hint: `${kind}: ${it.name}`, tensor, search: it.name });
        return nodes.length - 1;
    };
    graph.nodes.forEach((it, operator) => {
        const result = graph.tensors[it.outputs[0]], label = cut(it.name, 34), under = result ? result.shape : "";
        nodes.push({
            label, under, width: textWidth(label, under), fill: colour(it.name), operator,
            hint: `${operator} ${it.name}\n${it.attributes}`,
            search: [operator, it.name, ...it.outputs.map((tensor) => graph.tensors[tensor]?.name)].join(" "),
        });
        for (const tensor of it.outputs) writer.set(tensor, operator);
    });
    for (const tensor of graph.inputs) writer.set(tensor, end("input")(tensor));
    graph.nodes.forEach((it, operator) => {
        for (const tensor of new Set(it.inputs)) if (writer.has(tensor) && writer.get(tensor) !== operator) edges.push([writer.get(tensor), operator]);
    });
    for (const tensor of graph.outputs) {
        const from = writer.get(tensor), node = end("output")(tensor);
        if (from !== undefined) edges.push([from, node]);
    }
    const constant = constantOperators(graph);
    for (const node of nodes) node.isConstant = constant.has(node.operator);
    return { nodes, edges };
}
function constantOperators(graph) {
    const known = new Set(), operators = new Set();
    graph.tensors.forEach((tensor, index) => { if (tensor.bytes) known.add(index); });
    graph.nodes.forEach((node, operator) => {
        if (!node.inputs.length || !node.inputs.every((tensor) => known.has(tensor))) return;
        operators.add(operator);
        node.outputs.forEach((tensor) => known.add(tensor));
    });
    return operators;
}

// The steps of a plan.
function planGraph(device, differing) {
    const constant = data.graphs[0] ? constantOperators(data.graphs[0]) : new Set();
    const nodes = device.steps.map((step, index) => {
        const label = cut(step.kernel, 40), under = cut(step.shape, 24) + (step.us === null ? "" : "  " + time(step.us));
        return {
            label, under, width: textWidth(label, under), fill: colour(step.kernel), step: index, differs: differing.has(step.operation),
            isConstant: step.covers.length > 0 && step.covers.every((operator) => constant.has(operator)),
            hint: `${step.kernel}\n${step.place}\n${time(step.us)}`, search: `${step.operation} ${step.type} ${step.kernel}`,
        };
    });
    return { nodes, edges: joined(device, nodes) };
}

// Edges between steps. Where several steps write parts of one buffer, which stands for a concatenation
// that is not computed any more, they meet in a node of its own.
function joined(device, nodes) {
    const writers = new Map(), through = new Set(), edges = [], joins = new Map();
    const key = (step, value) => `${step.plan} ${value.buffer}`;
    device.steps.forEach((step, index) => step.writes.forEach((value) => {
        const all = writers.get(key(step, value)) || [];
        writers.set(key(step, value), [...all, { index, value }]);
    }));
    device.steps.forEach((step, index) => step.reads.forEach((read) => {
        const parts = (writers.get(key(step, read)) || []).filter(({ index: writer, value }) =>
            writer < index && value.bytes[0] < read.bytes[1] && read.bytes[0] < value.bytes[1]);
        if (parts.length < 2) return;
        const name = parts.map((part) => part.index).join(" ");
        if (!joins.has(name)) {
            joins.set(name, nodes.length);
            nodes.push({ label: "joined", under: `${parts.length} parts`, width: 70, fill: "#ced4da", isEnd: true, hint: "parts of one buffer: nothing is computed or copied", search: "joined" });
            parts.forEach((part) => edges.push([part.index, joins.get(name)]));
        }
        edges.push([joins.get(name), index]);
        parts.forEach((part) => through.add(`${part.index} ${index}`));
    }));
    return [...edges, ...device.edges.filter(([from, to]) => !through.has(`${from} ${to}`))];
}
