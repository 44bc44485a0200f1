// Flame charts: all of a run, its kernels, its steps. A click on a part makes it the whole width.
const ROW = 24, CHART = 1200;

function flame(device, scale, order, choose) {
    const steps = device.steps.map((step, index) => ({ ...step, index })).filter((step) => step.us > 0);
    const total = steps.reduce((sum, step) => sum + step.us, 0);
    const family = (step) => step.kernel;
    const groups = [];
    if (order === "kernel") {
        const all = new Map();
        for (const step of steps) all.set(family(step), [...(all.get(family(step)) || []), step]);
        const sum = (members) => members.reduce((sum, step) => sum + step.us, 0);
        for (const [name, members] of all) groups.push({ name, members: members.sort((a, b) => b.us - a.us), us: sum(members) });
        groups.sort((a, b) => b.us - a.us);
    } else {
        for (const step of steps) {
            const last = groups[groups.length - 1];
            if (last && last.name === family(step)) { last.members.push(step); last.us += step.us; }
            else groups.push({ name: family(step), members: [step], us: step.us });
        }
    }
    const parts = [{ row: 0, at: 0, us: total, name: `${device.name}: ${time(total)}`, fill: "#dee2e6" }];
    let at = 0;
    for (const group of groups) {
        const count = group.members.length;
        parts.push({ row: 1, at, us: group.us, name: group.name, fill: colour(group.name), more: `${count} steps` });
        for (const step of group.members) {
            parts.push({ row: 2, at, us: step.us, name: `${step.operation} ${step.type} ${step.shape}`, fill: colour(step.kernel), step, more: step.kernel });
            at += step.us;
        }
    }
    const chart = svg("svg", { class: "chart flame", viewBox: `0 0 ${CHART} ${3 * ROW}`, preserveAspectRatio: "none", height: 3 * ROW });
    const draw = (from, us) => {
        const factor = CHART / us;
        chart.replaceChildren();
        for (const part of parts) {
            const x0 = Math.max(0, (part.at - from) * factor), x1 = Math.min(CHART, (part.at + part.us - from) * factor);
            if (x1 <= 0 || x0 >= CHART || x1 - x0 < 0.15) continue;
            const box = svg("rect", { class: "item", x: x0, y: part.row * ROW, width: x1 - x0, height: ROW, fill: part.fill, "data-search": `${part.name} ${part.more || ""}` });
            box.addEventListener("click", () => {
                if (part.step && from === part.at) choose(part.step.index);
                draw(part.at, part.us);
            });
            const share = (100 * part.us / total).toFixed(1);
            chart.append(hint(box, `${part.name}\n${part.more || ""}\n${time(part.us)}, ${share} %`));
            const letters = Math.floor((x1 - x0) * (chart.clientWidth || CHART) / CHART / 6.4) - 1;
            if (letters > 2) chart.append(fixed(svg("text", { x: x0 + 3, y: part.row * ROW + 16 }, cut(part.name, letters)), chart, x0 + 3));
        }
    };
    draw(0, scale || total);
    chart.redraw = () => draw(0, scale || total);
    return chart;
}
// The chart is stretched; its letters are not.
function fixed(text, chart, x) {
    const stretch = CHART / (chart.clientWidth || CHART);
    text.setAttribute("transform", `translate(${x} 0) scale(${stretch} 1) translate(${-x} 0)`);
    return text;
}

function timeTab(root, choose) {
    let order = "order", isCommon = false;
    const draw = () => {
        const totals = data.devices.map((device) => device.steps.reduce((sum, step) => sum + (step.us || 0), 0));
        const toggle = (name, label) => element("button", { "aria-selected": order === name, onclick: () => { order = name; draw(); } }, label);
        const charts = data.devices.map((device) => flame(device, isCommon ? Math.max(...totals) : null, order, (step) => choose(device, step)));
        root.replaceChildren(
            element("div", {}, toggle("order", "in the order of the run"), toggle("kernel", "by kernel, the longest first"),
                data.devices.length > 1 ? element("button", { "aria-selected": isCommon, onclick: () => { isCommon = !isCommon; draw(); } }, "the same scale for both") : null),
            legend(data.devices.flatMap((device) => device.steps.map((step) => step.kernel))),
            ...charts.flatMap((chart, at) => [element("h2", {}, data.devices[at].name), chart]),
            element("p", { class: "note" }, `Medians of ${data.devices[0].runs} runs, one step after the other, with inputs of zeros. Click a part to see it alone, the top row to see all; a second click shows a step.`),
            ...data.devices.map((device) => kernelTable(device)));
        charts.forEach((chart) => chart.redraw());
    };
    root.addEventListener("shown", draw);
}

function kernelTable(device) {
    const rows = new Map();
    for (const step of device.steps) {
        const row = rows.get(step.kernel) || { kernel: step.kernel, count: 0, us: 0, arithmetic: 0, bytes: 0 };
        row.count++; row.us += step.us || 0; row.arithmetic += step.arithmetic; row.bytes += step.bytes;
        rows.set(step.kernel, row);
    }
    const all = [...rows.values()].sort((a, b) => b.us - a.us), total = all.reduce((sum, row) => sum + row.us, 0);
    return table([
        [`kernels of ${device.name}`, (row) => row.kernel, "wide"],
        ["steps", (row) => row.count, "number"],
        ["time", (row) => row.us, "number", time],
        ["share", (row) => row.us / total, "bar", (share) => (100 * share).toFixed(1) + " %"],
        ["Gop/s", (row) => (row.arithmetic && row.us ? row.arithmetic / row.us / 1e3 : 0), "number", (it) => (it ? it.toFixed(1) : "")],
        ["bytes", (row) => row.bytes, "number", (it) => (it ? size(it) : "")],
    ], all);
}
