"""Writes detection.txt: calls of the region and detection operations with the values that they must give.

Usage: python3 detection.py > detection.txt     (needs NumPy)

Everything is computed here a second time, from the definitions and in double precision. calls.py says how
the file is to be read.

A `Kind` is a row of types. The numbers of a case are drawn so that each kind holds them exactly: scores and
maps are multiples of their quantized step, coordinates of 1/8, deltas of 1/32.
"""

import numpy as np

from calls import Call

random = np.random.default_rng(20261122)


class Kind:
    """The types of scores and maps, of coordinates, of scalars."""

    def __init__(self, name, main, coordinates, scalar, zero=0, tolerance=0.0):
        self.name, self.main, self.coordinates, self.scalar = name, main, coordinates, scalar
        self.zero, self.tolerance = zero, tolerance
        self.is_quantized = "QUANT" in main

    def quantized(self, type_, values, scale, zero):
        low, high = {
            "TENSOR_QUANT8_ASYMM": (0, 255),
            "TENSOR_QUANT8_ASYMM_SIGNED": (-128, 127),
            "TENSOR_QUANT16_ASYMM": (0, 65535),
            "TENSOR_QUANT16_SYMM": (-32768, 32767),
        }[type_]
        steps = np.round(np.asarray(values, float) / scale, 9)  # a half is a half, whatever the sums
        steps = np.floor(np.abs(steps) + 0.5) * np.sign(steps)  # halves away from zero
        return np.clip(steps + zero, low, high).astype(int)

    def line(self, call, kind, type_, values, scale, zero):
        if self.is_quantized:
            stored = self.quantized(type_, values, scale, zero)
            if kind == "in":
                assert np.array_equal((stored - zero) * scale, values), "the input is held exactly"
            call.line(kind, type_, stored, scale, zero)
        else:
            if kind == "in" and type_ == "TENSOR_FLOAT16":
                assert np.array_equal(np.float16(values), values), "the input is held exactly"
            call.line(kind, type_, values)

    def give(self, call, values, scale):
        self.line(call, "in", self.main, values, scale, self.zero)

    def expect(self, call, values, scale, zero=None):
        self.line(call, "out", self.main, values, scale, self.zero if zero is None else zero)

    def give_coordinates(self, call, values, type_=None):
        self.line(call, "in", type_ or self.coordinates, values, 0.125, 0)

    def expect_coordinates(self, call, values):
        self.line(call, "out", self.coordinates, values, 0.125, 0)

    def give_scalars(self, call, *values):
        for value in values:
            call.line("in", self.scalar, float(value))


KINDS = [
    Kind("float32", "TENSOR_FLOAT32", "TENSOR_FLOAT32", "FLOAT32", tolerance=1e-5),
    Kind("float16", "TENSOR_FLOAT16", "TENSOR_FLOAT16", "FLOAT16", tolerance=1e-3),
    Kind("quantized", "TENSOR_QUANT8_ASYMM", "TENSOR_QUANT16_ASYMM", "FLOAT32", zero=100),
    Kind("quantized, signed", "TENSOR_QUANT8_ASYMM_SIGNED", "TENSOR_QUANT16_ASYMM", "FLOAT32", zero=-28),
]
DELTA_STEP = 1 / 32


def steps(least, greatest, *shape, step=0.125):
    return random.integers(round(least / step), round(greatest / step) + 1, shape) * step


def draw_boxes(count, height, width):
    """Boxes within an image, none of them thin: x1, y1, x2, y2."""
    x1, y1 = steps(0, width - 3, count), steps(0, height - 3, count)
    far_x = np.array([steps(x + 2, width)[()] for x in x1])
    far_y = np.array([steps(y + 2, height)[()] for y in y1])
    return np.stack([x1, y1, far_x, far_y], axis=1)


def draw_scores(*shape):
    """No two alike, multiples of 1/256 up to 155/256, which every kind holds."""
    count = int(np.prod(shape))
    return random.permutation(np.arange(1, 156))[:count].reshape(shape) / 256


def to_nchw(values):
    return np.moveaxis(values, 3, 1)


# Boxes


