// Memory over time: a box for each buffer, from the first step that uses it to the last.
function buffersOf(device, plan) {
    const buffers = new Map(), members = device.steps.map((step, index) => ({ step, index })).filter(({ step }) => step.plan === plan);
    const first = members.length ? members[0].index : 0, last = members.length ? members[members.length - 1].index : 0;
    const use = (value, index, writer) => {
        const known = buffers.get(value.buffer) || { from: value.bytes[0], to: value.bytes[1], first: writer === null ? first : index, last: index, writer, tensors: new Set() };
        known.from = Math.min(known.from, value.bytes[0]);
        known.to = Math.max(known.to, value.bytes[1]);
        known.last = value.is_kept ? last : Math.max(known.last, index);
        if (value.tensor !== null) known.tensors.add(value.tensor);
        buffers.set(value.buffer, known);
    };
    for (const { step, index } of members) {
        step.reads.forEach((value) => use(value, index, null));
        step.writes.forEach((value) => use(value, index, index));
    }
    const all = [...buffers.values()];
    for (const { step, index } of members) {
        if (step.scratch[1] > step.scratch[0]) all.push({ from: step.scratch[0], to: step.scratch[1], first: index, last: index, writer: index, tensors: new Set(), isScratch: true });
    }
    return { all, first, last, bytes: all.reduce((most, it) => Math.max(most, it.to), 0) };
}

function memoryChart(device, plan, choose) {
    const { all, first, last, bytes } = buffersOf(device, plan), HEIGHT = 420;
    if (!bytes) return null;
    const steps = last - first + 1, x = (step) => (step - first) / steps * CHART, y = (byte) => HEIGHT - byte / bytes * HEIGHT;
    const chart = svg("svg", { class: "chart memory", viewBox: `0 0 ${CHART} ${HEIGHT}`, preserveAspectRatio: "none", height: HEIGHT });
    const inUse = new Array(steps).fill(0);
    for (const it of all) {
        const step = it.writer === null ? null : device.steps[it.writer];
        const names = [...it.tensors].map((tensor) => data.graphs[0]?.tensors[tensor]?.name).filter(Boolean);
        const what = it.isScratch ? "scratch memory" : names.join(", ") || (step ? "values made by the plan" : "an input");
        const box = svg("rect", {
            class: "item", x: x(it.first), y: y(it.to), width: x(it.last + 1) - x(it.first), height: Math.max(0.5, y(it.from) - y(it.to)),
            fill: it.isScratch ? "#868e96" : step ? colour(step.kernel) : "#f1f3f5", "data-search": `${what} ${step ? step.kernel : ""}`,
        });
        if (step) box.addEventListener("click", () => choose(device, it.writer));
        chart.append(hint(box, `${what}\n${size(it.to - it.from)} at ${size(it.from)}\nsteps ${it.first} to ${it.last}` + (step ? `\nby ${step.kernel}` : "")));
        for (let at = it.first; at <= it.last; at++) inUse[at - first] += it.to - it.from;
    }
    let line = "";
    inUse.forEach((used, at) => { line += `${at ? "L" : "M"}${x(first + at)},${y(Math.min(used, bytes))}L${x(first + at + 1)},${y(Math.min(used, bytes))}`; });
    chart.append(svg("path", { d: line, fill: "none", stroke: "#e03131", "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" }));
    const peak = inUse.reduce((most, used) => Math.max(most, used), 0);
    return [
        element("h2", {}, `${device.name}: ${size(bytes)} for values` + (plan ? `, plan ${plan}` : "")),
        chart,
        element("p", { class: "note" }, `From left to right: the steps of a run. From bottom to top: the bytes of the memory in which a run keeps its values; a box is one buffer from the first step that needs it to the last. The red line is how much is needed: at most ${size(peak)}, ${(100 * peak / bytes).toFixed(0)} % of what is there. Weights are not in it.`),
    ];
}

function memoryTab(root, choose) {
    const shown = data.devices.flatMap((device) => {
        const plans = [...new Set(device.steps.map((step) => step.plan))];
        const charts = plans.map((plan) => memoryChart(device, plan, choose)).filter(Boolean);
        if (charts.length) return charts.flat();
        return [element("h2", {}, device.name), element("p", { class: "note" }, "This device has no plan of its memory: it takes memory as it goes.")];
    });
    const weights = (device) => device.steps.reduce((sum, step) => sum + step.weight_bytes, 0);
    root.append(...shown, ...data.devices.map((device) => element("p", { class: "note" }, `${device.name}: ${size(weights(device))} of weights were packed for kernels; prepared in ${time(device.prepare_us)}.`)));
}
