//! NON_MAX_SUPPRESSION_V4, NON_MAX_SUPPRESSION_V5: of boxes that overlap those with the highest scores.
//!
//! | operand | name | shape | types |
//! |---|---|---|---|
//! | input 0 | boxes | `[boxes, 4]`: two opposite corners, `y1, x1, y2, x2` | TENSOR_FLOAT32 |
//! | input 1 | scores | `[boxes]` | TENSOR_FLOAT32 |
//! | input 2 | limit | `[1]`: most boxes that are chosen | TENSOR_INT32 |
//! | input 3 | overlap threshold | `[1]`: from this intersection over union on a box is dropped | TENSOR_FLOAT32 |
//! | input 4 | score threshold | `[1]`: only higher scores compete | TENSOR_FLOAT32 |
//! | input 5 | sigma | `[1]`, V5: above 0, an overlap multiplies the score by `exp(-overlap^2 / (2 sigma))` | TENSOR_FLOAT32 |
//! | output 0 | indexes | `[limit]`, 0 behind the chosen ones | TENSOR_INT32 |
//! | V5: output 1 | scores | `[limit]`, 0 behind the chosen ones | TENSOR_FLOAT32 |
//! | last output | count | `[1]`: how many are chosen | TENSOR_INT32 |
//!
//! A box that is empty overlaps none. Of equal scores the box that comes first is chosen first.

use crate::call::{Argument, Call, Output};
use crate::error::Fault;
use crate::operation::Operation;
use crate::shape::Shape;

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NonMaxSuppression {
    /// Most boxes that are chosen.
    pub limit: u32,
    /// From this overlap on a box is dropped.
    pub overlap: f32,
    /// Only higher scores compete.
    pub score: f32,
    /// Above 0: how wide the curve is by which overlaps lower scores. V4 has none.
    pub sigma: Option<f32>,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    index: usize,
    score: f32,
    /// How many of the chosen ones it has been compared with.
    compared: usize,
}

fn float(argument: &Argument<'_>) -> Result<f32, Fault> {
    match argument.f32s()?[..] {
        [one] => Ok(one),
        _ => Err(argument.wrong("shape", &argument.shape, "one element")),
    }
}

impl Operation for NonMaxSuppression {
    fn validate(call: &Call<'_>) -> Result<(), Fault> {
        let (boxes, scores) = (call.input(0), call.input(1));
        boxes.expect_rank(2)?;
        boxes.expect_length(1, Some(4))?;
        scores.expect_rank(1)?;
        scores.expect_length(0, boxes.shape.length(0))
    }

    fn decode(call: &Call<'_>) -> Result<Self, Fault> {
        let limit = call.input(2);
        let [given] = limit.i32s()?[..] else {
            return Err(limit.wrong("shape", &limit.shape, "one element"));
        };
        Ok(Self {
            limit: u32::try_from(given).map_err(|_| limit.wrong("value", given, "0 or more"))?,
            overlap: float(call.input(3))?,
            score: float(call.input(4))?,
            sigma: call.optional(5).map(float).transpose()?,
        })
    }

    fn output_shapes(&self, call: &Call<'_>) -> Result<Vec<Shape>, Fault> {
        let mut shapes = vec![Shape::known([self.limit]); call.outputs().len()];
        if let Some(last) = shapes.last_mut() {
            *last = Shape::known([1]);
        }
        Ok(shapes)
    }

    fn reference(&self, call: &Call<'_>) -> Result<Vec<Output>, Fault> {
        Self::validate(call)?;
        let boxes = call.input(0).f32s()?;
        let (corners, _) = boxes.as_chunks::<4>();
        let chosen = self.choose(call, corners, &call.input(1).f32s()?)?;
        let lengths = vec![self.limit];
        let indexes = chosen.iter().map(|it| i32::try_from(it.index).unwrap_or(i32::MAX));
        let indexes = indexes.chain(std::iter::repeat(0));
        let (first, last) = (call.output(0), call.output(call.outputs().len() - 1));
        let indexes = first.collect(&lengths, indexes)?;
        let mut outputs = vec![first.with_integers(lengths.clone(), &indexes)?];
        if self.sigma.is_some() {
            let scores = chosen.iter().map(|it| it.score).chain(std::iter::repeat(0.0));
            let scores = call.output(1).collect(&lengths, scores)?;
            outputs.push(call.output(1).with_f32s(lengths, &scores)?);
        }
        let count = i32::try_from(chosen.len()).unwrap_or(i32::MAX);
        outputs.push(last.with_integers(vec![1], &[count])?);
        Ok(outputs)
    }
}

impl NonMaxSuppression {
    fn choose(
        &self,
        call: &Call<'_>,
        corners: &[[f32; 4]],
        scores: &[f32],
    ) -> Result<Vec<Candidate>, Fault> {
        let mut pending: Vec<Candidate> = call.room(scores.len())?;
        call.each(scores.iter().enumerate(), |(index, score)| {
            if *score > self.score {
                pending.push(Candidate { index, score: *score, compared: 0 });
            }
        })?;
        let limit = pending.len().min(self.limit as usize);
        let mut chosen: Vec<Candidate> = call.room(limit)?;
        let sigma = self.sigma.filter(|sigma| *sigma > 0.0);
        while chosen.len() < limit {
            let mut best: Option<(usize, Candidate)> = None;
            call.each(pending.iter().enumerate(), |(place, candidate)| {
                let is_better = best.is_none_or(|(_, best)| {
                    candidate.score > best.score
                        || candidate.score == best.score && candidate.index < best.index
                });
                if is_better {
                    best = Some((place, *candidate));
                }
            })?;
            let Some((place, mut candidate)) = best else { break };
            pending.swap_remove(place);
            let before = candidate.score;
            let mut is_dropped = false;
            for other in chosen[candidate.compared..].iter().rev() {
                call.work(16)?;
                let overlap = overlap(&corners[candidate.index], &corners[other.index]);
                if overlap >= self.overlap {
                    is_dropped = true;
                    break;
                }
                if let Some(sigma) = sigma {
                    candidate.score *= (-0.5 / sigma * overlap * overlap).exp();
                }
                if candidate.score <= self.score {
                    break;
                }
            }
            candidate.compared = chosen.len();
            if is_dropped {
                continue;
            }
            // Whatever was lowered has to stand against the others anew.
            if candidate.score.to_bits() == before.to_bits() {
                chosen.push(candidate);
            } else if candidate.score > self.score {
                pending.push(candidate);
            }
        }
        Ok(chosen)
    }
}

/// Intersection over union of two boxes.
fn overlap(a: &[f32; 4], b: &[f32; 4]) -> f32 {
    let sides = |[y1, x1, y2, x2]: &[f32; 4]| [y1.min(*y2), x1.min(*x2), y1.max(*y2), x1.max(*x2)];
    let (a, b) = (sides(a), sides(b));
    let area = |it: [f32; 4]| (it[2] - it[0]) * (it[3] - it[1]);
    let (of_a, of_b) = (area(a), area(b));
    if of_a <= 0.0 || of_b <= 0.0 {
        return 0.0;
    }
    let height = (a[2].min(b[2]) - a[0].max(b[0])).max(0.0);
    let width = (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    let both = height * width;
    both / (of_a + of_b - both)
}