def transform(boxes, deltas):
    """Boxes [..., 4] by deltas [..., 4]."""
    x1, y1, x2, y2 = np.moveaxis(boxes, -1, 0)
    dx, dy, dw, dh = np.moveaxis(deltas, -1, 0)
    width, height = x2 - x1, y2 - y1
    x, y = (x1 + x2) / 2 + dx * width, (y1 + y2) / 2 + dy * height
    w, h = np.exp(dw) * width, np.exp(dh) * height
    return np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], axis=-1)


def clip_to(boxes, size):
    height, width = size
    return np.clip(boxes, 0, [width, height, width, height])


def overlaps(box, others):
    """Intersection over union of one box with each of others."""
    corner = np.maximum(box[:2], others[:, :2])
    opposite = np.minimum(box[2:], others[:, 2:])
    common = np.prod(np.maximum(opposite - corner, 0), axis=1)
    area = lambda boxes: (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])
    return common / (area(box) + area(others) - common)


def suppress(scores, boxes, limit, factor, least):
    """Indexes and scores in the order in which they are selected; the scores by then."""
    scores = scores.copy()
    pending = list(range(len(scores)))
    selected = []
    while pending and (limit is None or len(selected) < limit):
        best = max(pending, key=lambda index: scores[index])
        pending.remove(best)
        selected.append((best, scores[best]))
        for index in list(pending):
            scores[index] *= factor(overlaps(boxes[best], boxes[index][None])[0])
            if scores[index] < least:
                pending.remove(index)
    return selected


def hard(threshold):
    return lambda overlap: 1.0 if overlap < threshold else -np.inf


def axis_aligned_bbox_transform(kind):
    call = Call("AXIS_ALIGNED_BBOX_TRANSFORM", kind.name, kind.tolerance)
    sizes = np.array([[40.0, 60.0], [50.0, 30.0]])
    regions = draw_boxes(6, 60, 70)
    deltas = steps(-1.5, 1.5, 6, 3, 4, step=DELTA_STEP)
    indexes = np.array([0, 1, 1, 0, 1, 0])
    kind.give_coordinates(call, regions)
    kind.give(call, deltas.reshape(6, 12), DELTA_STEP)
    call.give("TENSOR_INT32", indexes)
    kind.give_coordinates(call, sizes)
    moved = transform(np.repeat(regions[:, None], 3, axis=1), deltas)
    found = [clip_to(boxes, sizes[index]) for boxes, index in zip(moved, indexes)]
    kind.expect_coordinates(call, np.reshape(found, (6, 12)))


KERNELS = ["hard", "linear", "Gaussian"]


def box_with_nms_limit(kind, kernel, limit):
    call = Call("BOX_WITH_NMS_LIMIT", f"{kind.name}, {KERNELS[kernel]}, limit {limit}", kind.tolerance)
    count, classes = 16, 4
    scores = np.stack([draw_scores(count) for _ in range(classes)], axis=1)
    boxes = np.stack([draw_boxes(count, 14, 14) for _ in range(classes)], axis=1)
    indexes = np.array([2] * 7 + [0] * 1 + [5] * 8)
    threshold, overlap, sigma, least = 0.125, 0.375, 0.5, 0.0625
    kind.give(call, scores, 1 / 256)
    kind.give_coordinates(call, boxes.reshape(count, 4 * classes))
    call.give("TENSOR_INT32", indexes)
    kind.give_scalars(call, threshold)
    call.give("INT32", -1 if limit is None else limit)
    call.give("INT32", kernel)
    kind.give_scalars(call, overlap, sigma, least)
    factor = [
        lambda iou: 1.0 if iou < overlap else 0.0,
        lambda iou: 1.0 if iou < overlap else 1 - iou,
        lambda iou: np.exp(-iou * iou / sigma),
    ][kernel]
    rows = []
    for image in (2, 0, 5):
        of_image = np.flatnonzero(indexes == image)
        found = []
        for label in range(1, classes):
            chosen = of_image[scores[of_image, label] > threshold]
            selected = suppress(scores[chosen, label], boxes[chosen, label], limit, factor, least)
            found += [(score, boxes[chosen[at], label], label, image) for at, score in selected]
        found.sort(key=lambda row: -row[0])
        found = found[:limit]
        rows += sorted(found, key=lambda row: (row[2], -row[0]))
    kind.expect(call, np.array([row[0] for row in rows]), 1 / 256)
    kind.expect_coordinates(call, np.array([row[1] for row in rows]))
    call.expect("TENSOR_INT32", np.array([row[2] for row in rows]))
    call.expect("TENSOR_INT32", np.array([row[3] for row in rows]))


