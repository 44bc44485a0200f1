// A table that is sorted by a click on its head. A column: head, value, kind, how it is shown.
function table(columns, rows, onRow, rowClass) {
    let shown = rows, by = -1, turn = 1;
    const body = element("tbody");
    const draw = () => body.replaceChildren(...shown.map((row) => element("tr", {
        class: "row " + (rowClass ? rowClass(row) : ""), onclick: () => onRow?.(row),
    }, columns.map(([, value, kind, show]) => {
        const it = value(row), cell = element("td", { class: kind === "bar" ? "number barcell" : kind || "" }, String(show ? show(it) : it));
        if (kind === "bar") cell.style.setProperty("--share", (100 * it).toFixed(2) + "%");
        return cell;
    }))));
    const sort = (column) => {
        turn = by === column ? -turn : isNumber(columns[column][2]) ? -1 : 1;
        by = column;
        const value = columns[column][1], compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
        shown = [...rows].sort((a, b) => turn * compare(value(a), value(b)));
        draw();
    };
    draw();
    const heads = columns.map(([head, , kind], column) => element("th", { class: isNumber(kind) ? "number" : "", onclick: () => sort(column) }, head));
    return element("table", {}, element("thead", {}, element("tr", {}, heads)), body);
}
const isNumber = (kind) => kind === "number" || kind === "bar";

function planTab(root, choose) {
    for (const device of data.devices) {
        const total = device.steps.reduce((sum, step) => sum + (step.us || 0), 0);
        const rows = device.steps.map((step, index) => ({ ...step, index }));
        root.append(
            element("h2", {}, `${device.name} ${device.version}: ${device.steps.length} steps, ${time(total)}`),
            table([
                ["step", (row) => row.index, "number"],
                ["operation", (row) => `${row.operation < 0 ? "" : row.operation + " "}${row.type}`],
                ["kernel", (row) => row.kernel, "wide"],
                ["result", (row) => row.shape],
                ["time", (row) => row.us || 0, "number", time],
                ["share", (row) => (row.us || 0) / (total || 1), "bar", (share) => (100 * share).toFixed(1) + " %"],
                ["Mop", (row) => row.arithmetic / 1e6, "number", (it) => (it ? it.toFixed(2) : "")],
                ["Gop/s", (row) => (row.arithmetic && row.us ? row.arithmetic / row.us / 1e3 : 0), "number", (it) => (it ? it.toFixed(1) : "")],
                ["bytes", (row) => row.bytes, "number", (it) => (it ? size(it) : "")],
            ], rows, (row) => choose(device, row.index)));
    }
}

function tensorsTab(root) {
    for (const graph of data.graphs) {
        const writer = new Map(), readers = new Map();
        graph.nodes.forEach((node, index) => {
            node.outputs.forEach((tensor) => writer.set(tensor, `${index} ${node.name}`));
            node.inputs.forEach((tensor) => readers.set(tensor, (readers.get(tensor) || 0) + 1));
        });
        const role = (index) => (graph.inputs.includes(index) ? "input" : graph.outputs.includes(index) ? "output" : graph.tensors[index].is_variable ? "variable" : graph.tensors[index].bytes ? "constant" : "");
        const rows = graph.tensors.map((tensor, index) => ({ ...tensor, index, role: role(index) }));
        root.append(
            element("h2", {}, `${graph.name}: ${rows.length} tensors`),
            table([
                ["tensor", (row) => row.index, "number"],
                ["name", (row) => row.name, "wide"],
                ["", (row) => row.role],
                ["type", (row) => row.type],
                ["shape", (row) => row.shape || "scalar"],
                ["quantization", (row) => row.quantization, "wide"],
                ["bytes in the file", (row) => row.bytes || 0, "number", (it) => (it ? number(it) : "")],
                ["from", (row) => writer.get(row.index) || ""],
                ["readers", (row) => readers.get(row.index) || 0, "number"],
            ], rows));
    }
}

function differencesTab(root) {
    const it = data.differences, [judge, judged] = it.devices;
    const verdict = it.agree ? element("span", { class: "good" }, "agree") : element("span", { class: "bad" }, "differ");
    const columns = (value) => [
        ["result", (row) => cut(value(row).name || "", 60), "wide"],
        ["type", (row) => value(row).type || ""],
        ["shape", (row) => value(row).shape.join("×")],
        ["off by", (row) => value(row).off ?? Infinity, "number", (off) => (off === Infinity ? "–" : small(off))],
        ["of the largest magnitude", (row) => value(row).of_magnitude ?? Infinity, "number", (off) => (off === Infinity ? "–" : small(off))],
        ["allowed", (row) => value(row).allowed, "number", small],
        ["why", (row) => value(row).what || value(row).reason, "wide"],
    ];
    root.append(
        element("h2", {}, `outputs of ${judge} and ${judged} `, verdict),
        table(columns((row) => row), it.outputs, null, (row) => (row.agree ? "" : "differs")));
    if (it.responsible?.step) {
        const step = it.responsible.step;
        root.append(element("p", { class: "bad" }, `responsible: operation ${step.operation} ${step.operation_type}: from the same values ${it.responsible.device} computes something else`));
    }
    root.append(
        element("h2", {}, `${it.steps.length} results on the way, from the first to the last`),
        table([["operation", (row) => `${row.operation} ${row.operation_type}`], ...columns((row) => row.result)], it.steps, null, (row) => (row.result.agree ? "" : "differs")),
        element("p", { class: "note" }, "Both devices had the same random inputs, and go on from their own results: what is off here may come from a step before."));
}
