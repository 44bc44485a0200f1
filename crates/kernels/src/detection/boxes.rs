//! Boxes: how they come out of deltas and anchors, and how much they overlap.

/// Left, upper, right and lower edge.
pub(super) type Edges = [f32; 4];

/// The box of an anchor, which is centre y, centre x, height and width, by its deltas divided by scales.
pub(super) fn edges(scales: [f32; 4], [y, x, height, width]: [f32; 4], deltas: &[f32]) -> Edges {
    let delta = |index: usize| deltas[index] / scales[index];
    let (y, x) = (y + height * delta(0), x + width * delta(1));
    let half_height = height * delta(2).exp() / 2.0;
    let half_width = width * delta(3).exp() / 2.0;
    [x - half_width, y - half_height, x + half_width, y + half_height]
}

/// The common area of two boxes divided by the area of both together; 0 where that is nothing.
pub(super) fn overlap(a: Edges, b: Edges) -> f32 {
    let width = a[2].min(b[2]) - a[0].max(b[0]);
    let height = a[3].min(b[3]) - a[1].max(b[1]);
    let common = width.max(0.0) * height.max(0.0);
    let area = |[x1, y1, x2, y2]: Edges| (x2 - x1) * (y2 - y1);
    let together = area(a) + area(b) - common;
    if together > 0.0 { common / together } else { 0.0 }
}
