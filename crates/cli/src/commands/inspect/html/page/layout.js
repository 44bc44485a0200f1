// Places the nodes of a graph: layers by longest path, long edges through points of their own, few
// crossings, and straight lines where that is possible.
const NODE_HEIGHT = 36, LAYER_GAP = 24, NODE_GAP = 16;

function layout(nodes, edges) {
    const items = nodes.map((node, index) => ({ index, width: node.width, layer: 0, up: [], down: [] }));
    const order = topological(items.length, edges);
    const rank = new Map(order.map((node, at) => [node, at]));
    const forward = edges.filter(([from, to]) => rank.get(from) < rank.get(to));
    const out = items.map(() => []), into = items.map(() => []);
    for (const [from, to] of forward) { out[from].push(to); into[to].push(from); }
    for (const from of order) for (const to of out[from]) items[to].layer = Math.max(items[to].layer, items[from].layer + 1);
    // What nothing comes before is placed right above what reads it.
    for (const node of [...order].reverse()) {
        if (!into[node].length && out[node].length) items[node].layer = Math.min(...out[node].map((to) => items[to].layer)) - 1;
    }
    const paths = [];
    for (const [from, to] of forward) {
        const path = [items[from]];
        for (let layer = items[from].layer + 1; layer < items[to].layer; layer++) {
            const point = { index: -1, width: 6, layer, up: [], down: [] };
            items.push(point);
            path.push(point);
        }
        path.push(items[to]);
        for (let at = 1; at < path.length; at++) { path[at - 1].down.push(path[at]); path[at].up.push(path[at - 1]); }
        paths.push({ from, to, path });
    }
    const layers = [];
    for (const item of items) (layers[item.layer] = layers[item.layer] || []).push(item);
    for (let at = 0; at < layers.length; at++) layers[at] = layers[at] || [];
    arrange(layers);
    place(layers);
    for (const item of items) item.y = item.layer * (NODE_HEIGHT + LAYER_GAP);
    const left = items.reduce((least, item) => Math.min(least, item.x - item.width / 2), Infinity);
    for (const item of items) item.x -= left;
    const width = items.reduce((most, item) => Math.max(most, item.x + item.width / 2), 0);
    return { items: items.slice(0, nodes.length), paths, width, height: layers.length * (NODE_HEIGHT + LAYER_GAP) };
}

function topological(count, edges) {
    const missing = new Array(count).fill(0), out = Array.from({ length: count }, () => []);
    for (const [from, to] of edges) { out[from].push(to); missing[to]++; }
    const order = [];
    for (let node = 0; node < count; node++) if (!missing[node]) order.push(node);
    for (let at = 0; at < order.length; at++) for (const to of out[order[at]]) if (!--missing[to]) order.push(to);
    // Of a graph with a cycle, which no model has that can be imported, the rest as it comes.
    if (order.length < count) {
        const known = new Set(order);
        for (let node = 0; node < count; node++) if (!known.has(node)) order.push(node);
    }
    return order;
}

// Orders each layer by where its neighbours are, down and up in turns.
function arrange(layers) {
    const number = () => layers.forEach((layer) => layer.forEach((item, at) => (item.at = at)));
    number();
    const rounds = layers.length > 4000 ? 2 : 8;
    for (let round = 0; round < rounds; round++) {
        const down = round % 2 === 0;
        for (const layer of down ? layers : [...layers].reverse()) {
            for (const item of layer) {
                const near = down ? item.up : item.down;
                item.key = near.length ? near.reduce((sum, other) => sum + other.at, 0) / near.length : item.at;
            }
            layer.sort((a, b) => a.key - b.key || a.at - b.at);
            layer.forEach((item, at) => (item.at = at));
        }
    }
}

// Moves each layer as near to its neighbours as its order and the gaps allow: the least squares, by
// joining what would overlap into blocks.
function place(layers) {
    for (const layer of layers) {
        let x = 0;
        for (const item of layer) { item.x = x + item.width / 2; x += item.width + NODE_GAP; }
        for (const item of layer) item.x -= x / 2;
    }
    const rounds = layers.length > 4000 ? 4 : 12;
    for (let round = 0; round < rounds; round++) {
        const down = round % 2 === 0;
        for (const layer of down ? layers : [...layers].reverse()) {
            const blocks = [];
            let offset = 0;
            for (const item of layer) {
                const near = round >= rounds - 2 ? [...item.up, ...item.down] : down ? item.up : item.down;
                const wish = near.length ? near.reduce((sum, other) => sum + other.x, 0) / near.length : item.x;
                const weight = (item.index < 0 ? 8 : 1) * (near.length ? 1 : 0.1);
                offset += item.width / 2;
                let block = { sum: (wish - offset) * weight, weight, members: [[item, offset]] };
                offset += item.width / 2 + NODE_GAP;
                while (blocks.length && blocks[blocks.length - 1].sum / blocks[blocks.length - 1].weight >= block.sum / block.weight) {
                    const last = blocks.pop();
                    for (const member of block.members) last.members.push(member);
                    block = { sum: last.sum + block.sum, weight: last.weight + block.weight, members: last.members };
                }
                blocks.push(block);
            }
            for (const block of blocks) for (const [item, own] of block.members) item.x = block.sum / block.weight + own;
        }
    }
}