def detection_postprocessing(kind, is_regular, has_background, limit=6, of_box=2, of_class=4):
    about = f"{kind.name}, {'regular' if is_regular else 'fast'}, background {has_background}"
    call = Call("DETECTION_POSTPROCESSING", about, kind.tolerance)
    batch, count, classes = 2, 9, 4
    scores = np.stack([draw_scores(count, classes) for _ in range(batch)])
    deltas = steps(-1.5, 1.5, batch, count, 5, step=DELTA_STEP)
    corners = draw_boxes(count, 16, 16)
    size = corners[:, 2:] - corners[:, :2]
    middle = corners[:, :2] + size / 2
    anchors = np.concatenate([middle[:, ::-1], size[:, ::-1]], axis=1)  # y, x, height, width
    scales = np.array([10.0, 8.0, 5.0, 4.0])
    threshold, overlap = 0.125, 0.3125
    kind.give(call, scores, 0)
    kind.give(call, deltas, 0)
    kind.give(call, anchors, 0)
    kind.give_scalars(call, *scales)
    call.give("BOOL", int(is_regular))
    for number in (limit, of_box, of_class):
        call.give("INT32", number)
    kind.give_scalars(call, threshold, overlap)
    call.give("BOOL", int(has_background))
    room = limit if is_regular else limit * of_box
    outputs = np.zeros((batch, room)), np.zeros((batch, room, 4)), np.zeros((batch, room), int)
    numbers = []
    for image in range(batch):
        dy, dx, dh, dw = (deltas[image, :, :4] / scales).T
        y, x, height, width = anchors.T
        y, x = y + dy * height, x + dx * width
        height, width = height * np.exp(dh), width * np.exp(dw)
        boxes = np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], axis=1)
        found = []
        if is_regular:
            for label in range(1, classes):
                chosen = np.flatnonzero(scores[image, :, label] > threshold)
                selected = suppress(
                    scores[image, chosen, label], boxes[chosen], of_class, hard(overlap), 0
                )
                found += [(score, boxes[chosen[at]], label) for at, score in selected]
            found = sorted(found, key=lambda row: -row[0])[:limit]
        else:
            best = scores[image, :, 1:].max(axis=1)
            chosen = np.flatnonzero(best > threshold)
            for at, _ in suppress(best[chosen], boxes[chosen], limit, hard(overlap), 0):
                of_all = scores[image, chosen[at]]
                labels = sorted(range(1, classes), key=lambda label: -of_all[label])[:of_box]
                found += [(of_all[label], boxes[chosen[at]], label) for label in labels]
        for at, (score, box, label) in enumerate(found):
            outputs[0][image, at], outputs[1][image, at] = score, box
            outputs[2][image, at] = label if has_background else label - 1
        numbers.append(len(found))
    kind.expect(call, outputs[0], 0)
    kind.expect(call, outputs[1], 0)
    call.expect("TENSOR_INT32", outputs[2])
    call.expect("TENSOR_INT32", np.array(numbers))


def generate_proposals(kind, is_nchw, limit_before, limit):
    about = f"{kind.name}, {'NCHW' if is_nchw else 'NHWC'}, limits {limit_before} and {limit}"
    call = Call("GENERATE_PROPOSALS", about, kind.tolerance)
    batch, height, width, count = 2, 4, 3, 3
    scores = np.stack([draw_scores(height, width, count) for _ in range(batch)])
    deltas = steps(-0.75, 0.75, batch, height, width, count, 4, step=DELTA_STEP)
    anchors = np.array([[-4.0, -4, 4, 4], [-6, -2, 6, 2], [-1, -5, 3, 7.5]])
    sizes = np.array([[32.0, 30.0], [24.0, 36.0]])
    down, across, overlap, least = 8.0, 10.0, 0.25, 3.0
    layout = to_nchw if is_nchw else lambda values: values
    kind.give(call, layout(scores), 1 / 256)
    kind.give(call, layout(deltas.reshape(batch, height, width, 4 * count)), DELTA_STEP)
    kind.give_coordinates(call, anchors, "TENSOR_QUANT16_SYMM" if kind.is_quantized else None)
    kind.give_coordinates(call, sizes)
    kind.give_scalars(call, down, across)
    call.give("INT32", limit_before or 0)
    call.give("INT32", limit or -1)
    kind.give_scalars(call, overlap, least)
    call.give("BOOL", int(is_nchw))
    y, x = np.meshgrid(np.arange(height) * down, np.arange(width) * across, indexing="ij")
    shifted = anchors + np.stack([x, y, x, y], axis=-1)[:, :, None]
    rows = []
    for image in range(batch):
        boxes = clip_to(transform(shifted, deltas[image]), sizes[image]).reshape(-1, 4)
        flat = scores[image].ravel()
        best = np.argsort(-flat)[:limit_before]
        extent, middle = boxes[:, 2:] - boxes[:, :2], (boxes[:, 2:] + boxes[:, :2]) / 2
        sound = (extent > least).all(axis=1) & (middle < sizes[image][::-1]).all(axis=1)
        chosen = np.array([index for index in best if sound[index]])
        selected = suppress(flat[chosen], boxes[chosen], limit, hard(overlap), 0)
        rows += [(score, boxes[chosen[at]], image) for at, score in selected]
    kind.expect(call, np.array([row[0] for row in rows]), 1 / 256)
    kind.expect_coordinates(call, np.array([row[1] for row in rows]))
    call.expect("TENSOR_INT32", np.array([row[2] for row in rows]))


# Feature maps


def heatmap_max_keypoint(kind, is_nchw):
    call = Call("HEATMAP_MAX_KEYPOINT", f"{kind.name}, {'NCHW' if is_nchw else 'NHWC'}", kind.tolerance)
    count, size, keypoints = 3, 5, 4
    maps = steps(-5, 7, count, size, size, keypoints, step=0.125)
    # Greatest cells in corners, at edges and within, and no two alike.
    for box in range(count):
        for keypoint in range(keypoints):
            y, x = [(0, 0), (4, 1), (2, 3), (1, 4)][(box + keypoint) % 4]
            maps[box, y, x, keypoint] = 8 + (box + keypoint) / 4
    boxes = draw_boxes(count, 60, 60)
    kind.give(call, to_nchw(maps) if is_nchw else maps, 0.125)
    kind.give_coordinates(call, boxes)
    call.give("BOOL", int(is_nchw))
    scores, places = np.zeros((count, keypoints)), np.zeros((count, keypoints, 2))
    for box in range(count):
        for keypoint in range(keypoints):
            field = maps[box, :, :, keypoint]
            y, x = np.unravel_index(field.argmax(), field.shape)
            around = np.pad(field, 1, mode="reflect")[y : y + 3, x : x + 3]
            gradient = np.array([around[1, 2] - around[1, 0], around[2, 1] - around[0, 1]]) / 2
            mixed = (around[2, 2] + around[0, 0] - around[2, 0] - around[0, 2]) / 4
            bend = np.array([
                [around[1, 0] + around[1, 2] - 2 * around[1, 1], mixed],
                [mixed, around[0, 1] + around[2, 1] - 2 * around[1, 1]],
            ])
            assert abs(np.linalg.det(bend)) > 0.1, "what is all but singular has tests of its own"
            shift = -np.linalg.solve(bend, gradient)
            shift *= min(1, 1.5 / np.abs(shift).max()) if shift.any() else 1
            scores[box, keypoint] = field[y, x] + gradient @ shift + shift @ bend @ shift / 2
            corner, opposite = boxes[box, :2], boxes[box, 2:]
            place = (np.array([x, y]) + shift + 0.5) / size
            places[box, keypoint] = corner + place * (opposite - corner)
    kind.expect(call, scores, 0.25, 3)
    kind.expect_coordinates(call, places)


def region_inputs(call, kind, is_nchw, strides):
    batch, height, width, depth = 3, 6, 8, 2
    maps = steps(-5, 7, batch, height, width, depth, step=0.125)
    regions = draw_boxes(5, height * strides[0], width * strides[1])
    regions[3, 2:] = regions[3, :2]  # without extent
    regions[4] = 0, 0, width * strides[1], height * strides[0]
    indexes = np.array([0, 0, 1, 2, 2])
    kind.give(call, to_nchw(maps) if is_nchw else maps, 0.125)
    kind.give_coordinates(call, regions)
    call.give("TENSOR_INT32", indexes)
    return maps, regions, indexes


def roi_align(kind, is_nchw, samples):
    about = f"{kind.name}, {'NCHW' if is_nchw else 'NHWC'}, samples {samples}"
    call = Call("ROI_ALIGN", about, kind.tolerance)
    bins, strides = (3, 2), (4.0, 2.0)
    maps, regions, indexes = region_inputs(call, kind, is_nchw, strides)
    for number in bins:
        call.give("INT32", number)
    kind.give_scalars(call, *strides)
    for number in samples:
        call.give("INT32", number)
    call.give("BOOL", int(is_nchw))

    def points(start, end, bins, samples):
        """The points of each bin along one axis."""
        size = max(end - start, 1) / bins
        samples = samples or int(np.ceil(size))
        return [start + (at + (np.arange(samples) + 0.5) / samples) * size for at in range(bins)]

    def value(field, y, x):
        y, x = min(y, field.shape[0] - 1), min(x, field.shape[1] - 1)
        above, left = int(y), int(x)
        below, right = min(above + 1, field.shape[0] - 1), min(left + 1, field.shape[1] - 1)
        rows = [field[row, left] * (1 - x % 1) + field[row, right] * (x % 1) for row in (above, below)]
        return rows[0] * (1 - y % 1) + rows[1] * (y % 1)

    result = np.zeros((len(regions), *bins, maps.shape[3]))
    for at, (region, index) in enumerate(zip(regions, indexes)):
        x1, y1, x2, y2 = region / np.array([strides[1], strides[0]] * 2)
        for row, ys in enumerate(points(y1, y2, bins[0], samples[0])):
            for column, xs in enumerate(points(x1, x2, bins[1], samples[1])):
                values = [value(maps[index], y, x) for y in ys for x in xs]
                result[at, row, column] = np.mean(values, axis=0)
    kind.expect(call, to_nchw(result) if is_nchw else result, 0.125)


def roi_pooling(kind, is_nchw):
    call = Call("ROI_POOLING", f"{kind.name}, {'NCHW' if is_nchw else 'NHWC'}", kind.tolerance)
    bins, strides = (3, 2), (4.0, 2.0)
    maps, regions, indexes = region_inputs(call, kind, is_nchw, strides)
    for number in bins:
        call.give("INT32", number)
    kind.give_scalars(call, *strides)
    call.give("BOOL", int(is_nchw))

    def cells(start, end, bins, length):
        first, last = int(np.floor(start + 0.5)), int(np.floor(end + 0.5))
        count = max(last - first + 1, 1)
        bounds = [(at * count // bins, -(-(at + 1) * count // bins)) for at in range(bins)]
        return [range(first + low, min(first + high, length)) for low, high in bounds]

    result = np.zeros((len(regions), *bins, maps.shape[3]))
    for at, (region, index) in enumerate(zip(regions, indexes)):
        x1, y1, x2, y2 = region / np.array([strides[1], strides[0]] * 2)
        for row, ys in enumerate(cells(y1, y2, bins[0], maps.shape[1])):
            for column, xs in enumerate(cells(x1, x2, bins[1], maps.shape[2])):
                if len(ys) and len(xs):
                    result[at, row, column] = maps[index][np.ix_(ys, xs)].max(axis=(0, 1))
    kind.expect(call, to_nchw(result) if is_nchw else result, 0.125)


print("# Written by detection.py; calls.py says how to read it.")
for kind in KINDS:
    axis_aligned_bbox_transform(kind)
    for kernel in range(3):
        box_with_nms_limit(kind, kernel, None)
    box_with_nms_limit(kind, 0, 3)
    box_with_nms_limit(kind, 1, 4)
    box_with_nms_limit(kind, 2, 2)
for kind in KINDS[:2]:
    for is_regular in (True, False):
        for has_background in (False, True):
            detection_postprocessing(kind, is_regular, has_background)
    detection_postprocessing(kind, True, False, limit=20, of_class=1)
    detection_postprocessing(kind, False, False, limit=3, of_box=5)
for kind in KINDS:
    for is_nchw in (False, True):
        generate_proposals(kind, is_nchw, None, None)
        generate_proposals(kind, is_nchw, 12, 5)
        heatmap_max_keypoint(kind, is_nchw)
        roi_align(kind, is_nchw, (0, 0))
        roi_align(kind, is_nchw, (3, 2))
        roi_pooling(kind, is_nchw)
